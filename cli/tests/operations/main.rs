//! The gateway as a platform team runs it: keys, reload, shutdown, admission. The real binary with real processes behind it.
//!
//! Every wait has a deadline, and no test sleeps to wait for something.
#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "../cli/bench.rs"]
mod bench;

mod admission;
mod clients;
mod exposure;
mod http_client;
mod init;
mod keys;
mod reload;
mod running;
mod shutdown;

//! Several gateway nodes on one PostgreSQL, or one on SQLite, as a platform team runs them: the
//! real binary, real processes behind it, and failures.
//!
//! Every wait has a deadline, and no test sleeps to wait for something.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "../cli/bench.rs"]
mod bench;
#[path = "../operations/http_client.rs"]
mod http_client;

mod approving;
mod fleet;
mod kill_switch;
mod loss;
mod owners;
mod rates;
mod spreading;

//! `hosts`, `wire` and `unwire` with the real binary: configuration files in the test's home, real
//! hosts if installed, and killed processes.
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

mod files;
mod killed;
mod real_hosts;

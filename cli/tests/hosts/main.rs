//! `hosts`, `wire` and `unwire` with the real binary: configuration files in a home of the test's own, real hosts where they
//! are installed, a process that is killed.
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

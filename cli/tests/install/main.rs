//! Installing, running and removing: the installer, the watcher, `doctor` and `uninstall`, with
//! hosts' files in their own home, and a service manager that only records its commands.
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

mod doctor;
mod installer;
mod packages;
mod release;
mod station;
mod uninstall;
mod watch;

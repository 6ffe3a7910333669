//! The real binary, end to end: with scripted and real servers, with captures, and at a terminal.
//!
//! Every test has its own home, waits only for responses, and uses only the loopback device.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

mod agent;
mod bench;

mod calls;
mod captures;
mod csp;
#[cfg(target_os = "linux")]
mod egress;
mod evidence;
mod help;
mod home;
mod incident;
mod json;
mod keys;
mod lifecycle;
mod measuring;
mod policy;
mod posture;
mod privacy;
#[cfg(unix)]
mod pty;
mod real_servers;
mod receipts;
mod screening;
mod scribe;
#[cfg(unix)]
mod secrets;
mod server_text;
mod servers;
mod stats;
mod store;
#[cfg(unix)]
mod terminal;
mod unreadable;
mod widths;

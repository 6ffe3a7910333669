//! The real binary, end to end: with servers that are scripted, with real ones, with captures, at a terminal.
//!
//! Every test has a home of its own, waits for nothing but answers, and talks to nobody but the loopback device.
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

//! The gate, end to end: `holdpoint run` between a client and a server, either of which may
//! misbehave.
//!
//! Every wait has a deadline, so no test can hang, and no test sleeps to wait for something.
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

#[path = "../../../wire/tests/remote/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests of the crate itself use all of it")]
mod http_server;

mod addresses;
mod admission;
mod admission_package;
mod admission_tls;
mod admission_told;
mod battery;
mod behavior;
mod capabilities;
mod client;
mod confined;
mod decisions;
mod faults;
mod first_approval;
mod freshness;
mod headers;
mod load;
mod network;
mod notices;
mod panics;
mod peers;
mod pins;
mod processes;
mod questions;
#[cfg(target_os = "linux")]
mod rebinding;
mod scenario;
mod script;
mod secure_server;
mod several_hosts;
mod starting;
mod stopped;
mod surface;
mod transparency;

//! A running directory over HTTP: the network's routes, claims and the operator's commands, with
//! the real binary.
//!
//! Everything is on loopback: the directory, a server that it crawls, the server's claims file, and
//! a resolver.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "../cli/bench.rs"]
mod bench;
mod claims;
mod crawls;
mod installs;
mod network;
mod station;
mod strangers;

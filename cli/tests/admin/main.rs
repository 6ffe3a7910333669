//! The gateway's admin API, its metrics, and the commands that use them, with the real binary over
//! HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

mod access;
#[path = "../cli/bench.rs"]
mod bench;
mod commands;
mod station;
mod status;

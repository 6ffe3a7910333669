//! A long-lived streamable HTTP upstream, against servers on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    unreachable_pub,
    missing_debug_implementations,
    reason = "what the tests share may fail loudly too, and has no users outside"
)]

#[path = "remote/client.rs"]
mod client;
#[path = "remote/server.rs"]
mod server;

#[path = "remote/addresses.rs"]
mod addresses;
#[path = "remote/answers.rs"]
mod answers;
#[path = "remote/authorized.rs"]
mod authorized;
#[path = "remote/calls.rs"]
mod calls;
#[path = "remote/real.rs"]
mod real;
#[path = "remote/sessions.rs"]
mod sessions;
#[path = "remote/stateless.rs"]
mod stateless;
#[path = "remote/streams.rs"]
mod streams;

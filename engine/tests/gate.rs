//! The gate as a whole, without processes: a session, its keeper, a store and a ledger, between a client and a server that
//! the test plays.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "gate/stage.rs"]
mod stage;

#[path = "gate/asking.rs"]
mod asking;
#[path = "gate/freshness.rs"]
mod freshness;
#[path = "gate/holds.rs"]
mod holds;
#[path = "gate/messages.rs"]
mod messages;
#[path = "gate/people.rs"]
mod people;

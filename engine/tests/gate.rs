//! The complete gate without processes: a session, its keeper, a store and a ledger, with a
//! simulated client and server.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "gate/stage.rs"]
mod stage;

#[path = "../../attest/tests/campaign/forgeries.rs"]
#[allow(dead_code, reason = "the campaign of the crate itself uses all of it")]
mod forgeries;
#[path = "../../attest/tests/campaign/names.rs"]
#[allow(dead_code, reason = "the campaign of the crate itself uses all of it")]
mod names;

#[path = "gate/admission.rs"]
mod admission;
#[path = "gate/approving.rs"]
mod approving;
#[path = "gate/approving_others.rs"]
mod approving_others;
#[path = "gate/asking.rs"]
mod asking;
#[path = "gate/behavior.rs"]
mod behavior;
#[path = "gate/by_the_call.rs"]
mod by_the_call;
#[path = "gate/cancelling.rs"]
mod cancelling;
#[path = "gate/endings.rs"]
mod endings;
#[path = "gate/freshness.rs"]
mod freshness;
#[path = "gate/holds.rs"]
mod holds;
#[path = "gate/input.rs"]
mod input;
#[path = "gate/messages.rs"]
mod messages;
#[path = "gate/network.rs"]
mod network;
#[path = "gate/people.rs"]
mod people;
#[path = "gate/stubs.rs"]
mod stubs;
#[path = "gate/unreachable.rs"]
mod unreachable;
#[path = "gate/views.rs"]
mod views;

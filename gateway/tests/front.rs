//! Tests of the gateway over HTTP, from outside: who can see and call what, what is recorded, and
//! attacks that are refused.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "front/approvals.rs"]
mod approvals;
#[path = "front/attacks.rs"]
mod attacks;
#[path = "front/authority.rs"]
mod authority;
#[path = "front/credentials.rs"]
mod credentials;
#[path = "front/drift.rs"]
mod drift;
#[path = "front/hostile.rs"]
mod hostile;
#[path = "front/incident.rs"]
mod incident;
#[path = "front/load.rs"]
mod load;
#[path = "front/nodes.rs"]
mod nodes;
#[path = "front/preflight.rs"]
mod preflight;
#[path = "front/profile.rs"]
mod profile;
#[path = "front/resumption.rs"]
mod resumption;
#[path = "front/scopes.rs"]
mod scopes;
#[path = "front/sign_in.rs"]
mod sign_in;
#[path = "front/stage.rs"]
mod stage;
#[path = "front/tasks.rs"]
mod tasks;
#[path = "front/token_attacks.rs"]
mod token_attacks;
#[path = "front/traces.rs"]
mod traces;
#[path = "front/webhook.rs"]
mod webhook;

//! The store's tests, each run against both databases.

pub(crate) mod bench;

mod acts;
mod alike;
mod api_keys;
mod approvals;
mod baseline;
mod incident;
mod measuring;
mod mending;
mod observing;
mod processes;
pub(crate) mod proxy;
mod redaction;
mod sharing;
mod sign_ins;
mod sizes;
mod statistics;
mod tampering;

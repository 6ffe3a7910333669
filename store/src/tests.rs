//! The tests of the store: each is run against both databases.

pub(crate) mod bench;

mod acts;
mod mending;
mod observing;
mod processes;
pub(crate) mod proxy;
mod sharing;
mod sizes;
mod tampering;

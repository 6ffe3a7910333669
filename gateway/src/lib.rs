//! The HTTP front for many callers: authentication, upstreams, several servers as one, and the admin API. Decisions are the
//! engine's.
#![forbid(unsafe_code)]

mod child;
mod frame;
pub mod front_checks;
pub mod identity;
mod link;
mod pending;
mod sealed;

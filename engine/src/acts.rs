//! What people do with a server: approve, pin, quarantine, release, roll back, and declare an
//! incident.
//!
//! This is the only implementation of these acts. It neither prints nor prompts: the command line
//! and the other surfaces read a server, show it, ask, and then perform the act with the decider's
//! name and the time. An act depends on what was read: if the record was written in between,
//! nothing is written.

mod approve;
mod error;
mod holds;
pub mod incident;
mod lifecycle;
mod pin;
mod recorded;
mod review;
mod siblings;
mod since;

pub(crate) use approve::approve_in_client;
pub use approve::{Choice, NotAHash, ReviewedHash, approve};
pub use error::{ActError, Among};
pub(crate) use holds::held_changes;
pub use lifecycle::{
    Quarantine, Quarantined, RolledBack, observe, quarantine, quarantine_unseen, release, rollback,
};
pub use pin::{PinDraft, PinQuestion, Pinned, pin};
pub use recorded::RecordedServer;
pub use review::{Review, hash_of};
pub use siblings::{Configured, Decided, Shared};
pub use since::Since;

#[cfg(test)]
mod tests;

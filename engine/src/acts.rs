//! What people do with a server: approve, pin, quarantine, release, roll back, and declare an incident.
//!
//! This is the one implementation of each act. It neither prints nor prompts: the command line and every other surface
//! read a server, show it, ask, and call the act with who decided and when. An act rests on what was read: when the
//! record was written in between, nothing is written.

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

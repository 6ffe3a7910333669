//! Who may call what: verified identities, the inventory's risk and trust classes, and Cedar policies over them.
//!
//! Pure: it reads no file and no clock. Everything it decides on is an argument.
#![forbid(unsafe_code)]

mod class;
mod identity;

pub use class::{BadClass, Risk, Trust};
pub use identity::{ActorType, Identity, IdentityProof};

//! Who may call what: verified identities, the inventory's risk and trust classes, and Cedar
//! policies over them.
//!
//! Pure: it reads no files and no clock, and decides only on its arguments.
#![forbid(unsafe_code)]

pub mod anomaly;
mod cache;
mod caller;
mod class;
mod decide;
mod entities;
mod entities_file;
mod explain;
mod identity;
mod input;
mod inventory;
mod names;
mod partial;
mod place;
mod policies;
pub mod preflight;
mod problem;
mod request;
mod scope;
mod source;
mod starter;
mod table;
mod target;
mod texts;
mod typing;
mod unknown_names;
mod unseen;
mod visible;
mod vocabulary;

pub use caller::{Caller, IdentityKey};
pub use class::{BadClass, Risk, Trust};
pub use explain::{Explanation, PolicyMatch, PolicyOutcome};
pub use identity::{ActorType, Identity, IdentityProof};
pub use input::InputError;
pub use inventory::{Inventory, ServerBuilder, ServerInventory, ToolHints, ToolInventory};
pub use names::{principal as principal_id, qualified as qualified_name};
pub use policies::Policies;
pub use problem::{PolicyProblem, Severity};
pub use request::{AccessDecision, AccessRequest, AdminAction, AdminTarget, DenyReason};
pub use starter::STARTER_POLICIES;
pub use table::{CaseResult, DecisionTable, Expect, TableError};
pub use typing::{InputMember, InputShape, InputType};
pub use visible::VisibleSet;

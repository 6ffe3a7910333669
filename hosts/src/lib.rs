//! The configuration files of MCP hosts: finds them, lists their servers, puts the gate in front of
//! a server and removes it again. Files are edited as text, so that everything else in them stays
//! unchanged.
//!
//! This crate uses none of Holdpoint's other crates and accesses nothing but files.

mod address;
mod config;
mod document;
mod edit;
mod entry;
mod guard;
mod identity;
mod inverse;
mod journal;
mod launches;
mod place;
mod render;
mod replace;
pub mod rewrite;
mod surroundings;
pub mod table;
mod unwire;
mod wire;
mod wired_entry;
mod workshop;

pub use config::{
    Candidate, Config, ConfigError, MAX_FILE_BYTES, ReadError, candidates, keep_apart, locate,
};
pub use document::{MAX_DEPTH, Syntax, SyntaxError};
pub use entry::Reason;
pub use guard::{SIGN_IN_SWITCH, is_own_variable};
pub use identity::MAX_ID;
pub use journal::{JournalError, redact_journal};
pub use launches::{FoundLaunch, FoundReach, GuardedLaunch};
pub use place::{MAX_PROJECTS, MAX_SERVERS, PlaceError};
pub use rewrite::{
    Choice, GatewayEntry, GatewayError, GatewayKey, Part, Server, TextError, WiringState,
};
pub use surroundings::{Surroundings, System};
pub use table::{Host, Scope};
pub use wired_entry::{WiredEntry, wired_entry};
pub use workshop::{Aim, Done, MAX_TRIES, Plan, WireError, Workshop};

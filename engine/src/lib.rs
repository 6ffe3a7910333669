//! The call path, shared by every surface: sessions, checks, the view that calls are decided on,
//! receipts and live export.
#![forbid(unsafe_code)]

pub mod acts;
pub mod admission;
mod anchor;
pub mod anomaly;
pub mod application;
pub mod batches;
pub mod behavior;
pub mod call;
pub mod confinement;
pub mod consult;
pub mod credentials;
pub mod decide;
mod egress;
pub mod egress_block;
pub mod errands;
pub mod error_log;
pub mod export;
pub mod judge;
pub mod lease;
pub mod mirrored;
pub mod network;
pub mod origin;
pub mod outlet;
pub mod package;
pub mod people_events;
pub mod principal;
pub mod program;
pub mod reason;
pub mod recorder;
pub mod refusal;
pub mod requests;
pub mod sentinel;
pub mod server;
pub mod session;
pub mod sign_in;
pub mod situation;
pub mod stdio;
pub mod tally;
pub mod upper_tiers;

pub use egress::egress_reach;
pub use gate::{document, server_text};
pub use wire::process;

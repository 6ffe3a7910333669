//! The way of a call: sessions, the path of checks, the view that calls are decided on, receipts and live export. Shared by
//! every surface.
#![forbid(unsafe_code)]

pub mod acts;
pub mod admission;
mod anchor;
pub mod batches;
pub mod call;
pub mod credentials;
pub mod decide;
pub mod document;
pub mod errands;
pub mod error_log;
pub mod export;
pub mod judge;
pub mod lease;
pub mod lists;
pub mod origin;
pub mod outlet;
pub mod package;
pub mod principal;
pub mod program;
pub mod reason;
pub mod recorder;
pub mod refusal;
pub mod requests;
pub mod sentinel;
pub mod server;
pub mod server_text;
pub mod session;
pub mod situation;
pub mod stdio;
pub mod tally;
pub mod view;

pub use wire::process;

//! Decides whether a call may proceed: pins, postures, the tier ladder, server status, verdicts and
//! the texts a person reads.
//!
//! Pure like `contract`: times and people's names come in as arguments, and only values come out.
#![forbid(unsafe_code)]

pub mod behavior;
pub mod by_the_call;
pub mod call_verdict;
pub mod comparing;
pub mod consult;
pub mod counters;
pub mod document;
pub mod first_use;
pub mod judge;
pub mod method;
pub mod naming;
pub mod network;
pub mod pins;
pub mod posture;
pub mod reason;
pub(crate) mod sentences;
pub mod server;
pub mod server_text;
pub mod shell;
pub mod shown;
pub mod status;
pub mod stub;
pub mod tiers;
pub mod unseen;
pub mod verdict;
pub mod view;
pub mod words;

pub use contract::time;

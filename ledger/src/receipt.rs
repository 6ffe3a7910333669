//! Reading receipts back: lines of all chains in one order, decisions joined with their outcomes, filters.
//!
//! Reading is not verifying. A line that cannot be read is a note and never a stop; whether the lines are those that were
//! written is for `verify` to say. Memory is bounded: by one line a chain, and by the calls that are open at one time.

mod document;
mod filter;
mod find;
mod join;
mod newest;
mod read;
mod reading;

pub use document::{
    Admission, Approval, BeforeAfter, Drift, EventReceipt, Item, Latency, Mcp, Outcome, Principal,
    Receipt, ReceiptState, Request, Ruling, Sandbox, TokenHandling,
};
pub use filter::{BadMoment, Filter, moment};
pub use find::{Found, MAX_FOUND, RawLine, find};
pub use join::{Joiner, MAX_OPEN_CALLS};
pub use newest::{Newest, newest};
pub use read::{Decision, Entry, Note, Spot};
pub use reading::{Position, Reading, line_at, segments_since};

#[cfg(test)]
pub(crate) mod tests;

//! Reads receipts back: merges the lines of all chains, joins decisions with their outcomes, and
//! filters them.
//!
//! Reading is not verifying. A line that cannot be parsed yields a note and does not stop the
//! reading; whether the lines are authentic is checked by `verify`. Memory is bounded by one line
//! per chain and the number of open calls.

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

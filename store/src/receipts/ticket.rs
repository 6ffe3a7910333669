//! What stands for records that are on their way into the ledger, and the proof that they are there.

use super::error::ReceiptsError;
use super::writer::Receipts;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// One record, or several, that the ledger has taken and may not have written yet.
///
/// Nothing may be dispatched for it, but against the [`Settled`] that waiting for it gives. There is one for each
/// decision, so that a decision lets one call pass. A ticket that is dropped changes nothing for its record.
#[derive(Debug)]
#[must_use = "a call may be dispatched when its ticket is settled"]
pub struct Ticket {
    /// The ledger that has taken the records; 0 where there are several.
    pub(super) ledger: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Ticket {
    /// The ticket of all records of both: it is settled when they all are, and fails if one of them fails.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is used up: one proof a decision")]
    pub fn and(self, other: Ticket) -> Ticket {
        Ticket {
            ledger: if self.ledger == other.ledger { self.ledger } else { 0 },
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Proof that all records of a ticket are in the ledger: with the operating system, and on disk under `fsync = "always"`.
///
/// Only the ledger makes one, and it cannot be copied.
#[derive(Debug)]
#[must_use = "a decision that is recorded is for a call that is then made"]
pub struct Settled(pub(super) ());

/// Waits for a ticket without blocking the thread. Dropping it changes nothing for the record.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Settling<'r> {
    pub(super) receipts: &'r Receipts,
    /// None when it was answered: one proof a decision.
    pub(super) ticket: Option<Ticket>,
    pub(super) is_registered: bool,
}

impl Future for Settling<'_> {
    type Output = Result<Settled, ReceiptsError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Settling { receipts, ticket, is_registered } = &mut *self;
        let Some(waiting) = &ticket else {
            return Poll::Ready(Err(ReceiptsError::Answered));
        };
        let settled = receipts.poll_settled(waiting, context.waker(), is_registered);
        if settled.is_ready() {
            *ticket = None;
        }
        settled.map(|settled| settled.map(Settled))
    }
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        if let (true, Some(ticket)) = (self.is_registered, &self.ticket) {
            self.receipts.give_up(ticket);
        }
    }
}

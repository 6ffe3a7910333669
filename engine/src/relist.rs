//! A list that the gate asks for: the paging rules of `wire`, the request that is out, and how long it was waited for.

use crate::reason::ReasonCode;
use crate::session::OwnAnswer;
use contract::surface::ListKind;
use std::time::{Duration, Instant};
use wire::listing::{self, LIST_PATIENCE, ListOutcome};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask for the page at this cursor.
    Ask(String),
    Done(ListOutcome),
    /// The list could not be fetched, which says nothing of what it carries.
    Failed(ReasonCode),
}

/// A list that is being asked for.
#[derive(Debug)]
pub struct Listing {
    pages: listing::Listing,
    pub begun: Instant,
    /// How long it was waited for while no call was in flight.
    pub waited: Duration,
    /// The id of the request that is out, with its quotes.
    pub request: Vec<u8>,
}

impl Listing {
    pub fn new(list: ListKind, begun: Instant) -> Listing {
        let pages = listing::Listing::new(list);
        Listing { pages, begun, waited: Duration::ZERO, request: Vec::new() }
    }

    pub fn hear(&mut self, answer: OwnAnswer) -> Step {
        match answer {
            OwnAnswer::Answer(answer) => match self.pages.hear(answer) {
                listing::Step::Ask(cursor) => Step::Ask(cursor),
                listing::Step::Done(outcome) => Step::Done(outcome),
            },
            OwnAnswer::Failed(reason) => Step::Failed(reason),
        }
    }

    /// Time went by without an answer. Returns whether the list is overdue.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.waited += time;
        self.waited >= LIST_PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        Listing::new(ListKind::Tools, Instant::now())
    }

    #[test]
    fn a_failed_request_is_no_unreadable_list() {
        let reason = ReasonCode::UpstreamUnreachable;
        assert_eq!(listing().hear(OwnAnswer::Failed(reason)), Step::Failed(reason));
    }

    #[test]
    fn patience_ends_at_its_limit() {
        let mut listing = listing();
        assert!(!listing.wait(LIST_PATIENCE - Duration::from_millis(1)));
        assert!(listing.wait(Duration::from_millis(1)));
    }
}

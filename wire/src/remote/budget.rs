//! Limits the memory held for unfinished messages, over everything that the server sends at the
//! same time.

use super::failure::Unreadable;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(super) struct Budget {
    held: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Budget {
        Budget { held: AtomicUsize::new(0), limit }
    }
}

/// The part of the budget that one stream or body holds.
#[derive(Debug)]
pub(super) struct Share<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl<'b> Share<'b> {
    pub(super) fn new(budget: &'b Budget) -> Share<'b> {
        Share { budget, bytes: 0 }
    }

    /// Changes the number of bytes held to this, if the budget allows it.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Unreadable> {
        let before = self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
        let held = before.saturating_sub(self.bytes).saturating_add(bytes);
        self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = bytes;
        if bytes > 0 && held > self.budget.limit {
            return Err(Unreadable::TooMuch { limit: self.budget.limit });
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_together_stay_within_the_budget() {
        let budget = Budget::new(10);
        let (mut first, mut second) = (Share::new(&budget), Share::new(&budget));
        assert_eq!(first.hold(4), Ok(()));
        assert_eq!(second.hold(6), Ok(()));
        assert_eq!(second.hold(7), Err(Unreadable::TooMuch { limit: 10 }));
        drop(second);
        assert_eq!(first.hold(10), Ok(()));
        assert_eq!(first.hold(11), Err(Unreadable::TooMuch { limit: 10 }));
        assert_eq!(first.hold(0), Ok(()));
        drop(first);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
    }
}

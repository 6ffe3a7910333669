//! Blocked attempts that wait to be reported. A program may make thousands of them, each to a
//! different host: the first ones are reported individually, and later ones at a limited rate, with
//! a count for the rest, so that no program can flood the receipts.

use crate::event::{BlockReason, Blocked};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many are reported at once after a quiet period.
const MAX_AT_ONCE: u32 = 64;
/// The interval after which one more may be reported.
const UNTIL_NEXT: Duration = Duration::from_secs(2);
/// The most distinct destinations that wait.
const MAX_WAITING: usize = 256;
/// Represents the destinations that are not reported individually.
const OTHERS: &str = "(others)";

#[derive(Debug, Default)]
pub(super) struct BlockedAttempts {
    waiting: HashMap<(String, Option<u16>, BlockReason), u64>,
    /// Attempts at destinations beyond the maximum.
    others: u64,
    allowance: Option<Allowance>,
}

#[derive(Debug, Clone, Copy)]
struct Allowance {
    left: u32,
    since: Instant,
}

impl BlockedAttempts {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.others == 0
    }

    pub(super) fn note(&mut self, host: String, port: Option<u16>, reason: BlockReason) {
        let is_full = self.waiting.len() >= MAX_WAITING;
        let key = (host, port, reason);
        match self.waiting.get_mut(&key) {
            Some(count) => *count += 1,
            None if is_full => self.others += 1,
            None => drop(self.waiting.insert(key, 1)),
        }
    }

    /// Records attempts of which only the number is known.
    pub(super) fn note_others(&mut self, count: u64) {
        self.others += count;
    }

    /// Reports as many attempts as allowed now, or all of them. `tell` returns whether the report
    /// was delivered; the others keep waiting.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        everything: bool,
        mut tell: impl FnMut(Blocked) -> bool,
    ) {
        if self.is_empty() {
            return;
        }
        let mut left = self.allowance(now);
        let waiting = std::mem::take(&mut self.waiting);
        // The last allowed report represents all that cannot be reported individually.
        let is_too_many =
            |left: u32| u32::try_from(waiting.len()).is_ok_and(|waiting| waiting > left);
        let by_name = match (everything, is_too_many(left) || self.others > 0) {
            (true, _) => MAX_AT_ONCE.max(left),
            (false, true) => left.saturating_sub(1),
            (false, false) => left,
        };
        let mut named = 0;
        for ((host, port, reason), count) in waiting {
            let blocked = Blocked { host: host.clone(), port, reason, count };
            if named < by_name {
                if tell(blocked) {
                    named += 1;
                } else {
                    self.waiting.insert((host, port, reason), count);
                }
            } else if everything || left > 0 {
                self.others += count;
            } else {
                self.waiting.insert((host, port, reason), count);
            }
        }
        left = left.saturating_sub(named);
        if self.others > 0 && (everything || left > 0) {
            let (host, reason) = (OTHERS.to_owned(), BlockReason::NotAllowed);
            if tell(Blocked { host, port: None, reason, count: self.others }) {
                self.others = 0;
                left = left.saturating_sub(1);
            }
        }
        self.allowance = self.allowance.map(|allowance| Allowance { left, ..allowance });
    }

    fn allowance(&mut self, now: Instant) -> u32 {
        let known = self.allowance.unwrap_or(Allowance { left: MAX_AT_ONCE, since: now });
        let more = now.saturating_duration_since(known.since).as_millis() / UNTIL_NEXT.as_millis();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let since = known.since + UNTIL_NEXT.saturating_mul(more);
        let left = known.left.saturating_add(more).min(MAX_AT_ONCE);
        self.allowance = Some(Allowance { left, since });
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(attempts: &mut BlockedAttempts, now: Instant, everything: bool) -> (usize, u64) {
        let mut told = Vec::new();
        attempts.tell(now, everything, |blocked| {
            told.push(blocked);
            true
        });
        (told.len(), told.iter().map(|blocked| blocked.count).sum())
    }

    #[test]
    fn a_few_are_told_at_once_and_one_destination_by_its_number() {
        let (mut attempts, now) = (BlockedAttempts::default(), Instant::now());
        for _ in 0..5 {
            attempts.note("a".to_owned(), Some(443), BlockReason::NotAllowed);
        }
        attempts.note("b".to_owned(), None, BlockReason::NotTls);
        assert_eq!(tell(&mut attempts, now, false), (2, 6));
        assert!(attempts.is_empty());
        assert_eq!(tell(&mut attempts, now, false), (0, 0));
    }

    #[test]
    fn a_flood_is_told_of_by_its_number_and_none_is_lost() {
        let (mut attempts, begun) = (BlockedAttempts::default(), Instant::now());
        let (mut events, mut count) = (0, 0);
        // A thousand per second for ten minutes, each to a different host.
        for second in 0..600_u64 {
            for number in 0..1000 {
                attempts.note(format!("{second}-{number}"), None, BlockReason::NotAllowed);
            }
            let (told, counted) = tell(&mut attempts, begun + Duration::from_secs(second), false);
            (events, count) = (events + told, count + counted);
        }
        assert!((64..=64 + 300).contains(&events), "{events}");
        let (told, counted) = tell(&mut attempts, begun + Duration::from_secs(600), true);
        assert!(told <= 65, "{told}");
        assert_eq!(count + counted, 600_000);
        assert!(attempts.is_empty());
    }

    #[test]
    fn what_is_not_heard_waits() {
        let (mut attempts, now) = (BlockedAttempts::default(), Instant::now());
        attempts.note("a".to_owned(), None, BlockReason::NotAllowed);
        attempts.tell(now, false, |_| false);
        assert!(!attempts.is_empty());
        assert_eq!(tell(&mut attempts, now, false), (1, 1));
    }
}

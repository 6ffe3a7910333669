//! The counters of a running gateway. All are atomic integers: counting on the path of a call costs
//! a few nanoseconds and never blocks.

use engine::decide::Ruling;
use engine::recorder::RecorderWatch;
use ledger::record::OutcomeStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The methods with their own counters. Callers choose the method, so the list is closed.
pub(crate) const METHODS: [&str; 13] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
    "other",
];

/// The names of decisions, as in receipts and commands.
pub(crate) const DECISIONS: [&str; 3] = ["allowed", "held", "denied"];

pub(crate) const OUTCOMES: [&str; 3] = ["success", "error", "timeout"];

/// The upper bounds of the latency buckets, in microseconds.
pub(crate) const BOUNDS_MICROSECONDS: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000, 10_000_000, 60_000_000];

/// Counters since the gateway started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: [[AtomicU64; DECISIONS.len()]; METHODS.len()],
    outcomes: [AtomicU64; OUTCOMES.len()],
    /// Decisions written to the ledger.
    receipts: AtomicU64,
    receipts_failed: AtomicU64,
    /// Requests to the admin API that were refused.
    pub(crate) admin_refused: AtomicU64,
    pub(crate) admin_requests: AtomicU64,
    pub(crate) ours: LatencyCounts,
    pub(crate) theirs: LatencyCounts,
}

/// A latency histogram.
#[derive(Debug, Default)]
pub(crate) struct LatencyCounts {
    /// Counts per bucket; the last bucket has no upper bound.
    classes: [AtomicU64; BOUNDS_MICROSECONDS.len() + 1],
    sum_microseconds: AtomicU64,
}

/// A [`LatencyCounts`] at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LatencySnapshot {
    /// The upper bound of each bucket in seconds, and the number of calls in it.
    pub(crate) classes: Vec<(f64, u64)>,
    pub(crate) count: u64,
    pub(crate) sum_seconds: f64,
}

impl LatencyCounts {
    fn add(&self, took: Duration) {
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS_MICROSECONDS.partition_point(|bound| *bound < microseconds);
        if let Some(class) = self.classes.get(place) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> LatencySnapshot {
        let bounds = BOUNDS_MICROSECONDS.iter().map(|bound| seconds(*bound)).chain([f64::MAX]);
        let counted = self.classes.iter().map(|class| class.load(Ordering::Relaxed));
        let classes: Vec<(f64, u64)> = bounds.zip(counted).collect();
        LatencySnapshot {
            count: classes.iter().map(|(_, count)| count).sum(),
            sum_seconds: seconds(self.sum_microseconds.load(Ordering::Relaxed)),
            classes,
        }
    }
}

fn seconds(microseconds: u64) -> f64 {
    Duration::from_micros(microseconds).as_secs_f64()
}

impl Counts {
    /// The count for every method and decision, including zeros.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        METHODS.into_iter().zip(&self.requests).flat_map(|(method, decisions)| {
            DECISIONS
                .into_iter()
                .zip(decisions)
                .map(move |(decision, count)| (method, decision, count.load(Ordering::Relaxed)))
        })
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OUTCOMES.into_iter().zip(&self.outcomes).map(|(status, count)| (status, load(count)))
    }

    pub(crate) fn receipts(&self) -> u64 {
        load(&self.receipts)
    }

    pub(crate) fn receipts_failed(&self) -> u64 {
        load(&self.receipts_failed)
    }
}

pub(crate) fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

impl RecorderWatch for Counts {
    fn decided(&self, method: &str, ruling: &Ruling) {
        let place = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        let decision = match ruling {
            Ruling::Allow => 0,
            Ruling::Hold(_) => 1,
            Ruling::Deny(_) => 2,
        };
        if let Some(count) = self.requests.get(place).and_then(|counts| counts.get(decision)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.receipts.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self, status: OutcomeStatus, ours: Duration, theirs: Duration) {
        let place = match status {
            OutcomeStatus::Success => 0,
            OutcomeStatus::Error => 1,
            OutcomeStatus::Timeout => 2,
        };
        if let Some(count) = self.outcomes.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.ours.add(ours);
        self.theirs.add(theirs);
    }

    fn failed(&self) {
        self.receipts_failed.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_counted_in_the_first_class_that_has_room_for_it() {
        let counts = LatencyCounts::default();
        for microseconds in [50, 51, 60_000_001] {
            counts.add(Duration::from_micros(microseconds));
        }
        let snapshot = counts.snapshot();
        let filled: Vec<usize> = snapshot
            .classes
            .iter()
            .enumerate()
            .filter(|(_, (_, count))| *count > 0)
            .map(|(place, _)| place)
            .collect();
        assert_eq!(filled, [0, 1, BOUNDS_MICROSECONDS.len()]);
        assert_eq!(snapshot.count, 3);
        assert!((snapshot.sum_seconds - 60.000_102).abs() < 1e-9);
    }

    #[test]
    fn a_method_that_a_caller_made_up_is_counted_as_another() {
        let counts = Counts::default();
        counts.decided("tools/call", &Ruling::Allow);
        counts.decided("made/up", &Ruling::Allow);
        let found: Vec<_> = counts.requests().filter(|(.., count)| *count > 0).collect();
        assert_eq!(found, [("tools/call", "allowed", 1), ("other", "allowed", 1)]);
        assert_eq!(counts.receipts(), 2);
    }
}

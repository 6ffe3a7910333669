//! Several nodes sharing one count, with calls, reports and lost reports in any order.

use crate::preflight::{
    RateDecision, RateKey, RateLimiter, RateScope, SharedBucket, SharedCount, Throttle,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const NOON: u64 = 86_400 * 20_000 + 43_200;
const ADA: RateKey<'static> = RateKey { issuer: "keys", principal: "ada", tool: "read" };

fn throttle(rate: &str, quota: &str) -> Throttle {
    Throttle { rate: rate.parse().ok(), quota: quota.parse().ok(), scope: RateScope::Principal }
}

fn shared(throttle: Throttle) -> RateLimiter {
    RateLimiter::new(throttle).shared_as("files", Box::new(|| ()))
}

/// Models the database, which adds up reports and returns the sum. All tests use the same rate.
#[derive(Default)]
struct Model(BTreeMap<SharedBucket, (u64, u64, u64)>);

impl Model {
    /// Makes a node report. A lost report is not counted.
    fn report(&mut self, node: &RateLimiter, now: Duration, unix_seconds: u64, is_lost: bool) {
        for calls in node.unreported(usize::MAX) {
            let count = (!is_lost).then(|| {
                let (full_at, day, used) = self.0.entry(calls.shared).or_default();
                let nanoseconds = now.as_nanos() as u64;
                *full_at = (*full_at).max(nanoseconds) + calls.calls * calls.each_nanoseconds;
                if *day != unix_seconds / 86_400 {
                    (*day, *used) = (unix_seconds / 86_400, 0);
                }
                *used += calls.calls;
                let full_in = Duration::from_nanos(*full_at - nanoseconds);
                SharedCount { full_in, used: *used, unix_seconds }
            });
            node.heard(&calls, count, now, unix_seconds);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Call(usize),
    Report { node: usize, is_lost: bool },
    Pass { milliseconds: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_usize).prop_map(Step::Call),
        3 => (0..3_usize, prop::bool::weighted(0.2))
            .prop_map(|(node, is_lost)| Step::Report { node, is_lost }),
        1 => (0..3_000_u64).prop_map(|milliseconds| Step::Pass { milliseconds }),
    ];
    proptest::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn nodes_together_let_at_most_one_lease_a_node_more_through(steps in steps()) {
        let throttle = throttle("60/min", "");
        prop_assert_eq!(throttle.lease(), 6);
        let nodes = [shared(throttle), shared(throttle), shared(throttle)];
        let (mut model, mut now, mut allowed) = (Model::default(), Duration::from_secs(5), 0_u64);
        for step in steps {
            match step {
                Step::Call(node) => {
                    allowed += u64::from(nodes[node].take(ADA, now, NOON) == RateDecision::Allowed);
                }
                Step::Report { node, is_lost } => model.report(&nodes[node], now, NOON, is_lost),
                Step::Pass { milliseconds } => now += Duration::from_millis(milliseconds),
            }
            let refilled = (now - Duration::from_secs(5)).as_secs();
            prop_assert!(allowed <= 60 + refilled + 3 * 6, "{} of {}", allowed, refilled);
        }
    }

    #[test]
    fn a_days_calls_are_counted_over_all_nodes(steps in steps()) {
        let throttle = throttle("", "30/day");
        let nodes = [shared(throttle), shared(throttle), shared(throttle)];
        let (mut model, now, mut allowed) = (Model::default(), Duration::from_secs(5), 0_u64);
        for step in steps {
            match step {
                Step::Call(node) => {
                    allowed += u64::from(nodes[node].take(ADA, now, NOON) == RateDecision::Allowed);
                }
                Step::Report { node, is_lost } => model.report(&nodes[node], now, NOON, is_lost),
                Step::Pass { .. } => {}
            }
        }
        prop_assert!(allowed <= 30 + 3 * 3, "{}", allowed);
    }
}

/// A node whose reports arrive after each call is never refused what a single node would be
/// allowed.
#[test]
fn a_bucket_is_used_up_to_the_last_call_where_reports_arrive() {
    let throttle = throttle("60/min", "");
    let nodes = [shared(throttle), shared(throttle)];
    let (mut model, now) = (Model::default(), Duration::from_secs(5));
    let mut take = |node: usize| {
        let decision = nodes[node].take(ADA, now, NOON);
        nodes.iter().for_each(|node| model.report(node, now, NOON, false));
        decision
    };
    let allowed = (0..60).filter(|n| take(n % 2) == RateDecision::Allowed).count();
    assert_eq!(allowed, 60);
    // Each node learns that the bucket is empty with its next report.
    let more = (0..60).filter(|n| take(n % 2) == RateDecision::Allowed).count();
    assert!(more <= 2, "{more}");
}

#[test]
fn a_node_that_starts_again_learns_what_was_used_before() {
    let throttle = throttle("", "100/day");
    let (mut model, now) = (Model::default(), Duration::from_secs(5));
    let first = shared(throttle);
    for _ in 0..100 {
        assert_eq!(first.take(ADA, now, NOON), RateDecision::Allowed);
        model.report(&first, now, NOON, false);
    }
    let second = shared(throttle);
    assert_eq!(second.take(ADA, now, NOON), RateDecision::Allowed, "it was not told yet");
    model.report(&second, now, NOON, false);
    assert!(matches!(second.take(ADA, now, NOON), RateDecision::Exceeded { .. }));
    // The next day starts by the shared clock, which is a minute behind this node's.
    let behind = |unix_seconds: u64| unix_seconds - 60;
    let third = shared(throttle);
    let midnight = (NOON / 86_400 + 1) * 86_400;
    assert_eq!(third.take(ADA, now, midnight + 30), RateDecision::Allowed);
    for calls in third.unreported(1) {
        let unix_seconds = behind(midnight + 30);
        let count = SharedCount { full_in: Duration::ZERO, used: 101, unix_seconds };
        third.heard(&calls, Some(count), now, midnight + 30);
    }
    assert!(matches!(third.take(ADA, now, midnight + 30), RateDecision::Exceeded { .. }));
    assert_eq!(third.take(ADA, now, midnight + 90), RateDecision::Allowed);
}

#[test]
fn a_node_that_is_not_heard_stops_at_its_lease_unless_it_is_alone() {
    let throttle = throttle("60/min", "");
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = woken.clone();
    let node = RateLimiter::new(throttle).shared_as(
        "files",
        Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }),
    );
    let now = Duration::from_secs(5);
    let allowed = |count: usize| {
        (0..count).filter(|_| node.take(ADA, now, NOON) == RateDecision::Allowed).count()
    };
    assert_eq!(allowed(2), 2);
    assert_eq!(woken.load(Ordering::Relaxed), 0, "a few calls wait to be reported with others");
    assert_eq!(allowed(10), 4);
    assert!(woken.load(Ordering::Relaxed) > 0);
    node.set_alone(true);
    assert_eq!(allowed(100), 54, "the bucket is all that stops it");
    node.set_alone(false);
    assert_eq!(allowed(1), 0);
}

#[test]
fn other_rules_go_on_with_the_counts_where_the_same_calls_share_a_bucket() {
    let before = RateLimiter::new(throttle("", "3/day"));
    let now = Duration::from_secs(5);
    for _ in 0..3 {
        assert_eq!(before.take(ADA, now, NOON), RateDecision::Allowed);
    }
    let more = before.succeeded_by(throttle("", "4/day"));
    assert_eq!(more.take(ADA, now, NOON), RateDecision::Allowed);
    assert!(matches!(more.take(ADA, now, NOON), RateDecision::Exceeded { .. }));
    let by_tool = Throttle { scope: RateScope::Tool, ..throttle("", "4/day") };
    assert_eq!(more.succeeded_by(by_tool).take(ADA, now, NOON), RateDecision::Allowed);
}

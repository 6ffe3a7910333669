use super::*;
use gate::counters::{added_bucket, parameter_used, tool_called};

const DAY: i64 = 86_400_000;

fn server(id: &str) -> ServerId {
    id.parse().unwrap()
}

fn counted(counts: &[(Counter, u64)]) -> Period {
    let mut period = Period::default();
    for (counter, value) in counts {
        let (day, server) = (Day(1), server("files"));
        period.count(&Count { day, server, name: counter.name(), value: *value });
    }
    period
}

fn latencies(microseconds: &[u64]) -> Added {
    let counts: Vec<_> = microseconds.iter().map(|each| (added_bucket(*each), 1)).collect();
    counted(&counts).added_latency_us
}

fn act(seq: i64, day: i64, action: &str, status_after: Option<ServerStatus>) -> HistoryEvent {
    HistoryEvent {
        seq,
        act: seq,
        at: Timestamp(day * DAY),
        by: "ada".to_owned(),
        server: server("files"),
        action: action.to_owned(),
        entry_type: None,
        key: None,
        entry_hash_before: None,
        entry_hash_after: None,
        surface_hash_before: None,
        surface_hash_after: None,
        status_before: None,
        status_after,
        basis: None,
        detail: None,
        raw: None,
    }
}

#[test]
fn a_period_ends_with_its_day_and_the_one_before_adjoins_it() {
    for (number, from, before) in [
        (1, 100, Days { from: Day(99), to: Day(99) }),
        (30, 71, Days { from: Day(41), to: Day(70) }),
    ] {
        let days = Days::up_to(Day(100), number);
        assert_eq!(days, Days { from: Day(from), to: Day(100) });
        assert_eq!(days.before(), before);
    }
    let days = Days { from: Day(2), to: Day(3) };
    for (moment, expected) in
        [(2 * DAY - 1, false), (2 * DAY, true), (4 * DAY - 1, true), (4 * DAY, false)]
    {
        assert_eq!(days.has(Timestamp(moment)), expected, "{moment}");
    }
}

#[test]
fn each_counter_goes_where_it_is_told() {
    let period = counted(&[
        (Counter::Calls, 1),
        (Counter::Held, 2),
        (Counter::Denied, 3),
        (Counter::Failed, 4),
        (Counter::Requests, 5),
        (Counter::Relists, 6),
        (Counter::HoldsBegun, 7),
        (Counter::Repinned, 8),
        (Counter::Notes, 9),
        (Counter::WouldHold(Posture::Shield), 10),
        (Counter::WouldHold(Posture::Strict), 11),
        (Counter::Tier(3), 12),
    ]);
    let calls = Calls { checked: 1, held: 2, denied: 3, failed: 4 };
    let expected = Period {
        calls,
        requests: 5,
        relists: 6,
        changes: Changes { held: 7, repinned: 8, noted: 9 },
        would_hold: WouldHold([0, 10, 0, 11]),
        tiers: BTreeMap::from([(3, 12)]),
        servers: BTreeMap::from([(server("files"), calls)]),
        ..Period::default()
    };
    assert_eq!(period, expected);
    assert_eq!(period.would_hold.of(Posture::Strict), 11);
}

#[test]
fn names_of_tools_and_counters_of_a_newer_version_are_no_part_of_the_card() {
    let mut period = counted(&[(tool_called("a"), 5), (parameter_used("a", "b"), 5)]);
    let (day, server) = (Day(1), server("files"));
    period.count(&Count { day, server, name: "from-the-future".to_owned(), value: 5 });
    assert!(period.is_empty(), "{period:?}");
    period.event("outcome.confirmed");
    assert!(!period.is_empty());
}

#[test]
fn a_sum_that_is_full_stays_full() {
    let period = counted(&[(Counter::Calls, u64::MAX), (Counter::Calls, 1)]);
    assert_eq!(period.calls.checked, u64::MAX);
    let added = counted(&[(added_bucket(1), u64::MAX), (added_bucket(9), u64::MAX)]);
    assert_eq!(added.added_latency_us.percentile(50), Some(Bound::Below(2)));
    assert_eq!(added.added_latency_us.percentile(51), Some(Bound::Below(16)));
}

#[test]
fn latencies_are_bounded_by_their_bucket() {
    assert_eq!(latencies(&[]).percentile(50), None);
    assert_eq!(latencies(&[0]).percentile(50), Some(Bound::Below(1)));
    assert_eq!(latencies(&[63]).percentile(99), Some(Bound::Below(64)));
    assert_eq!(latencies(&[64]).percentile(99), Some(Bound::Below(128)));
    assert_eq!(latencies(&[1 << 29]).percentile(50), Some(Bound::Unbounded));
    assert_eq!(latencies(&[(1 << 29) - 1]).percentile(50), Some(Bound::Below(1 << 29)));
    // 99 of 100 are fast: the slow one is past the 99th.
    let mut hundred = vec![10; 99];
    hundred.push(1_000_000);
    assert_eq!(latencies(&hundred).percentile(99), Some(Bound::Below(16)));
    hundred.push(1_000_000);
    assert_eq!(latencies(&hundred).percentile(99), Some(Bound::Below(1 << 20)));
}

#[test]
fn what_is_done_to_a_hold_overrides_or_confirms_it() {
    use ServerStatus::{Changed, Quarantined, Verified};
    let history = [
        act(1, 1, "server.pin", Some(Verified)),
        act(2, 1, "server.approve", None),
        act(3, 2, "server.observe", Some(Changed)),
        act(4, 2, "server.approve", None),
        act(5, 2, "server.approve", Some(Verified)),
        act(6, 2, "server.approve", None),
        act(7, 3, "server.quarantine", Some(Quarantined)),
        act(8, 3, "server.release", Some(Changed)),
        act(9, 3, "server.quarantine", Some(Quarantined)),
        act(10, 3, "server.release", Some(Verified)),
        act(11, 3, "server.rollback", Some(Changed)),
    ];
    let people = |from, to| {
        let mut period = Period::default();
        period.acts(&history, Days { from: Day(from), to: Day(to) });
        period.people
    };
    let whole = People {
        approvals: 4,
        quarantines: 2,
        releases: 2,
        rollbacks: 1,
        overridden: 2,
        confirmed: 1,
    };
    assert_eq!(people(1, 3), whole);
    // What was held before the period began is known all the same.
    let second = People { approvals: 3, overridden: 2, ..People::default() };
    assert_eq!(people(2, 2), second);
    assert_eq!(people(4, 9), People::default());
}

#[test]
fn the_lines_below_an_act_are_no_acts() {
    let mut line = act(2, 1, "server.approve", None);
    line.act = 1;
    let mut period = Period::default();
    period.acts(&[line], Days { from: Day(1), to: Day(1) });
    assert!(period.is_empty());
}

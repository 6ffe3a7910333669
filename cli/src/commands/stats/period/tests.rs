use super::*;
use gate::counters::{added_bucket, parameter_used, tool_called};
use gate::server::ServerStatus;
use serde_json::json;

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
    period.event(&event("outcome.confirmed", &json!({})));
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
    // 99 of 100 calls are fast: the slow one is above the 99th percentile.
    let mut hundred = vec![10; 99];
    hundred.push(1_000_000);
    assert_eq!(latencies(&hundred).percentile(99), Some(Bound::Below(16)));
    hundred.push(1_000_000);
    assert_eq!(latencies(&hundred).percentile(99), Some(Bound::Below(1 << 20)));
}

fn event(name: &str, data: &serde_json::Value) -> EventReceipt {
    EventReceipt {
        ts: Timestamp(0),
        name: name.to_owned(),
        by: None,
        server_id: Some("files".to_owned()),
        data: Some(data.clone()),
        chain: "index".parse().unwrap(),
        seq: 1,
        hash: String::new(),
    }
}

#[test]
fn every_held_change_counts_once_however_often_a_gate_meets_it() {
    let held = |entries: &[(&str, &str)]| {
        let held: Vec<_> = entries
            .iter()
            .map(|(entry, after)| json!({ "entry": entry, "entry_hash": { "after": after } }))
            .collect();
        event("server.observe", &json!({ "held": held }))
    };
    let mut period = counted(&[(Counter::HoldsBegun, 9)]);
    assert_eq!(period.changes.held, 9);
    period.event(&held(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]));
    assert_eq!(period.changes.held, 4);
    period.event(&held(&[("a", "1"), ("b", "2")]));
    assert_eq!(period.changes.held, 5);
    for _ in 0..4 {
        period.event(&event("outcome.overridden", &json!({})));
    }
    period.event(&event("outcome.confirmed", &json!({})));
    assert_eq!(period.outcomes, Outcomes { confirmed: 1, overridden: 4 });
}

#[test]
fn what_people_do_is_counted() {
    use ServerStatus::{Changed, Quarantined, Verified};
    let history = [
        act(1, 1, "server.pin", Some(Verified)),
        act(2, 1, "server.approve", None),
        act(3, 2, "server.observe", Some(Changed)),
        act(5, 2, "server.approve", Some(Verified)),
        act(7, 3, "server.quarantine", Some(Quarantined)),
        act(8, 3, "server.release", Some(Changed)),
        act(11, 3, "server.rollback", Some(Changed)),
    ];
    let people = |from, to| {
        let mut period = Period::default();
        period.acts(&history, Days { from: Day(from), to: Day(to) });
        period.people
    };
    let whole = People { approvals: 2, quarantines: 1, releases: 1, rollbacks: 1 };
    assert_eq!(people(1, 3), whole);
    assert_eq!(people(2, 2), People { approvals: 1, ..People::default() });
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

//! Counters: added to in batches, read by days.

use super::bench::*;
use crate::{Count, Day, MAX_COUNTER_BYTES, MAX_COUNTS_PER_WRITE, StoreError};
use gate::time::Timestamp;

fn count(day: i64, server: &str, name: &str, value: u64) -> Count {
    Count { day: Day(day), server: id(server), name: name.to_owned(), value }
}

#[test]
fn a_day_is_one_of_utc() {
    for (milliseconds, day) in [(0, 0), (86_399_999, 0), (86_400_000, 1), (-1, -1)] {
        assert_eq!(Day::of(Timestamp(milliseconds)), Day(day));
    }
}

fn counters_add_up_and_are_read_by_days(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let first = [
        count(2, "reports", "calls", 3),
        count(1, "reports", "holds", 1),
        count(2, "mail", "calls", 5),
        count(2, "reports", "calls", 4),
    ];
    store.add_counts(&first).unwrap();
    bench
        .store()
        .add_counts(&[count(2, "reports", "calls", 1), count(3, "mail", "calls", 1)])
        .unwrap();
    assert_eq!(
        store.counts(Day(1), Day(2)).unwrap(),
        [
            count(1, "reports", "holds", 1),
            count(2, "mail", "calls", 5),
            count(2, "reports", "calls", 8)
        ]
    );
    assert_eq!(store.counts(Day(3), Day(9)).unwrap().len(), 1);
    assert!(store.counts(Day(4), Day(9)).unwrap().is_empty());
    assert!(store.counts(Day(2), Day(1)).unwrap().is_empty());
}

fn a_full_counter_stays_full(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let largest = i64::MAX as u64;
    store.add_counts(&[count(1, "mail", "calls", largest - 1)]).unwrap();
    store.add_counts(&[count(1, "mail", "calls", 1)]).unwrap();
    assert_eq!(store.counts(Day(1), Day(1)).unwrap()[0].value, largest);
    for more in [1, largest, u64::MAX] {
        store.add_counts(&[count(1, "mail", "calls", more)]).unwrap();
        assert_eq!(store.counts(Day(1), Day(1)).unwrap()[0].value, largest);
    }
}

fn counters_of_many_processes_lose_nothing(kind: Kind) {
    let bench = Bench::new(kind);
    drop(bench.store());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut store = bench.store();
                for _ in 0..10 {
                    let counts = [count(1, "mail", "a", 1), count(1, "mail", "b", 2)];
                    store.add_counts(&counts).unwrap();
                }
            });
        }
    });
    let counts = bench.store().counts(Day(1), Day(1)).unwrap();
    assert_eq!(counts, [count(1, "mail", "a", 60), count(1, "mail", "b", 120)]);
}

fn what_is_written_at_once_is_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let many = |number| vec![count(1, "mail", "calls", 1); number];
    store.add_counts(&many(MAX_COUNTS_PER_WRITE)).unwrap();
    let error = store.add_counts(&many(MAX_COUNTS_PER_WRITE + 1)).unwrap_err();
    assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
    let named = |bytes| [count(1, "mail", &"x".repeat(bytes), 1)];
    store.add_counts(&named(MAX_COUNTER_BYTES)).unwrap();
    assert!(store.add_counts(&named(MAX_COUNTER_BYTES + 1)).is_err());
    let before = store.version().unwrap();
    store.add_counts(&[]).unwrap();
    assert_eq!(store.version().unwrap(), before, "nothing is nothing");
}

fn a_garbled_counter_is_an_error(kind: Kind) {
    for edit in ["value = -1", "server = 'NOT'"] {
        let bench = Bench::new(kind);
        let mut store = bench.store();
        store.add_counts(&[count(1, "mail", "calls", 1)]).unwrap();
        bench.edit(&format!("UPDATE statistics SET {edit}"));
        let error = store.counts(Day(1), Day(1)).unwrap_err();
        assert!(matches!(error, StoreError::Garbled { .. }), "{edit}: {error}");
    }
}

on_both![
    counters_add_up_and_are_read_by_days,
    a_full_counter_stays_full,
    counters_of_many_processes_lose_nothing,
    what_is_written_at_once_is_bounded,
    a_garbled_counter_is_an_error,
];

//! Counts of several nodes.

use super::*;
use crate::tests::bench::{Bench, postgres_url};

const SECOND: u64 = 1_000_000_000;

fn report(bucket: u8, calls: u64) -> ReportedCalls {
    ReportedCalls { bucket: [bucket; 32], calls, each_nanoseconds: 60 * SECOND }
}

#[test]
fn calls_of_all_nodes_are_added_and_told_to_each() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let open = || RateCounts::open(&bench.home, &bench.address()).unwrap();
    let (one, two) = (open(), open());
    let first = one.add(&[report(1, 3), report(2, 5)]).unwrap();
    assert_eq!(first.iter().map(|count| count.used).collect::<Vec<_>>(), [3, 5]);
    let second = two.add(&[report(2, 1), report(1, 2), report(3, 4)]).unwrap();
    assert_eq!(second.iter().map(|count| count.used).collect::<Vec<_>>(), [6, 5, 4]);
    // A full bucket is full again once all calls are regained, minus the time that has passed.
    let waits: Vec<u64> = second.iter().map(|count| count.full_in_nanoseconds / SECOND).collect();
    for (wait, calls) in waits.into_iter().zip([6, 5, 4]) {
        assert!((calls * 60 - 50..=calls * 60).contains(&wait), "{wait} for {calls}");
    }
    assert!(second[0].unix_seconds > 1_700_000_000);
    // The counts outlive the process.
    drop((one, two));
    assert_eq!(open().add(&[report(1, 1)]).unwrap()[0].used, 6);
}

#[test]
fn a_new_day_begins_at_zero_and_idle_buckets_are_forgotten() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let counts = RateCounts::open(&bench.home, &bench.address()).unwrap();
    counts.add(&[report(1, 3), report(2, 3), report(3, 3)]).unwrap();
    bench.edit("UPDATE rates SET day = day - 1");
    bench.edit("UPDATE rates SET full_at = 1 WHERE key = decode(repeat('02', 32), 'hex')");
    counts.forget_idle().unwrap();
    assert_eq!(bench.ask("SELECT count(*) FROM rates"), ["2"], "the others are not full yet");
    let again = counts.add(&[report(1, 1)]).unwrap();
    assert_eq!(again[0].used, 1);
    assert!(again[0].full_in_nanoseconds > 3 * 60 * SECOND, "the rate goes on over midnight");
}

#[test]
fn counting_wakes_no_other_process() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let store = bench.store();
    let counts = RateCounts::open(&bench.home, &bench.address()).unwrap();
    let before = store.version().unwrap();
    counts.add(&[report(1, 3)]).unwrap();
    counts.forget_idle().unwrap();
    assert_eq!(store.version().unwrap(), before);
}

//! Limits the cost of judging lists of a hostile server, scaled down so that an unoptimized build
//! can read them.
//!
//! The figures are ratios of processor time within one run, so neither a slow nor a busy machine
//! matters. `lists` measures the full sizes in an optimized build.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

use holdpoint_bench::hostile::lists::{Pair, Size, pairs};
use holdpoint_bench::judging::judge;
use std::time::Duration;

/// How many times as long as reading an ordinary list of the same size a list may take. Measured:
/// up to 40.
const MOST: f64 = 120.0;
/// A list above the bound is measured again: only one that is slow every time is too slow.
const ATTEMPTS: usize = 3;

/// The time to read an ordinary list of this size: tools with many properties.
fn yardstick(size: Size) -> Duration {
    let ordinary = pairs(size).find(|pair| pair.name == "properties of another type");
    let ordinary = ordinary.expect("one of the lists");
    let (old, new) = (ordinary.before(), ordinary.after());
    // The system counts processor time in steps of some milliseconds, which a sum evens out.
    const READINGS: u32 = 6;
    let readings: Duration = (0..READINGS).map(|_| judge(&old, &new).reading).sum();
    (readings / READINGS).max(Duration::from_millis(1))
}

/// The best of several attempts, stopping at the first within the bound.
fn figure(pair: &Pair, yardstick: Duration) -> f64 {
    let (old, new) = (pair.before(), pair.after());
    let mut best = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let times = judge(&old, &new);
        let longest = times.total().max(times.first_use);
        best = best.min(longest.as_secs_f64() / yardstick.as_secs_f64());
        if best <= MOST {
            break;
        }
    }
    best
}

fn check(size: Size) {
    let yardstick = yardstick(size);
    let figures: Vec<(&str, f64)> =
        pairs(size).map(|pair| (pair.name, figure(&pair, yardstick))).collect();
    figures.iter().for_each(|(name, figure)| println!("{figure:6.1}  {name}"));
    let slow: Vec<_> = figures.iter().filter(|(_, figure)| *figure > MOST).collect();
    assert!(slow.is_empty(), "times what reading an ordinary list takes: {slow:?}");
}

#[test]
fn no_list_of_large_entries_takes_much_longer_than_reading_an_ordinary_one() {
    check(Size { list_bytes: 68 * 1024, entry_bytes: 32 * 1024, entries: 2 });
}

#[test]
fn no_list_of_many_entries_takes_much_longer_than_reading_an_ordinary_one() {
    check(Size { list_bytes: 32 * 1024, entry_bytes: 1_600, entries: 10_000 });
}

//! Measures how long it takes to notice a write of another process. Run by hand:
//! `scripts/with-postgres cargo test --profile dist -p holdpoint-store -- --ignored --nocapture
//! measuring`.

use super::bench::*;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const CHECKS: u32 = 5_000;
const WAKES: usize = 50;

/// The median of some durations.
fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}

fn measure(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let start = Instant::now();
    for _ in 0..CHECKS {
        store.version().unwrap();
    }
    let check = start.elapsed() / CHECKS;
    let (mut acts, mut wakes) = (Vec::new(), Vec::new());
    let (ready, is_ready) = mpsc::channel();
    let (woken, is_woken) = mpsc::channel();
    std::thread::scope(|scope| {
        let bench = &bench;
        scope.spawn(move || {
            let store = bench.store();
            for _ in 0..WAKES {
                let before = store.version().unwrap();
                ready.send(()).unwrap();
                store.wait_for_change(before, Duration::from_secs(30)).unwrap();
                woken.send(Instant::now()).unwrap();
            }
        });
        for _ in 0..WAKES {
            is_ready.recv().unwrap();
            // Let the other process fall asleep: this measures how fast it wakes.
            std::thread::sleep(Duration::from_millis(20));
            let begun = Instant::now();
            pin_tools(&mut *store, "reports", &[("make", "one")]);
            let kept = Instant::now();
            acts.push(kept - begun);
            wakes.push(is_woken.recv().unwrap().saturating_duration_since(kept));
        }
    });
    let (act, wake) = (median(acts), median(wakes.clone()));
    let slowest = wakes.into_iter().max().unwrap_or_default();
    println!(
        "{kind:?}: version check {check:?}; act {act:?}; from its return to the other's waking {wake:?} (slowest {slowest:?})"
    );
}

#[test]
#[ignore = "it measures, and proves nothing on a busy machine"]
fn measuring_what_is_noticed_when() {
    measure(Kind::Sqlite);
    if postgres_url().is_some() {
        measure(Kind::Postgres);
    }
}

//! The data a server is judged by, without the texts that were not asked for.

use crate::tests::bench::*;
use crate::{Sighting, Wanted};
use contract::surface::{Entry, EntryType};
use gate::pins::Basis;
use gate::time::Timestamp;

fn a_baseline_has_the_wanted_pins_and_knows_of_the_others(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let none = store.baseline(&server, Wanted::Of(|_| true)).unwrap();
    assert!(!none.has_pins && none.server.is_none() && none.sighting.is_none());
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    let snapshot = store.snapshot(&server).unwrap();
    let all = store.baseline(&server, Wanted::Of(|_| true)).unwrap();
    assert_eq!((&all.server, &all.pins), (&snapshot.server, &snapshot.pins));
    assert!(all.has_pins && all.pins.get(&tool_id("make")).is_some());
    assert_eq!(all.revision(), snapshot.revision());
    let nothing = store.baseline(&server, Wanted::Of(|_| false)).unwrap();
    assert!(nothing.has_pins && nothing.pins.is_empty());
    assert_eq!(nothing.server, snapshot.server);
}

fn a_server_whose_pins_are_all_withdrawn_has_none(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    let server = id("reports");
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback).unwrap();
    for is_wanted in [|_| true, |_| false] as [fn(EntryType) -> bool; 2] {
        assert!(!store.baseline(&server, Wanted::Of(is_wanted)).unwrap().has_pins);
    }
}

fn pins_that_share_text_with_a_surface_equal_those_that_do_not(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one"), ("drop", "one")]);
    let server = id("reports");
    // One entry as pinned, one with a different text of the same length, and one that is gone.
    let raw = tool("send", "one").raw().replace("one", "two");
    let other = Entry::from_raw(tool_id("send"), &raw).unwrap();
    let surface = surface(&[tool("make", "one"), other]);
    let beside = store.baseline(&server, Wanted::Beside(&surface)).unwrap();
    assert_eq!(beside, store.baseline(&server, Wanted::Of(|_| true)).unwrap());
    bench.edit("UPDATE pins SET by = 'eve' WHERE key = 'make'");
    let beside = store.baseline(&server, Wanted::Beside(&surface)).unwrap();
    assert!(beside.pins.tampered.contains_key(&tool_id("make")), "known and still authenticated");
}

fn a_sighting_is_that_of_the_last_observation(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    for description in ["one", "two"] {
        let surface = surface(&[tool("make", description)]);
        let observation = observed(&[tool("make", description)]);
        let mut seen = act(&server, "server.observe");
        seen.observation = Some(&observation);
        store.record(seen).unwrap();
        let sighting = store.baseline(&server, Wanted::Of(|_| true)).unwrap().sighting;
        assert_eq!(sighting, Some(Sighting::of(&surface)), "{description}");
    }
    bench.edit("UPDATE observations SET notes = '{}'");
    let error = store.baseline(&server, Wanted::Of(|_| true)).unwrap_err();
    assert!(error.to_string().contains("the last observation of server `reports`"), "{error}");
}

fn lines_of_history_are_counted_by_basis_and_moment(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    for (index, description) in ["two", "three"].into_iter().enumerate() {
        let mut auto = act(&server, "pin.auto");
        auto.at = Timestamp(NOON.0 + 10 * i64::try_from(index).unwrap());
        auto.pins = vec![pin("make", description, Basis::Auto)];
        store.record(auto).unwrap();
    }
    let count = |name: &str, since| {
        store.count_history(&id(name), Basis::Auto, Timestamp(NOON.0 + since)).unwrap()
    };
    assert_eq!([count("reports", 0), count("reports", 10), count("reports", 11)], [2, 1, 0]);
    assert_eq!(count("mail", 0), 0);
    assert_eq!(store.count_history(&server, Basis::Attested, NOON).unwrap(), 0);
}

on_both![
    a_baseline_has_the_wanted_pins_and_knows_of_the_others,
    a_server_whose_pins_are_all_withdrawn_has_none,
    pins_that_share_text_with_a_surface_equal_those_that_do_not,
    a_sighting_is_that_of_the_last_observation,
    lines_of_history_are_counted_by_basis_and_moment,
];

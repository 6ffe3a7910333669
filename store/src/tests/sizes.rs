//! Values at the limits and just above them, and how loading time grows.

use crate::tests::bench::*;
use crate::write::Limits;
use crate::{Act, NewPin};
use crate::{MAX_CAPTURE_BYTES, MAX_LAUNCH_BYTES, MAX_NAME_BYTES, MAX_PINS_PER_ACT, StoreError};
use contract::client::{ClientCapabilities, MAX_CAPABILITIES_BYTES};
use contract::surface::Entry;
use contract::surface::MAX_ENTRY_BYTES;
use gate::pins::Basis;
use std::time::{Duration, Instant};

/// A tool whose JSON has exactly this many bytes.
fn tool_of(bytes: usize) -> Entry {
    let frame = r#"{"name":"a","title":""}"#.len();
    let raw = format!(r#"{{"name":"a","title":"{}"}}"#, "x".repeat(bytes - frame));
    assert_eq!(raw.len(), bytes);
    Entry::from_raw(tool_id("a"), &raw).unwrap()
}

#[track_caller]
fn check_over<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
    assert_eq!(error.to_string(), expected);
}

fn an_entry_may_be_as_large_as_one_that_is_read(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut act = act(&server, "server.pin");
    act.pins = vec![NewPin { entry: tool_of(MAX_ENTRY_BYTES), basis: Basis::Person }];
    store.record(act.clone()).unwrap();
    assert!(is_sound(&*store, "reports"));
    act.pins = vec![NewPin { entry: tool_of(MAX_ENTRY_BYTES + 1), basis: Basis::Person }];
    check_over(store.record(act), "an entry exceeds the limit of 1048576");
}

fn who_acts_has_a_name_and_not_a_long_one(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let name = "a".repeat(MAX_NAME_BYTES);
    store.record(Act::new(&server, NOON, &name, "server.observe")).unwrap();
    let name = "a".repeat(MAX_NAME_BYTES + 1);
    let act = Act::new(&server, NOON, &name, "server.observe");
    check_over(store.record(act), "the name of who acts exceeds the limit of 256");
    let nameless = store.record(Act::new(&server, NOON, "", "server.observe"));
    assert!(matches!(nameless, Err(StoreError::Nameless)));
    assert_eq!(store.history(&server).unwrap().len(), 1);
}

fn a_launch_is_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let url = |bytes: usize| {
        let launch = |url: String| crate::Launch::Url {
            url,
            header_names: vec![],
            has_secrets: false,
            client_capabilities: None,
            posture: None,
            identity: None,
        };
        let frame = serde_json::json!(launch(String::new())).to_string().len();
        launch("x".repeat(bytes - frame))
    };
    let frame = r#"{"a":""}"#.len();
    let largest = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_CAPABILITIES_BYTES - frame));
    let client = ClientCapabilities::read(largest.as_bytes()).unwrap();
    for (bytes, is_fine) in [(MAX_LAUNCH_BYTES, true), (MAX_LAUNCH_BYTES + 1, false)] {
        for launch in [url(bytes), url(bytes).for_client(Some(client.clone()))] {
            let mut act = act(&server, "server.pin");
            act.launch = Some(&launch);
            assert_eq!(store.record(act).is_ok(), is_fine, "{bytes}");
            let recorded = store.server(&server).unwrap().unwrap().launch;
            assert_eq!(recorded.as_ref() == Some(&launch), is_fine);
        }
    }
}

fn the_largest_capture_is_kept_and_one_byte_more_refused(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut observation = observed(&[]);
    observation.capture = "x".repeat(MAX_CAPTURE_BYTES);
    observation
        .unreadable
        .insert(contract::surface::ListKind::Tools, "x".repeat(crate::MAX_NOTES_BYTES));
    let mut observe = act(&server, "server.observe");
    observe.observation = Some(&observation);
    store.record(observe).unwrap();
    assert_eq!(store.observation(&server).unwrap().unwrap().capture.len(), MAX_CAPTURE_BYTES);
    observation.capture.push('x');
    let mut observe = act(&server, "server.observe");
    observe.observation = Some(&observation);
    check_over(
        store.record(observe),
        &format!("a capture exceeds the limit of {MAX_CAPTURE_BYTES}"),
    );
}

fn a_server_keeps_so_many_pins_and_no_more(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.limited(Limits { pins: 3, ..Limits::default() });
    pin_tools(&mut *store, "reports", &[("a", "one"), ("b", "one")]);
    pin_tools(&mut *store, "reports", &[("c", "one")]);
    let server = id("reports");
    let mut fourth = act(&server, "server.pin");
    fourth.pins = vec![pin("d", "one", Basis::Person)];
    check_over(store.record(fourth), "the number of pins of a server exceeds the limit of 3");
    assert_eq!(store.pins(&server).unwrap().iter().count(), 3);
    assert!(is_sound(&*store, "reports"));
}

fn a_server_keeps_so_many_bytes_of_pins_and_no_more(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.limited(Limits { bytes: 1_000, ..Limits::default() });
    let server = id("reports");
    let mut pins = act(&server, "server.pin");
    pins.pins = vec![NewPin { entry: tool_of(500), basis: Basis::Person }; 2];
    store.record(pins.clone()).unwrap();
    pins.pins.truncate(1);
    pins.pins[0].entry = tool_of(30);
    check_over(store.record(pins), "the size of all pins of a server exceeds the limit of 1000");
}

fn history_hands_out_the_newest_events(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    for name in ["server.pin", "server.quarantine", "server.release"] {
        store.record(act(&server, name)).unwrap();
    }
    let actions = |events| -> Vec<String> {
        let store = bench.limited(Limits { events, ..Limits::default() });
        let events = store.history(&server).unwrap();
        events.into_iter().map(|event| event.action).collect()
    };
    assert_eq!(actions(3), ["server.pin", "server.quarantine", "server.release"]);
    assert_eq!(actions(2), ["server.quarantine", "server.release"]);
}

fn many(count: usize) -> Vec<NewPin> {
    let description = "what it does and what it wants ".repeat(30);
    (0..count).map(|index| pin(&format!("tool{index}"), &description, Basis::FirstUse)).collect()
}

fn fastest_load(kind: Kind, count: usize) -> Duration {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut act = act(&server, "server.pin");
    act.pins = many(count);
    store.record(act).unwrap();
    let load = || {
        let start = Instant::now();
        let book = store.pins(&server).unwrap();
        assert_eq!((book.iter().count(), &book.lost, book.tampered.len()), (count, &None, 0));
        start.elapsed()
    };
    (0..5).map(|_| load()).min().unwrap()
}

fn loading_ten_times_the_pins_takes_about_ten_times_as_long(kind: Kind) {
    let (thousand, ten_thousand) = (fastest_load(kind, 1_000), fastest_load(kind, 10_000));
    println!("1,000 pins of 1 KB: {thousand:?}; 10,000: {ten_thousand:?}");
    // A quadratic load would take a hundred times as long; the margin is for a busy machine.
    assert!(ten_thousand < thousand * 30, "{thousand:?} and {ten_thousand:?}");
}

#[test]
fn an_act_may_pin_four_full_lists_and_no_more() {
    let server = id("reports");
    let mut full = act(&server, "server.pin");
    full.pins = vec![pin("a", "one", Basis::Person); MAX_PINS_PER_ACT];
    full.check_limits().unwrap();
    full.pins.push(pin("a", "one", Basis::Person));
    check_over(full.check_limits(), "the number of new pins exceeds the limit of 40003");
}

on_both![
    a_server_keeps_so_many_pins_and_no_more,
    a_server_keeps_so_many_bytes_of_pins_and_no_more,
    history_hands_out_the_newest_events,
    an_entry_may_be_as_large_as_one_that_is_read,
    who_acts_has_a_name_and_not_a_long_one,
    a_launch_is_bounded,
    the_largest_capture_is_kept_and_one_byte_more_refused,
    loading_ten_times_the_pins_takes_about_ten_times_as_long,
];

//! What one process writes, others see at once, and they can wait for it.

use super::bench::*;
use crate::Revision;
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn waiting_ends_when_another_handle_writes(kind: Kind) {
    let bench = Bench::new(kind);
    let mut writer = bench.store();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let bench = &bench;
        let waiting = scope.spawn(move || {
            let store = bench.store();
            let before = store.version().unwrap();
            sender.send(()).unwrap();
            let after = store.wait_for_change(before, Duration::from_secs(30)).unwrap();
            assert_ne!(after, before);
            assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
            Instant::now()
        });
        receiver.recv().unwrap();
        pin_tools(&mut *writer, "reports", &[("make", "one")]);
        let written = Instant::now();
        let woken = waiting.join().unwrap();
        assert!(woken.saturating_duration_since(written) < Duration::from_secs(5));
    });
}

fn waiting_ends_without_a_change_where_patience_does(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let before = store.version().unwrap();
    let start = Instant::now();
    let patience = Duration::from_millis(60);
    assert_eq!(store.wait_for_change(before, patience).unwrap(), before);
    assert!(start.elapsed() >= patience);
}

fn a_change_before_the_wait_is_not_waited_for(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut writer, store) = (bench.store(), bench.store());
    let before = store.version().unwrap();
    pin_tools(&mut *writer, "reports", &[("make", "one")]);
    assert_ne!(store.wait_for_change(before, Duration::from_secs(30)).unwrap(), before);
}

fn an_act_answers_how_the_server_stands_after_it(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut first = act(&server, "server.pin");
    first.expect = Some(Revision::NONE);
    first.pins = vec![pin("make", "one", gate::pins::Basis::Person)];
    let recorded = store.record(first).unwrap();
    let found = store.server(&server).unwrap().unwrap();
    assert_eq!((found.revision, found.seal_count), (recorded.revision, recorded.seal_count));
    assert_eq!(recorded.seal_count, 1);
    // An observation changes the revision but seals nothing.
    let observation = observed(&[tool("make", "two")]);
    let mut observe = act(&server, "server.observe");
    observe.observation = Some(&observation);
    let observed = store.record(observe.clone()).unwrap();
    assert!(observed.revision > recorded.revision);
    assert_eq!(observed.seal_count, 1);
    assert_eq!(store.record(observe).unwrap(), observed, "the same seen again is no act");
}

/// The store's methods block, and may be called wherever blocking is allowed, including inside a
/// runtime.
fn a_store_can_be_used_inside_a_runtime(kind: Kind) {
    let bench = Bench::new(kind);
    let use_it = || {
        let mut store = bench.store();
        pin_tools(&mut *store, "reports", &[("make", "one")]);
        let version = store.version().unwrap();
        store.wait_for_change(version, Duration::from_millis(5)).unwrap();
        assert!(is_sound(&*store, "reports"));
    };
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    single.block_on(async { use_it() });
    single.block_on(async { tokio::task::unconstrained(async { use_it() }).await });
    assert_eq!(pinned(&*bench.store(), "reports", "make"), ["one", "one"]);
}

on_both![
    waiting_ends_when_another_handle_writes,
    waiting_ends_without_a_change_where_patience_does,
    a_change_before_the_wait_is_not_waited_for,
    an_act_answers_how_the_server_stands_after_it,
    a_store_can_be_used_inside_a_runtime,
];

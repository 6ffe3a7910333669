//! After tampering, only a person's approval repairs the state; the replaced rows stay in history.

use crate::StoreError;
use crate::tests::bench::*;
use crate::{NewPin, Store};
use gate::pins::Basis;
use gate::server::ServerStatus;

fn approve(store: &mut dyn Store, server: &str, pins: Vec<NewPin>) -> Result<(), StoreError> {
    let server = id(server);
    let mut act = act(&server, "server.approve");
    act.pins = pins;
    act.reseal = true;
    store.record(act).map(drop)
}

fn discarded(store: &dyn Store, server: &str) -> Vec<(Option<String>, Option<String>)> {
    let history = store.history(&id(server)).unwrap();
    history
        .into_iter()
        .filter(|event| event.action == "pin.discarded")
        .map(|event| (event.key, event.raw))
        .collect()
}

/// `make` and `send` with two pins each, the newer of which was edited.
fn edited(kind: Kind) -> (Bench, Box<dyn Store>) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    pin_tools(&mut *store, "reports", &[("make", "two"), ("send", "two")]);
    bench.edit("UPDATE pins SET raw = replace(raw, 'two', 'evil') WHERE raw LIKE '%two%'");
    (bench, store)
}

fn approving_an_edited_entry_repairs_only_that_entry(kind: Kind) {
    let (_bench, mut store) = edited(kind);
    approve(&mut *store, "reports", vec![pin("make", "three", Basis::Person)]).unwrap();
    let book = store.pins(&id("reports")).unwrap();
    assert_eq!(book.lost, None);
    assert_eq!(book.tampered.keys().collect::<Vec<_>>(), [&tool_id("send")]);
    assert_eq!(pinned(&*store, "reports", "make"), ["one", "three"]);
    let gone = discarded(&*store, "reports");
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].0.as_deref(), Some("make"));
    assert!(gone[0].1.as_ref().unwrap().contains("evil"), "as it stood");
    approve(&mut *store, "reports", vec![pin("send", "three", Basis::Person)]).unwrap();
    assert!(is_sound(&*store, "reports"));
}

fn nothing_but_an_approval_is_written_over_an_edited_entry(kind: Kind) {
    let (_bench, mut store) = edited(kind);
    let server = id("reports");
    let before = store.snapshot(&server).unwrap();
    let mut auto = act(&server, "pin.auto");
    auto.pins = vec![pin("make", "three", Basis::Auto)];
    assert!(matches!(store.record(auto.clone()), Err(StoreError::Untrusted { .. })));
    auto.reseal = true;
    assert!(matches!(store.record(auto), Err(StoreError::Untrusted { .. })));
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    assert!(matches!(store.record(rollback), Err(StoreError::Untrusted { .. })));
    assert_eq!(store.snapshot(&server).unwrap(), before);
}

fn another_entry_can_be_pinned_while_an_edited_one_stays_held(kind: Kind) {
    let (_bench, mut store) = edited(kind);
    pin_tools(&mut *store, "reports", &[("other", "one")]);
    let book = store.pins(&id("reports")).unwrap();
    assert_eq!(book.tampered.len(), 2);
    assert_eq!(book.lost, None);
    assert_eq!(pinned(&*store, "reports", "other"), ["one"]);
}

fn approving_in_a_lost_book_pins_what_was_approved_and_nothing_else(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    pin_tools(&mut *store, "reports", &[("make", "two")]);
    bench.edit("DELETE FROM pins WHERE raw LIKE '%two%'");
    let before = store.snapshot(&id("reports")).unwrap();
    let mut auto = pin("make", "three", Basis::Auto);
    let error = approve(&mut *store, "reports", vec![auto.clone()]).unwrap_err();
    assert!(matches!(error, StoreError::Untrusted { .. }), "{error}");
    assert!(approve(&mut *store, "reports", vec![]).is_ok(), "an approval of nothing is written");
    assert!(store.pins(&id("reports")).unwrap().lost.is_some(), "and mends nothing");
    assert_eq!(store.pins(&id("reports")).unwrap(), before.pins);
    auto.basis = Basis::Person;
    approve(&mut *store, "reports", vec![auto]).unwrap();
    assert!(is_sound(&*store, "reports"));
    assert_eq!(pinned(&*store, "reports", "make"), ["three"]);
    assert!(pinned(&*store, "reports", "send").is_empty());
    assert_eq!(discarded(&*store, "reports").len(), 2);
}

fn a_lost_server_can_be_quarantined_and_observed_and_stays_lost(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    bench.edit("DELETE FROM pins WHERE key = 'make'");
    let server = id("reports");
    let observation = observed(&[tool("make", "one")]);
    let mut quarantine = act(&server, "server.quarantine");
    quarantine.status = Some(ServerStatus::Quarantined);
    quarantine.observation = Some(&observation);
    store.record(quarantine).unwrap();
    let snapshot = store.snapshot(&server).unwrap();
    assert_eq!(snapshot.server.unwrap().status, ServerStatus::Quarantined);
    assert_eq!(snapshot.observation, Some(observation));
    assert!(snapshot.pins.lost.is_some());
    let mut release = act(&server, "server.release");
    release.status = Some(ServerStatus::Verified);
    store.record(release).unwrap();
    assert!(store.pins(&server).unwrap().lost.is_some());
}

/// Not for a shared database, where it is the node that has the wrong key: see `postgres::tests`.
#[test]
fn approving_without_the_key_makes_a_new_one_that_old_pins_do_not_fit() {
    let kind = Kind::Sqlite;
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    pin_tools(&mut *store, "mail", &[("send", "one")]);
    std::fs::remove_file(bench.key_path()).unwrap();
    approve(&mut *store, "reports", vec![pin("make", "one", Basis::Person)]).unwrap();
    assert!(is_sound(&*store, "reports"));
    assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
    assert_eq!(discarded(&*store, "reports").len(), 1);
    assert!(!is_sound(&*store, "mail"));
    assert!(pinned(&*store, "mail", "send").is_empty());
}

fn approving_a_removed_server_keeps_none_of_its_orphaned_pins(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    bench.edit("DELETE FROM servers");
    let server = id("reports");
    let mut first = act(&server, "server.pin");
    first.pins = vec![pin("make", "one", Basis::FirstUse)];
    assert!(matches!(store.record(first), Err(StoreError::Untrusted { .. })));
    approve(&mut *store, "reports", vec![pin("make", "one", Basis::Person)]).unwrap();
    assert!(is_sound(&*store, "reports"));
    assert_eq!(store.pins(&server).unwrap().iter().count(), 1);
    assert_eq!(discarded(&*store, "reports").len(), 2);
}

fn rows_of_nonsense_can_be_approved_away(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one"), ("send", "one")]);
    let (nonsense, long) = (kind.nonsense(), "1".repeat(2_000_000));
    bench.edit(&format!(
        "UPDATE pins SET key = {nonsense}, entry_type = 'nonsense', raw = '{long}', by = '{long}', basis = {nonsense}
         WHERE key = 'send';
         UPDATE servers SET status = {nonsense}, launch = 'nonsense'"
    ));
    assert!(store.pins(&id("reports")).unwrap().lost.is_some());
    let server = id("reports");
    let launch = crate::Launch::Url {
        url: "https://example.com".into(),
        header_names: vec![],
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    };
    let mut act = act(&server, "server.approve");
    act.pins = vec![pin("make", "one", Basis::Person)];
    act.status = Some(ServerStatus::Verified);
    act.launch = Some(&launch);
    act.reseal = true;
    store.record(act).unwrap();
    assert!(is_sound(&*store, "reports"));
    let gone = discarded(&*store, "reports");
    assert_eq!(gone.len(), 2);
    assert_eq!(gone[1].1, None, "a text larger than an entry may be is not kept");
}

on_both![
    approving_an_edited_entry_repairs_only_that_entry,
    nothing_but_an_approval_is_written_over_an_edited_entry,
    another_entry_can_be_pinned_while_an_edited_one_stays_held,
    approving_in_a_lost_book_pins_what_was_approved_and_nothing_else,
    a_lost_server_can_be_quarantined_and_observed_and_stays_lost,
    approving_a_removed_server_keeps_none_of_its_orphaned_pins,
    rows_of_nonsense_can_be_approved_away,
];

//! Moving a store copies everything unchanged, or nothing.

use super::{TABLES, relocate};
use crate::tests::bench::*;
use crate::{
    ActorType, ApiKeyHash, ApprovalDecision, By, Count, Day, DrillSighting, Home, Incident,
    IncidentLevel, IncidentScope, Location, NewApiKey, NewPin, Quarantine, RevokedKind, SignIn,
    SignInKind, Store, StoreError,
};
use contract::surface::Entry;
use gate::pins::Basis;
use std::fs;

const ADA: By<'_> = By { name: "ada", at: NOON };

/// Fills every table, with characters that are hard to store.
fn fill(store: &mut dyn Store) {
    pin_tools(store, "reports", &[("make", "one"), ("send", "ä✓")]);
    pin_tools(store, "reports", &[("make", "two")]);
    let server = id("reports");
    let mut odd = act(&server, "server.pin");
    let raw = serde_json::json!({ "name": "a\0b\u{10}" }).to_string();
    let entry = Entry::from_raw(tool_id("a\0b\u{10}"), &raw).unwrap();
    odd.pins = vec![NewPin { entry, basis: Basis::FirstUse }];
    let observation = observed(&[tool("make", "three")]);
    odd.observation = Some(&observation);
    odd.detail = Some("nul \0, dle \u{10}0".to_owned());
    store.record(odd).unwrap();
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback).unwrap();
    let incident = Incident { level: IncidentLevel::High, scope: IncidentScope::All, reason: None };
    store.begin_incident(&incident, ADA).unwrap();
    for value in ["b", "\0", "\u{1}", "\u{10}"] {
        store.revoke(RevokedKind::Session, value, ADA).unwrap();
    }
    let quarantine = Quarantine {
        principal: "svc".to_owned(),
        session: Some("1".to_owned()),
        rule: "more than 1/min denials".to_owned(),
        at: NOON,
    };
    store.quarantine(&quarantine).unwrap();
    let drill = store.begin_drill(ADA).unwrap();
    let sighting = DrillSighting { node: "n1".to_owned(), place: "127.0.0.1:1".to_owned() };
    store.note_drill(drill, &sighting).unwrap();
    let key = NewApiKey {
        id: "k1".parse().unwrap(),
        hash: ApiKeyHash([9; 32]),
        sub: "svc".to_owned(),
        actor_type: ActorType::Agent,
        org: None,
        groups: vec!["g".to_owned()],
        clearance: Some("internal".to_owned()),
        admin: true,
        expires_at: None,
    };
    store.add_api_key(&key, ADA).unwrap();
    let call = call();
    let approval = "a1".parse().unwrap();
    store.park_call(&approval, &call, NOON, gate::time::Timestamp(NOON.0 + 9)).unwrap();
    store
        .decide_call(
            &approval,
            ApprovalDecision::Grant { mfa: false },
            By { name: "bob", at: NOON },
        )
        .unwrap();
    let count = Count { day: Day(3), server: id("mail"), name: "calls".to_owned(), value: 4 };
    store.add_counts(&[count]).unwrap();
    let sign_in = SignIn {
        kind: SignInKind::Grant,
        name: "g1".parse().unwrap(),
        owner: "ada".to_owned(),
        at: NOON,
        expires_at: NOON,
        sealed: "sealed".to_owned(),
    };
    store.put_sign_in(&sign_in).unwrap();
}

fn location(bench: &Bench) -> Location {
    match &bench.url {
        None => Location::SqliteIn(bench.home.path().to_owned()),
        Some(url) => Location::parse(url).unwrap(),
    }
}

/// A database of the other kind to move to.
fn other(kind: Kind) -> Option<Bench> {
    match kind {
        Kind::Sqlite => Some(Bench::on(&postgres_url()?)),
        Kind::Postgres => Some(Bench::new(Kind::Sqlite)),
    }
}

/// The content of every table.
fn content(bench: &Bench) -> Vec<(&'static str, Vec<[u8; 32]>)> {
    use crate::database::Backend;
    let store = super::Either::open(&bench.home, &location(bench)).unwrap();
    TABLES
        .iter()
        .map(|table| (table.name, store.read(|rows| table.digests(rows)).unwrap()))
        .collect()
}

fn share_key(from: &Bench, to: &Bench) {
    fs::copy(from.key_path(), to.key_path()).unwrap();
}

fn all_of_a_store_moves_to_the_other_database_and_back(kind: Kind) {
    let bench = Bench::new(kind);
    fill(&mut *bench.store());
    let Some(target) = other(kind) else { return };
    share_key(&bench, &target);
    let (from, to) = (location(&bench), location(&target));
    let home = if kind == Kind::Sqlite { &target.home } else { &bench.home };
    let moved = relocate(home, &from, &to).unwrap();
    assert!(!moved.was_there);
    assert_eq!(moved.rows.len(), TABLES.len());
    assert!(moved.rows.iter().all(|(_, rows)| *rows > 0), "{moved:?}");
    assert_eq!(content(&target), content(&bench));
    let store = target.store();
    assert!(is_sound(&*store, "reports"));
    assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
    assert_eq!(
        store.history(&id("reports")).unwrap(),
        bench.store().history(&id("reports")).unwrap()
    );
    assert_eq!(store.events().unwrap(), bench.store().events().unwrap());
    // Move it back, into a new home.
    let again = Bench::new(Kind::Sqlite);
    share_key(&bench, &again);
    relocate(&target.home, &to, &location(&again)).unwrap();
    assert_eq!(content(&again), content(&bench));
    assert!(is_sound(&*again.store(), "reports"));
}

fn what_is_numbered_goes_on_where_it_was(kind: Kind) {
    let Some(target) = other(kind) else { return };
    let bench = Bench::new(kind);
    let mut store = bench.store();
    fill(&mut *store);
    share_key(&bench, &target);
    let home = if kind == Kind::Sqlite { &target.home } else { &bench.home };
    relocate(home, &location(&bench), &location(&target)).unwrap();
    let mut moved = target.store();
    for store in [&mut *store, &mut *moved] {
        pin_tools(store, "reports", &[("make", "four")]);
        assert!(is_sound(store, "reports"));
    }
    assert_eq!(content(&target), content(&bench), "both number alike");
}

fn a_target_that_holds_something_else_is_refused_and_one_that_holds_the_same_is_fine(kind: Kind) {
    let Some(target) = other(kind) else { return };
    let bench = Bench::new(kind);
    fill(&mut *bench.store());
    share_key(&bench, &target);
    let home = if kind == Kind::Sqlite { &target.home } else { &bench.home };
    let (from, to) = (location(&bench), location(&target));
    relocate(home, &from, &to).unwrap();
    assert!(relocate(home, &from, &to).unwrap().was_there);
    target.edit("UPDATE statistics SET value = value + 1");
    let before = content(&target);
    let error = relocate(home, &from, &to).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    assert_eq!(content(&target), before);
}

fn a_failure_half_way_leaves_the_target_empty(kind: Kind) {
    let Some(target) = other(kind) else { return };
    let bench = Bench::new(kind);
    fill(&mut *bench.store());
    share_key(&bench, &target);
    drop(target.store());
    let home = if kind == Kind::Sqlite { &target.home } else { &bench.home };
    // Make writing to the last table fail.
    target
        .edit_plainly(match kind {
            Kind::Sqlite => "ALTER TABLE counters ADD CHECK (value < 0)",
            Kind::Postgres => {
                "CREATE TABLE other (name TEXT PRIMARY KEY CHECK (name <> 'pins'), value INTEGER NOT NULL) STRICT;
                 INSERT INTO other SELECT * FROM counters WHERE name <> 'pins';
                 DROP TABLE counters;
                 ALTER TABLE other RENAME TO counters"
            }
        })
        .unwrap();
    relocate(home, &location(&bench), &location(&target)).unwrap_err();
    assert!(content(&target).iter().all(|(_, rows)| rows.is_empty()));
}

fn tampered_pins_stay_tampered(kind: Kind) {
    let Some(target) = other(kind) else { return };
    let bench = Bench::new(kind);
    fill(&mut *bench.store());
    bench.edit("UPDATE pins SET raw = replace(raw, 'one', 'evil')");
    share_key(&bench, &target);
    let home = if kind == Kind::Sqlite { &target.home } else { &bench.home };
    relocate(home, &location(&bench), &location(&target)).unwrap();
    let book = target.store().pins(&id("reports")).unwrap();
    assert_eq!(book.tampered.keys().collect::<Vec<_>>(), [&tool_id("make")]);
}

fn every_column_is_moved(kind: Kind) {
    let bench = Bench::new(kind);
    drop(bench.store());
    for table in &TABLES {
        let mut columns = bench.columns_of(table.name);
        let mut listed: Vec<String> = table.columns.iter().map(|&name| name.to_owned()).collect();
        columns.sort();
        listed.sort();
        assert_eq!(columns, listed, "{}", table.name);
    }
    let tables = bench.ask(match kind {
        Kind::Sqlite => {
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        }
        Kind::Postgres => {
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()
             AND table_name NOT IN ('shared', 'commits', 'holdpoint_format', 'nodes', 'instance_owners', 'rates')"
        }
    });
    assert_eq!(tables.len(), TABLES.len(), "{tables:?}");
}

on_both![
    all_of_a_store_moves_to_the_other_database_and_back,
    what_is_numbered_goes_on_where_it_was,
    a_target_that_holds_something_else_is_refused_and_one_that_holds_the_same_is_fine,
    a_failure_half_way_leaves_the_target_empty,
    tampered_pins_stay_tampered,
    every_column_is_moved,
];

#[test]
fn a_home_without_a_key_gets_the_one_that_the_pins_need() {
    let (bench, target) = (Bench::new(Kind::Sqlite), Bench::new(Kind::Sqlite));
    fill(&mut *bench.store());
    relocate(&bench.home, &Location::Sqlite, &location(&target)).unwrap();
    assert_eq!(fs::read(target.key_path()).unwrap(), fs::read(bench.key_path()).unwrap());
    assert!(is_sound(&*target.store(), "reports"));
}

#[test]
fn a_home_with_a_key_of_its_own_is_refused() {
    let (bench, target) = (Bench::new(Kind::Sqlite), Bench::new(Kind::Sqlite));
    fill(&mut *bench.store());
    fs::write(target.key_path(), [3; 32]).unwrap();
    crate::home::private_file(&target.key_path()).unwrap();
    let error = relocate(&bench.home, &Location::Sqlite, &location(&target)).unwrap_err();
    assert!(error.to_string().contains("a key of its own"), "{error}");
    assert_eq!(fs::read(target.key_path()).unwrap(), [3; 32]);
}

#[test]
fn a_store_is_not_moved_to_itself() {
    let bench = Bench::new(Kind::Sqlite);
    fill(&mut *bench.store());
    let error = relocate(&bench.home, &Location::Sqlite, &location(&bench)).unwrap_err();
    assert!(error.to_string().contains("cannot be moved to itself"), "{error}");
}

#[test]
fn what_the_other_database_cannot_hold_is_told_and_nothing_moved() {
    let Some(url) = postgres_url() else { return };
    let (bench, target) = (Bench::new(Kind::Sqlite), Bench::on(&url));
    fill(&mut *bench.store());
    bench.edit("UPDATE pins SET by = CAST(x'ff' AS TEXT)");
    let home: &Home = &bench.home;
    let error = relocate(home, &Location::Sqlite, &location(&target)).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(_)), "{error}");
    assert!(error.to_string().starts_with("table `pins` has values"), "{error}");
    share_key(&bench, &target);
    assert!(content(&target).iter().all(|(_, rows)| rows.is_empty()));
}

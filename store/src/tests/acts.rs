//! The effects of an act, and the acts that are refused.

use crate::tests::bench::*;
use crate::{Act, NewPin, Store};
use crate::{Launch, Revision, StoreError};
use contract::client::ClientCapabilities;
use contract::surface::{Entry, EntryType};
use gate::pins::Basis;
use gate::posture::Posture;
use gate::server::ServerStatus;
use gate::time::Timestamp;

fn a_pin_comes_back_as_it_was_made(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let entry = tool("make", "makes\\u0000 \\\"it\\\" ✓");
    let mut first = act(&server, "server.pin");
    first.pins = vec![NewPin { entry: entry.clone(), basis: Basis::FirstUse }];
    store.record(first).unwrap();
    let book = bench.store().pins(&server).unwrap();
    let pins: Vec<_> = book.get(&tool_id("make")).unwrap().iter().collect();
    assert_eq!(pins.len(), 1);
    assert_eq!(pins[0].entry, entry);
    assert_eq!((pins[0].basis, pins[0].at, pins[0].by.as_str()), (Basis::FirstUse, NOON, "ada"));
    assert!(is_sound(&*store, "reports"));
}

fn an_entry_that_was_accepted_to_be_gone_comes_back_as_such(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    let server = id("reports");
    let mut approve = act(&server, "server.approve");
    approve.pins = vec![NewPin { entry: Entry::gone(tool_id("make")), basis: Basis::Person }];
    store.record(approve).unwrap();
    let book = store.pins(&server).unwrap();
    let pins = book.get(&tool_id("make")).unwrap();
    assert_eq!(pins.iter().next_back().unwrap().entry, Entry::gone(tool_id("make")));
    assert_eq!(pins.iter().count(), 2);
    assert!(is_sound(&*store, "reports"));
}

fn every_basis_and_every_status_comes_back(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for status in ServerStatus::ALL {
        let server = id(status.as_str());
        let mut act = act(&server, "server.pin");
        act.status = Some(status);
        act.pins = Basis::ALL.map(|basis| pin("make", basis.as_str(), basis)).into();
        store.record(act).unwrap();
        assert_eq!(store.server(&server).unwrap().unwrap().status, status);
        let book = store.pins(&server).unwrap();
        let bases: Vec<_> =
            book.get(&tool_id("make")).unwrap().iter().map(|pin| pin.basis).collect();
        assert_eq!(bases, Basis::ALL);
    }
    assert_eq!(store.servers().unwrap().len(), ServerStatus::ALL.len());
}

fn a_key_with_a_nul_character_is_one_key(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut act = act(&server, "server.pin");
    for key in ["a", "a\0b", "a\0c"] {
        let raw = serde_json::json!({ "name": key }).to_string();
        let entry = Entry::from_raw(tool_id(key), &raw).unwrap();
        act.pins.push(NewPin { entry, basis: Basis::Person });
    }
    act.withdraw = vec![];
    store.record(act).unwrap();
    assert_eq!(store.pins(&server).unwrap().iter().count(), 3);
    let mut rollback = crate::tests::bench::act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("a\0b")];
    store.record(rollback).unwrap();
    let book = store.pins(&server).unwrap();
    assert!(book.get(&tool_id("a\0b")).is_none());
    assert!(book.get(&tool_id("a\0c")).is_some() && book.get(&tool_id("a")).is_some());
    assert!(is_sound(&*store, "reports"));
}

fn an_unrecorded_server_has_no_record_no_pins_and_no_loss(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    let snapshot = store.snapshot(&id("other")).unwrap();
    assert_eq!(snapshot.server, None);
    assert_eq!(snapshot.revision(), Revision::NONE);
    assert!(snapshot.pins.is_empty() && snapshot.pins.lost.is_none());
    assert_eq!(snapshot.observation, None);
    assert!(store.history(&id("other")).unwrap().is_empty());
}

fn rollback_withdraws_the_newest_pin_and_the_one_before_counts_again(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    pin_tools(&mut *store, "reports", &[("make", "two"), ("send", "one")]);
    let server = id("reports");
    let mut rollback = act(&server, "server.rollback");
    // An entry named twice loses only one pin.
    rollback.withdraw = vec![tool_id("make"), tool_id("make")];
    store.record(rollback).unwrap();
    assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
    assert_eq!(pinned(&*store, "reports", "send"), ["one"]);
    assert!(is_sound(&*store, "reports"));
}

fn what_has_no_pin_left_cannot_be_withdrawn(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    let server = id("reports");
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback.clone()).unwrap();
    assert!(pinned(&*store, "reports", "make").is_empty());
    let history = store.history(&server).unwrap();
    let error = store.record(rollback).unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `reports` has no pin of `tool:make` that could be withdrawn"
    );
    assert_eq!(store.history(&server).unwrap(), history, "nothing of a refused act is kept");
}

fn an_act_that_fails_half_way_writes_nothing(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    let server = id("reports");
    let before = store.snapshot(&server).unwrap();
    let mut bad = act(&server, "server.rollback");
    bad.status = Some(ServerStatus::Quarantined);
    bad.pins = vec![pin("make", "two", Basis::Person)];
    bad.withdraw = vec![tool_id("make"), tool_id("never there")];
    assert!(matches!(store.record(bad), Err(StoreError::NothingToWithdraw { .. })));
    assert_eq!(store.snapshot(&server).unwrap(), before);
}

fn a_decision_on_what_is_no_longer_so_is_refused(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, mut other) = (bench.store(), bench.store());
    pin_tools(&mut *one, "reports", &[("make", "one")]);
    let server = id("reports");
    let read = one.snapshot(&server).unwrap();
    // Another process observes a change between the review and the approval.
    let observation = observed(&[tool("make", "evil")]);
    let mut observe = act(&server, "server.observe");
    observe.observation = Some(&observation);
    other.record(observe).unwrap();
    let mut approve = act(&server, "server.approve");
    approve.expect = Some(read.revision());
    approve.pins = vec![pin("make", "two", Basis::Person)];
    let error = one.record(approve.clone()).unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert_eq!(pinned(&*one, "reports", "make"), ["one"]);
    // After another review, the approval succeeds.
    approve.expect = Some(one.snapshot(&server).unwrap().revision());
    one.record(approve).unwrap();
    assert_eq!(pinned(&*one, "reports", "make"), ["one", "two"]);
}

fn a_server_that_must_be_new_is_made_once(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let mut first = act(&server, "server.pin");
    first.expect = Some(Revision::NONE);
    first.pins = vec![pin("make", "one", Basis::FirstUse)];
    store.record(first.clone()).unwrap();
    assert!(matches!(store.record(first), Err(StoreError::Changed { .. })));
    assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
}

fn history_tells_who_did_what_when_and_from_which_to_which(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let server = id("reports");
    let observation = observed(&[tool("make", "one")]);
    let mut first = Act::new(&server, NOON, "holdpoint", "server.pin");
    first.status = Some(ServerStatus::Verified);
    first.observation = Some(&observation);
    first.pins = vec![pin("make", "one", Basis::FirstUse)];
    store.record(first).unwrap();
    let mut approve = Act::new(&server, Timestamp(NOON.0 + 5), "ada", "server.approve");
    approve.pins = vec![pin("make", "two", Basis::Person)];
    approve.detail = Some("after a look".to_owned());
    store.record(approve).unwrap();
    let mut rollback = Act::new(&server, Timestamp(NOON.0 + 9), "bob", "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback).unwrap();

    let history = store.history(&server).unwrap();
    let lines: Vec<_> = history
        .iter()
        .map(|event| (event.at.0 - NOON.0, event.by.as_str(), event.action.as_str(), event.basis))
        .collect();
    assert_eq!(
        lines,
        [
            (0, "holdpoint", "server.pin", None),
            (0, "holdpoint", "pin.added", Some(Basis::FirstUse)),
            (5, "ada", "server.approve", None),
            (5, "ada", "pin.added", Some(Basis::Person)),
            (9, "bob", "server.rollback", None),
            (9, "bob", "pin.withdrawn", None),
        ]
    );
    let (one, two) = (tool("make", "one").entry_hash(), tool("make", "two").entry_hash());
    let hashes: Vec<_> =
        history.iter().map(|event| (event.entry_hash_before, event.entry_hash_after)).collect();
    assert_eq!(hashes[1], (None, Some(one)));
    assert_eq!(hashes[3], (Some(one), Some(two)));
    assert_eq!(hashes[5], (Some(two), Some(one)));
    assert_eq!(history[0].surface_hash_after, Some(observation.surface_hash));
    assert_eq!(history[0].status_after, Some(ServerStatus::Verified));
    assert_eq!(history[2].status_after, None, "a status that stays is no event");
    assert_eq!(history[2].detail.as_deref(), Some("after a look"));
    assert_eq!(history[3].act, history[2].seq);
    assert_eq!(
        (history[5].entry_type, history[5].key.as_deref()),
        (Some(EntryType::Tool), Some("make"))
    );
}

fn history_cannot_be_edited_or_removed_by_a_slip(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    for sql in ["UPDATE history SET by = 'bob'", "DELETE FROM history"] {
        let error = bench.edit_plainly(sql).unwrap_err();
        assert!(error.contains("history is only added to"), "{error}");
    }
}

fn launches_come_back_and_say_whether_they_can_be_repeated(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let program = Launch::Program {
        command: vec!["npx".into(), "-y".into(), "some-server".into()],
        directory: Some("/srv".into()),
        environment_names: vec!["TOKEN".into()],
        has_secrets: true,
        client_capabilities: None,
        posture: None,
        identity: None,
    };
    let url = Launch::Url {
        url: "https://example.com/mcp".into(),
        header_names: vec![],
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    };
    let client = ClientCapabilities::read(br#"{"roots":{"listChanged":true}}"#).unwrap();
    let for_client = program.clone().for_client(Some(client.clone()));
    assert_eq!(for_client.client_capabilities(), Some(&client));
    let strict = url.clone().under(Some(Posture::Strict));
    assert_eq!((url.posture(), strict.posture()), (None, Some(Posture::Strict)));
    for (name, launch) in
        [("program", &program), ("url", &url), ("for-client", &for_client), ("strict", &strict)]
    {
        let server = id(name);
        let mut act = act(&server, "server.pin");
        act.launch = Some(launch);
        store.record(act).unwrap();
        assert_eq!(store.server(&server).unwrap().unwrap().launch.as_ref(), Some(launch));
        assert!(is_sound(&*store, name));
    }
    assert!(program.has_secrets() && !url.has_secrets());
}

fn the_client_of_a_launch_is_authenticated_and_a_launch_without_one_still_is(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let launch = Launch::Url {
        url: "https://example.com/mcp".into(),
        header_names: vec![],
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    };
    let client = ClientCapabilities::read(br#"{"roots":{}}"#).unwrap();
    let for_client = launch.clone().for_client(Some(client));
    for (name, launch) in [("before", &launch), ("after", &for_client)] {
        let server = id(name);
        let mut act = act(&server, "server.pin");
        act.launch = Some(launch);
        store.record(act).unwrap();
        assert!(is_sound(&*store, name));
    }
    bench.edit("UPDATE servers SET launch = replace(launch, 'roots', 'stems') WHERE id = 'after'");
    assert!(is_sound(&*store, "before") && !is_sound(&*store, "after"));
}

fn what_one_process_approved_the_other_reads_at_once_and_its_version_moves(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, mut other) = (bench.store(), bench.store());
    let start = other.version().unwrap();
    assert_eq!(other.version().unwrap(), start, "reading moves nothing");
    pin_tools(&mut *one, "reports", &[("make", "one")]);
    let after_other = other.version().unwrap();
    assert_ne!(after_other, start);
    assert_eq!(pinned(&*other, "reports", "make"), ["one"]);
    assert_eq!(other.version().unwrap(), after_other);
    pin_tools(&mut *other, "reports", &[("make", "two")]);
    let after_own = other.version().unwrap();
    assert_ne!(after_own, after_other);
    bench.edit("UPDATE pins SET by = 'eve'");
    assert_ne!(other.version().unwrap(), after_own, "an edit by hand moves it too");
}

fn the_trait_can_be_used_as_an_object(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store: Box<dyn Store> = bench.store();
    let server = id("reports");
    store.record(act(&server, "server.quarantine")).unwrap();
    assert_eq!(store.servers().unwrap().len(), 1);
}

on_both![
    a_pin_comes_back_as_it_was_made,
    an_entry_that_was_accepted_to_be_gone_comes_back_as_such,
    every_basis_and_every_status_comes_back,
    a_key_with_a_nul_character_is_one_key,
    an_unrecorded_server_has_no_record_no_pins_and_no_loss,
    rollback_withdraws_the_newest_pin_and_the_one_before_counts_again,
    what_has_no_pin_left_cannot_be_withdrawn,
    an_act_that_fails_half_way_writes_nothing,
    a_decision_on_what_is_no_longer_so_is_refused,
    a_server_that_must_be_new_is_made_once,
    history_tells_who_did_what_when_and_from_which_to_which,
    history_cannot_be_edited_or_removed_by_a_slip,
    launches_come_back_and_say_whether_they_can_be_repeated,
    the_client_of_a_launch_is_authenticated_and_a_launch_without_one_still_is,
    what_one_process_approved_the_other_reads_at_once_and_its_version_moves,
    the_trait_can_be_used_as_an_object,
];

//! Observations: replaced each time, recorded as events only if they differ.

use crate::tests::bench::*;
use crate::{Act, Observation, Store};
use contract::surface::{Entry, EntryId, EntryType};
use contract::surface::{ListKind, SurfaceReader};
use gate::time::Timestamp;

fn observe(store: &mut dyn Store, observation: &Observation, milliseconds: i64) {
    let server = id("reports");
    let mut act =
        Act::new(&server, Timestamp(NOON.0 + milliseconds), "holdpoint", "server.observe");
    act.observation = Some(observation);
    store.record(act).unwrap();
}

fn the_last_observation_replaces_the_one_before(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    assert_eq!(store.observation(&id("reports")).unwrap(), None);
    observe(&mut *store, &observed(&[tool("make", "one")]), 0);
    let second = observed(&[tool("make", "two")]);
    observe(&mut *store, &second, 1);
    assert_eq!(store.observation(&id("reports")).unwrap(), Some(second));
    let actions = store.history(&id("reports")).unwrap();
    assert_eq!(actions.len(), 2);
    assert_ne!(actions[1].surface_hash_before, actions[1].surface_hash_after);
    assert!(is_sound(&*store, "reports"), "observing breaks no seal");
}

fn seeing_the_same_again_is_no_event_and_no_new_revision(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let mut observation = observed(&[tool("make", "one")]);
    observe(&mut *store, &observation, 0);
    let before = store.snapshot(&id("reports")).unwrap();
    observation.observed_at = Timestamp(NOON.0 + 7);
    observe(&mut *store, &observation, 7);
    let after = store.snapshot(&id("reports")).unwrap();
    assert_eq!(after.revision(), before.revision());
    assert_eq!(after.server.unwrap().last_seen, Timestamp(NOON.0 + 7));
    assert_eq!(after.observation, Some(observation.clone()));
    assert_eq!(store.history(&id("reports")).unwrap().len(), 1);
    // The counterpart: the same surface with a list that could not be read counts as different.
    observation.unreadable.insert(ListKind::Prompts, "a cursor repeats".to_owned());
    observe(&mut *store, &observation, 8);
    assert_ne!(store.snapshot(&id("reports")).unwrap().revision(), before.revision());
    assert_eq!(store.history(&id("reports")).unwrap().len(), 2);
}

fn the_same_surface_in_other_words_is_kept_in_the_newer_ones(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let entry = |raw: &str| Entry::from_raw(tool_id("a"), raw).unwrap();
    observe(&mut *store, &observed(&[entry(r#"{"name":"a","title":"t"}"#)]), 0);
    let other = observed(&[entry(r#"{"title":"t","name":"a"}"#)]);
    observe(&mut *store, &other, 1);
    assert_eq!(store.observation(&id("reports")).unwrap(), Some(other));
    assert_eq!(store.history(&id("reports")).unwrap().len(), 1);
}

fn all_of_a_surface_comes_back_from_disk(kind: Kind) {
    let mut reader = SurfaceReader::default();
    reader
        .handshake(r#"{"protocolVersion":"2025-06-18","instructions":"be kind","serverInfo":{"name":"r","version":"1.2"},"capabilities":{"tools":{}}}"#)
        .unwrap();
    reader.list(ListKind::Tools, &[r#"{"tools":[{"name":"make","inputSchema":{}}]}"#]);
    reader.list(ListKind::Resources, &[r#"{"resources":[]}"#]);
    reader.unreadable(ListKind::Prompts, "a cursor repeats");
    reader.note("something was left out");
    let mut surface = reader.finish();
    let origin = EntryId::only(EntryType::Origin);
    surface.insert(Entry::from_raw(origin, r#"{"program":"npx"}"#).unwrap());
    let bench = Bench::new(kind);
    let mut store = bench.store();
    observe(&mut *store, &Observation::of(&surface, NOON), 0);
    let read = store.observation(&id("reports")).unwrap().unwrap();
    assert_eq!(read.surface().unwrap(), surface);
    assert_eq!(read.server_version.as_deref(), Some("1.2"));
}

fn an_observation_that_cannot_be_read_says_so_and_is_replaced_by_the_next(kind: Kind) {
    for edit in [
        "surface_hash = 'x'",
        "unreadable = '{\"nonsense\":\"\"}'",
        "unreadable = ''",
        "notes = '{}'",
    ] {
        let bench = Bench::new(kind);
        let mut store = bench.store();
        let observation = observed(&[tool("make", "one")]);
        observe(&mut *store, &observation, 0);
        bench.edit(&format!("UPDATE observations SET {edit}"));
        let error = store.observation(&id("reports")).unwrap_err();
        assert!(error.to_string().contains("the last observation of server `reports`"), "{error}");
        observe(&mut *store, &observation, 1);
        assert_eq!(
            store.observation(&id("reports")).unwrap().as_ref(),
            Some(&observation),
            "{edit}"
        );
    }
}

on_both![
    the_last_observation_replaces_the_one_before,
    seeing_the_same_again_is_no_event_and_no_new_revision,
    the_same_surface_in_other_words_is_kept_in_the_newer_ones,
    all_of_a_surface_comes_back_from_disk,
    an_observation_that_cannot_be_read_says_so_and_is_replaced_by_the_next,
];

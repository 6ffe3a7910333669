//! Runs the cases of `conformance/drift` against the diff: which entries changed, and the kinds of
//! their changes.
//!
//! Markers are found by a separate scan, not by the diff, so `marker-found` is compared with that
//! scan.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[allow(dead_code, reason = "each test that shares it reads another part")]
#[path = "conformance/case.rs"]
mod case;

use case::{Case, ExpectedEntry};
use contract::change::{ChangeKind, Meaning};
use contract::diff::{EntryDiff, diff_surfaces};
use contract::json::Document;
use contract::markers::{self, ToolNames};
use std::collections::{BTreeMap, BTreeSet};

/// The fewest cases that each kind must have.
const CASES_A_KIND: usize = 3;

const BATTERY: [&str; 14] = [
    "added_optional",
    "added_required",
    "annotation_flip",
    "benign_noop",
    "constraint_narrowed",
    "description_change",
    "enum_reduced",
    "marker_input",
    "marker_output",
    "new_tool",
    "output_added",
    "output_changed",
    "removed_param",
    "type_changed",
];

#[test]
fn the_diff_finds_the_expected_kinds() {
    let complaints: Vec<String> = case::all().iter().flat_map(disagreements).collect();
    assert!(complaints.is_empty(), "{}\n", complaints.join("\n"));
}

#[test]
fn the_marker_scan_trips_where_a_marker_is_expected_and_nowhere_else() {
    let mut complaints = Vec::new();
    for case in case::all() {
        let (old, new) = case.surfaces();
        for diff in diff_surfaces(&old, &new) {
            let marked = ChangeKind::MarkerFound.as_str();
            let expected = case.entries.iter().find(|entry| entry.id == diff.id);
            let is_expected =
                expected.is_some_and(|entry| entry.kinds.iter().any(|kind| kind == marked));
            let is_marked = is_marked(&diff);
            if is_marked != is_expected {
                let found = if is_marked { "a marker" } else { "no marker" };
                complaints.push(format!("{} {}: {found}", case.place, diff.id));
            }
        }
    }
    assert!(complaints.is_empty(), "{}\n", complaints.join("\n"));
}

#[test]
fn every_kind_has_cases_of_its_own() {
    let cases = case::all();
    for kind in ChangeKind::ALL {
        let folder = format!("kinds/{kind}/");
        let own: Vec<&Case> = cases.iter().filter(|case| case.place.starts_with(&folder)).collect();
        let count = own.iter().filter(|case| case.expects(*kind)).count();
        assert!(count >= CASES_A_KIND, "`{kind}` has {count} cases");
        let stray = own.iter().find(|case| !case.expects(*kind));
        assert!(stray.is_none(), "{} does not expect it", stray.expect("a case").place);
    }
}

#[test]
fn the_battery_is_complete() {
    let cases = case::all();
    let battery: Vec<&str> =
        cases.iter().filter_map(|case| case.place.strip_prefix("battery/")).collect();
    assert_eq!(battery, BATTERY);
}

#[test]
fn nothing_is_found_where_nothing_changed() {
    let cases = case::all();
    let unchanged: Vec<&Case> =
        cases.iter().filter(|case| case.place.starts_with("unchanged/")).collect();
    assert!(!unchanged.is_empty());
    for case in unchanged {
        let (old, new) = case.surfaces();
        assert_eq!(old.surface_hash(), new.surface_hash(), "{}", case.place);
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let all = case::all();
    let case = all.iter().find(|case| case.place == "battery/added_required").expect("the case");
    assert!(disagreements(case).is_empty());
    let with = |edit: fn(&mut Vec<ExpectedEntry>)| {
        let mut case = case.clone();
        edit(&mut case.entries);
        disagreements(&case).len()
    };
    assert_eq!(with(Vec::clear), 1);
    assert_eq!(with(|entries| entries.iter_mut().for_each(|entry| entry.kinds.clear())), 1);
    assert_eq!(with(|entries| entries.iter_mut().for_each(|entry| entry.paths = Some(vec![]))), 1);
    assert_eq!(
        with(|entries| entries.iter_mut().for_each(|entry| entry.renamed_to = Some("x".into()))),
        1
    );
}

/// Where the diff differs from what a case expects, one line each.
fn disagreements(case: &Case) -> Vec<String> {
    let (old, new) = case.surfaces();
    let found: BTreeMap<_, _> =
        diff_surfaces(&old, &new).into_iter().map(|diff| (diff.id.clone(), diff)).collect();
    let expected: BTreeMap<_, _> =
        case.entries.iter().map(|entry| (entry.id.clone(), entry)).collect();
    let ids: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let complaint =
        |id: &contract::surface::EntryId, what: String| format!("{} {id}: {what}", case.place);
    let mut complaints = Vec::new();
    for id in ids {
        match (found.get(id), expected.get(id)) {
            (Some(diff), Some(expected)) => {
                let lines = entry_disagreements(diff, expected);
                complaints.extend(lines.into_iter().map(|line| complaint(id, line)));
            }
            (Some(diff), None) => {
                complaints.push(complaint(id, format!("changed: {:?}", kinds(diff))));
            }
            (None, _) => complaints.push(complaint(id, "did not change".to_owned())),
        }
    }
    complaints
}

fn entry_disagreements(diff: &EntryDiff, expected: &ExpectedEntry) -> Vec<String> {
    let mut lines = Vec::new();
    let marker = ChangeKind::MarkerFound.as_str();
    let wanted: Vec<&str> =
        expected.kinds.iter().map(String::as_str).filter(|kind| *kind != marker).collect();
    let found = kinds(diff);
    if found != wanted {
        lines.push(format!("expected {wanted:?}, found {found:?}"));
    }
    let paths: BTreeSet<&str> = diff.findings.iter().map(|finding| finding.path.as_str()).collect();
    if let Some(wanted) = &expected.paths
        && !paths.iter().eq(wanted.iter())
    {
        lines.push(format!("expected at {wanted:?}, found at {paths:?}"));
    }
    let said = |word: fn(Meaning) -> Option<&'static str>| {
        diff.findings.iter().find_map(|finding| finding.meaning.and_then(word))
    };
    for (word, wanted, found) in [
        ("effective", &expected.effective, said(Meaning::effective)),
        ("results", &expected.results, said(Meaning::results)),
    ] {
        if wanted.as_deref() != found {
            lines.push(format!("expected `{word}` {wanted:?}, found {found:?}"));
        }
    }
    if diff.renamed_to != expected.renamed_to {
        let (wanted, found) = (&expected.renamed_to, &diff.renamed_to);
        lines.push(format!("expected the new name {wanted:?}, found {found:?}"));
    }
    lines
}

/// The kinds of an entry's findings, sorted by name, without duplicates.
fn kinds(diff: &EntryDiff) -> Vec<&'static str> {
    let kinds: BTreeSet<&str> = diff.findings.iter().map(|finding| finding.kind.as_str()).collect();
    kinds.into_iter().collect()
}

/// Whether the entry has a marker that the approved old version does not have.
fn is_marked(diff: &EntryDiff) -> bool {
    let Some(after) = &diff.after else { return false };
    let after = Document::parse(after.raw()).expect("an entry that was read");
    let markers = match &diff.before {
        Some(before) => {
            let before = Document::parse(before.raw()).expect("an entry that was read");
            markers::scan_new(after.root(), before.root(), &ToolNames::default())
        }
        None => markers::scan(after.root(), &ToolNames::default()),
    };
    !markers.is_empty()
}

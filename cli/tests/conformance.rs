//! The cases of `conformance/drift` against the program itself: `holdpoint diff OLD NEW --posture P --json`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[allow(dead_code, reason = "each test that shares it reads another part")]
#[path = "../../contract/tests/conformance/case.rs"]
mod case;

use case::{Case, POSTURES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const EXIT_PROCEED: i32 = 0;
const EXIT_HELD: i32 = 10;

#[test]
fn the_program_says_of_every_case_what_is_expected() {
    let cases: Vec<Case> = case::all().into_iter().filter(|case| !case.is_library_only).collect();
    assert!(cases.len() > 300, "only {} cases", cases.len());
    let folder = tempfile::tempdir().expect("a folder");
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    let found = disagreements(case, &folder.path().join(index.to_string()));
                    complaints.lock().expect("no worker panicked").extend(found);
                }
            });
        }
    });
    let mut complaints = complaints.into_inner().expect("no worker panicked");
    complaints.sort();
    assert!(complaints.is_empty(), "{}\n", complaints.join("\n"));
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = case::all();
    let case = all.iter().find(|case| case.place == "battery/added_optional").expect("the case");
    assert_eq!(disagreements(case, folder.path()), Vec::<String>::new());
    let mut wrong = case.clone();
    wrong.verdicts.insert("guard".to_owned(), "HOLD".to_owned());
    // The verdict and the exit code are wrong.
    assert_eq!(disagreements(&wrong, folder.path()).len(), 2);
    let mut wrong = case.clone();
    wrong.entries.clear();
    assert_eq!(disagreements(&wrong, folder.path()).len(), POSTURES.len());
    let mut wrong = case.clone();
    wrong.deferred.insert("shield".to_owned(), false);
    assert_eq!(disagreements(&wrong, folder.path()).len(), 1);
}

#[test]
fn the_battery_reads_the_same_as_bare_lists_of_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = case::all();
    for case in all.iter().filter(|case| case.place.starts_with("battery/")) {
        let bare = |capture: &str| {
            let capture: Value = serde_json::from_str(capture).expect("a capture");
            capture["tools"].to_string()
        };
        let bare = Case { old: bare(&case.old), new: bare(&case.new), ..case.clone() };
        assert_eq!(disagreements(&bare, folder.path()), Vec::<String>::new());
    }
}

/// The differences between the program's output and a case, one per line.
fn disagreements(case: &Case, folder: &Path) -> Vec<String> {
    let files = write(case, folder);
    let mut complaints = Vec::new();
    for posture in POSTURES {
        let output = diff(&files, posture, folder);
        let mut complain =
            |what: String| complaints.push(format!("{} {posture}: {what}", case.place));
        let wanted = &case.verdicts[posture];
        let wanted_exit = if wanted == "PROCEED" { EXIT_PROCEED } else { EXIT_HELD };
        if output.status.code() != Some(wanted_exit) {
            let error = String::from_utf8_lossy(&output.stderr);
            complain(format!("expected exit {wanted_exit}, got {} {error}", output.status));
        }
        let document: Value = match serde_json::from_slice(&output.stdout) {
            Ok(document) => document,
            Err(error) => {
                complain(format!("standard output is not one JSON document: {error}"));
                continue;
            }
        };
        if document["verdict"] != wanted.as_str() || document["posture"] != posture {
            let (verdict, posture) = (&document["verdict"], &document["posture"]);
            complain(format!("expected {wanted}, got {verdict} under {posture}"));
        }
        let entries = document["entries"].as_array().cloned().unwrap_or_default();
        let is_deferred = entries.iter().any(|entry| entry["deferred"] == true);
        if case.deferred.get(posture).is_some_and(|wanted| *wanted != is_deferred) {
            complain(format!("deferred is {is_deferred}"));
        }
        let found: BTreeSet<String> = entries.iter().map(summary).collect();
        let wanted = expected(case, &entries);
        if found != wanted {
            complain(format!("expected {wanted:?}, found {found:?}"));
        }
    }
    complaints
}

/// An entry as a line: its id, the kinds of its findings, their paths, and the hint of a new name.
fn summary(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let (kinds, paths) = of_findings(entry);
    let renamed = entry.get("renamed_to").map(text);
    line(&text(&entry["type"]), &text(&entry["key"]), &kinds, &paths, renamed.as_deref())
}

/// The kinds and the paths of an entry's findings, without duplicates.
fn of_findings(entry: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let findings = entry["findings"].as_array().expect("a list of findings");
    let text = |finding: &Value, member: &str| finding[member].as_str().expect("text").to_owned();
    let kinds = findings.iter().map(|finding| text(finding, "kind")).collect();
    (kinds, findings.iter().map(|finding| text(finding, "path")).collect())
}

/// The expected lines of a case. If it names no paths, any paths are accepted.
fn expected(case: &Case, entries: &[Value]) -> BTreeSet<String> {
    let lines = case.entries.iter().map(|entry| {
        let (entry_type, key) = (entry.id.entry_type.as_str(), entry.id.key.as_str());
        let same = entries.iter().find(|found| found["type"] == entry_type && found["key"] == key);
        let paths = match &entry.paths {
            Some(paths) => paths.iter().cloned().collect(),
            None => same.map(|found| of_findings(found).1).unwrap_or_default(),
        };
        let kinds = entry.kinds.iter().cloned().collect();
        line(entry_type, key, &kinds, &paths, entry.renamed_to.as_deref())
    });
    lines.collect()
}

fn line(
    entry_type: &str,
    key: &str,
    kinds: &BTreeSet<String>,
    paths: &BTreeSet<String>,
    renamed_to: Option<&str>,
) -> String {
    format!("{entry_type}:{key} {kinds:?} at {paths:?} {}", renamed_to.unwrap_or_default())
}

/// Writes the two captures to files.
fn write(case: &Case, folder: &Path) -> [PathBuf; 2] {
    fs::create_dir_all(folder).expect("a folder");
    [("old.json", &case.old), ("new.json", &case.new)].map(|(name, capture)| {
        let path = folder.join(name);
        fs::write(&path, capture).expect("a file that can be written");
        path
    })
}

fn diff([old, new]: &[PathBuf; 2], posture: &str, home: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
    command.arg("diff").args([old, new]).args(["--posture", posture, "--json", "--home"]);
    command.arg(home.join("home")).output().expect("the program starts")
}

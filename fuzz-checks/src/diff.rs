//! The diff of any two documents terminates, is deterministic, and is empty exactly for equal
//! hashes.
//!
//! An input consists of two documents separated by a zero byte; without one, a document is compared
//! with itself.

use contract::canonical::{Position, canonical_text};
use contract::change::{ChangeClass, EXCERPT_CHARACTERS, Finding};
use contract::diff::{diff_entry, diff_surfaces};
use contract::json::Document;
use contract::schema;
use contract::surface::{Entry, EntryId, EntryType, read_capture};

pub fn run(bytes: &[u8]) {
    let middle = bytes.iter().position(|byte| *byte == 0);
    let (old, new) = middle.map_or((bytes, bytes), |at| (&bytes[..at], &bytes[at + 1..]));
    compare_captures(old, new);
    let (Ok(old), Ok(new)) = (Document::parse_bytes(old), Document::parse_bytes(new)) else {
        return;
    };
    for entry_type in EntryType::ALL {
        compare_entries(entry_type, old.root().raw(), new.root().raw());
    }
    compare_schemas(&old, &new);
}

fn compare_captures(old: &[u8], new: &[u8]) {
    let (Ok(old), Ok(new)) = (read_capture(old), read_capture(new)) else { return };
    let diffs = diff_surfaces(&old, &new);
    assert_eq!(diffs.is_empty(), old.surface_hash() == new.surface_hash());
    assert_eq!(diffs, diff_surfaces(&old, &new));
    assert!(diff_surfaces(&new, &new).is_empty());
}

fn compare_entries(entry_type: EntryType, old: &str, new: &str) {
    let id = EntryId::new(entry_type, "key");
    let old = Entry::from_raw(id.clone(), old).expect("it was read before");
    let new = Entry::from_raw(id, new).expect("it was read before");
    assert!(diff_entry(Some(&old), Some(&old)).is_none());
    for (before, after) in [(Some(&old), Some(&new)), (None, Some(&new)), (Some(&old), None)] {
        let diff = diff_entry(before, after);
        assert_eq!(
            diff.is_none(),
            before.map(Entry::entry_hash) == after.map(Entry::entry_hash),
            "{entry_type}"
        );
        if let Some(diff) = diff {
            assert!(!diff.findings.is_empty(), "{entry_type}: a change that nothing explains");
            check_findings(&diff.findings);
        }
    }
}

fn compare_schemas(old: &Document<'_>, new: &Document<'_>) {
    let findings = schema::compare(old.root(), new.root(), "/inputSchema");
    check_findings(&findings);
    assert_eq!(findings, schema::compare(old.root(), new.root(), "/inputSchema"));
    assert!(schema::compare(new.root(), new.root(), "").is_empty());
    // A different encoding of the same schema is not a change. At the reader's limits it may be
    // unreadable.
    let respelled = canonical_text(new.root(), Position::Schema);
    if let Ok(respelled) = Document::parse(&respelled) {
        let between = schema::compare(new.root(), respelled.root(), "");
        assert!(between.is_empty(), "{between:?}");
        // So are changes relative to it, except for excerpts, which show the original text.
        let kinds = |findings: &[Finding]| -> Vec<_> {
            findings.iter().map(|finding| (finding.path.clone(), finding.kind)).collect()
        };
        let against = schema::compare(old.root(), respelled.root(), "/inputSchema");
        assert_eq!(
            is_blocking(&findings),
            is_blocking(&against),
            "{:?} {:?}",
            kinds(&findings),
            kinds(&against)
        );
    }
}

fn is_blocking(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| matches!(finding.class, ChangeClass::Breaking | ChangeClass::FailSafe))
}

fn check_findings(findings: &[Finding]) {
    // A cut text ends in an additional character.
    let fits = |text: &Option<String>| {
        text.as_ref().is_none_or(|text| text.chars().count() <= EXCERPT_CHARACTERS + 1)
    };
    for finding in findings {
        assert!(fits(&finding.before) && fits(&finding.after), "{:?}", finding.kind);
        assert!(finding.path.is_empty() || finding.path.starts_with('/'), "{:?}", finding.path);
    }
}

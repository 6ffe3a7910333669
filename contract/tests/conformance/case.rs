//! Reads the cases of `conformance/drift`. The tests of the library, the gate and the program share
//! this file.
//!
//! It is strict: a member that is never read would be an expectation that is never checked.

use contract::change::ChangeKind;
use contract::json::{Document, Node};
use contract::surface::{Entry, EntryId, EntryType, Surface, read_capture};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// An old and a new capture, with the expected result.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The path of the case below `conformance/drift`, without `.json`.
    pub(crate) place: String,
    /// The case cannot be expressed fully as captures, so programs that read captures skip it.
    pub(crate) is_library_only: bool,
    pub(crate) old: String,
    pub(crate) new: String,
    /// Entries that are not part of a capture: the origin and an attested identity.
    pub(crate) old_entries: Vec<Entry>,
    pub(crate) new_entries: Vec<Entry>,
    pub(crate) entries: Vec<ExpectedEntry>,
    /// The verdict by the posture's name.
    pub(crate) verdicts: BTreeMap<String, String>,
    /// Whether any entry is deferred, by the posture's name. Postures that are not listed are not
    /// checked.
    pub(crate) deferred: BTreeMap<String, bool>,
}

/// The expected findings for one changed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedEntry {
    pub(crate) id: EntryId,
    /// Sorted by name, without duplicates.
    pub(crate) kinds: Vec<String>,
    /// The places of the findings, sorted, without duplicates. Not checked if absent.
    pub(crate) paths: Option<Vec<String>>,
    pub(crate) renamed_to: Option<String>,
    /// The expected `effective` and `results` of a finding; absent if no finding has them.
    pub(crate) effective: Option<String>,
    pub(crate) results: Option<String>,
}

pub(crate) const POSTURES: [&str; 4] = ["monitor", "shield", "guard", "strict"];

impl Case {
    pub(crate) fn surfaces(&self) -> (Surface, Surface) {
        let surface = |capture: &str, entries: &[Entry]| {
            let read = read_capture(capture.as_bytes());
            let mut surface = read.unwrap_or_else(|error| panic!("{}: {error}", self.place));
            entries.iter().for_each(|entry| surface.insert(entry.clone()));
            surface
        };
        (surface(&self.old, &self.old_entries), surface(&self.new, &self.new_entries))
    }

    pub(crate) fn expects(&self, kind: ChangeKind) -> bool {
        self.entries.iter().any(|entry| entry.kinds.iter().any(|name| name == kind.as_str()))
    }

    fn read(place: String, text: &str) -> Case {
        let document = Document::parse(text).unwrap_or_else(|error| panic!("{place}: {error}"));
        let root = document.root();
        only_members(
            &place,
            root,
            &["name", "why", "library_only", "old_entries", "new_entries", "old", "new", "expect"],
        );
        let name = text_of(&place, root, "name");
        assert!(place.ends_with(&format!("/{name}")), "{place}: is named `{name}`");
        assert!(text_of(&place, root, "why").ends_with('.'), "{place}: `why` is no sentence");
        let expect = member(&place, root, "expect");
        only_members(&place, expect, &["entries", "verdict", "deferred"]);
        let flags = expect.get("deferred").into_iter().flat_map(Node::members);
        let case = Case {
            is_library_only: root.get("library_only").and_then(Node::as_bool) == Some(true),
            old: member(&place, root, "old").raw().to_owned(),
            new: member(&place, root, "new").raw().to_owned(),
            old_entries: extra_entries(root.get("old_entries")),
            new_entries: extra_entries(root.get("new_entries")),
            entries: member(&place, expect, "entries")
                .items()
                .map(|entry| expected_entry(&place, entry))
                .collect(),
            verdicts: member(&place, expect, "verdict")
                .members()
                .map(|(posture, verdict)| (string(posture), string(verdict)))
                .collect(),
            deferred: flags
                .map(|(posture, flag)| (string(posture), flag.as_bool().expect("a boolean")))
                .collect(),
            place,
        };
        let mut postures: Vec<&str> = case.verdicts.keys().map(String::as_str).collect();
        postures.sort_by_key(|posture| POSTURES.iter().position(|known| known == posture));
        assert_eq!(postures, POSTURES, "{}", case.place);
        assert_eq!(
            case.is_library_only,
            !(case.old_entries.is_empty() && case.new_entries.is_empty()),
            "{}: what a capture cannot say is for the library only",
            case.place
        );
        case
    }
}

/// All cases in path order.
pub(crate) fn all() -> Vec<Case> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let cases = files.iter().map(|file| {
        let place = file.strip_prefix(&root).expect("below the root").with_extension("");
        let place = place.to_str().expect("a name in ASCII").replace('\\', "/");
        let text = fs::read_to_string(file).expect("a readable file");
        Case::read(place, &text)
    });
    cases.collect()
}

/// The folder with the cases.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/drift")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder with cases") {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
}

fn expected_entry(place: &str, node: Node<'_>) -> ExpectedEntry {
    let known = ["type", "key", "kinds", "paths", "renamed_to", "effective", "results"];
    only_members(place, node, &known);
    let sorted = |node: Node<'_>| {
        let texts: Vec<String> = node.items().map(string).collect();
        assert!(texts.is_sorted_by(|left, right| left < right), "{place}: not sorted: {texts:?}");
        texts
    };
    let kinds = sorted(member(place, node, "kinds"));
    for kind in &kinds {
        let is_known = ChangeKind::ALL.iter().any(|known| known.as_str() == kind);
        assert!(is_known, "{place}: no kind is called `{kind}`");
    }
    let entry_type: EntryType = text_of(place, node, "type").parse().expect("a type of entry");
    ExpectedEntry {
        id: EntryId::new(entry_type, text_of(place, node, "key")),
        kinds,
        paths: node.get("paths").map(sorted),
        renamed_to: node.get("renamed_to").map(string),
        effective: node.get("effective").map(string),
        results: node.get("results").map(string),
    }
}

fn extra_entries(list: Option<Node<'_>>) -> Vec<Entry> {
    let entries = list.into_iter().flat_map(Node::items).map(|entry| {
        let entry_type: EntryType = text_of("", entry, "type").parse().expect("a type of entry");
        let value = member("", entry, "value");
        Entry::from_raw(EntryId::only(entry_type), value.raw()).expect("an entry")
    });
    entries.collect()
}

fn only_members(place: &str, node: Node<'_>, known: &[&str]) {
    for (name, _) in node.members() {
        let name = string(name);
        assert!(known.contains(&name.as_str()), "{place}: nobody reads `{name}`");
    }
}

fn member<'a>(place: &str, node: Node<'a>, name: &str) -> Node<'a> {
    node.get(name).unwrap_or_else(|| panic!("{place}: no `{name}`"))
}

fn text_of(place: &str, node: Node<'_>, name: &str) -> String {
    string(member(place, node, name))
}

fn string(node: Node<'_>) -> String {
    node.as_str().unwrap_or_else(|| panic!("`{}` is no string", node.raw())).into_owned()
}

//! Files of the corpus with parts removed, doubled or inserted: each is read or refused, and wiring
//! followed by unwiring restores it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this file is a test"
)]

use hosts::rewrite::{self, Manner, TextError};
use hosts::{Choice, Syntax, table};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Fragments that have a meaning in one of the syntaxes.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "#",
    "//",
    "/*",
    "*/",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "- ",
    "-",
    "---\n",
    "&a ",
    "*a",
    "!!str ",
    "|\n",
    ">-\n",
    "<<: *a",
    "é",
    "🦀",
    "\u{feff}",
    "\u{2028}",
    "null",
    "true",
    "1.5",
    "\"args\": [],",
    "\"command\": \"x\",",
    "args: []\n",
    "args = []\n",
    "\"url\": \"https://a.example/mcp?k=v\",",
    "\"headers\": {},",
    "\"env\": {},",
    "\"type\": \"http\",",
    "holdpoint",
    "\"run\",",
    "\"--server\",",
    "\"--server=x\",",
    "\"--\",",
    "[mcp_servers.z]\n",
    "z.y = 1\n",
];

type Sample = (String, String);

fn samples() -> &'static Vec<Sample> {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        let mut samples: Vec<Sample> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?.to_owned();
                Some((name, fs::read_to_string(path).ok()?))
            })
            .filter(|(name, _)| !name.starts_with('.'))
            .collect();
        samples.sort();
        samples
    })
}

#[derive(Debug, Clone)]
enum Change {
    Cut { at: prop::sample::Index, length: usize },
    Put { at: prop::sample::Index, piece: usize },
    Double { at: prop::sample::Index, length: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 1..40usize).prop_map(|(at, length)| Change::Cut { at, length }),
        (at(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Put { at, piece }),
        (at(), 1..60usize).prop_map(|(at, length)| Change::Double { at, length }),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let place = |at: &prop::sample::Index, count: usize| at.index(count + 1);
    match change {
        Change::Cut { at, length } => {
            let at = place(at, characters.len());
            let end = (at + length).min(characters.len());
            characters.drain(at..end);
        }
        Change::Put { at, piece } => {
            let at = place(at, characters.len());
            characters.splice(at..at, PIECES[*piece].chars());
        }
        Change::Double { at, length } => {
            let at = place(at, characters.len());
            let end = (at + length).min(characters.len());
            let part: Vec<char> = characters[at..end].to_vec();
            characters.splice(at..at, part);
        }
    }
    characters.into_iter().collect()
}

fn there_and_back(name: &str, text: &str, choice: &Choice) {
    let host = table::host(name.split("--").next().unwrap()).unwrap();
    let syntax = Syntax::of_name(name).unwrap();
    let manner = Manner {
        host,
        syntax,
        apart: None,
        program: "/bin/holdpoint",
        home: None,
        own_home: None,
        sandbox: None,
        taken: None,
    };
    let Ok(before) = rewrite::servers(text, &manner) else {
        assert!(rewrite::wire(text, &manner, choice).is_err());
        return;
    };
    let wired = match rewrite::wire(text, &manner, choice) {
        Ok(wired) => wired,
        // Refused with an explanation: nothing was changed, and nothing is broken.
        Err(TextError::Unsafe) => return,
        Err(error) => panic!("what can be read can be wired: {error}"),
    };
    let again = rewrite::wire(&wired.text, &manner, choice).unwrap();
    assert_eq!(again.text, wired.text);
    let back = rewrite::unwire(&wired.text, &manner, choice, Some(&wired.wirings)).unwrap();
    // Gates that a person wrote before are removed too.
    if back.changed.len() == wired.changed.len() {
        assert_eq!(back.text, text);
    }
    assert!(back.changed.len() >= wired.changed.len());
    assert_eq!(rewrite::servers(&wired.text, &manner).unwrap().len(), before.len());
}

/// The number of cases, which is larger if `HOLDPOINT_LONG` is set.
fn cases() -> u32 {
    if std::env::var_os("HOLDPOINT_LONG").is_some() { 400_000 } else { 4_000 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_refused_and_never_harmed(
        sample in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..4),
        is_open: bool,
    ) {
        let (name, text) = sample.get(samples());
        let text = changes.iter().fold(text.clone(), |text, change| apply(&text, change));
        there_and_back(name, &text, &Choice { is_open, ..Choice::default() });
    }
}

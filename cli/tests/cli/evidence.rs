//! `receipts verify` against an attacker who can write to the folder but has no key: what is
//! detected, where, and what else is still verified.

use crate::bench::*;
use contract::hash::sha256_hex;
use contract::time::Timestamp;
use ledger::chain::Rotation;
use ledger::record::*;
use ledger::sample;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use store::Home;
use store::receipts::{Journal, Receipts, Settings};

mod bad_input;
mod proofs;
mod random_edits;
mod tampering;

const START: i64 = 1_763_253_195_123;

/// Room for about four receipts.
const SEGMENT_BYTES: u64 = 4_000;

/// A home with an index of people's acts, and two chains of several segments.
struct Evidence {
    bench: Bench,
    /// The chains, in the order in which they are verified.
    chains: [String; 2],
    /// The output of `verify --json` for the unchanged folder.
    sound: Value,
}

impl Evidence {
    /// Two processes write and end, and two more continue; in between, `older` is copied and a
    /// person acts.
    fn new() -> Evidence {
        let bench = Bench::new();
        let home = Home::open(&bench.home()).unwrap();
        act(&home, 0);
        let chains = write_calls(&home, 0..14);
        copy(&home.receipts_path(), &bench.path("older"));
        act(&home, 20_000);
        act(&home, 21_000);
        write_calls(&home, 30..44);
        copy(&home.receipts_path(), &bench.path("kept"));
        let mut evidence = Evidence { bench, chains, sound: Value::Null };
        evidence.sound = evidence.verify(&["--json"]).exits(0).json();
        evidence
    }

    fn folder(&self) -> PathBuf {
        self.bench.home().join("receipts")
    }

    fn chain(&self, chain: &str) -> PathBuf {
        self.folder().join(chain)
    }

    fn segment(&self, chain: &str, number: usize) -> PathBuf {
        self.chain(chain).join(format!("{number:06}.jsonl"))
    }

    fn checkpoint(&self, chain: &str, number: usize) -> PathBuf {
        self.chain(chain).join(format!("{number:06}.checkpoint"))
    }

    /// The number of segments of a chain.
    fn segments(&self, chain: &str) -> usize {
        let numbers = (1..).take_while(|number| self.segment(chain, *number).is_file());
        numbers.count()
    }

    /// Restores the original folder.
    fn restore(&self) {
        fs::remove_dir_all(self.folder()).unwrap();
        copy(&self.bench.path("kept"), &self.folder());
    }

    fn verify(&self, options: &[&str]) -> Answer {
        self.bench.run(["receipts", "verify"].iter().chain(options))
    }

    /// Edits the lines of a segment.
    fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines: Vec<String> =
            fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        let before = lines.clone();
        change(&mut lines);
        assert_ne!(lines, before, "nothing was changed");
        fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    /// The report on a chain.
    fn counted<'r>(&self, report: &'r Value, chain: &str) -> &'r Value {
        let mut chains = report["chains"].as_array().unwrap().iter();
        chains.find(|found| found["chain"] == chain).unwrap_or(&Value::Null)
    }

    /// Asserts that the problem is reported as text and as JSON, with its location first, and that
    /// untouched chains are counted as before.
    #[track_caller]
    fn finds(&self, place: Place<'_>, what: &str) -> Value {
        let answer = self.verify(&[]).exits(14).says("does not verify: ");
        let first = answer.out.lines().next().unwrap();
        assert!(first.starts_with(&format!("✗ {}", place.words())), "{}", answer.out);
        assert!(first.contains(what), "expected `{what}`\n{}", answer.out);
        assert!(!answer.out.contains("This proves"), "{}", answer.out);
        let report = self.verify(&["--json"]).exits(14).json();
        let problem = &report["problems"][0];
        assert_eq!((&report["verified"], &report["proves"]), (&json!(false), &Value::Null));
        let found = (&problem["chain"], &problem["segment"], &problem["line"]);
        let expected = (json!(place.chain), json!(place.segment), json!(place.line));
        assert_eq!(found, (&expected.0, &expected.1, &expected.2), "{report:#}");
        assert!(problem["what"].as_str().unwrap().contains(what), "{problem}");
        report
    }

    /// Like [`Evidence::finds`], for a problem that affects only this chain.
    #[track_caller]
    fn finds_only(&self, place: Place<'_>, what: &str) -> Value {
        let report = self.finds(place, what);
        let names = self.chains.iter().map(String::as_str).chain(["index"]);
        for chain in names.filter(|chain| *chain != place.chain) {
            assert_eq!(self.counted(&report, chain), self.counted(&self.sound, chain));
        }
        report
    }
}

/// The location of a problem.
#[derive(Debug, Clone, Copy)]
struct Place<'p> {
    chain: &'p str,
    segment: Option<usize>,
    line: Option<usize>,
}

impl<'p> Place<'p> {
    fn chain(chain: &'p str) -> Place<'p> {
        Place { chain, segment: None, line: None }
    }

    fn segment(chain: &'p str, segment: usize) -> Place<'p> {
        Place { segment: Some(segment), ..Place::chain(chain) }
    }

    fn line(chain: &'p str, segment: usize, line: usize) -> Place<'p> {
        Place { line: Some(line), ..Place::segment(chain, segment) }
    }

    fn words(&self) -> String {
        let segment = self.segment.map(|segment| format!(", segment {segment:06}"));
        let line = self.line.map(|line| format!(", line {line}"));
        format!("chain {}{}{}: ", self.chain, segment.unwrap_or_default(), line.unwrap_or_default())
    }
}

fn settings() -> Settings {
    let rotation = Rotation { bytes: SEGMENT_BYTES, age_milliseconds: i64::MAX };
    Settings { rotation, ..Settings::default() }
}

/// Two concurrent processes, each with its own chain.
fn write_calls(home: &Home, ids: std::ops::Range<u8>) -> [String; 2] {
    let writers = [0, 1].map(|_| Receipts::open(home, settings()).unwrap());
    for id in ids {
        let at = i64::from(id) * 1_000;
        for (which, receipts) in (0..).zip(&writers) {
            receipts.decision(&decision(id + 100 * which, at)).unwrap();
            receipts.outcome(&outcome(id + 100 * which, at + 500)).unwrap();
        }
    }
    let mut chains = writers.map(|receipts| receipts.chain().to_string());
    chains.sort();
    chains
}

/// Records an act of a person.
fn act(home: &Home, at: i64) {
    let data = json!({ "seal": 1 });
    let event = Event {
        ts: Timestamp(START + at),
        name: "server.approve",
        by: Some(Text("ada")),
        server_id: Some(Text("files")),
        data: Some(&data),
    };
    Journal::new(home).append(&event).unwrap();
}

fn outcome(id: u8, at: i64) -> Outcome {
    sample::outcome(Timestamp(START + at), ReceiptId([id; 16]))
}

fn decision(id: u8, at: i64) -> Decision<'static> {
    sample::decision(Timestamp(START + at), ReceiptId([id; 16]))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The value of a member of a line that consists of 64 hexadecimal digits.
fn digits<'l>(line: &'l str, name: &str) -> &'l str {
    let name = format!("\"{name}\":\"");
    let start = line.find(&name).unwrap() + name.len();
    &line[start..start + 64]
}

/// A line that continues after another one, with a correct hash, which needs no key.
fn chained(line: &str, after: &str) -> String {
    let line = line.replace(digits(line, "prev"), digits(after, "hash"));
    let seq = |line: &str| -> u64 {
        let start = line.find("\"seq\":").unwrap() + 6;
        line[start..].split([',', '}']).next().unwrap().parse().unwrap()
    };
    let moved = format!("\"seq\":{}", seq(after) + 1);
    rehashed(&line.replace(&format!("\"seq\":{}", seq(&line)), &moved))
}

/// The line with its hash recomputed.
fn rehashed(line: &str) -> String {
    let member = format!("\"hash\":\"{}\",", digits(line, "hash"));
    let bare = line.replace(&member, "");
    line.replace(digits(line, "hash"), &sha256_hex(bare.as_bytes()))
}

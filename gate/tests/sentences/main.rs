//! Checks that every sentence about a schema is true: over adjacent releases of real servers, each
//! sentence is parsed as a claim and checked against the two schemas by a validator that is
//! independent of the comparison.
//!
//! `HOLDPOINT_CORPUS` names the folder of captures, `<registry>/<package>/<version>.json`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of this crate is a test, also the functions that are not marked as one"
)]
#![allow(unreachable_pub, reason = "the modules of a test have no reader but the test")]

mod claims;
mod schemas;

use claims::{Claim, Truth};
use contract::change::Finding;
use contract::detail::Detail;
use contract::diff::diff_entry;
use contract::surface::{Entry, EntryId, EntryType};
use gate::naming::Approved;
use gate::words::{Audience, say};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How many sentences were parsed, and the results.
#[derive(Debug, Default)]
struct Tally {
    told: usize,
    /// Sentences without an exact claim, counted by their text without names.
    vague: BTreeMap<String, usize>,
    shown: usize,
    /// Claims that none of the values tried could confirm.
    undecided: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn tool(&mut self, old: &Value, new: &Value) {
        let entry = |tool: &Value| {
            let name = tool["name"].as_str().unwrap_or("t");
            Entry::from_raw(EntryId::new(EntryType::Tool, name), &tool.to_string())
        };
        let (Ok(before), Ok(after)) = (entry(old), entry(new)) else { return };
        let Some(diff) = diff_entry(Some(&before), Some(&after)) else { return };
        let approved = Approved::of(Some(&before));
        for finding in &diff.findings {
            self.sentence(finding, old, new);
            let told = say(finding, Audience::Model(&approved));
            if let Some(word) = unaccepted_word(&told, old, new) {
                self.wrong.push(format!("a model reads `{word}`: {told}"));
            }
        }
    }

    fn sentence(&mut self, finding: &Finding, old: &Value, new: &Value) {
        self.told += 1;
        let sentence = say(finding, Audience::Person);
        let part = match &finding.detail {
            Some(Detail::Results(parts, _)) => parts.first().unwrap_or(finding),
            _ => finding,
        };
        let truth = match Claim::read(&sentence, &part.path) {
            Claim::Vague(words) => {
                *self.vague.entry(words).or_default() += 1;
                return;
            }
            claim => claim.hold_against(old, new),
        };
        match truth {
            Truth::Shown => self.shown += 1,
            Truth::Undecided => self.undecided += 1,
            Truth::Wrong(why) => {
                let lines = [&sentence, &why, &old.to_string(), &new.to_string()];
                self.wrong
                    .push(format!("{}\n  {}\n  {}\n  {}", lines[0], lines[1], lines[2], lines[3]));
            }
        }
    }
}

/// A text in backticks that only the new definition has. A model may see only one new name: that of
/// a new parameter.
fn unaccepted_word(told: &str, old: &Value, new: &Value) -> Option<String> {
    if told.contains("new parameter") || told.contains("new optional parameter") {
        return None;
    }
    if told.starts_with("results may now have") || told.starts_with("results now always have") {
        return None;
    }
    let (old, new) = (old.to_string(), new.to_string());
    let quoted = told.split('`').skip(1).step_by(2);
    let mut words = quoted.flat_map(|text| text.split(['.', '[', ']', '*']));
    let is_new = |word: &&str| word.len() > 1 && !old.contains(*word) && new.contains(*word);
    words.find(is_new).filter(|word| *word != "destructiveHint: true").map(str::to_owned)
}

#[test]
fn every_sentence_about_real_releases_is_true() {
    let Some(corpus) = testing::corpus() else { return };
    let mut tally = Tally::default();
    for package in folders(&corpus).iter().flat_map(|registry| folders(registry)) {
        let mut earlier: BTreeMap<String, Value> = BTreeMap::new();
        for release in releases(&package) {
            let now = tools(&release);
            for (name, new) in &now {
                if let Some(old) = earlier.get(name) {
                    tally.tool(old, new);
                }
            }
            earlier = now;
        }
    }
    let Tally { told, shown, undecided, .. } = &tally;
    println!("{told} sentences: {shown} shown to be true, {undecided} undecided");
    for (words, count) in &tally.vague {
        println!("{count:>6}  {words}");
    }
    assert!(tally.wrong.is_empty(), "{} are wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    // Captures of a few installed servers can serve as the corpus.
    let least = if *told > 1_000 { 100 } else { 10 };
    assert!(*shown > least && undecided * 10 < *shown, "{shown} shown, {undecided} undecided");
}

/// Tests the judge itself: it notices a false sentence.
#[test]
fn a_wrong_sentence_is_seen() {
    let tool = |p: Value| json!({"name": "t", "inputSchema": {"properties": {"p": p}}});
    let (old, new) =
        (tool(json!({"type": "array"})), tool(json!({"type": "array", "minItems": 1})));
    let path = "/inputSchema/properties/p/minItems";
    let is_true = |sentence: &str| match Claim::read(sentence, path).hold_against(&old, &new) {
        Truth::Shown => true,
        Truth::Undecided | Truth::Wrong(_) => false,
    };
    assert!(is_true("`p` may no longer be empty"));
    for sentence in [
        "`p` may be empty now",
        "`p` must have at least 2 items (was 1)",
        "`p` may no longer be null",
        "`p` no longer accepts `fast`",
        "`p` may now also be a string",
        "`p` must be at least 1 (was 0)",
        "`p` now has the default `1`: calls that omit it may now mean something different",
    ] {
        assert!(!is_true(sentence), "{sentence}");
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn releases(package: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(package).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort_by_key(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let numbers = name.split(|letter: char| !letter.is_ascii_digit());
        (numbers.filter_map(|part| part.parse().ok()).collect::<Vec<u64>>(), name.clone())
    });
    files
}

fn tools(release: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(release).expect("a capture");
    let capture: Value = serde_json::from_str(&text).expect("a capture is JSON");
    let tools = capture["tools"].as_array().cloned().unwrap_or_default();
    tools.into_iter().filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool))).collect()
}

//! Measures how much the screen finds in its own test texts, and in the folder named by
//! `HOLDPOINT_CORPUS`: a minimum for hostile texts, and a maximum for false alarms on benign texts
//! and servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use contract::json::{Document, Node, escape_into};
use contract::surface::{Surface, read_capture};
use contract::time::Timestamp;
use screen::finding::Severity;
use screen::grade::Grade;
use screen::reading::{Context, read};
use std::path::{Path, PathBuf};

fn worst(surface: &Surface, name: &str) -> Option<Severity> {
    let names = vec![name.to_owned()];
    read(surface, &Context { names, ..Context::new(Grade::Scanned, Timestamp(0)) }).worst()
}

/// The number of hostile texts found at medium or high, found at high, and in total; the same for
/// benign ones.
fn count(lines: &str) -> ([usize; 3], [usize; 3]) {
    let (mut hostile, mut benign) = ([0; 3], [0; 3]);
    for line in lines.lines() {
        let document = Document::parse(line).unwrap();
        let member =
            |name: &str| document.root().get(name).and_then(Node::as_str).unwrap_or_default();
        let mut quoted = Vec::new();
        escape_into(&member("text"), &mut quoted);
        let text = String::from_utf8(quoted).unwrap();
        let tool = format!(
            r#"[{{"name":"a_tool","description":{text},"inputSchema":{{"type":"object"}}}}]"#
        );
        let worst = worst(&read_capture(tool.as_bytes()).unwrap(), "a text");
        let counts = if member("label") == "hostile" { &mut hostile } else { &mut benign };
        counts[0] += usize::from(worst >= Some(Severity::Medium));
        counts[1] += usize::from(worst == Some(Severity::High));
        counts[2] += 1;
    }
    (hostile, benign)
}

#[test]
fn texts_of_our_own_are_found_and_honest_ones_pass() {
    let texts = include_str!("../../conformance/screen/texts.jsonl");
    let ([found, high, all], [wrong, wrong_high, benign]) = count(texts);
    assert!(found * 100 >= all * 75 && high * 100 >= all * 45, "{found} and {high} of {all}");
    assert!(wrong * 100 <= benign * 5 && wrong_high == 0, "{wrong} and {wrong_high} of {benign}");
}

#[test]
fn texts_of_others_are_found_and_honest_ones_pass() {
    let Some(corpus) = testing::corpus() else { return };
    let Ok(texts) = std::fs::read_to_string(corpus.join("hostile/texts.jsonl")) else {
        testing::not_run("the corpus has no hostile texts");
        return;
    };
    let ([found, high, all], [wrong, wrong_high, benign]) = count(&texts);
    assert!(found * 100 >= all * 85 && high * 100 >= all * 60, "{found} and {high} of {all}");
    assert!(
        wrong * 100 <= benign * 6 && wrong_high * 100 <= benign * 2,
        "{wrong} and {wrong_high} of {benign}"
    );
}

#[test]
fn newest_releases_of_published_servers_seldom_fail() {
    let Some(corpus) = testing::corpus() else { return };
    let (mut servers, mut high, mut medium) = (0, Vec::new(), Vec::new());
    for registry in ["npm", "pypi"] {
        for package in below(&corpus.join(registry)) {
            let Some(newest) = below(&package).into_iter().max_by_key(|file| numbers(file)) else {
                continue;
            };
            let name = package.file_name().unwrap().to_string_lossy().into_owned();
            servers += 1;
            match worst(&read_capture(&std::fs::read(newest).unwrap()).unwrap(), &name) {
                Some(Severity::High) => high.push(name),
                Some(Severity::Medium) => medium.push(name),
                Some(Severity::Low) | None => {}
            }
        }
    }
    println!("{servers} servers: high {high:?}, medium {medium:?}");
    assert!(high.len() * 100 <= servers * 4, "{high:?}");
    assert!(medium.len() * 100 <= servers * 12, "{medium:?}");
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn numbers(file: &Path) -> Vec<u64> {
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

//! The marker scan on third-party texts and releases, in the folder that `HOLDPOINT_CORPUS` names:
//! how many hostile texts trip it, and that benign ones do not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use contract::json::{Document, Node, escape_into};
use contract::markers::{ToolNames, scan};
use contract::surface::read_capture;
use std::path::{Path, PathBuf};

/// If fewer hostile texts than this trip, in percent, the scan has regressed. It was 60 when this
/// was written.
const FLOOR: usize = 55;
/// The only server whose releases have tripped the scan since its rules were first written.
const KNOWN: &str = "workspace-mcp";

fn trips(text: &str) -> bool {
    let mut quoted = Vec::new();
    escape_into(text, &mut quoted);
    let tool =
        format!(r#"{{"name":"a_tool","description":{}}}"#, String::from_utf8(quoted).unwrap());
    !scan(Document::parse(&tool).unwrap().root(), &ToolNames::default()).is_empty()
}

#[test]
fn hostile_texts_of_others_trip_and_benign_ones_do_not() {
    let Some(corpus) = testing::corpus() else { return };
    let Ok(texts) = std::fs::read_to_string(corpus.join("hostile/texts.jsonl")) else {
        // Captures of installed servers can serve as a corpus but contain no hostile texts;
        // `conformance/markers` has some.
        eprintln!("NOT RUN: the corpus has no hostile texts");
        return;
    };
    let (mut hostile, mut found, mut benign, mut wrong) = (0, 0, 0, Vec::new());
    for line in texts.lines() {
        let document = Document::parse(line).unwrap();
        let member =
            |name: &str| document.root().get(name).and_then(Node::as_str).unwrap_or_default();
        let has_tripped = trips(&member("text"));
        if member("label") == "hostile" {
            hostile += 1;
            found += usize::from(has_tripped);
        } else {
            benign += 1;
            wrong.extend(has_tripped.then(|| member("id").into_owned()));
        }
    }
    println!(
        "{found} of {hostile} hostile texts trip the scan, {} of {benign} benign ones",
        wrong.len()
    );
    assert!(found * 100 >= hostile * FLOOR, "{found} of {hostile}");
    assert!(wrong.len() * 100 <= benign, "{wrong:?}");
}

#[test]
fn no_release_of_an_honest_server_trips_but_those_of_one() {
    let Some(corpus) = testing::corpus() else { return };
    let mut releases = 0;
    let mut tripped = Vec::new();
    for registry in ["npm", "pypi"] {
        for package in folder(&corpus.join(registry)) {
            for release in folder(&package) {
                let surface = read_capture(&std::fs::read(&release).unwrap()).unwrap();
                let tools = ToolNames::of(&surface);
                let is_marked = surface
                    .entries()
                    .any(|entry| !scan(entry.document().unwrap().root(), &tools).is_empty());
                releases += 1;
                tripped.extend(is_marked.then_some(release));
            }
        }
    }
    println!("{} of {releases} releases trip the scan", tripped.len());
    let is_known = |path: &PathBuf| path.components().any(|part| part.as_os_str() == KNOWN);
    tripped.retain(|path| !is_known(path));
    assert!(tripped.is_empty(), "{tripped:?}");
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

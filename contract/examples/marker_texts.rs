//! Scans single tool descriptions for markers:
//! `marker_texts FILE.jsonl [--misses | --trips | --hits]`.
//!
//! Each line of the file has `label` (`hostile` or `benign`), `text`, and optionally `id` and
//! `class`. The program prints how many texts of each class trip the scan. Each text is scanned as
//! the description of a server's only tool.
#![allow(clippy::print_stdout, reason = "its output is what an example is for")]

use contract::json::{Document, Node, escape_into};
use contract::markers::{Marker, ToolNames, scan};
use std::collections::BTreeMap;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let shows = |option: &str| arguments.iter().any(|argument| argument == option);
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        println!("no texts: give a file of JSON lines");
        return Ok(());
    };
    let mut tally: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let document = Document::parse(line).map_err(std::io::Error::other)?;
        let member = |name: &str| {
            let text = document.root().get(name).and_then(Node::as_str);
            text.map(std::borrow::Cow::into_owned).unwrap_or_default()
        };
        let (label, class, text) = (member("label"), member("class"), member("text"));
        let found = markers(&text)?;
        let is_hostile = label == "hostile";
        let is_shown = match (is_hostile, found.is_empty()) {
            (true, true) => shows("--misses"),
            (true, false) => shows("--hits"),
            (false, false) => shows("--trips"),
            (false, true) => false,
        };
        if is_shown {
            let rules: Vec<_> = found.iter().map(|found| (found.rule, &found.excerpt)).collect();
            println!(
                "{label} {class} {}: {} {rules:?}",
                member("id"),
                text.escape_debug().to_string().chars().take(500).collect::<String>()
            );
        }
        for class in [class, "all".to_owned()] {
            let (tripped, all) = tally.entry((label.clone(), class)).or_default();
            *tripped += usize::from(!found.is_empty());
            *all += 1;
        }
    }
    for ((label, class), (tripped, all)) in tally {
        println!("{label:8} {class:28} {tripped:4} of {all}");
    }
    Ok(())
}

fn markers(text: &str) -> std::io::Result<Vec<Marker>> {
    let mut quoted = Vec::new();
    escape_into(text, &mut quoted);
    let quoted = String::from_utf8(quoted).map_err(std::io::Error::other)?;
    let tool = format!(r#"{{"name":"the_tool","description":{quoted}}}"#);
    let document = Document::parse(&tool).map_err(std::io::Error::other)?;
    Ok(scan(document.root(), &ToolNames::default()))
}

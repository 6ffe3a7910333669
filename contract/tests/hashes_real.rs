//! Hashes of real surfaces (`HOLDPOINT_CORPUS`, `<registry>/<package>/<version>.json`): rewriting
//! one without changing its meaning keeps the hash, editing one value changes it, and the diff
//! agrees in both cases.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop, and tells its seed"
)]

use contract::diff::{EntryDiff, diff_surfaces};
use contract::surface::{EntryId, EntryType, Surface, read_capture};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use testing::Random;

const EDITS_PER_SURFACE: usize = 12;
const SEED: u64 = 20_260_728;

/// The newest capture of each package, as JSON.
fn captures() -> Vec<Value> {
    let Some(root) = testing::corpus() else { return Vec::new() };
    let packages = entries(&root).into_iter().flat_map(|registry| entries(&registry));
    let newest = packages.filter_map(|package| entries(&package).pop());
    let captures: Vec<Value> = newest
        .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
        .filter(|capture: &Value| capture.get("tools").is_some_and(Value::is_array))
        .collect();
    assert!(!captures.is_empty(), "no captures in {}", root.display());
    captures
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Writes JSON with its members in another order, with unnecessary escapes and white space.
fn rewrite(value: &Value, random: &mut Random, out: &mut String) {
    match value {
        Value::String(text) => quote(text, random, out),
        Value::Array(items) => {
            out.push_str("[\n");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { " , " } else { "" });
                rewrite(item, random, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            random.shuffle(&mut members);
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { ",\t" } else { "" });
                quote(name, random, out);
                out.push_str(" : ");
                rewrite(member, random, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn quote(text: &str, random: &mut Random, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '\0'..='\u{1f}') || random.below(9) == 0 {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

/// The surface of a capture, with its tools in another order.
fn rewritten(capture: &Value, random: &mut Random) -> Surface {
    let mut capture = capture.clone();
    if let Some(tools) = capture.get_mut("tools").and_then(Value::as_array_mut) {
        random.shuffle(tools);
    }
    let mut text = String::new();
    rewrite(&capture, random, &mut text);
    read_capture(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn kinds(diffs: &[EntryDiff]) -> Vec<(EntryId, String, String)> {
    let found = diffs.iter().flat_map(|diff| {
        diff.findings
            .iter()
            .map(|finding| (diff.id.clone(), finding.path.clone(), finding.kind.to_string()))
    });
    found.collect()
}

/// Edits one value below one of a tool's members, and returns the name of that member.
fn edit_tool(tool: &mut Value, random: &mut Random) -> Option<String> {
    let members = tool.as_object_mut()?;
    let names: Vec<String> = members.keys().filter(|name| *name != "name").cloned().collect();
    let name = names.get(random.below(names.len()))?.clone();
    edit(members.get_mut(&name)?, random);
    Some(name)
}

fn edit(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(members) if !members.is_empty() && random.below(6) > 0 => {
            let index = random.below(members.len());
            if let Some((_, member)) = members.iter_mut().nth(index) {
                edit(member, random);
            }
        }
        Value::Object(members) => {
            let is_new = members.insert("another member".to_owned(), Value::Null).is_none();
            assert!(is_new, "the corpus has no such member");
        }
        Value::Array(items) if !items.is_empty() && random.below(4) > 0 => {
            let index = random.below(items.len());
            edit(&mut items[index], random);
        }
        Value::Array(items) => items.push(Value::from("one more")),
        Value::String(text) => text.push('\u{200b}'),
        Value::Number(number) => {
            *value = Value::from(number.as_f64().map_or(1.0, |number| number / 2.0 + 0.25));
        }
        Value::Bool(inner) => *inner = !*inner,
        Value::Null => *value = Value::from(0),
    }
}

#[test]
fn real_surfaces_hash_the_same_however_they_are_written() {
    let mut random = Random::from_seed_or(SEED);
    let captures = captures();
    println!("real surfaces: {}", captures.len());
    for capture in &captures {
        let first = rewritten(capture, &mut random);
        let again = rewritten(capture, &mut random);
        assert_eq!(first.surface_hash(), again.surface_hash());
        for (left, right) in first.entries().zip(again.entries()) {
            assert_eq!(left.entry_hash(), right.entry_hash(), "{}", left.id());
            assert_eq!(left.definition_hash(), right.definition_hash(), "{}", left.id());
        }
        assert!(diff_surfaces(&first, &again).is_empty());
    }
}

#[test]
fn one_edit_of_a_real_tool_is_seen_by_the_hashes_and_explained_the_same_each_time() {
    let mut random = Random::from_seed_or(SEED);
    let captures = captures();
    println!("real surfaces: {}", captures.len());
    for capture in &captures {
        let before = rewritten(capture, &mut random);
        let tools = capture["tools"].as_array().map_or(0, Vec::len);
        for _ in 0..EDITS_PER_SURFACE.min(tools) {
            let mut edited = capture.clone();
            let tool = &mut edited["tools"][random.below(tools)];
            let Some(member) = edit_tool(tool, &mut random) else { continue };
            let id = EntryId::new(EntryType::Tool, tool["name"].as_str().unwrap_or_default());
            let after = rewritten(&edited, &mut random);
            assert_ne!(before.surface_hash(), after.surface_hash(), "{id}: {member}");
            let (old, new) = (before.entry(&id), after.entry(&id));
            let hash = |entry: Option<&contract::surface::Entry>| {
                entry.map(|entry| (entry.entry_hash(), entry.definition_hash()))
            };
            let (Some(old), Some(new)) = (hash(old), hash(new)) else { panic!("{id} is gone") };
            assert_ne!(old.0, new.0, "{id}: {member}");
            let is_definition = member == "description" || member == "inputSchema";
            assert_eq!(old.1 != new.1, is_definition, "{id}: {member}");
            let found = kinds(&diff_surfaces(&before, &after));
            assert!(!found.is_empty() && found.iter().all(|(found, ..)| *found == id), "{found:?}");
            let again =
                diff_surfaces(&rewritten(capture, &mut random), &rewritten(&edited, &mut random));
            assert_eq!(found, kinds(&again), "{id}: {member}");
        }
    }
}

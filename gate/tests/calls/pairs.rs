//! Pairs of input schemas: generated at random and edited, or taken from real releases.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use testing::Random;

const NAMES: [&str; 8] = ["path", "mode", "dry_run", "limit", "filter", "tags", "owner", "depth"];
const TEXTS: [&str; 6] = [
    "What to read",
    "How many there are",
    "Defaults to all",
    "If omitted, nothing is written",
    "Only tell what would happen",
    "The owner's name",
];

/// A schema and its upgraded version, which differs by one to three edits.
pub(crate) fn pair(random: &mut Random) -> (Value, Value) {
    let mut old = object(random, 0);
    old["$defs"] = json!({"Shared": property(random, 2), "Other": property(random, 2)});
    if random.percent(20) {
        old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    }
    let mut new = old.clone();
    for _ in 0..=random.below(3) {
        edit(&mut new, random);
    }
    (old, new)
}

fn object(random: &mut Random, depth: usize) -> Value {
    let count = 1 + random.below(5);
    let mut names = NAMES.to_vec();
    random.shuffle(&mut names);
    let mut properties = Map::new();
    for name in names.into_iter().take(count) {
        properties.insert(name.to_owned(), property(random, depth + 1));
    }
    let required: Vec<String> = random.some_of(&properties.keys().cloned().collect::<Vec<_>>(), 30);
    let mut object = json!({"type": "object", "properties": properties, "required": required});
    match random.below(8) {
        0 => object["additionalProperties"] = json!(false),
        1 => object["additionalProperties"] = json!({"type": "string"}),
        2 => object["additionalProperties"] = json!(true),
        _ => {}
    }
    object
}

fn property(random: &mut Random, depth: usize) -> Value {
    let mut property = match random.below(if depth > 2 { 5 } else { 9 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer", "minimum": 0, "maximum": 10 + random.below(20)}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "string", "enum": ["a", "b", "c", "d"]}),
        4 => json!({"type": "string", "format": random.pick(&["cents", "uri"])}),
        5 => json!({"type": "array", "items": self::property(random, depth + 1)}),
        6 => json!({"$ref": random.pick(&["#/$defs/Shared", "#/$defs/Other"])}),
        7 => json!({"anyOf": [self::property(random, depth + 1), {"type": "null"}]}),
        _ => object(random, depth),
    };
    if random.percent(50) {
        property["description"] = json!(random.pick(&TEXTS));
    }
    if random.percent(25) {
        property["default"] =
            random.pick(&[json!(null), json!(1), json!("a"), json!(false)]).clone();
    }
    property
}

/// Changes one subschema of a document.
fn edit(root: &mut Value, random: &mut Random) {
    let mut places = Vec::new();
    collect(root, String::new(), &mut places);
    let place = random.pick(&places).clone();
    let Some(target) = root.pointer_mut(&place) else { return };
    let is_definition = place.starts_with("/$defs");
    match random.below(11) {
        0 | 1 => target["description"] = json!(format!("{} today", random.pick(&TEXTS))),
        2 => target["default"] = random.pick(&[json!(2), json!("b"), json!(null)]).clone(),
        3 => {
            if let Some(properties) = target.get_mut("properties").and_then(Value::as_object_mut) {
                let name = properties.keys().next().cloned();
                name.and_then(|name| properties.remove(&name));
            }
        }
        4 => target["format"] = json!("dollars"),
        5 => target["maximum"] = json!(5),
        6 => target["enum"] = json!(["a", "b"]),
        7 => {
            if let Some(properties) = target.get_mut("properties").and_then(Value::as_object_mut) {
                properties.insert("added".to_owned(), json!({"type": "string"}));
            }
        }
        8 => target["required"] = json!(["path"]),
        9 if !is_definition => target["type"] = json!(["string", "object"]),
        _ => {
            target.as_object_mut().map(|schema| schema.remove("description"));
        }
    }
}

fn collect(schema: &Value, at: String, places: &mut Vec<String>) {
    for keyword in ["properties", "$defs"] {
        for (name, schema) in schema.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            collect(schema, format!("{at}/{keyword}/{name}"), places);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema @ Value::Object(_)) = schema.get(keyword) {
            collect(schema, format!("{at}/{keyword}"), places);
        }
    }
    for (index, branch) in
        schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        collect(branch, format!("{at}/anyOf/{index}"), places);
    }
    places.push(at);
}

/// Gives some calls undeclared members, or misspelled names.
pub(crate) fn disturb(call: &mut Value, random: &mut Random) {
    let Some(members) = call.as_object_mut() else { return };
    match random.below(20) {
        0 => {
            members.insert("undeclared".to_owned(), json!("x"));
        }
        1 => {
            if let Some(name) = members.keys().next().cloned()
                && let Some(value) = members.remove(&name)
            {
                members.insert(name.to_uppercase(), value);
            }
        }
        2 => {
            if let Some(value) = members.values_mut().next() {
                *value =
                    random.pick(&[json!(-1), json!("zz"), json!([1]), json!({"x": 1})]).clone();
            }
        }
        _ => {}
    }
}

/// The differing input schemas of the same tool in adjacent releases.
pub(crate) fn adjacent(root: &Path) -> Vec<(Value, Value)> {
    let mut pairs = Vec::new();
    let packages = folder(root).into_iter().flat_map(|registry| folder(&registry));
    for package in packages.filter(|path| path.is_dir()) {
        let mut files = folder(&package);
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort_by_key(|path| numbers(path));
        let releases: Vec<BTreeMap<String, Value>> =
            files.iter().map(|path| inputs(path)).collect();
        for step in releases.windows(2) {
            for (name, old) in &step[0] {
                if let Some(new) = step[1].get(name).filter(|new| *new != old) {
                    pairs.push((old.clone(), new.clone()));
                }
            }
        }
    }
    pairs
}

fn inputs(path: &Path) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(path).expect("a capture can be read");
    let capture: Value = serde_json::from_str(&text).expect("a capture is JSON");
    let tools = capture["tools"].as_array().into_iter().flatten();
    let input = |tool: &Value| {
        Some((tool.get("name")?.as_str()?.to_owned(), tool.get("inputSchema")?.clone()))
    };
    tools.filter_map(input).collect()
}

fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name.split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

fn folder(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

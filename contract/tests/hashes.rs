//! Changes that a hash must ignore and changes it must detect: equivalent ways to write the same
//! tools, and edits that change their meaning.
#![allow(clippy::indexing_slicing, reason = "a test may stop")]

use contract::surface::{EntryId, EntryType, ListKind, Surface, SurfaceReader};
use testing::Random;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// JSON by its meaning: members are unordered, and an array is a list or a set.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    /// A number in thousandths, so that it can be spelled in many ways.
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Set(Vec<Value>),
    Object(Vec<(String, Value)>),
}

const TEXTS: [&str; 10] = [
    "plain",
    "with \"quotes\" and \\",
    "line\nbreak\ttab",
    "ünïcödé",
    "日本語",
    "😀 joy",
    "a/b",
    "\u{1}\u{7f}",
    "",
    "\u{fb33}€",
];

fn text(random: &mut Random) -> Value {
    Value::Text(format!("{}{}", TEXTS[random.below(TEXTS.len())], random.below(9)))
}

fn scalar(random: &mut Random) -> Value {
    match random.below(5) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::Number(random.below(2_000_000) as i64 - 1_000_000),
        _ => text(random),
    }
}

fn distinct(random: &mut Random, count: usize) -> Vec<Value> {
    (0..count).map(|index| Value::Text(format!("v{index}{}", random.below(99)))).collect()
}

fn schema(random: &mut Random, depth: usize) -> Value {
    let mut members = vec![("description".to_owned(), text(random))];
    let mut add = |name: &str, value: Value| members.push((name.to_owned(), value));
    match random.below(if depth > 3 { 3 } else { 6 }) {
        0 => add("enum", Value::Set(distinct(random, 4))),
        1 => {
            add(
                "type",
                Value::Set(vec![Value::Text("integer".into()), Value::Text("null".into())]),
            );
            add("minimum", Value::Number(random.below(9_000) as i64));
        }
        2 => {
            add("default", Value::List(vec![scalar(random), scalar(random)]));
            add(
                "x-vendor",
                Value::Object(vec![("required".into(), Value::List(distinct(random, 3)))]),
            );
        }
        3 => add("anyOf", Value::List(vec![schema(random, depth + 1), schema(random, depth + 1)])),
        4 => add("items", schema(random, depth + 1)),
        _ => {
            let properties = (0..3).map(|n| (format!("p{n}"), schema(random, depth + 1))).collect();
            add("type", Value::Text("object".into()));
            add("properties", Value::Object(properties));
            add("required", Value::Set(vec![Value::Text("p0".into()), Value::Text("p2".into())]));
            let dependents = Value::Set(vec![Value::Text("p1".into()), Value::Text("p2".into())]);
            add("dependentRequired", Value::Object(vec![("p0".into(), dependents)]));
        }
    }
    Value::Object(members)
}

fn tool(random: &mut Random, name: usize) -> Value {
    Value::Object(vec![
        ("name".into(), Value::Text(format!("tool{name}"))),
        ("description".into(), text(random)),
        ("inputSchema".into(), schema(random, 0)),
        ("outputSchema".into(), schema(random, 2)),
        (
            "annotations".into(),
            Value::Object(vec![("readOnlyHint".into(), Value::Bool(random.below(2) == 0))]),
        ),
        ("_meta".into(), Value::Object(vec![("enum".into(), Value::List(distinct(random, 3)))])),
    ])
}

/// Writes a value in one of its many equivalent spellings.
fn write(value: &Value, random: &mut Random, out: &mut String) {
    let space = |random: &mut Random, out: &mut String| {
        out.push_str(["", " ", "\n", "\t "][random.below(4)]);
    };
    space(random, out);
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(thousandths) => out.push_str(&spell(*thousandths, random)),
        Value::Text(text) => quote(text, random, out),
        Value::List(items) => write_array(items, random, out),
        Value::Set(items) => {
            let mut items = items.clone();
            random.shuffle(&mut items);
            if random.below(3) == 0 {
                items.push(items[0].clone());
            }
            write_array(&items, random, out);
        }
        Value::Object(members) => {
            let mut members = members.clone();
            random.shuffle(&mut members);
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                space(random, out);
                quote(name, random, out);
                space(random, out);
                out.push(':');
                write(value, random, out);
            }
            out.push('}');
        }
    }
    space(random, out);
}

fn write_array(items: &[Value], random: &mut Random, out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        write(item, random, out);
    }
    out.push(']');
}

fn spell(thousandths: i64, random: &mut Random) -> String {
    let (sign, size) = (if thousandths < 0 { "-" } else { "" }, thousandths.unsigned_abs());
    if size == 0 {
        return ["0", "0.0", "-0", "0e9"][random.below(4)].to_owned();
    }
    match random.below(4) {
        0 => format!("{sign}{}.{:03}", size / 1_000, size % 1_000),
        1 => format!("{sign}{size}e-3"),
        2 => format!("{sign}{size}00E-5"),
        _ => format!("{sign}{}.{:03}000e+0", size / 1_000, size % 1_000),
    }
}

fn quote(text: &str, random: &mut Random, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        let must = character == '"' || character == '\\' || (character as u32) < 0x20;
        if must || (random.below(7) == 0) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&if random.below(2) == 0 {
                    format!("\\u{unit:04x}")
                } else {
                    format!("\\u{unit:04X}")
                });
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

/// The surface of some tools, listed in random order and split into random pages.
fn surface(tools: &[Value], random: &mut Random) -> Surface {
    let mut tools = tools.to_vec();
    random.shuffle(&mut tools);
    let mut pages = Vec::new();
    while !tools.is_empty() {
        let count = 1 + random.below(tools.len());
        let page =
            Value::Object(vec![("tools".into(), Value::List(tools.drain(..count).collect()))]);
        let mut text = String::new();
        write(&page, random, &mut text);
        pages.push(text);
    }
    let mut reader = SurfaceReader::default();
    reader.list(ListKind::Tools, &pages);
    let surface = reader.finish();
    assert!(surface.unreadable().is_empty(), "{:?}\n{pages:?}", surface.unreadable());
    surface
}

/// Makes one random edit somewhere in a value.
fn edit(value: &mut Value, random: &mut Random) {
    match value {
        Value::Null => *value = Value::Bool(false),
        Value::Bool(inner) => *inner = !*inner,
        Value::Number(thousandths) => *thousandths += 1,
        Value::Text(text) => match random.below(3) {
            0 => text.push('\u{301}'),
            1 => text.insert(0, ' '),
            _ => text.push('x'),
        },
        Value::Set(items) => match random.below(3) {
            0 => items.push(Value::Text("one more".into())),
            1 if items.len() > 1 => drop(items.pop()),
            _ => edit(&mut items[0], random),
        },
        Value::List(items) if items.is_empty() => items.push(Value::Null),
        Value::List(items) => match random.below(4) {
            0 => items.push(Value::Null),
            1 => drop(items.pop()),
            2 if items.first() != items.last() => {
                let last = items.len() - 1;
                items.swap(0, last);
            }
            _ => {
                let index = random.below(items.len());
                edit(&mut items[index], random);
            }
        },
        Value::Object(members) if members.is_empty() => members.push(("new".into(), Value::Null)),
        Value::Object(members) => {
            let index = random.below(members.len());
            match random.below(6) {
                0 => members.push((format!("new member {}", random.number()), Value::Null)),
                1 => drop(members.remove(index)),
                2 => members[index].0.push_str("_x"),
                _ => edit(&mut members[index].1, random),
            }
        }
    }
}

#[test]
fn what_means_the_same_has_the_same_hashes() {
    let mut random = Random::from_seed_or(SEED);
    for round in 0..300 {
        let tools: Vec<Value> =
            (0..1 + random.below(5)).map(|name| tool(&mut random, name)).collect();
        let first = surface(&tools, &mut random);
        for _ in 0..4 {
            let again = surface(&tools, &mut random);
            assert_eq!(first.surface_hash(), again.surface_hash(), "round {round}");
            for (left, right) in first.entries().zip(again.entries()) {
                assert_eq!(left.definition_hash(), right.definition_hash(), "round {round}");
                assert_eq!(left.entry_hash(), right.entry_hash(), "round {round}");
            }
            assert!(contract::diff::diff_surfaces(&first, &again).is_empty(), "round {round}");
        }
    }
}

#[test]
fn any_single_edit_of_what_counts_changes_the_hashes_and_is_found() {
    let mut random = Random::from_seed_or(SEED);
    for round in 0..1_500 {
        let old = tool(&mut random, 0);
        let mut new = old.clone();
        let Value::Object(members) = &mut new else { unreachable!() };
        // Skip the name: it is the key, and changing it makes a different entry.
        let index = 1 + random.below(members.len() - 1);
        edit(&mut members[index].1, &mut random);
        let member = members[index].0.clone();
        let (before, after) = (surface(&[old], &mut random), surface(&[new], &mut random));
        let id = EntryId::new(EntryType::Tool, "tool0");
        let (old, new) = (before.entry(&id).unwrap(), after.entry(&id).unwrap());
        assert_ne!(
            before.surface_hash(),
            after.surface_hash(),
            "round {round}: {member}\n{}\n{}",
            old.raw(),
            new.raw()
        );
        assert_ne!(old.entry_hash(), new.entry_hash(), "round {round}");
        let is_definition = ["description", "inputSchema"].contains(&member.as_str());
        assert_eq!(
            old.definition_hash() != new.definition_hash(),
            is_definition,
            "round {round}: {member}"
        );
        let diffs = contract::diff::diff_surfaces(&before, &after);
        assert!(diffs.len() == 1 && !diffs[0].findings.is_empty(), "round {round}");
    }
}

#[test]
fn findings_do_not_depend_on_how_either_side_is_written() {
    let mut random = Random::from_seed_or(SEED);
    for round in 0..400 {
        let old = tool(&mut random, 0);
        let mut new = old.clone();
        let Value::Object(members) = &mut new else { unreachable!() };
        for _ in 0..1 + random.below(3) {
            edit(&mut members[2].1, &mut random);
        }
        let mut found = Vec::new();
        for _ in 0..3 {
            let (before, after) = (
                surface(std::slice::from_ref(&old), &mut random),
                surface(std::slice::from_ref(&new), &mut random),
            );
            let diffs = contract::diff::diff_surfaces(&before, &after);
            let kinds: Vec<(String, String)> = diffs
                .iter()
                .flat_map(|diff| &diff.findings)
                .map(|finding| (finding.path.clone(), finding.kind.to_string()))
                .collect();
            found.push(kinds);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "round {round}: {found:?}");
    }
}

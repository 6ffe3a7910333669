//! Arguments checked against real definitions (`HOLDPOINT_CORPUS`,
//! `<registry>/<package>/<version>.json`): for every tool a valid call passes, and each single
//! violation is refused with the pointer to its place. A false refusal is a bug.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::surface::{Entry, EntryType, read_capture};
use gate::behavior::arguments;
use gate::by_the_call::input::{Arguments, InputRule, InputRules, UndeclaredMembers, Violation};
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use testing::Random;

/// How often a call is generated that turns out to be invalid, or cannot be changed as intended.
const ATTEMPTS: usize = 40;

#[derive(Debug, Default)]
struct Seen {
    tools: usize,
    /// Tools whose schema is undecidable, with the reason.
    undecided: BTreeMap<String, String>,
    /// Tools for which the generator made no valid call.
    unmade: usize,
    valid: usize,
    violations: BTreeMap<&'static str, usize>,
}

/// A validator that shares only the crate with the gate's own.
fn validators(schema: &Value) -> Vec<Validator> {
    let drafts = match schema.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => vec![Draft::Draft7],
        Some(uri) if uri.contains("2019-09") => vec![Draft::Draft201909],
        Some(_) => vec![Draft::Draft202012],
        None => vec![Draft::Draft7, Draft::Draft202012],
    };
    let options = |draft| jsonschema::options().with_draft(draft).should_validate_formats(false);
    drafts.into_iter().filter_map(|draft| options(draft).build(schema).ok()).collect()
}

fn check(rules: &InputRules, call: &Value) -> Result<(), Violation> {
    let text = call.to_string();
    let arguments = Arguments::read(Some(text.as_bytes()))?;
    rules.check(&arguments, UndeclaredMembers::Refuse)
}

fn tools() -> Vec<Entry> {
    let Some(root) = testing::corpus() else { return Vec::new() };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for registry in ["npm", "pypi"] {
        let packages = std::fs::read_dir(root.join(registry)).into_iter().flatten().flatten();
        for file in packages.flat_map(|package| std::fs::read_dir(package.path()).unwrap()) {
            let Ok(bytes) = std::fs::read(file.unwrap().path()) else { continue };
            let Ok(surface) = read_capture(&bytes) else { continue };
            let tools = surface.entries().filter(|entry| entry.entry_type() == EntryType::Tool);
            found.extend(tools.filter(|tool| seen.insert(tool.entry_hash())).cloned());
        }
    }
    found
}

#[test]
fn every_real_tool_accepts_valid_calls_and_names_each_single_violation() {
    let mut seen = Seen::default();
    let mut random = Random::from_seed_or(17);
    for tool in tools() {
        let raw: Value = serde_json::from_str(tool.raw()).unwrap();
        let schema = raw.get("inputSchema").cloned().unwrap_or(json!({}));
        seen.tools += 1;
        match InputRules::compile(&tool) {
            Ok(rules) => try_tool(&tool, &schema, &rules, &mut random, &mut seen),
            Err(why) => _ = seen.undecided.insert(tool.key().to_owned(), why.to_string()),
        }
    }
    if seen.tools == 0 {
        return;
    }
    println!("{seen:#?}");
    // A tool whose schema is undecidable cannot be called through a gateway.
    assert!(seen.undecided.is_empty(), "{seen:?}");
    assert!(seen.unmade * 20 < seen.tools, "{seen:?}");
    assert!(seen.valid > seen.tools, "{seen:?}");
    for kind in ["unknown", "missing", "type", "enum"] {
        assert!(seen.violations.get(kind).is_some_and(|count| *count > 20), "{kind}: {seen:?}");
    }
}

fn try_tool(
    tool: &Entry,
    schema: &Value,
    rules: &InputRules,
    random: &mut Random,
    seen: &mut Seen,
) {
    let judges = validators(schema);
    let is_valid = |call: &Value| judges.iter().all(|judge| judge.is_valid(call));
    let mut made = Vec::new();
    for percent in [0, 50, 100] {
        let mut attempts =
            (0..ATTEMPTS).map(|_| arguments(schema, percent, &mut |end| random.below(end)));
        made.extend(attempts.find(|call| is_valid(call)));
    }
    if made.is_empty() {
        seen.unmade += 1;
    }
    for call in &made {
        let found = check(rules, call);
        assert_eq!(found, Ok(()), "{}: a valid call is refused\n{schema}\n{call}", tool.key());
        seen.valid += 1;
        for (kind, pointer, broken) in broken(schema, call) {
            // If the judge still accepts the call, there is no violation: for example a type that a
            // schema does not restrict.
            let is_broken = kind == "unknown" || !is_valid(&broken);
            if !is_broken {
                continue;
            }
            let found = check(rules, &broken).expect_err(&format!(
                "{}: {kind} at {pointer} passed\n{schema}\n{broken}",
                tool.key()
            ));
            let expected = match kind {
                "unknown" => found.rule == InputRule::Declared,
                _ => matches!(found.rule, InputRule::Keyword(_)),
            };
            assert!(
                expected && found.pointer == pointer,
                "{}: {kind} at {pointer} was told as {found:?}\n{schema}\n{broken}",
                tool.key()
            );
            *seen.violations.entry(kind).or_default() += 1;
        }
    }
}

/// Copies of the call with one violation each, at the top level or in a nested object: the kind,
/// the place and the call.
fn broken(schema: &Value, call: &Value) -> Vec<(&'static str, String, Value)> {
    let mut found = Vec::new();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return found;
    };
    let step = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let says_more = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some());
    let is_open =
        schema.get("additionalProperties").is_some_and(|further| *further != json!(false));
    if !properties.is_empty() && !is_open && !says_more {
        let mut broken = call.clone();
        broken["canary_member"] = json!(1);
        found.push(("unknown", "/canary_member".to_owned(), broken));
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap();
        let mut broken = call.clone();
        if broken.as_object_mut().unwrap().remove(name).is_some() {
            // With combinators, the first violation found may be inside an alternative.
            if !says_more {
                found.push(("missing", step(name), broken));
            }
        }
    }
    for (name, property) in properties.iter().filter(|(name, _)| call.get(name).is_some()) {
        let change = |value: Value| {
            let mut broken = call.clone();
            broken[name] = value;
            broken
        };
        let kind = property.get("type").and_then(Value::as_str);
        match kind {
            Some("string") => found.push(("type", step(name), change(json!(7)))),
            Some("integer" | "number" | "boolean") => {
                found.push(("type", step(name), change(json!("canary"))));
            }
            Some("array") => found.push(("type", step(name), change(json!({"a": 1})))),
            Some("object") => found.push(("type", step(name), change(json!([1])))),
            _ => {}
        }
        if property.get("enum").is_some() && kind == Some("string") {
            found.push(("enum", step(name), change(json!("canary that is no word of it"))));
        }
        if let Some(most) =
            property.get("maximum").and_then(Value::as_f64).filter(|most| *most < 1e15)
        {
            found.push(("maximum", step(name), change(json!(most + 1.0))));
        }
        if let Some(most) =
            property.get("maxLength").and_then(Value::as_u64).filter(|most| *most < 9_999)
        {
            let long = "a".repeat(most as usize + 1);
            found.push(("maxLength", step(name), change(json!(long))));
        }
    }
    found
}

/// The tools whose schemas need the most work must be fast enough to be checked often.
#[test]
fn nested_messages_of_a_real_server_are_decided_on() {
    let begun = std::time::Instant::now();
    let nested = tools().into_iter().filter(|tool| tool.key().ends_with("_flex_message"));
    for tool in nested {
        let compiled = InputRules::compile(&tool);
        assert!(compiled.is_ok(), "{}: {compiled:?} after {:?}", tool.key(), begun.elapsed());
    }
}

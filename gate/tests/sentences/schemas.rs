//! Finds what two tools say about a name, and asks a validator about values. It shares no code with
//! the comparison.

use jsonschema::Draft;
use serde_json::{Value, json};

/// All schemas that a tool has for a name in the notation of sentences (`user.id`, `ids[]`,
/// `labels.*`).
///
/// `path` says whether the name belongs to the input, to the results, or to a definition.
pub fn named<'a>(tool: &'a Value, name: &str, path: &str) -> Vec<&'a Value> {
    let root = root(tool, path);
    let mut found = vec![root];
    let mut rest = name;
    let steps: Vec<&str> = path.split('/').collect();
    if let Some(at) = steps.iter().rposition(|step| matches!(*step, "$defs" | "definitions")) {
        let definition = steps.get(at + 1).copied().unwrap_or_default();
        found = vec![&root[steps[at]][definition]];
        rest = rest.rsplit_once(definition).map_or(rest, |(_, rest)| rest).trim_start_matches('.');
    }
    while !rest.is_empty() {
        let around: Vec<&Value> = found.iter().flat_map(|schema| spread(root, schema, 0)).collect();
        if let Some(tail) = rest.strip_prefix("[]") {
            found = around.iter().flat_map(|schema| items(schema)).collect();
            rest = tail.trim_start_matches('.');
            continue;
        }
        if let Some(tail) = rest.strip_prefix(".*").or(rest.strip_prefix('*')) {
            found = around.iter().filter_map(|at| at.get("additionalProperties")).collect();
            rest = tail.trim_start_matches('.');
            continue;
        }
        // A name may itself contain dots, so try the longest declared one.
        let declared = around.iter().filter_map(|schema| schema.get("properties")?.as_object());
        let names = declared.flat_map(|members| members.keys());
        let longest = names
            .filter(|name| {
                let after = rest.strip_prefix(name.as_str());
                after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            })
            .max_by_key(|name| name.len());
        let Some(name) = longest else { return Vec::new() };
        found = around.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
        rest = rest.strip_prefix(name.as_str()).unwrap().trim_start_matches('.');
    }
    found
}

pub fn root<'a>(tool: &'a Value, path: &str) -> &'a Value {
    match path.starts_with("/outputSchema") {
        true => &tool["outputSchema"],
        false => &tool["inputSchema"],
    }
}

fn items(schema: &Value) -> Vec<&Value> {
    let keywords = ["items", "prefixItems", "additionalItems"];
    let schemas = keywords.into_iter().filter_map(|keyword| schema.get(keyword));
    schemas
        .flat_map(|found| found.as_array().map_or(vec![found], |list| list.iter().collect()))
        .collect()
}

/// A schema and all others that apply to the same value, through references and branches.
pub fn spread<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Vec<&'a Value> {
    let mut found = vec![schema];
    if depth > 8 {
        return found;
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
    let target = target.and_then(|pointer| root.pointer(pointer));
    let branches = ["allOf", "anyOf", "oneOf"].into_iter();
    let branches = branches.filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
    for next in target.into_iter().chain(branches) {
        found.extend(spread(root, next, depth + 1));
    }
    found
}

/// The value of a keyword in any schema of the named value.
pub fn said<'a>(tool: &'a Value, name: &str, path: &str, keyword: &str) -> Vec<&'a Value> {
    let found = named(tool, name, path);
    let all = found.iter().flat_map(|schema| spread(root(tool, path), schema, 0));
    all.filter_map(|schema| schema.get(keyword)).collect()
}

/// Whether the named value may be this one. Returns `None` if the tool has no such name or its
/// schema is invalid.
pub fn accepts(tool: &Value, name: &str, path: &str, value: &Value) -> Option<bool> {
    let root = root(tool, path);
    let found = named(tool, name, path);
    let mut document = json!({"anyOf": found});
    for keyword in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(keyword) {
            document[keyword] = definitions.clone();
        }
    }
    let is_draft_7 = root["$schema"].as_str().is_some_and(|uri| uri.contains("draft-07"));
    let draft = if is_draft_7 { Draft::Draft7 } else { Draft::Draft202012 };
    let validator = jsonschema::options().with_draft(draft).build(&document).ok()?;
    (!found.is_empty()).then(|| validator.is_valid(value))
}

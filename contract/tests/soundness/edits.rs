//! Random edits of a schema: some widen it, some narrow it, and some only express the same in
//! another way.

use crate::schemas::{Author, any_value, keyword_value, schema};
use serde_json::{Map, Value, json};

/// The schema after one to three edits.
pub fn edited(random: &mut Author<'_>, original: &Value) -> Value {
    let mut new = original.clone();
    let count = [1, 1, 1, 2, 2, 3][random.below(6)];
    for _ in 0..count {
        edit(random, &mut new);
    }
    new
}

fn edit(random: &mut Author<'_>, root: &mut Value) {
    let places = subschemas(root);
    let place = random.pick(&places).clone();
    let donor = root.pointer(random.pick(&places).as_str()).cloned().unwrap_or(Value::Bool(true));
    let dialects = [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];
    if place.is_empty() && random.percent(2) && root.is_object() {
        root["$schema"] = json!(random.pick(&dialects));
        return;
    }
    let is_extracted = random.percent(4) && extract(random, root, &place);
    if is_extracted {
        return;
    }
    let inlined = inlined(root, &place);
    let Some(target) = root.pointer_mut(&place) else { return };
    match random.below(20) {
        0..=4 => change_keyword(random, target),
        5..=7 => drop_keyword(random, target),
        8..=9 => add_keyword(random, target),
        10..=12 => change_properties(random, target),
        13 => wrap(random, target),
        14 => unwrap(random, target),
        15 => rename_combinator(random, target),
        16 => *target = if place.is_empty() { target.clone() } else { donor },
        17 => {
            if let (Some(inlined), false) = (inlined, place.is_empty()) {
                *target = inlined;
            }
        }
        18 if !place.is_empty() => *target = schema(random, 1),
        _ => change_branches(random, target),
    }
}

/// The pointers of all schemas within a schema, starting with its own.
pub fn subschemas(root: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(root, String::new(), &mut found);
    found
}

fn collect(node: &Value, at: String, found: &mut Vec<String>) {
    found.push(at.clone());
    let Value::Object(members) = node else { return };
    for (keyword, value) in members {
        let escaped = escape(keyword);
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(named),
            ) => {
                for (name, inner) in named.iter().filter(|(_, inner)| !inner.is_array()) {
                    collect(inner, format!("{at}/{escaped}/{}", escape(name)), found);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(list)) => {
                for (index, inner) in list.iter().enumerate() {
                    collect(inner, format!("{at}/{escaped}/{index}"), found);
                }
            }
            (
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                _,
            ) => collect(value, format!("{at}/{escaped}"), found),
            _ => {}
        }
    }
}

pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The target of a schema that consists only of a reference.
fn inlined(root: &Value, place: &str) -> Option<Value> {
    let members = root.pointer(place)?.as_object()?;
    let reference = members.get("$ref")?.as_str()?;
    (members.len() == 1).then(|| root.pointer(reference.strip_prefix('#')?).cloned())?
}

/// Moves a schema into the definitions and puts a reference in its place.
fn extract(random: &mut Author<'_>, root: &mut Value, place: &str) -> bool {
    let is_root = place.is_empty() || place.starts_with("/$defs") || !root.is_object();
    if is_root {
        return false;
    }
    let name = format!("N{}", random.below(3));
    let Some(target) = root.pointer_mut(place) else { return false };
    let moved = std::mem::replace(target, json!({"$ref": format!("#/$defs/{name}")}));
    if !root["$defs"].is_object() {
        root["$defs"] = json!({});
    }
    root["$defs"][name] = moved;
    true
}

fn change_keyword(random: &mut Author<'_>, target: &mut Value) {
    let Value::Object(members) = target else {
        *target = schema(random, 1);
        return;
    };
    let keywords: Vec<String> =
        members.keys().filter(|keyword| !keyword.starts_with("$s")).cloned().collect();
    if keywords.is_empty() {
        return add_keyword(random, target);
    }
    let keyword = random.pick(&keywords).clone();
    let Some(value) = members.get_mut(&keyword) else { return };
    match (keyword.as_str(), &mut *value) {
        ("enum" | "required", Value::Array(list)) => change_list(random, &keyword, list),
        ("type", _) => change_type(random, value),
        ("dependentRequired", Value::Object(entries)) => {
            let name = random.name().to_owned();
            if random.percent(50) {
                entries.remove(&name);
            } else {
                entries.insert(name, json!(random.some_names(40)));
            }
        }
        ("properties" | "$defs" | "definitions" | "patternProperties", _) => {}
        (_, Value::Number(number)) => {
            let step = *random.pick(&[-1.0, 1.0, -0.5, 0.5, 2.0]);
            let moved = number.as_f64().unwrap_or(0.0) + step;
            let is_count = !matches!(
                keyword.as_str(),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            );
            *value = match is_count {
                true => json!(moved.abs().ceil() as i64),
                false if moved.fract() == 0.0 => json!(moved as i64),
                false => json!(moved),
            };
        }
        ("allOf" | "anyOf" | "oneOf", _) => change_branches(random, target),
        _ => *value = keyword_value(random, &keyword, 2),
    }
}

fn change_list(random: &mut Author<'_>, keyword: &str, list: &mut Vec<Value>) {
    let is_removal = random.percent(40) && list.len() > 1;
    if is_removal {
        list.remove(random.below(list.len()));
        return;
    }
    let value = match keyword {
        "enum" => any_value(random, 1),
        _ => json!(random.name()),
    };
    if !list.contains(&value) {
        list.push(value);
    }
}

fn change_type(random: &mut Author<'_>, value: &mut Value) {
    let mut types = match &*value {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let extra = json!(random.pick(&["null", "string", "number", "integer", "object", "array"]));
    match random.below(4) {
        0 if types.len() > 1 => drop(types.remove(random.below(types.len()))),
        1 => types = vec![extra],
        _ if !types.contains(&extra) => types.push(extra),
        _ => {}
    }
    *value = match types.as_slice() {
        [one] => one.clone(),
        _ => Value::Array(types),
    };
}

fn drop_keyword(random: &mut Author<'_>, target: &mut Value) {
    if let Value::Object(members) = target {
        let keywords: Vec<String> = members.keys().cloned().collect();
        if !keywords.is_empty() {
            members.remove(random.pick(&keywords));
        }
    }
}

fn add_keyword(random: &mut Author<'_>, target: &mut Value) {
    if target == &json!(true) {
        *target = json!({});
    }
    let keyword = random.keyword();
    if let Value::Object(members) = target {
        members.insert(keyword.to_owned(), keyword_value(random, keyword, 2));
    }
}

fn change_properties(random: &mut Author<'_>, target: &mut Value) {
    let Value::Object(members) = target else { return };
    let name = random.name().to_owned();
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        if random.percent(25) {
            properties.remove(&name);
        } else if !properties.contains_key(&name) || random.percent(30) {
            properties.insert(name.clone(), schema(random, 1));
        }
    }
    if random.percent(15) {
        let required = members.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required
            && !required.contains(&json!(name))
        {
            required.push(json!(name));
        }
    }
}

/// Wraps a schema in a combinator, alone or next to another branch, and moves its keywords inside
/// or leaves them outside.
fn wrap(random: &mut Author<'_>, target: &mut Value) {
    let keyword = *random.pick(&["allOf", "anyOf", "oneOf"]);
    let mut inside = target.clone();
    let mut outside = Map::new();
    if let Value::Object(members) = &mut inside {
        for apart in ["$schema", "$defs", "definitions"] {
            if let Some(value) = members.remove(apart) {
                outside.insert(apart.to_owned(), value);
            }
        }
        if random.percent(30) {
            let keywords: Vec<String> = members.keys().cloned().collect();
            for keyword in random.some_of(&keywords, 40) {
                if let Some(value) = members.remove(&keyword) {
                    outside.insert(keyword, value);
                }
            }
        }
    }
    let mut branches = vec![inside];
    match random.below(5) {
        0 => branches.push(json!({"type": "null"})),
        1 => branches.push(schema(random, 1)),
        2 => branches.push(branches[0].clone()),
        3 => branches.push(json!({})),
        _ => {}
    }
    outside.insert(keyword.to_owned(), Value::Array(branches));
    *target = Value::Object(outside);
}

/// Replaces a combinator with one or all of its branches, which override the keywords around it.
fn unwrap(random: &mut Author<'_>, target: &mut Value) {
    let Value::Object(members) = target else { return };
    let keyword = *random.pick(&["allOf", "anyOf", "oneOf"]);
    let Some(Value::Array(branches)) = members.get(keyword).cloned() else { return };
    members.remove(keyword);
    let taken = match random.percent(50) {
        true => branches,
        false => vec![random.pick(&branches).clone()],
    };
    for branch in taken {
        if let Value::Object(branch) = branch {
            members.extend(branch);
        }
    }
}

fn rename_combinator(random: &mut Author<'_>, target: &mut Value) {
    let names = ["allOf", "anyOf", "oneOf"];
    if let Value::Object(members) = target {
        let (from, to) = (*random.pick(&names), *random.pick(&names));
        if let Some(branches) = members.remove(from) {
            members.insert(to.to_owned(), branches);
        }
    }
}

fn change_branches(random: &mut Author<'_>, target: &mut Value) {
    let Value::Object(members) = target else { return };
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = members.get_mut(keyword) else { continue };
        match random.below(4) {
            0 if branches.len() > 1 => drop(branches.remove(random.below(branches.len()))),
            1 if !branches.is_empty() => branches.reverse(),
            2 if !branches.is_empty() => {
                let index = random.below(branches.len());
                change_keyword(random, &mut branches[index]);
            }
            _ => branches.push(schema(random, 1)),
        }
        return;
    }
}

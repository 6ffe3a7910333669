//! Arguments of calls, made from a tool's input schema: the required parameters, and some of the others.

use crate::Random;
use serde_json::{Map, Number, Value, json};

/// How deep arguments are made.
const MAX_DEPTH: usize = 8;

/// Arguments for a schema. They are usually valid; whoever needs that to be sure asks a validator.
pub fn arguments(schema: &Value, optional_percent: u64, random: &mut Random) -> Value {
    let maker = Maker { root: schema, optional_percent };
    match maker.value(schema, random, 0) {
        object @ Value::Object(_) => object,
        _ => json!({}),
    }
}

struct Maker<'a> {
    root: &'a Value,
    optional_percent: u64,
}

impl<'a> Maker<'a> {
    fn value(&self, schema: &'a Value, random: &mut Random, depth: usize) -> Value {
        let schemas = self.together(schema, random);
        let get = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword));
        if let Some(value) = get("const") {
            return value.clone();
        }
        if let Some(values) = get("enum").and_then(Value::as_array).filter(|all| !all.is_empty()) {
            return random.pick(values).clone();
        }
        let examples = get("examples").and_then(Value::as_array);
        if let Some(examples) = examples.filter(|all| !all.is_empty() && random.percent(50)) {
            return random.pick(examples).clone();
        }
        let kind = match get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                let plain: Vec<&str> =
                    kinds.iter().copied().filter(|kind| *kind != "null").collect();
                (if plain.is_empty() { "null" } else { *random.pick(&plain) }).to_owned()
            }
            _ if get("properties").is_some() => "object".to_owned(),
            _ if get("items").is_some() => "array".to_owned(),
            _ => "string".to_owned(),
        };
        match kind.as_str() {
            "object" => self.object(&schemas, random, depth),
            "array" => self.array(&schemas, random, depth),
            "integer" | "number" => number(&schemas, kind == "integer", random),
            "boolean" => Value::Bool(random.percent(50)),
            "null" => Value::Null,
            _ => Value::String(text(&schemas, random)),
        }
    }

    /// The schemas that apply together: references and `allOf`, and one alternative of each.
    fn together(&self, schema: &'a Value, random: &mut Random) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut waiting = vec![schema];
        while let Some(schema) = waiting.pop().filter(|_| found.len() < 50) {
            found.push(schema);
            let target = schema.get("$ref").and_then(Value::as_str);
            waiting.extend(target.and_then(|target| self.root.pointer(target.strip_prefix('#')?)));
            waiting.extend(schema.get("allOf").and_then(Value::as_array).into_iter().flatten());
            for keyword in ["anyOf", "oneOf"] {
                let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
                let is_null = |branch: &&Value| branch.get("type") == Some(&json!("null"));
                let branches: Vec<&Value> = branches.filter(|branch| !is_null(branch)).collect();
                if !branches.is_empty() {
                    waiting.push(*random.pick(&branches));
                }
            }
        }
        found
    }

    fn object(&self, schemas: &[&'a Value], random: &mut Random, depth: usize) -> Value {
        let mut object = Map::new();
        let lists = schemas.iter().filter_map(|schema| schema.get("required")?.as_array());
        let required: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
        for schema in schemas {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let is_required = required.contains(&name.as_str());
                let is_wanted = depth < MAX_DEPTH && random.percent(self.optional_percent);
                if (is_required || is_wanted) && depth <= 2 * MAX_DEPTH {
                    object.insert(name.clone(), self.value(schema, random, depth + 1));
                }
            }
        }
        for name in required {
            object.entry(name).or_insert_with(|| json!("x"));
        }
        Value::Object(object)
    }

    fn array(&self, schemas: &[&'a Value], random: &mut Random, depth: usize) -> Value {
        let limit = |keyword: &str| {
            let limits = schemas.iter().filter_map(|schema| schema.get(keyword)?.as_u64());
            limits.map(|limit| usize::try_from(limit).unwrap_or(0)).next()
        };
        let (least, most) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(3));
        let count = least.max(random.below(3).min(most)).min(20);
        let items = schemas.iter().find_map(|schema| schema.get("items"));
        let item = |random: &mut Random| match items {
            Some(schema @ Value::Object(_)) if depth < 2 * MAX_DEPTH => {
                self.value(schema, random, depth + 1)
            }
            _ => json!("x"),
        };
        Value::Array((0..count).map(|_| item(random)).collect())
    }
}

fn number(schemas: &[&Value], is_integer: bool, random: &mut Random) -> Value {
    let limit = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword)?.as_f64());
    let least = limit("minimum").or(limit("exclusiveMinimum").map(|limit| limit + 1.0));
    let most = limit("maximum").or(limit("exclusiveMaximum").map(|limit| limit - 1.0));
    let least = least.unwrap_or(most.map_or(1.0, |most| (most - 10.0).min(1.0)));
    let most = most.unwrap_or(least + 10.0);
    let share = random.below(5) as f64 / 4.0;
    let number = least + (most - least) * share;
    let number = if is_integer { number.round() } else { number };
    match is_integer && number.abs() < 9e15 {
        true => Value::Number((number as i64).into()),
        false => Number::from_f64(number).map_or(json!(1), Value::Number),
    }
}

fn text(schemas: &[&Value], random: &mut Random) -> String {
    let get = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword));
    let text = match get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/a",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("email") => "a@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ if get("pattern").is_some() => {
            random.pick(&["abc", "a1", "1", "12:00", "2026-01-01", "#aabbcc", "a-b", "A1B2"])
        }
        _ => random.pick(&["a", "some words", "x/y.txt"]),
    };
    let limit = |keyword: &str| get(keyword).and_then(Value::as_u64).unwrap_or(0) as usize;
    let mut text = text.to_owned();
    while text.chars().count() < limit("minLength").min(1_000) {
        text.push('a');
    }
    match limit("maxLength") {
        0 => text,
        most => text.chars().take(most).collect(),
    }
}

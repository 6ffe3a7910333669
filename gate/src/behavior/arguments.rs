//! Generates arguments from a tool's input schema: the required parameters, and some of the others.
//!
//! The schema is the server's, so the work is bounded whatever it contains. The caller makes every
//! random choice.

use serde_json::{Map, Number, Value, json};
use std::cell::Cell;

/// The deepest nesting of generated arguments.
const MAX_DEPTH: usize = 8;
/// The most values in one call.
const MAX_VALUES: usize = 2_000;
/// The most schemas that are combined for one value.
const MAX_TOGETHER: usize = 50;
const MAX_ITEMS: usize = 20;
const MAX_TEXT: usize = 1_000;

/// Picks a number below its argument, which is at least 1.
pub type Choose<'c> = dyn FnMut(usize) -> usize + 'c;

/// Generates arguments for a schema. They are usually valid; a caller that needs certainty must use
/// a validator.
pub fn arguments(schema: &Value, optional_percent: usize, choose: &mut Choose<'_>) -> Value {
    let maker = Maker { root: schema, optional_percent, values: Cell::new(0) };
    match maker.value(schema, choose, 0) {
        object @ Value::Object(_) => object,
        _ => json!({}),
    }
}

struct Maker<'a> {
    root: &'a Value,
    optional_percent: usize,
    /// How many values were generated.
    values: Cell<usize>,
}

fn pick<'v, T>(from: &'v [T], choose: &mut Choose<'_>) -> Option<&'v T> {
    from.get(choose(from.len().max(1)))
}

fn percent(share: usize, choose: &mut Choose<'_>) -> bool {
    choose(100) < share
}

impl<'a> Maker<'a> {
    fn value(&self, schema: &'a Value, choose: &mut Choose<'_>, depth: usize) -> Value {
        self.values.set(self.values.get() + 1);
        if self.values.get() > MAX_VALUES {
            return Value::Null;
        }
        let schemas = self.together(schema, choose);
        let get = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword));
        if let Some(value) = get("const") {
            return value.clone();
        }
        let listed = |keyword: &str| get(keyword).and_then(Value::as_array);
        if let Some(value) = listed("enum").and_then(|values| pick(values, choose)) {
            return value.clone();
        }
        let examples = listed("examples").filter(|all| !all.is_empty() && percent(50, choose));
        if let Some(example) = examples.and_then(|examples| pick(examples, choose)) {
            return example.clone();
        }
        let kind = match get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let plain: Vec<&str> = kinds.filter(|kind| *kind != "null").collect();
                pick(&plain, choose).copied().unwrap_or("null")
            }
            _ if get("properties").is_some() => "object",
            _ if get("items").is_some() => "array",
            _ => "string",
        };
        match kind {
            "object" => self.object(&schemas, choose, depth),
            "array" => self.array(&schemas, choose, depth),
            "integer" | "number" => number(&schemas, kind == "integer", choose),
            "boolean" => Value::Bool(percent(50, choose)),
            "null" => Value::Null,
            _ => Value::String(text(&schemas, choose)),
        }
    }

    /// The schemas that apply together: references, `allOf`, and one of each set of alternatives.
    fn together(&self, schema: &'a Value, choose: &mut Choose<'_>) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut waiting = vec![schema];
        while let Some(schema) = waiting.pop().filter(|_| found.len() < MAX_TOGETHER) {
            found.push(schema);
            let target = schema.get("$ref").and_then(Value::as_str);
            waiting.extend(target.and_then(|target| self.root.pointer(target.strip_prefix('#')?)));
            waiting.extend(schema.get("allOf").and_then(Value::as_array).into_iter().flatten());
            for keyword in ["anyOf", "oneOf"] {
                let branches = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
                let is_null = |branch: &&Value| branch.get("type") == Some(&json!("null"));
                let branches: Vec<&Value> = branches.filter(|branch| !is_null(branch)).collect();
                waiting.extend(pick(&branches, choose).copied());
            }
        }
        found
    }

    fn object(&self, schemas: &[&'a Value], choose: &mut Choose<'_>, depth: usize) -> Value {
        let mut object = Map::new();
        let lists = schemas.iter().filter_map(|schema| schema.get("required")?.as_array());
        let required: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
        for schema in schemas {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let is_required = required.contains(&name.as_str());
                let is_wanted = depth < MAX_DEPTH && percent(self.optional_percent, choose);
                if (is_required || is_wanted) && depth <= 2 * MAX_DEPTH {
                    object.insert(name.clone(), self.value(schema, choose, depth + 1));
                }
            }
        }
        for name in required.into_iter().take(MAX_VALUES) {
            object.entry(name).or_insert_with(|| json!("x"));
        }
        Value::Object(object)
    }

    fn array(&self, schemas: &[&'a Value], choose: &mut Choose<'_>, depth: usize) -> Value {
        let limit = |keyword: &str| {
            let limits = schemas.iter().filter_map(|schema| schema.get(keyword)?.as_u64());
            limits.map(|limit| usize::try_from(limit).unwrap_or(0)).next()
        };
        let (least, most) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(3));
        let count = least.max(choose(3).min(most)).min(MAX_ITEMS);
        let items = schemas.iter().find_map(|schema| schema.get("items"));
        let mut item = || match items {
            Some(schema @ Value::Object(_)) if depth < 2 * MAX_DEPTH => {
                self.value(schema, choose, depth + 1)
            }
            _ => json!("x"),
        };
        Value::Array((0..count).map(|_| item()).collect())
    }
}

fn number(schemas: &[&Value], is_integer: bool, choose: &mut Choose<'_>) -> Value {
    let limit = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword)?.as_f64());
    let least = limit("minimum").or(limit("exclusiveMinimum").map(|limit| limit + 1.0));
    let most = limit("maximum").or(limit("exclusiveMaximum").map(|limit| limit - 1.0));
    let least = least.unwrap_or(most.map_or(1.0, |most| (most - 10.0).min(1.0)));
    let most = most.unwrap_or(least + 10.0);
    let share = choose(5) as f64 / 4.0;
    let number = least + (most - least) * share;
    let number = if is_integer { number.round() } else { number };
    match is_integer && number.abs() < 9e15 {
        true => Value::Number((number as i64).into()),
        false => Number::from_f64(number).map_or(json!(1), Value::Number),
    }
}

fn text(schemas: &[&Value], choose: &mut Choose<'_>) -> String {
    const PATTERNED: [&str; 8] =
        ["abc", "a1", "1", "12:00", "2026-01-01", "#aabbcc", "a-b", "A1B2"];
    let get = |keyword: &str| schemas.iter().find_map(|schema| schema.get(keyword));
    let text = match get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/a",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("email") => "a@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ if get("pattern").is_some() => pick(&PATTERNED, choose).copied().unwrap_or("a"),
        _ => pick(&["a", "some words", "x/y.txt"], choose).copied().unwrap_or("a"),
    };
    let limit = |keyword: &str| {
        let limit = get(keyword).and_then(Value::as_u64).unwrap_or(0);
        usize::try_from(limit).unwrap_or(usize::MAX)
    };
    let mut text = text.to_owned();
    while text.chars().count() < limit("minLength").min(MAX_TEXT) {
        text.push('a');
    }
    match limit("maxLength") {
        0 => text,
        most => text.chars().take(most).collect(),
    }
}

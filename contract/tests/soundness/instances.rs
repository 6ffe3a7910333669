//! Instances for a pair of schemas: generated from the old schema so that many are valid, with
//! boundary values of both.

use crate::applicable::{Dialect, Document, Speaker, schemas_of_member};
use crate::schemas::{NAMES, STRINGS, any_value};
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeSet;
use testing::Random;

/// The most references and branches followed while making one value.
const MAX_STEPS: usize = 40;
const MAX_DEPTH: usize = 6;

/// The constants that occur in the two schemas, and values next to them.
#[derive(Debug, Default)]
pub struct Pool {
    numbers: Vec<Value>,
    strings: Vec<String>,
    names: Vec<String>,
    listed: Vec<Value>,
    counts: Vec<usize>,
}

impl Pool {
    pub fn of(schemas: [&Value; 2]) -> Pool {
        let mut pool = Pool { counts: vec![0, 1, 2], ..Pool::default() };
        pool.numbers.extend([json!(0), json!(1), json!(-1), json!(0.5), json!(12)]);
        pool.strings.extend(STRINGS.map(str::to_owned));
        pool.names.extend(NAMES.map(str::to_owned));
        pool.names.push("zz".to_owned());
        schemas.into_iter().for_each(|schema| pool.collect(schema, 0));
        pool.strings.sort();
        pool.strings.dedup();
        pool.names.sort();
        pool.names.dedup();
        pool.counts.sort_unstable();
        pool.counts.dedup();
        pool
    }

    fn collect(&mut self, schema: &Value, depth: usize) {
        if depth > 40 {
            return;
        }
        match schema {
            Value::Object(members) => {
                for (keyword, value) in members {
                    self.keyword(keyword, value);
                    self.collect(value, depth + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, depth + 1)),
            _ => {}
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value) {
        match (keyword, value) {
            ("enum", Value::Array(values)) => values.iter().for_each(|value| self.list(value)),
            ("const" | "default", value) => self.list(value),
            ("examples", Value::Array(values)) => values.iter().for_each(|value| self.list(value)),
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains",
                value,
            ) => {
                let count = value.as_f64().unwrap_or(0.0).clamp(0.0, 64.0) as usize;
                self.counts.extend([count.saturating_sub(1), count, count + 1]);
            }
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
                Value::Number(number),
            ) => {
                self.numbers.push(value.clone());
                if let Some(whole) = number.as_i64() {
                    let near =
                        [whole.saturating_sub(1), whole.saturating_add(1), whole.saturating_mul(2)];
                    self.numbers.extend(near.map(|near| json!(near)));
                }
                let number = number.as_f64().unwrap_or(0.0);
                let near = [number - 0.5, number + 0.5, number * 3.0];
                self.numbers.extend(near.iter().filter_map(|&near| whole_or_float(near)));
            }
            ("properties", Value::Object(members)) => {
                self.names.extend(members.keys().cloned());
            }
            ("required", Value::Array(names)) => {
                self.names.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }

    fn list(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.strings.push(text.clone()),
            Value::Number(_) => self.numbers.push(value.clone()),
            _ => {}
        }
        self.listed.push(value.clone());
    }
}

fn whole_or_float(number: f64) -> Option<Value> {
    let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
    if is_whole {
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Makes instances.
#[derive(Debug)]
pub struct Maker<'a> {
    pub document: Document<'a>,
    pub pool: &'a Pool,
}

impl<'a> Maker<'a> {
    /// One instance: generated from the schema, and sometimes modified at random places.
    pub fn instance(&self, random: &mut Random) -> Value {
        let mut value = self.value(random, &[self.document.root], 0);
        if random.percent(45) {
            for _ in 0..1 + random.below(2) {
                self.disturb(
                    random,
                    &mut value,
                    &self.document.spread([Speaker::Schema(self.document.root)]),
                );
            }
        }
        value
    }

    fn value(&self, random: &mut Random, schemas: &[&'a Value], depth: usize) -> Value {
        let mut parts = Vec::new();
        let mut steps = MAX_STEPS;
        for schema in schemas {
            self.choose(random, schema, &mut parts, &mut steps);
        }
        let listed: Vec<&Value> = parts
            .iter()
            .flat_map(|part| {
                let list = part.get("enum").and_then(Value::as_array);
                list.into_iter().flatten().chain(part.get("const"))
            })
            .collect();
        if !listed.is_empty() && random.percent(90) {
            return (*random.pick(&listed)).clone();
        }
        match self.kind(random, &parts) {
            "null" => Value::Null,
            "boolean" => json!(random.percent(50)),
            "integer" => self.integer(random),
            "number" => random.pick(&self.pool.numbers).clone(),
            "string" => self.string(random),
            "array" => self.array(random, &parts, depth),
            _ => self.object(random, &parts, depth),
        }
    }

    /// The schemas that one value must satisfy, choosing one of alternative branches at random.
    fn choose(
        &self,
        random: &mut Random,
        schema: &'a Value,
        parts: &mut Vec<&'a Value>,
        steps: &mut usize,
    ) {
        if *steps == 0 {
            return;
        }
        *steps -= 1;
        if let Some(target) = self.document.reference(schema) {
            self.choose(random, target, parts, steps);
            if self.document.dialect == Dialect::Draft7 {
                return;
            }
        }
        parts.push(schema);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.choose(random, part, parts, steps);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(keyword).and_then(Value::as_array)
                && !branches.is_empty()
            {
                let branch = &branches[random.below(branches.len())];
                self.choose(random, branch, parts, steps);
            }
        }
        let condition = if random.percent(50) { ["if", "then"] } else { ["else", "else"] };
        for keyword in condition {
            if let (Some(part), true) = (schema.get(keyword), schema.get("if").is_some()) {
                self.choose(random, part, parts, steps);
            }
        }
    }

    /// A type that all parts allow, if there is one.
    fn kind(&self, random: &mut Random, parts: &[&'a Value]) -> &'static str {
        const KINDS: [&str; 7] =
            ["object", "array", "string", "integer", "number", "boolean", "null"];
        let allows = |part: &Value, kind: &str| match part.get("type") {
            None => true,
            Some(Value::String(one)) => one == kind || one == "number" && kind == "integer",
            Some(Value::Array(types)) => types
                .iter()
                .filter_map(Value::as_str)
                .any(|one| one == kind || one == "number" && kind == "integer"),
            Some(_) => false,
        };
        let left: Vec<&'static str> =
            KINDS.into_iter().filter(|kind| parts.iter().all(|part| allows(part, kind))).collect();
        if left.is_empty() || random.percent(2) {
            return *random.pick(&KINDS);
        }
        let hints = [
            ("object", ["properties", "required", "additionalProperties", "minProperties"]),
            ("array", ["items", "prefixItems", "minItems", "contains"]),
            ("string", ["minLength", "maxLength", "pattern", "format"]),
            ("integer", ["minimum", "maximum", "multipleOf", "exclusiveMinimum"]),
        ];
        for (kind, keywords) in hints {
            let is_hinted = keywords
                .iter()
                .any(|keyword| parts.iter().any(|part| part.get(*keyword).is_some()));
            if is_hinted && left.contains(&kind) && random.percent(50) {
                return kind;
            }
        }
        *random.pick(&left)
    }

    fn integer(&self, random: &mut Random) -> Value {
        let picked = random.pick(&self.pool.numbers);
        match picked.as_f64() {
            Some(number) if picked.as_i64().is_none() => {
                whole_or_float(number.floor()).unwrap_or(json!(0))
            }
            _ => picked.clone(),
        }
    }

    fn string(&self, random: &mut Random) -> Value {
        match random.percent(75) {
            true => json!(random.pick(&self.pool.strings)),
            false => {
                let letter = *random.pick(&["a", "b", "z", "é"]);
                json!(letter.repeat(*random.pick(&self.pool.counts)))
            }
        }
    }

    fn array(&self, random: &mut Random, parts: &[&'a Value], depth: usize) -> Value {
        if depth >= MAX_DEPTH {
            return json!([]);
        }
        let least = parts.iter().filter_map(|part| part.get("minItems")?.as_u64()).max();
        let count = match least {
            Some(least) if random.percent(60) => least.min(6) as usize + random.below(2),
            _ => (*random.pick(&self.pool.counts)).min(6),
        };
        let mut items: Vec<Value> = Vec::with_capacity(count);
        for index in 0..count {
            let schemas: Vec<&Value> =
                parts.iter().flat_map(|part| self.document.schemas_of_item(part, index)).collect();
            let is_repeated = index > 0 && random.percent(15);
            let item = match is_repeated {
                true => items[0].clone(),
                false => self.value(random, &schemas, depth + 1),
            };
            items.push(item);
        }
        Value::Array(items)
    }

    fn object(&self, random: &mut Random, parts: &[&'a Value], depth: usize) -> Value {
        // A schema may require a member that requires the schema itself: no finite instance exists.
        if depth > 2 * MAX_DEPTH {
            return json!({});
        }
        let speakers = self.document.spread(parts.iter().map(|part| Speaker::Schema(part)));
        let required: BTreeSet<&str> = parts
            .iter()
            .filter_map(|part| part.get("required")?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut names: BTreeSet<&str> = self.document.declared_names(&speakers);
        let is_open = self.document.is_open(&speakers)
            || parts.iter().any(|part| part.get("patternProperties").is_some());
        if is_open {
            let further = random.below(3);
            names.extend((0..further).map(|_| random.pick(&self.pool.names).as_str()));
        }
        let share = *random.pick(&[10, 50, 50, 90]);
        let mut members = Map::new();
        for name in names {
            let is_given = if required.contains(name) {
                random.percent(96)
            } else {
                depth < MAX_DEPTH && random.percent(share)
            };
            if is_given {
                let schemas: Vec<&Value> =
                    parts.iter().flat_map(|part| schemas_of_member(part, name)).collect();
                let value = self.value(random, &schemas, depth + 1);
                members.insert(name.to_owned(), value);
            }
        }
        Value::Object(members)
    }

    /// Changes one random value, guided by the schemas that apply to it.
    fn disturb(&self, random: &mut Random, value: &mut Value, speakers: &[Speaker<'a>]) {
        let goes_deeper = random.percent(65);
        match value {
            Value::Object(members) if goes_deeper && !members.is_empty() => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = random.pick(&names);
                let below = self.document.of_member(speakers, name);
                if let Some(member) = members.get_mut(name) {
                    return self.disturb(random, member, &below);
                }
            }
            Value::Array(items) if goes_deeper && !items.is_empty() => {
                let index = random.below(items.len());
                let below = self.document.of_item(speakers, index);
                return self.disturb(random, &mut items[index], &below);
            }
            _ => {}
        }
        match value {
            Value::Object(members) if random.percent(80) => {
                let declared: Vec<&str> =
                    self.document.declared_names(speakers).into_iter().collect();
                let name = match declared.is_empty() || random.percent(20) {
                    true => random.pick(&self.pool.names).clone(),
                    false => (*random.pick(&declared)).to_owned(),
                };
                if members.remove(&name).is_none() || random.percent(50) {
                    members.insert(name, self.loose_value(random));
                }
            }
            Value::Array(items) if random.percent(80) => match random.below(3) {
                0 => drop(items.pop()),
                1 if !items.is_empty() => items.push(items[0].clone()),
                _ => items.push(self.loose_value(random)),
            },
            _ => *value = self.loose_value(random),
        }
    }

    fn loose_value(&self, random: &mut Random) -> Value {
        match random.below(6) {
            0 if !self.pool.listed.is_empty() => random.pick(&self.pool.listed).clone(),
            1 => random.pick(&self.pool.numbers).clone(),
            2 => self.string(random),
            3 => json!({}),
            _ => any_value(random, 1),
        }
    }
}

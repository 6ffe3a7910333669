//! Random JSON Schemas over a small vocabulary (few names, few values, close bounds), so that their
//! parts interact.

use serde_json::{Map, Value, json};
use std::ops::{Deref, DerefMut};
use testing::Random;

pub const NAMES: [&str; 5] = ["a", "b", "c", "ab", "x-y"];
pub const STRINGS: [&str; 8] = ["", "a", "b", "c", "ab", "abc", "aab", "é"];
const PATTERNS: [&str; 5] = ["^a", "b$", "^[a-c]*$", "^.$", "a"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "string", "integer", "number"];
const DEFINITIONS: [&str; 3] = ["A", "B", "C"];
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";
const DRAFT_2019: &str = "https://json-schema.org/draft/2019-09/schema";
const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/schema";

const LEAF_KEYWORDS: [&str; 15] = [
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "type",
    "description",
    "title",
    "format",
    "deprecated",
];

const OBJECT_KEYWORDS: [&str; 11] = [
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "propertyNames",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
];

const ARRAY_KEYWORDS: [&str; 10] = [
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];

const COMBINATORS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Writes schemas with the keywords chosen for one pair. Each pair uses only some of the keywords:
/// then they interact, and a frequent mistake does not hide a rare one.
#[derive(Debug)]
pub struct Author<'r> {
    random: &'r mut Random,
    names: Vec<&'static str>,
    types: Vec<&'static str>,
    leaf_keywords: Vec<&'static str>,
    object_keywords: Vec<&'static str>,
    array_keywords: Vec<&'static str>,
    combinators: Vec<&'static str>,
    has_references: bool,
    depth: usize,
}

impl Deref for Author<'_> {
    type Target = Random;

    fn deref(&self) -> &Random {
        self.random
    }
}

impl DerefMut for Author<'_> {
    fn deref_mut(&mut self) -> &mut Random {
        self.random
    }
}

impl<'r> Author<'r> {
    pub fn new(random: &'r mut Random) -> Author<'r> {
        let share = *random.pick(&[20, 40, 100]);
        Author {
            names: at_least_one(random, &NAMES, 50),
            types: at_least_one(random, &TYPES, 70),
            leaf_keywords: at_least_one(random, &LEAF_KEYWORDS, share),
            object_keywords: at_least_one(random, &OBJECT_KEYWORDS, share),
            array_keywords: at_least_one(random, &ARRAY_KEYWORDS, share),
            combinators: at_least_one(random, &COMBINATORS, share),
            has_references: random.percent(60),
            depth: 1 + random.below(3),
            random,
        }
    }

    pub fn name(&mut self) -> &'static str {
        *self.random.pick(&self.names)
    }

    pub fn some_names(&mut self, share: u64) -> Vec<&'static str> {
        self.random.some_of(&self.names, share)
    }

    fn one_type(&mut self) -> &'static str {
        *self.random.pick(&self.types)
    }

    fn leaf_keyword(&mut self) -> &'static str {
        *self.random.pick(&self.leaf_keywords)
    }

    fn object_keyword(&mut self) -> &'static str {
        *self.random.pick(&self.object_keywords)
    }

    fn array_keyword(&mut self) -> &'static str {
        *self.random.pick(&self.array_keywords)
    }

    fn combinator(&mut self) -> &'static str {
        *self.random.pick(&self.combinators)
    }

    /// Any of the pair's keywords.
    pub fn keyword(&mut self) -> &'static str {
        match self.below(8) {
            0..=2 => self.leaf_keyword(),
            3..=4 => self.object_keyword(),
            5 => self.array_keyword(),
            _ => self.combinator(),
        }
    }
}

fn at_least_one(random: &mut Random, words: &[&'static str], share: u64) -> Vec<&'static str> {
    let mut some = random.some_of(words, share);
    if some.is_empty() {
        some.push(*random.pick(words));
    }
    some
}

/// A whole document: a schema, usually of an object, with definitions if it refers to any.
pub fn document(random: &mut Author<'_>) -> Value {
    let mut root = match random.percent(70) {
        true => object_schema(random, random.depth),
        false => schema(random, random.depth),
    };
    let text = root.to_string();
    let container = if text.contains("#/$defs/") { "$defs" } else { "definitions" };
    if let Value::Object(members) = &mut root {
        if text.contains("#/$defs/") || text.contains("#/definitions/") || random.percent(5) {
            let mut definitions = Map::new();
            for name in DEFINITIONS {
                definitions.insert(name.to_owned(), schema(random, 2));
            }
            members.insert(container.to_owned(), Value::Object(definitions));
        }
        match random.below(6) {
            0 => drop(members.insert("$schema".to_owned(), json!(DRAFT_7))),
            1 => drop(members.insert("$schema".to_owned(), json!(DRAFT_2020))),
            2 => drop(members.insert("$schema".to_owned(), json!(DRAFT_2019))),
            _ => {}
        }
    }
    // In draft 2019-09 a document may also refer to itself with `$recursiveRef`.
    if root.get("$schema") == Some(&json!(DRAFT_2019)) {
        let text = root.to_string().replace(r##""$ref":"#""##, r##""$recursiveRef":"#""##);
        root = serde_json::from_str(&text).expect("the text was JSON before");
    }
    // Use a single container, or references into the other one would have no target.
    if container == "$defs" {
        let text = root.to_string().replace("#/definitions/", "#/$defs/");
        return serde_json::from_str(&text).expect("the text was JSON before");
    }
    root
}

/// A schema nested at most `depth` levels deep.
pub fn schema(random: &mut Author<'_>, depth: usize) -> Value {
    if random.percent(4) {
        return json!(random.percent(80));
    }
    if depth == 0 {
        return leaf(random);
    }
    match random.below(12) {
        0..=3 => object_schema(random, depth),
        4 => array_schema(random, depth),
        5..=6 => combined(random, depth),
        7 if random.has_references => reference(random, depth),
        _ => leaf(random),
    }
}

fn leaf(random: &mut Author<'_>) -> Value {
    let mut members = Map::new();
    if random.percent(75) {
        members.insert("type".to_owned(), type_value(random));
    }
    for _ in 0..random.below(3) {
        let keyword = random.leaf_keyword();
        members.insert(keyword.to_owned(), keyword_value(random, keyword, 0));
    }
    Value::Object(members)
}

pub fn type_value(random: &mut Author<'_>) -> Value {
    if random.percent(75) {
        return json!(random.one_type());
    }
    json!(at_least_one(random, &TYPES, 40))
}

pub fn object_schema(random: &mut Author<'_>, depth: usize) -> Value {
    let mut members = Map::new();
    if random.percent(80) {
        members.insert("type".to_owned(), json!("object"));
    }
    members.insert("properties".to_owned(), keyword_value(random, "properties", depth));
    if random.percent(50) {
        members.insert("required".to_owned(), keyword_value(random, "required", depth));
    }
    if random.percent(35) {
        let keyword = "additionalProperties";
        members.insert(keyword.to_owned(), keyword_value(random, keyword, depth));
    }
    if random.percent(25) {
        let keyword = random.object_keyword();
        members.insert(keyword.to_owned(), keyword_value(random, keyword, depth));
    }
    if random.percent(15) {
        let keyword = random.combinator();
        members.insert(keyword.to_owned(), keyword_value(random, keyword, depth));
    }
    Value::Object(members)
}

fn array_schema(random: &mut Author<'_>, depth: usize) -> Value {
    let mut members = Map::new();
    if random.percent(85) {
        members.insert("type".to_owned(), json!("array"));
    }
    for _ in 0..1 + random.below(3) {
        let keyword = random.array_keyword();
        members.insert(keyword.to_owned(), keyword_value(random, keyword, depth));
    }
    Value::Object(members)
}

fn combined(random: &mut Author<'_>, depth: usize) -> Value {
    let mut members = match random.percent(35) {
        true => leaf(random),
        false => json!({}),
    };
    for _ in 0..1 + usize::from(random.percent(20)) {
        let keyword = random.combinator();
        members[keyword] = keyword_value(random, keyword, depth);
    }
    members
}

fn reference(random: &mut Author<'_>, depth: usize) -> Value {
    let mut members = match random.percent(25) {
        true => schema(random, depth - 1),
        false => json!({}),
    };
    if members.is_boolean() {
        members = json!({});
    }
    members["$ref"] = reference_value(random);
    members
}

fn reference_value(random: &mut Author<'_>) -> Value {
    let container = if random.percent(70) { "$defs" } else { "definitions" };
    match random.below(12) {
        0 => json!("#"),
        _ => json!(format!("#/{container}/{}", random.pick(&DEFINITIONS))),
    }
}

/// A value for a keyword, whose schemas are nested less deeply.
pub fn keyword_value(random: &mut Author<'_>, keyword: &str, depth: usize) -> Value {
    let below = depth.saturating_sub(1);
    match keyword {
        "type" => type_value(random),
        "enum" => Value::Array((0..1 + random.below(4)).map(|_| any_value(random, 1)).collect()),
        "const" | "default" => any_value(random, 1),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => number(random),
        "multipleOf" => random.pick(&[json!(1), json!(2), json!(3), json!(4), json!(0.5)]).clone(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => json!(random.below(4)),
        "deprecated" => json!(random.percent(70)),
        "format" => json!(random.pick(&["date", "ipv4", "vendor"])),
        "pattern" => json!(random.pick(&PATTERNS)),
        "description" | "title" => json!(random.pick(&["one", "two", "a"])),
        "required" => json!(random.some_names(35)),
        "uniqueItems" => json!(random.percent(70)),
        "$ref" => reference_value(random),
        "properties" => {
            let names = random.some_names(45);
            named_schemas(random, names, below)
        }
        "dependentSchemas" => {
            let names = random.some_names(20);
            named_schemas(random, names, below)
        }
        "patternProperties" => {
            let patterns = random.some_of(&PATTERNS, 30);
            named_schemas(random, patterns, below)
        }
        "dependentRequired" => {
            let names = random.some_names(30);
            let entries = names.iter().map(|name| {
                let dependents = json!(random.some_names(35));
                ((*name).to_owned(), dependents)
            });
            Value::Object(entries.collect())
        }
        "dependencies" => {
            let names = random.some_names(30);
            let entries = names.iter().map(|name| {
                let dependents = match random.percent(60) {
                    true => json!(random.some_names(35)),
                    false => schema(random, below),
                };
                ((*name).to_owned(), dependents)
            });
            Value::Object(entries.collect())
        }
        "propertyNames" => random
            .pick(&[
                json!({"maxLength": 1}),
                json!({"pattern": "^[a-c]*$"}),
                json!({"enum": ["a", "b"]}),
                json!({}),
                json!(true),
                json!({"type": "string"}),
            ])
            .clone(),
        "additionalProperties" | "unevaluatedProperties" => match random.below(4) {
            0 => json!(false),
            1 => json!(true),
            _ => schema(random, below),
        },
        "allOf" | "anyOf" | "oneOf" => {
            Value::Array((0..1 + random.below(3)).map(|_| branch(random, below)).collect())
        }
        "prefixItems" => {
            Value::Array((0..1 + random.below(2)).map(|_| schema(random, below)).collect())
        }
        "items" if random.percent(15) => keyword_value(random, "prefixItems", depth),
        _ => schema(random, below),
    }
}

/// Branches are often only about presence, as in real schemas.
fn branch(random: &mut Author<'_>, depth: usize) -> Value {
    match random.below(6) {
        0 => json!({"required": random.some_names(40)}),
        1 => json!({"type": "null"}),
        2 => json!({"type": random.one_type()}),
        _ => schema(random, depth),
    }
}

fn named_schemas(random: &mut Author<'_>, names: Vec<&str>, depth: usize) -> Value {
    let entries = names.iter().map(|name| ((*name).to_owned(), schema(random, depth)));
    Value::Object(entries.collect())
}

fn number(random: &mut Random) -> Value {
    random.pick(&[json!(-1), json!(0), json!(1), json!(2), json!(2.5), json!(3), json!(4)]).clone()
}

/// A small value of any type.
pub fn any_value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.percent(50)),
        2 => number(random),
        3..=5 => json!(random.pick(&STRINGS)),
        6 => Value::Array((0..random.below(3)).map(|_| any_value(random, depth - 1)).collect()),
        _ => {
            let names = random.some_of(&NAMES, 30);
            let entries =
                names.iter().map(|name| ((*name).to_owned(), any_value(random, depth - 1)));
            Value::Object(entries.collect())
        }
    }
}

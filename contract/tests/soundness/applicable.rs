//! Finds the schemas that apply to a value inside an instance, and whether an instance has only the
//! members they declare.
//!
//! Instances are closed where an object does not have `additionalProperties`, and open where it
//! does. This implementation follows the text of JSON Schema and shares no code with the comparison
//! under test.

use crate::edits::subschemas;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The rules by which a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Draft7,
    Draft2019,
    Draft2020,
}

/// Something that applies to one value.
#[derive(Debug, Clone, Copy)]
pub enum Speaker<'a> {
    Schema(&'a Value),
    /// A value listed in an `enum` or `const`: its contents are declared by being listed.
    Listed(&'a Value),
}

/// A schema document, read in one dialect.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub root: &'a Value,
    pub dialect: Dialect,
}

impl<'a> Document<'a> {
    /// Whether every object of the instance has only members that the schema declares there, in any
    /// branch.
    pub fn is_closed_instance(&self, instance: &Value) -> bool {
        self.keeps_to(&self.spread([Speaker::Schema(self.root)]), instance)
    }

    fn keeps_to(&self, speakers: &[Speaker<'a>], instance: &Value) -> bool {
        match instance {
            Value::Object(members) => {
                let declared = self.declared_names(speakers);
                let is_open = self.is_open(speakers);
                members.iter().all(|(name, value)| {
                    let is_said = is_open
                        || declared.contains(name.as_str())
                        || speakers.iter().any(|speaker| matches_pattern(speaker, name));
                    is_said && self.keeps_to(&self.of_member(speakers, name), value)
                })
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .all(|(index, value)| self.keeps_to(&self.of_item(speakers, index), value)),
            _ => true,
        }
    }

    /// Everything that applies to the same value: references, branches of every kind, conditions,
    /// listed values.
    pub fn spread(&self, speakers: impl IntoIterator<Item = Speaker<'a>>) -> Vec<Speaker<'a>> {
        let mut waiting: Vec<Speaker<'a>> = speakers.into_iter().collect();
        let mut seen: BTreeSet<*const Value> = BTreeSet::new();
        let mut found = Vec::new();
        while let Some(speaker) = waiting.pop() {
            let Speaker::Schema(schema) = speaker else {
                found.push(speaker);
                continue;
            };
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            if let Some(target) = self.reference(schema) {
                waiting.push(Speaker::Schema(target));
                if self.dialect == Dialect::Draft7 {
                    continue;
                }
            }
            found.push(speaker);
            waiting.extend(branches(schema, self.dialect));
        }
        found
    }

    /// Whether a schema refers back to itself without descending into the instance. No validator
    /// can handle such a schema.
    pub fn is_endless(&self) -> bool {
        let places = subschemas(self.root);
        let schemas = places.iter().filter_map(|at| self.root.pointer(at));
        let mut done = BTreeSet::new();
        schemas.into_iter().any(|schema| self.leads_back(schema, &mut Vec::new(), &mut done))
    }

    fn leads_back(
        &self,
        schema: &'a Value,
        open: &mut Vec<*const Value>,
        done: &mut BTreeSet<*const Value>,
    ) -> bool {
        let this = std::ptr::from_ref(schema);
        if open.contains(&this) {
            return true;
        }
        if !done.insert(this) {
            return false;
        }
        open.push(this);
        let below =
            branches(schema, self.dialect).into_iter().filter_map(|speaker| match speaker {
                Speaker::Schema(schema) => Some(schema),
                Speaker::Listed(_) => None,
            });
        let found =
            below.chain(self.reference(schema)).any(|schema| self.leads_back(schema, open, done));
        open.pop();
        found
    }

    /// The target of a schema's `$ref` or `$recursiveRef`. No generated schema has both.
    pub fn reference(&self, schema: &'a Value) -> Option<&'a Value> {
        if self.dialect == Dialect::Draft2019 && schema.get("$recursiveRef").is_some() {
            return Some(self.root);
        }
        let reference = schema.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }

    pub fn of_member(&self, speakers: &[Speaker<'a>], name: &str) -> Vec<Speaker<'a>> {
        let mut found = Vec::new();
        for &speaker in speakers {
            match speaker {
                Speaker::Listed(value) => found.extend(value.get(name).map(Speaker::Listed)),
                Speaker::Schema(schema) => {
                    found.extend(schemas_of_member(schema, name).map(Speaker::Schema));
                }
            }
        }
        self.spread(found)
    }

    pub fn of_item(&self, speakers: &[Speaker<'a>], index: usize) -> Vec<Speaker<'a>> {
        let mut found = Vec::new();
        for &speaker in speakers {
            match speaker {
                Speaker::Listed(Value::Array(items)) => {
                    found.extend(items.get(index).map(Speaker::Listed));
                }
                Speaker::Listed(_) => {}
                Speaker::Schema(schema) => {
                    found.extend(self.schemas_of_item(schema, index).map(Speaker::Schema));
                }
            }
        }
        self.spread(found)
    }

    pub fn schemas_of_item(
        &self,
        schema: &'a Value,
        index: usize,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let (first, rest) = match (self.dialect, schema.get("items")) {
            (Dialect::Draft2020, rest) => (schema.get("prefixItems"), rest),
            (Dialect::Draft7 | Dialect::Draft2019, Some(list @ Value::Array(_))) => {
                (Some(list), schema.get("additionalItems"))
            }
            (Dialect::Draft7 | Dialect::Draft2019, rest) => (None, rest),
        };
        let own = first.and_then(|first| first.get(index)).or(rest);
        own.into_iter().chain(schema.get("contains")).chain(schema.get("unevaluatedItems"))
    }

    /// All member names that are mentioned.
    pub fn declared_names(&self, speakers: &[Speaker<'a>]) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for &speaker in speakers {
            match speaker {
                Speaker::Listed(Value::Object(members)) => {
                    names.extend(members.keys().map(String::as_str));
                }
                Speaker::Listed(_) => {}
                Speaker::Schema(schema) => self.names_of_schema(schema, &mut names),
            }
        }
        names
    }

    fn names_of_schema(&self, schema: &'a Value, names: &mut BTreeSet<&'a str>) {
        let keywords = match self.dialect {
            Dialect::Draft7 => ["properties", "dependencies"].as_slice(),
            Dialect::Draft2019 | Dialect::Draft2020 => {
                &["properties", "dependencies", "dependentRequired", "dependentSchemas"]
            }
        };
        for keyword in keywords {
            let members = schema.get(*keyword).and_then(Value::as_object);
            for (name, value) in members.into_iter().flatten() {
                names.insert(name.as_str());
                names.extend(value.as_array().into_iter().flatten().filter_map(Value::as_str));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        names.extend(required.into_iter().flatten().filter_map(Value::as_str));
    }

    /// Whether members beyond the declared ones are allowed.
    pub fn is_open(&self, speakers: &[Speaker<'_>]) -> bool {
        let keywords = match self.dialect {
            Dialect::Draft7 => ["additionalProperties"].as_slice(),
            Dialect::Draft2019 | Dialect::Draft2020 => {
                &["additionalProperties", "unevaluatedProperties"]
            }
        };
        speakers.iter().any(|speaker| match speaker {
            Speaker::Schema(schema) => keywords.iter().any(|keyword| {
                schema.get(*keyword).is_some_and(|further| further != &Value::Bool(false))
            }),
            Speaker::Listed(_) => false,
        })
    }
}

/// The branches of a schema that may apply to the same value.
fn branches<'a>(schema: &'a Value, dialect: Dialect) -> Vec<Speaker<'a>> {
    let mut found = Vec::new();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(keyword).and_then(Value::as_array);
        found.extend(list.into_iter().flatten().map(Speaker::Schema));
    }
    found.extend(schema.get("not").map(Speaker::Schema));
    if let Some(condition) = schema.get("if") {
        let outcomes = schema.get("then").into_iter().chain(schema.get("else"));
        found.extend(outcomes.chain([condition]).map(Speaker::Schema));
    }
    // Validators support `dependencies` in every dialect.
    let keywords = match dialect {
        Dialect::Draft7 => ["dependencies"].as_slice(),
        Dialect::Draft2019 | Dialect::Draft2020 => &["dependencies", "dependentSchemas"],
    };
    for keyword in keywords {
        let named = schema.get(*keyword).and_then(Value::as_object);
        let schemas = named.into_iter().flat_map(|named| named.values());
        found.extend(schemas.filter(|schema| !schema.is_array()).map(Speaker::Schema));
    }
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    found.extend(listed.chain(schema.get("const")).map(Speaker::Listed));
    found
}

/// The schemas within one schema that apply to a member.
pub fn schemas_of_member<'a>(
    schema: &'a Value,
    name: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let by_pattern: Vec<&Value> = patterns
        .into_iter()
        .flatten()
        .filter(|(pattern, _)| is_match(pattern, name))
        .map(|(_, schema)| schema)
        .collect();
    let is_further = own.is_none() && by_pattern.is_empty();
    let further = schema.get("additionalProperties").filter(|_| is_further);
    own.into_iter().chain(by_pattern).chain(further).chain(schema.get("unevaluatedProperties"))
}

fn matches_pattern(speaker: &Speaker<'_>, name: &str) -> bool {
    let Speaker::Schema(schema) = speaker else { return false };
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|patterns| patterns.keys().any(|pattern| is_match(pattern, name)))
}

fn is_match(pattern: &str, name: &str) -> bool {
    thread_local! {
        static COMPILED: RefCell<BTreeMap<String, Option<jsonschema::Validator>>> =
            const { RefCell::new(BTreeMap::new()) };
    }
    COMPILED.with_borrow_mut(|compiled| {
        let validator = compiled.entry(pattern.to_owned()).or_insert_with(|| {
            jsonschema::validator_for(&serde_json::json!({"pattern": pattern})).ok()
        });
        validator.as_ref().is_some_and(|validator| validator.is_valid(&name.into()))
    })
}

//! A small validator for builds that the full one is too large for: WebAssembly, where it would be
//! most of the file.
//!
//! INVARIANT: a schema with a keyword that this validator cannot decide on is not compiled, and
//! undecidable calls are held.

use super::Undecided;
use super::schema::Dialect;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// The deepest recursion into schemas and arguments. Their bounds were checked before; this
/// protects the stack.
const MAX_DEPTH: usize = 256;

/// Keywords that do not affect validity.
const SILENT: &[&str] = &[
    "$schema",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
/// Keywords of JSON Schema that this validator does not support. Any other unknown keyword means
/// nothing to any validator.
const UNDECIDED: &[&str] = &[
    "$id",
    "id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "pattern",
    "patternProperties",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "multipleOf",
];

/// A schema that contains only supported keywords.
#[derive(Debug)]
pub(super) struct Validator {
    root: Value,
    dialect: Dialect,
}

pub(super) fn build(
    dialect: Dialect,
    schema: &Value,
    _pattern_bytes: usize,
) -> Result<Validator, Undecided> {
    let validator = Validator { root: schema.clone(), dialect };
    validator.check(schema, true, 0)?;
    Ok(validator)
}

/// This validator supports no patterns, with or without lookaround.
pub(super) fn build_backtracking(
    _dialect: Dialect,
    _schema: &Value,
    _pattern_bytes: usize,
) -> Result<Validator, Undecided> {
    Err(Undecided::Schema)
}

impl Validator {
    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.accepts(&self.root, value, 0)
    }

    /// Checks that a schema contains only supported keywords.
    fn check(&self, schema: &Value, is_root: bool, depth: usize) -> Result<(), Undecided> {
        let members = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(members) if depth < MAX_DEPTH => members,
            _ => return Err(Undecided::Schema),
        };
        let each = |schemas: &mut dyn Iterator<Item = &Value>| {
            for schema in schemas {
                self.check(schema, false, depth + 1)?;
            }
            Ok(())
        };
        for (keyword, said) in members {
            let is_well_formed = match (keyword.as_str(), said) {
                ("$ref", Value::String(reference)) => self.resolve(reference).is_some(),
                ("$defs" | "definitions" | "properties", Value::Object(schemas)) => {
                    each(&mut schemas.values())?;
                    true
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) if !schemas.is_empty() => {
                    each(&mut schemas.iter())?;
                    true
                }
                ("items" | "not" | "additionalProperties", schema) => {
                    each(&mut std::iter::once(schema))?;
                    true
                }
                ("type", said) => names(said).is_some(),
                ("required", Value::Array(names)) => names.iter().all(Value::is_string),
                ("enum", Value::Array(_)) | ("const", _) | ("uniqueItems", Value::Bool(_)) => true,
                ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", said) => {
                    said.is_number()
                }
                (
                    "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                    | "maxProperties",
                    said,
                ) => said.is_u64(),
                // The root may have an id: either nothing refers to it by that id, or the reference
                // is not resolved.
                ("$id", Value::String(_)) if is_root => true,
                (keyword, _) => SILENT.contains(&keyword) || !is_known(keyword),
            };
            if !is_well_formed {
                return Err(Undecided::Schema);
            }
        }
        Ok(())
    }

    /// The target of a reference within the document.
    fn resolve(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let mut steps = pointer.split('/').skip(1);
        // Only to places whose subschemas were checked. Percent-encoded letters can be read in more
        // than one way.
        while let Some(step) = steps.next() {
            if !matches!(step, "$defs" | "definitions" | "properties") || steps.next().is_none() {
                return None;
            }
        }
        let is_plain = pointer.is_empty() || pointer.starts_with('/');
        (is_plain && !pointer.contains('%')).then(|| self.root.pointer(pointer)).flatten()
    }

    fn accepts(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let members = match schema {
            Value::Bool(is_accepting) => return *is_accepting,
            Value::Object(members) if depth < MAX_DEPTH => members,
            _ => return false,
        };
        // Up to draft-07, keywords next to a reference are ignored.
        if let (Dialect::Draft7, Some(Value::String(reference))) =
            (self.dialect, members.get("$ref"))
        {
            return self.resolve(reference).is_some_and(|to| self.accepts(to, value, depth + 1));
        }
        members.iter().all(|(keyword, said)| self.accepts_by(keyword, said, members, value, depth))
    }

    fn accepts_by(
        &self,
        keyword: &str,
        said: &Value,
        schema: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> bool {
        let accepts = |schema: &Value, value: &Value| self.accepts(schema, value, depth + 1);
        let count = said.as_u64();
        let within = |found: usize| count.is_some_and(|most| found as u64 <= most);
        let at_least = |found: usize| count.is_some_and(|least| found as u64 >= least);
        match (keyword, said, value) {
            ("$ref", Value::String(reference), _) => {
                self.resolve(reference).is_some_and(|to| accepts(to, value))
            }
            ("type", said, _) => {
                names(said).is_some_and(|names| names.iter().any(|name| is_of(name, value)))
            }
            ("enum", Value::Array(allowed), _) => allowed.iter().any(|one| is_equal(one, value)),
            ("const", said, _) => is_equal(said, value),
            ("allOf", Value::Array(schemas), _) => schemas.iter().all(|one| accepts(one, value)),
            ("anyOf", Value::Array(schemas), _) => schemas.iter().any(|one| accepts(one, value)),
            ("oneOf", Value::Array(schemas), _) => {
                schemas.iter().filter(|one| accepts(one, value)).count() == 1
            }
            ("not", schema, _) => !accepts(schema, value),
            ("properties", Value::Object(schemas), Value::Object(members)) => {
                let is_accepted = |(name, value): (&String, &Value)| {
                    schemas.get(name).is_none_or(|schema| accepts(schema, value))
                };
                members.iter().all(is_accepted)
            }
            ("additionalProperties", other, Value::Object(members)) => {
                let named = schema.get("properties").and_then(Value::as_object);
                let is_named = |name: &str| named.is_some_and(|named| named.contains_key(name));
                let mut others = members.iter().filter(|(name, _)| !is_named(name));
                others.all(|(_, value)| accepts(other, value))
            }
            ("required", Value::Array(names), Value::Object(members)) => names
                .iter()
                .all(|name| name.as_str().is_some_and(|name| members.contains_key(name))),
            ("items", schema, Value::Array(items)) => {
                items.iter().all(|item| accepts(schema, item))
            }
            ("uniqueItems", Value::Bool(true), Value::Array(items)) => {
                let is_first = |(at, item): (usize, &Value)| {
                    !items.iter().take(at).any(|before| is_equal(before, item))
                };
                items.iter().enumerate().all(is_first)
            }
            ("minItems", _, Value::Array(items)) => at_least(items.len()),
            ("maxItems", _, Value::Array(items)) => within(items.len()),
            ("minProperties", _, Value::Object(members)) => at_least(members.len()),
            ("maxProperties", _, Value::Object(members)) => within(members.len()),
            ("minLength", _, Value::String(text)) => at_least(text.chars().count()),
            ("maxLength", _, Value::String(text)) => within(text.chars().count()),
            ("minimum", Value::Number(bound), Value::Number(number)) => {
                matches!(compare(number, bound), Some(Ordering::Greater | Ordering::Equal))
            }
            ("maximum", Value::Number(bound), Value::Number(number)) => {
                matches!(compare(number, bound), Some(Ordering::Less | Ordering::Equal))
            }
            ("exclusiveMinimum", Value::Number(bound), Value::Number(number)) => {
                compare(number, bound) == Some(Ordering::Greater)
            }
            ("exclusiveMaximum", Value::Number(bound), Value::Number(number)) => {
                compare(number, bound) == Some(Ordering::Less)
            }
            // The keyword applies to another kind of value, or to none.
            _ => true,
        }
    }
}

fn is_known(keyword: &str) -> bool {
    UNDECIDED.contains(&keyword)
        || matches!(
            keyword,
            "$ref"
                | "properties"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "items"
                | "not"
                | "type"
                | "enum"
                | "additionalProperties"
                | "required"
                | "const"
                | "uniqueItems"
                | "minimum"
                | "maximum"
                | "exclusiveMinimum"
                | "exclusiveMaximum"
                | "minLength"
                | "maxLength"
                | "minItems"
                | "maxItems"
                | "minProperties"
                | "maxProperties"
        )
}

/// The types that `type` names, if they are valid.
fn names(said: &Value) -> Option<Vec<&str>> {
    let is_type = |name: &&str| {
        ["null", "boolean", "object", "array", "number", "integer", "string"].contains(name)
    };
    let named: Vec<&str> = match said {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    named.iter().all(is_type).then_some(named)
}

fn is_of(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_)) => true,
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// Numbers are equal by value, however they are written.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_equal = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|found| is_equal(value, found))
            };
            one.len() == other.len() && one.iter().all(has_equal)
        }
        _ => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i128();
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        // A double and an integer are compared as doubles: arguments that would lose digits this
        // way were refused before.
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

#[cfg(test)]
mod tests;

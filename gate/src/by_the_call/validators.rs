//! Validators of one definition. Nothing is fetched, `format` is never asserted, and patterns run
//! on the linear engine, or with bounded backtracking where only arguments are checked.

use super::Undecided;
#[cfg(feature = "jsonschema")]
use super::full_validator::{Validator, build, build_backtracking};
use super::places::reach;
#[cfg(not(feature = "jsonschema"))]
use super::plain_validator::{Validator, build, build_backtracking};
use super::schema::{Dialect, Schema, is_reference, parts, properties};
use contract::json::Node;
use contract::sorted::SortedSet;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The maximum size of a compiled pattern, and of the cache used to run it.
const PATTERN_BYTES: usize = 64 * 1024;
/// The maximum size of all compiled patterns of a schema: if there are many, each one must be
/// smaller.
const ALL_PATTERNS_BYTES: usize = 512 * 1024;
/// The size that a cached pattern is counted as: groups and caches add to its own bytes.
const KEPT_PATTERN_BYTES: usize = 256 * 1024;

/// Validates the arguments of one definition, with one validator for each dialect that it may be
/// read in.
#[derive(Debug)]
pub(super) struct Validators {
    dialects: Vec<Validator>,
    patterns: usize,
    /// The parameters with a pattern that the linear engine cannot run. The validators skip that
    /// pattern, so they can only decide on calls without those parameters.
    pub(super) undecidable: SortedSet<String>,
}

/// In which dialects a schema without `$schema` must be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readings {
    /// In every dialect, because a server may use any of them.
    Every,
    /// In at least one: a draft-07 tuple is not a valid 2020-12 schema.
    Any,
}

impl Validators {
    /// Compiles a schema whose bounds have been checked.
    pub(super) fn compile(
        schema: &Schema<'_>,
        readings: Readings,
    ) -> Result<Validators, Undecided> {
        let mut value: Value =
            serde_json::from_str(schema.root.raw()).map_err(|_| Undecided::Schema)?;
        schema.dialects()?;
        let patterns = schema.patterns();
        let limit = PATTERN_BYTES.min(ALL_PATTERNS_BYTES / patterns.max(1));
        let (dialects, undecidable) = match all(schema, &value, limit, readings) {
            Ok(dialects) => (dialects, SortedSet::new()),
            Err(_) => {
                let refused = refused_patterns(schema, limit)?;
                let undecidable = parameters_with(schema, &refused)?;
                drop_patterns(schema.root, &mut value, &refused);
                (all(schema, &value, limit, readings)?, undecidable)
            }
        };
        Ok(Validators { dialects, patterns, undecidable })
    }

    pub(super) fn has_undecidable(&self) -> bool {
        !self.undecidable.is_empty()
    }

    pub(super) fn accept(&self, arguments: &Value) -> bool {
        self.dialects.iter().all(|validator| validator.is_valid(arguments))
    }

    /// About how many bytes the compiled patterns take.
    pub(super) fn pattern_bytes(&self) -> usize {
        self.dialects.len() * self.patterns * KEPT_PATTERN_BYTES
    }

    /// The arguments whose removal makes the rest valid. At most `most` are tried.
    ///
    /// The validator is never asked for its errors: it computes all errors of alternatives before
    /// it returns the first one, which are millions for a call and a schema of a few kilobytes.
    pub(super) fn refused(&self, arguments: &Value, most: usize) -> Vec<String> {
        let Value::Object(members) = arguments else { return Vec::new() };
        let mut names: Vec<&String> = members.keys().collect();
        names.sort();
        let mut rest = arguments.clone();
        let mut refused = Vec::new();
        for name in names.into_iter().take(most) {
            let taken = rest.as_object_mut().and_then(|rest| rest.remove(name));
            if self.accept(&rest) {
                refused.push(name.clone());
            }
            if let (Some(rest), Some(taken)) = (rest.as_object_mut(), taken) {
                rest.insert(name.clone(), taken);
            }
        }
        refused
    }
}

/// A validator for each dialect of a schema.
fn all(
    schema: &Schema<'_>,
    value: &Value,
    limit: usize,
    readings: Readings,
) -> Result<Vec<Validator>, Undecided> {
    let dialects = schema.dialects()?.iter();
    match readings {
        Readings::Every => dialects.map(|dialect| build(*dialect, value, limit)).collect(),
        Readings::Any => {
            let build = |dialect: &Dialect| {
                build(*dialect, value, limit)
                    .or_else(|_| build_backtracking(*dialect, value, limit))
                    .ok()
            };
            let built: Vec<Validator> = dialects.filter_map(build).collect();
            if built.is_empty() { Err(Undecided::Schema) } else { Ok(built) }
        }
    }
}

/// Whether a single keyword accepts a value. A keyword that cannot be compiled alone refuses
/// nothing.
pub(super) fn accepts_keyword(keyword: &str, said: Node<'_>, value: &Value) -> bool {
    let Ok(said) = serde_json::from_str::<Value>(said.raw()) else { return true };
    let alone = Value::Object([(keyword.to_owned(), said)].into_iter().collect());
    let alone = build(Dialect::Draft2020, &alone, PATTERN_BYTES)
        .or_else(|_| build_backtracking(Dialect::Draft2020, &alone, PATTERN_BYTES));
    alone.map_or(true, |alone| alone.is_valid(value))
}

/// The subschemas with a `pattern` that cannot be compiled.
fn refused_patterns(schema: &Schema<'_>, limit: usize) -> Result<HashSet<u32>, Undecided> {
    let mut known: HashMap<Cow<'_, str>, bool> = HashMap::new();
    let mut refused = HashSet::new();
    for node in schema.all() {
        let Some(pattern) = node.get("pattern").and_then(Node::as_str) else { continue };
        let is_refused = *known.entry(pattern).or_insert_with_key(|pattern| {
            let alone = serde_json::json!({ "pattern": pattern });
            build(Dialect::Draft2020, &alone, limit).is_err()
        });
        if is_refused {
            refused.insert(node.index());
        }
    }
    Ok(refused)
}

/// The parameters that lead to one of some subschemas.
///
/// Only the properties of the root are examined individually. If anything else leads to such a
/// subschema, for example a condition, it may affect calls without the parameter, so no call can be
/// decided on.
fn parameters_with<'a>(
    schema: &Schema<'a>,
    wanted: &HashSet<u32>,
) -> Result<SortedSet<String>, Undecided> {
    let mut elsewhere = Vec::new();
    for (name, value) in schema.root.members() {
        match name.as_str().as_deref() {
            Some("properties" | "$defs" | "definitions") | None => {}
            Some(keyword) if is_reference(keyword) => elsewhere.push(schema.resolve(value)?),
            Some(keyword) => elsewhere.extend(parts(keyword, value)),
        }
    }
    let has_wanted = |nodes: Vec<Node<'a>>| -> Result<bool, Undecided> {
        let found = reach(schema, nodes, &mut HashSet::new())?;
        Ok(found.iter().any(|node| wanted.contains(&node.index())))
    };
    if wanted.is_empty() || wanted.contains(&schema.root.index()) || has_wanted(elsewhere)? {
        return Err(Undecided::Schema);
    }
    let mut parameters = SortedSet::new();
    for (name, property) in properties(schema.root) {
        if has_wanted(vec![property])? {
            parameters.insert(name.into_owned());
        }
    }
    Ok(parameters)
}

/// Removes the patterns from some subschemas.
fn drop_patterns(node: Node<'_>, value: &mut Value, refused: &HashSet<u32>) {
    if refused.contains(&node.index())
        && let Some(members) = value.as_object_mut()
    {
        members.remove("pattern");
    }
    for (name, member) in node.members() {
        let name = name.as_str().unwrap_or_default();
        if let Some(value) = value.get_mut(name.as_ref()) {
            drop_patterns(member, value, refused);
        }
    }
    if let Some(items) = value.as_array_mut() {
        node.items().zip(items).for_each(|(item, value)| drop_patterns(item, value, refused));
    }
}

//! One input schema: its subschemas, the targets of its references, and whether it is within the
//! bounds.
//!
//! References are resolved inside the document and never fetched. A schema whose references cannot
//! be resolved by JSON Pointer alone (a nested `$id`, an anchor, a dynamic reference) is undecided.
//! A recursive reference of draft 2019-09 without an anchor refers to the root.

use super::Undecided;
use super::numbers::is_exact;
use super::work::Work;
use contract::canonical::Position;
use contract::json::{Kind, Node};
use contract::percent::percent_decoded;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A larger schema is not compiled.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// The most subschemas of one schema, each of which is compiled.
pub const MAX_SUBSCHEMAS: usize = 2_000;
/// The most regular expressions of one schema, and their total size in bytes.
pub const MAX_PATTERNS: usize = 32;
pub const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// The rules by which a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    const BOTH: &[Dialect] = &[Dialect::Draft2020, Dialect::Draft7];
}

/// An input schema that has been examined.
#[derive(Debug)]
pub(super) struct Schema<'a> {
    pub(super) root: Node<'a>,
    /// Every subschema, by its index in the document.
    schemas: HashSet<u32>,
    patterns: usize,
    pattern_bytes: usize,
    /// The work still allowed for the change.
    pub(super) work: Work,
    /// The members of large objects that references lead through. Searching for each one would take
    /// quadratic time.
    members: RefCell<HashMap<u32, HashMap<Cow<'a, str>, Node<'a>>>>,
}

/// Objects with at least this many slots are indexed by member name.
const LARGE: u32 = 64;

impl<'a> Schema<'a> {
    pub(super) fn read(root: Node<'a>, work: Work) -> Result<Schema<'a>, Undecided> {
        if root.raw().len() > MAX_SCHEMA_BYTES {
            return Err(Undecided::TooLarge);
        }
        let mut schema = Schema {
            root,
            schemas: HashSet::new(),
            patterns: 0,
            pattern_bytes: 0,
            work,
            members: RefCell::default(),
        };
        schema.look_through(root)?;
        if has_reserved_name(root) {
            return Err(Undecided::Unreadable);
        }
        match has_inexact_number(root) {
            true => Err(Undecided::Number),
            false => Ok(schema),
        }
    }

    /// The dialects that the schema must be read in: both if it names none.
    pub(super) fn dialects(&self) -> Result<&'static [Dialect], Undecided> {
        let Some(declared) = self.root.get("$schema") else { return Ok(Dialect::BOTH) };
        let uri = declared.as_str().unwrap_or_default();
        match uri.trim_end_matches('#').split_once("://") {
            Some(("http" | "https", "json-schema.org/draft-07/schema")) => Ok(&[Dialect::Draft7]),
            Some(("http" | "https", "json-schema.org/draft/2019-09/schema")) => {
                Ok(&[Dialect::Draft2019])
            }
            Some(("http" | "https", "json-schema.org/draft/2020-12/schema")) => {
                Ok(&[Dialect::Draft2020])
            }
            _ => Err(Undecided::Dialect),
        }
    }

    fn is_2019(&self) -> bool {
        self.dialects() == Ok(&[Dialect::Draft2019])
    }

    fn look_through(&mut self, node: Node<'a>) -> Result<(), Undecided> {
        self.schemas.insert(node.index());
        if self.schemas.len() > MAX_SUBSCHEMAS {
            return Err(Undecided::TooLarge);
        }
        let is_root = node.index() == self.root.index();
        for (name, value) in node.members() {
            let keyword = name.as_str().unwrap_or_default();
            match keyword.as_ref() {
                // Without an anchor, which is refused below, it refers to the root.
                "$recursiveRef" if self.is_2019() && value.is_text("#") => {}
                "$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor"
                | "$recursiveAnchor" | "$vocabulary" => return Err(Undecided::Reference),
                "$id" | "id" if !is_root && value.kind() == Kind::String => {
                    return Err(Undecided::Reference);
                }
                "$schema" if !is_root => return Err(Undecided::Dialect),
                "pattern" => self.count_pattern(value)?,
                "patternProperties" => {
                    value.members().try_for_each(|(name, _)| self.count_pattern(name))?;
                }
                _ => {}
            }
            parts(&keyword, value).into_iter().try_for_each(|part| self.look_through(part))?;
        }
        Ok(())
    }

    /// The number of regular expressions in the schema.
    pub(super) fn patterns(&self) -> usize {
        self.patterns
    }

    fn count_pattern(&mut self, pattern: Node<'_>) -> Result<(), Undecided> {
        self.patterns += 1;
        self.pattern_bytes += pattern.raw().len();
        match self.patterns > MAX_PATTERNS || self.pattern_bytes > MAX_PATTERN_BYTES {
            true => Err(Undecided::Patterns),
            false => Ok(()),
        }
    }

    /// The target of a reference.
    pub(super) fn resolve(&self, reference: Node<'a>) -> Result<Node<'a>, Undecided> {
        let text = reference.as_str().ok_or(Undecided::Reference)?;
        let fragment = text.strip_prefix('#').ok_or(Undecided::Reference)?;
        let decoded = percent_decoded(fragment).ok_or(Undecided::Reference)?;
        self.work.spend(1 + decoded.len() / 16)?;
        let mut node = self.root;
        if !decoded.is_empty() && !decoded.starts_with('/') {
            return Err(Undecided::Reference);
        }
        for step in decoded.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match node.is_array() {
                true => {
                    self.work.spend(node.size() as usize)?;
                    step.parse().ok().and_then(|index| node.items().nth(index))
                }
                false => self.member(node, &step),
            };
            node = next.ok_or(Undecided::Reference)?;
        }
        match self.schemas.contains(&node.index()) {
            true => Ok(node),
            false => Err(Undecided::Reference),
        }
    }

    fn member(&self, node: Node<'a>, name: &str) -> Option<Node<'a>> {
        if node.size() < LARGE {
            return node.get(name);
        }
        let mut known = self.members.borrow_mut();
        let members = known.entry(node.index()).or_insert_with(|| {
            let members = node.members();
            members.map(|(name, value)| (name.as_str().unwrap_or_default(), value)).collect()
        });
        members.get(name).copied()
    }

    /// Every subschema, starting with the root.
    pub(super) fn all(&self) -> Vec<Node<'a>> {
        let mut found = Vec::new();
        let mut waiting = vec![self.root];
        while let Some(node) = waiting.pop() {
            found.push(node);
            for (name, value) in node.members() {
                waiting.extend(parts(&name.as_str().unwrap_or_default(), value));
            }
        }
        found
    }
}

/// Whether a keyword refers to another schema of the document.
pub(super) fn is_reference(keyword: &str) -> bool {
    matches!(keyword, "$ref" | "$recursiveRef")
}

/// The subschemas directly in the value of a keyword.
pub(super) fn parts<'a>(keyword: &str, value: Node<'a>) -> Vec<Node<'a>> {
    match Position::of_keyword(keyword) {
        Position::SchemaMap => value.members().map(|(_, schema)| schema).collect(),
        // In `dependencies`, lists of names are not schemas.
        Position::SetMap => {
            value.members().map(|(_, schema)| schema).filter(|schema| is_schema(*schema)).collect()
        }
        Position::SchemaList if value.is_array() => value.items().collect(),
        Position::Schema | Position::SchemaList => vec![value],
        Position::Plain | Position::Set => Vec::new(),
    }
}

pub(super) fn is_schema(node: Node<'_>) -> bool {
    matches!(node.kind(), Kind::Object | Kind::True | Kind::False)
}

/// The properties that one schema declares by name.
pub(super) fn properties<'a>(schema: Node<'a>) -> impl Iterator<Item = (Cow<'a, str>, Node<'a>)> {
    let members = schema.get("properties").into_iter().flat_map(Node::members);
    members.map(|(name, schema)| (name.as_str().unwrap_or_default(), schema))
}

fn has_inexact_number(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Number => !node.as_number().is_some_and(is_exact),
        Kind::Array => node.items().any(has_inexact_number),
        Kind::Object => node.members().any(|(_, value)| has_inexact_number(value)),
        Kind::Null | Kind::False | Kind::True | Kind::String => false,
    }
}

/// The prefix of names that the validator's JSON reader treats as internal markers, reading the
/// object as another value.
const RESERVED_NAMES: &str = "$serde_json::private::";

fn has_reserved_name(node: Node<'_>) -> bool {
    node.items().any(has_reserved_name)
        || node.members().any(|(name, value)| {
            let is_reserved = name.as_str().is_some_and(|name| name.starts_with(RESERVED_NAMES));
            is_reserved || has_reserved_name(value)
        })
}

/// The value that every reader parses from a text. Returns `None` if readers may differ: a number
/// would be rounded, or a member name is reserved.
///
/// It is built from the parsed document, because parsing the text again would take as long as the
/// rest of the check.
pub(super) fn exact_value(node: Node<'_>) -> Option<Value> {
    Some(match node.kind() {
        Kind::Null => Value::Null,
        Kind::False => Value::Bool(false),
        Kind::True => Value::Bool(true),
        Kind::String => Value::String(node.as_str()?.into_owned()),
        Kind::Number => {
            let spelling = node.as_number().filter(|spelling| is_exact(spelling))?;
            serde_json::from_str(spelling).ok()?
        }
        Kind::Array => {
            let items: Option<Vec<Value>> = node.items().map(exact_value).collect();
            Value::Array(items?)
        }
        Kind::Object => {
            let mut members = Map::with_capacity(node.members().count());
            for (name, value) in node.members() {
                let name = name.as_str().filter(|name| !name.starts_with(RESERVED_NAMES))?;
                members.insert(name.into_owned(), exact_value(value)?);
            }
            Value::Object(members)
        }
    })
}

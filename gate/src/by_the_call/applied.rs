//! The schemas that apply to one place of a call on one side, and what they say about it together.

use super::Undecided;
use super::schema::{Schema, is_reference, is_schema, parts};
use contract::canonical::{Position, canonical};
use contract::json::{Kind, Node};
use contract::schema::spells_name;
use contract::sorted::SortedSet;
use std::borrow::Cow;

/// Keywords whose subschemas apply to a place only conditionally, or without naming it.
const CONDITIONAL: [&str; 14] = [
    "additionalItems",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The schemas that apply to one place.
#[derive(Debug, Default)]
pub(super) struct Applied<'a> {
    /// The schemas that a value must all satisfy, unless it is null.
    pub(super) schemas: Vec<Node<'a>>,
    /// Alternatives and conditions: whether they apply depends on the value.
    pub(super) loose: Vec<(Cow<'a, str>, Node<'a>)>,
    /// The schemas of the alternatives. They declare members too.
    pub(super) branches: Vec<Node<'a>>,
}

impl<'a> Applied<'a> {
    /// Collects what applies at a place. The bounds of `schema` have been checked.
    pub(super) fn of(schema: &Schema<'a>, place: &[Node<'a>]) -> Result<Applied<'a>, Undecided> {
        let mut applied = Applied::default();
        place.iter().try_for_each(|node| applied.add(schema, *node))?;
        Ok(applied)
    }

    fn add(&mut self, schema: &Schema<'a>, node: Node<'a>) -> Result<(), Undecided> {
        schema.work.spend_on(node)?;
        self.schemas.push(node);
        for (keyword, value) in sorted_members(node) {
            match keyword.as_ref() {
                word if is_reference(word) => self.add(schema, schema.resolve(value)?)?,
                "allOf" => value.items().try_for_each(|part| self.add(schema, part))?,
                "anyOf" | "oneOf" => {
                    let branches: Vec<_> = value.items().filter(|part| !is_null(*part)).collect();
                    match branches.as_slice() {
                        [] => {}
                        [only] => self.add(schema, *only)?,
                        several => {
                            self.loose.push((keyword, value));
                            several.iter().try_for_each(|part| self.add_branch(schema, *part))?;
                        }
                    }
                }
                "items" if value.is_array() => self.loose.push((keyword, value)),
                word if CONDITIONAL.contains(&word) => {
                    let branches = declaring_parts(word, value);
                    self.loose.push((keyword, value));
                    branches.into_iter().try_for_each(|part| self.add_branch(schema, part))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_branch(&mut self, schema: &Schema<'a>, node: Node<'a>) -> Result<(), Undecided> {
        schema.work.spend_on(node)?;
        self.branches.push(node);
        for (keyword, value) in sorted_members(node) {
            match keyword.as_ref() {
                word if is_reference(word) => self.add_branch(schema, schema.resolve(value)?)?,
                "allOf" | "anyOf" | "oneOf" => {
                    value.items().try_for_each(|part| self.add_branch(schema, part))?;
                }
                word => {
                    let mut branches = declaring_parts(word, value).into_iter();
                    branches.try_for_each(|part| self.add_branch(schema, part))?;
                }
            }
        }
        Ok(())
    }

    /// All schemas that may declare members or elements of the place.
    pub(super) fn declaring(&self) -> impl Iterator<Item = Node<'a>> {
        self.schemas.iter().chain(&self.branches).copied()
    }

    /// All texts in order. A title that only spells the property's name is skipped.
    pub(super) fn texts(&self, title: Title<'_>) -> Vec<(Cow<'a, str>, Vec<u8>)> {
        self.said(|keyword, value| match keyword {
            "title" => !title.says_nothing(value),
            "description" | "examples" | "$comment" => true,
            _ => false,
        })
    }

    /// All texts that a reader may take for sentences, including those in examples.
    pub(super) fn sentences(&self) -> SortedSet<Cow<'a, str>> {
        let mut found = SortedSet::new();
        for (keyword, value) in self.declaring().flat_map(Node::members) {
            match keyword.as_str().as_deref() {
                Some("description" | "title" | "$comment") => found.extend(value.as_str()),
                Some("examples") => strings(value, &mut found),
                _ => {}
            }
        }
        found
    }

    /// All defaults. Null is the same as no default, unless it replaces another default.
    pub(super) fn defaults(&self) -> Vec<(Cow<'a, str>, Vec<u8>)> {
        let is_default = |keyword: &str, _: Node<'a>| keyword == "default";
        let has_value = self
            .schemas
            .iter()
            .any(|schema| schema.get("default").is_some_and(|value| !value.is_null()));
        if has_value { self.said(is_default) } else { Vec::new() }
    }

    pub(super) fn is_deprecated(&self) -> bool {
        let is_true = |schema: &Node<'a>| {
            schema.get("deprecated").is_some_and(|value| value.kind() == Kind::True)
        };
        self.schemas.iter().any(is_true)
    }

    pub(super) fn formats(&self) -> Vec<(Cow<'a, str>, Vec<u8>)> {
        self.said(|keyword, _| matches!(keyword, "format" | "contentEncoding" | "contentMediaType"))
    }

    fn said(&self, is_wanted: impl Fn(&str, Node<'a>) -> bool) -> Vec<(Cow<'a, str>, Vec<u8>)> {
        let members = self.schemas.iter().flat_map(|schema| sorted_members(*schema));
        let wanted = members.filter(|(keyword, value)| is_wanted(keyword, *value));
        wanted.map(|(keyword, value)| (keyword, canonical(value, Position::Plain))).collect()
    }
}

/// The schemas of a condition that declare members of the same value as the schema around the
/// condition.
fn declaring_parts<'a>(keyword: &str, value: Node<'a>) -> Vec<Node<'a>> {
    match keyword {
        "then" | "else" | "dependentSchemas" | "dependencies" => {
            parts(keyword, value).into_iter().filter(|part| is_schema(*part)).collect()
        }
        _ => Vec::new(),
    }
}

/// Collects every string in a value.
fn strings<'a>(value: Node<'a>, found: &mut SortedSet<Cow<'a, str>>) {
    found.extend(value.as_str());
    value.items().for_each(|item| strings(item, found));
    value.members().for_each(|(_, member)| strings(member, found));
}

/// The members of a schema sorted by name, because their order has no meaning.
fn sorted_members(schema: Node<'_>) -> Vec<(Cow<'_, str>, Node<'_>)> {
    let members = schema.members();
    let mut members: Vec<_> =
        members.map(|(name, value)| (name.as_str().unwrap_or_default(), value)).collect();
    members.sort_by(|left, right| left.0.cmp(&right.0));
    members
}

/// What a title must be to add nothing new.
#[derive(Debug, Clone, Copy)]
pub(super) enum Title<'n> {
    /// The title of the whole schema: frameworks use a class name, which is an identifier.
    OfRoot,
    OfProperty(&'n str),
    Other,
}

impl Title<'_> {
    fn says_nothing(self, title: Node<'_>) -> bool {
        match self {
            Title::OfRoot => title.as_str().is_some_and(|title| is_identifier(&title)),
            Title::OfProperty(name) => spells_name(title, name),
            Title::Other => false,
        }
    }
}

fn is_identifier(text: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 64 && text.as_bytes().first().is_some_and(is_first) && text.bytes().all(is_part)
}

/// Whether a branch only allows null.
fn is_null(branch: Node<'_>) -> bool {
    let mut members = branch.members();
    let only = members.next().filter(|_| members.next().is_none());
    only.is_some_and(|(keyword, value)| keyword.is_text("type") && value.is_text("null"))
}

/// The types of values, one bit each.
pub(super) const ALL_TYPES: u8 = 0b111_1111;
pub(super) const OBJECT: u8 = 4;

fn named_type(name: &str) -> u8 {
    match name {
        "null" => 1,
        "boolean" => 2,
        "object" => OBJECT,
        "array" => 8,
        "string" => 16,
        "integer" => 32,
        // An integer or a fraction.
        "number" => 96,
        _ => 0,
    }
}

fn type_of(value: Node<'_>) -> u8 {
    match value.kind() {
        Kind::Null => 1,
        Kind::False | Kind::True => 2,
        Kind::Object => OBJECT,
        Kind::Array => 8,
        Kind::String => 16,
        Kind::Number => 96,
    }
}

/// The types of values that a place accepts, according to `type`, `enum` and `const`.
pub(super) fn types<'a>(schema: &Schema<'a>, place: &[Node<'a>]) -> Result<u8, Undecided> {
    place.iter().try_fold(ALL_TYPES, |types, node| Ok(types & types_of_schema(schema, *node)?))
}

fn types_of_schema<'a>(schema: &Schema<'a>, node: Node<'a>) -> Result<u8, Undecided> {
    if node.kind() == Kind::False {
        return Ok(0);
    }
    let mut all = ALL_TYPES;
    for (name, value) in node.members() {
        let said = match name.as_str().as_deref() {
            Some("type") if value.is_array() => {
                value.items().filter_map(Node::as_str).fold(0, |sum, name| sum | named_type(&name))
            }
            Some("type") => value.as_str().map_or(0, |name| named_type(&name)),
            Some("enum") => value.items().fold(0, |sum, value| sum | type_of(value)),
            Some("const") => type_of(value),
            Some(word) if is_reference(word) => types_of_schema(schema, schema.resolve(value)?)?,
            Some("allOf") => types(schema, &value.items().collect::<Vec<_>>())?,
            Some("anyOf" | "oneOf") => value
                .items()
                .try_fold(0, |sum, branch| Ok(sum | types_of_schema(schema, branch)?))?,
            _ => ALL_TYPES,
        };
        all &= said;
    }
    Ok(all)
}

//! The canonical form: RFC 8785 with exact numbers and with JSON Schema's sets sorted.

use crate::decimal::Decimal;
use crate::json::{Kind, Members, Node, escape_into, sorted_names};

/// What a value is to JSON Schema: that decides which arrays are sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Not a schema: the order of every array counts.
    Plain,
    /// A schema.
    Schema,
    /// An object whose values are schemas (`properties`, `$defs`, …).
    SchemaMap,
    /// An array of schemas, or one schema (`allOf`, `items`, …).
    SchemaList,
    /// An array that is a set (`required`, `enum`, `type`).
    Set,
    /// An object whose values are sets (`dependentRequired`), or, in `dependencies`, sets or schemas.
    SetMap,
}

impl Position {
    /// What a schema's member is, by its keyword.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub fn of_keyword(keyword: &str) -> Position {
        match keyword {
            "required" | "enum" | "type" => Position::Set,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                Position::SchemaMap
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" => Position::SchemaList,
            "additionalProperties"
            | "additionalItems"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "contentSchema" => Position::Schema,
            "dependentRequired" | "dependencies" => Position::SetMap,
            _ => Position::Plain,
        }
    }

    pub(crate) fn of_member(self, name: &str) -> Position {
        match self {
            Position::Schema | Position::SchemaList => Position::of_keyword(name),
            Position::SchemaMap => Position::Schema,
            Position::SetMap => Position::Set,
            Position::Plain | Position::Set => Position::Plain,
        }
    }

    pub(crate) fn of_item(self) -> Position {
        match self {
            Position::SchemaList => Position::Schema,
            _ => Position::Plain,
        }
    }
}

/// Where canonical bytes go: into memory, or straight into a hash.
pub trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The canonical bytes of a value.
pub fn canonical(node: Node<'_>, position: Position) -> Vec<u8> {
    let mut out = Vec::with_capacity(node.raw().len());
    write(node, position, &mut out);
    out
}

/// The canonical form as text. It is always UTF-8: it is made of the document's own strings and of ASCII.
pub fn canonical_text(node: Node<'_>, position: Position) -> String {
    String::from_utf8(canonical(node, position)).unwrap_or_default()
}

/// A value for a person to see the beginning of: its canonical form, or its first characters where it is large.
pub(crate) fn bounded_text(node: Node<'_>, position: Position) -> String {
    const WHOLE_BYTES: usize = 4_096;
    if node.raw().len() <= WHOLE_BYTES {
        return canonical_text(node, position);
    }
    node.raw().chars().take(WHOLE_BYTES).collect()
}

/// Whether two values have the same canonical form. It is not written for that, and the first difference ends it.
pub(crate) fn is_same(left: Node<'_>, right: Node<'_>, position: Position) -> bool {
    match (left.kind(), right.kind()) {
        (Kind::Null, Kind::Null) | (Kind::False, Kind::False) | (Kind::True, Kind::True) => true,
        (Kind::Number, Kind::Number) => {
            left.raw() == right.raw() || Decimal::parse(left.raw()) == Decimal::parse(right.raw())
        }
        (Kind::String, Kind::String) => is_same_text(left, right),
        (Kind::Array, Kind::Array) if position == Position::Set => {
            left.raw() == right.raw() || canonical(left, position) == canonical(right, position)
        }
        (Kind::Array, Kind::Array) => {
            let (mut left, mut right) = (left.items(), right.items());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(left), Some(right)) if is_same(left, right, position.of_item()) => {}
                    _ => return false,
                }
            }
        }
        (Kind::Object, Kind::Object) => {
            let position = if position == Position::Set { Position::Schema } else { position };
            is_same_object(left, right, position)
        }
        _ => false,
    }
}

fn is_same_text(left: Node<'_>, right: Node<'_>) -> bool {
    match left.has_escapes() || right.has_escapes() {
        true => left.as_str() == right.as_str(),
        false => left.raw() == right.raw(),
    }
}

fn is_same_object(left: Node<'_>, right: Node<'_>, position: Position) -> bool {
    let names = |node: Node<'_>| node.members().count();
    if names(left) != names(right) {
        return false;
    }
    let is_same_name =
        |((left, _), (right, _)): (Member<'_>, Member<'_>)| is_same_text(left, right);
    let is_same_value = |((name, left), (_, right)): (Member<'_>, Member<'_>)| {
        is_same(left, right, position.of_member(&name.as_str().unwrap_or_default()))
    };
    let mut as_written = left.members().zip(right.members());
    if as_written.clone().all(is_same_name) {
        return as_written.all(is_same_value);
    }
    let in_order = || sorted_members(left.members()).zip(sorted_members(right.members()));
    in_order().all(is_same_name) && in_order().all(is_same_value)
}

/// A name and its value.
type Member<'a> = (Node<'a>, Node<'a>);

/// Appends a value's canonical form.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub fn write(node: Node<'_>, position: Position, out: &mut impl Sink) {
    match node.kind() {
        Kind::Null => out.put(b"null"),
        Kind::False => out.put(b"false"),
        Kind::True => out.put(b"true"),
        Kind::Number => write_number(node.raw(), out),
        Kind::String => write_string(node, out),
        Kind::Array if position == Position::Set => write_set(node, out),
        Kind::Array => {
            out.put(b"[");
            for (index, item) in node.items().enumerate() {
                if index > 0 {
                    out.put(b",");
                }
                write(item, position.of_item(), out);
            }
            out.put(b"]");
        }
        // In `dependencies` a value may be a schema instead of a set.
        Kind::Object if position == Position::Set => write_object(node, Position::Schema, out),
        Kind::Object => write_object(node, position, out),
    }
}

#[cfg_attr(holdpoint_small, optimize(speed))]
fn write_object(node: Node<'_>, position: Position, out: &mut impl Sink) {
    write_members(node, &|name| Some(position.of_member(name)), out);
}

/// Appends an object's members in canonical order, each in the position that its name gives it; those without one are left
/// out.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(crate) fn write_members(
    object: Node<'_>,
    position: &dyn Fn(&str) -> Option<Position>,
    out: &mut impl Sink,
) {
    let mut is_first = true;
    for (name, value) in sorted_members(object.members()) {
        let Some(position) = position(&name.as_str().unwrap_or_default()) else { continue };
        out.put(if is_first { b"{" } else { b"," });
        is_first = false;
        write_string(name, out);
        out.put(b":");
        write(value, position, out);
    }
    out.put(if is_first { b"{}" } else { b"}" });
}

/// Members in canonical order. They are kept by their index: keeping them as they are would cost hostile input far more
/// memory than its bytes.
#[cfg_attr(holdpoint_small, optimize(speed))]
fn sorted_members<'a>(members: Members<'a>) -> impl Iterator<Item = Member<'a>> {
    let first = members.clone().next().map(|(name, _)| name);
    let text = |index: u32| first.and_then(|first| first.at(index).as_str()).unwrap_or_default();
    let names = sorted_names(members.map(|(name, _)| name.index()), text);
    let member =
        move |index: u32| first.map(|first| (first.at(index), first.at(index.saturating_add(1))));
    names.into_iter().filter_map(member)
}

#[cfg_attr(holdpoint_small, optimize(speed))]
fn write_string(node: Node<'_>, out: &mut impl Sink) {
    if node.has_escapes() {
        let mut escaped = Vec::with_capacity(node.raw().len());
        escape_into(&node.as_str().unwrap_or_default(), &mut escaped);
        out.put(&escaped);
    } else {
        // Without escapes the bytes are canonical as they stand: the reader lets no control character through.
        out.put(node.raw().as_bytes());
    }
}

fn write_number(spelling: &str, out: &mut impl Sink) {
    let is_plain_integer =
        spelling.len() <= 15 && spelling.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain_integer {
        out.put(spelling.as_bytes());
    } else {
        let mut canonical = Vec::with_capacity(spelling.len() + 4);
        Decimal::parse(spelling).write_canonical(&mut canonical);
        out.put(&canonical);
    }
}

/// Writes the members into one buffer and sorts their spans, again so that many small ones stay cheap.
#[cfg_attr(holdpoint_small, optimize(speed))]
fn write_set(node: Node<'_>, out: &mut impl Sink) {
    let mut buffer = Vec::with_capacity(node.raw().len());
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for item in node.items() {
        let start = buffer.len() as u32;
        write(item, Position::Plain, &mut buffer);
        spans.push((start, buffer.len() as u32));
    }
    let bytes = |&(start, end): &(u32, u32)| buffer.get(start as usize..end as usize);
    spans.sort_unstable_by(|left, right| bytes(left).cmp(&bytes(right)));
    spans.dedup_by(|left, right| bytes(left) == bytes(right));
    out.put(b"[");
    for (count, span) in spans.iter().enumerate() {
        if count > 0 {
            out.put(b",");
        }
        out.put(bytes(span).unwrap_or(&[]));
    }
    out.put(b"]");
}

#[cfg(test)]
mod tests;

//! The canonical form: RFC 8785 with exact numbers and with JSON Schema's sets sorted.

use crate::decimal::Decimal;
use crate::json::{Kind, Node, escape_into, utf16_order};

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
    pub(crate) fn of_keyword(keyword: &str) -> Position {
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

/// Appends a value's canonical form.
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

fn write_object(node: Node<'_>, position: Position, out: &mut impl Sink) {
    write_members(node.members(), |name| position.of_member(name), out);
}

/// Appends an object made of some members, in canonical order, each in the position that its name gives it.
///
/// Names are sorted by their index, four bytes a member: sorting them as text would cost hostile input far more memory
/// than its bytes.
pub(crate) fn write_members<'a>(
    members: impl Iterator<Item = (Node<'a>, Node<'a>)>,
    position: impl Fn(&str) -> Position,
    out: &mut impl Sink,
) {
    let mut members = members.peekable();
    let Some((first, _)) = members.peek().copied() else {
        out.put(b"{}");
        return;
    };
    let mut names: Vec<u32> = members.map(|(name, _)| name.index()).collect();
    let text = |index: u32| first.at(index).as_str().unwrap_or_default();
    if !names.is_sorted_by(|&left, &right| utf16_order(&text(left), &text(right)).is_le()) {
        names.sort_unstable_by(|&left, &right| utf16_order(&text(left), &text(right)));
    }
    for (count, &index) in names.iter().enumerate() {
        out.put(if count == 0 { b"{" } else { b"," });
        let name = first.at(index);
        write_string(name, out);
        out.put(b":");
        write(first.at(index.saturating_add(1)), position(&text(index)), out);
    }
    out.put(b"}");
}

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

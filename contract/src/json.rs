//! Untrusted JSON, read strictly: what two parsers could read differently is refused, not guessed at.
//!
//! A [`Document`] is a flat list of 12-byte slots over the text it borrows, so that hostile input cannot make the
//! tree much larger than its bytes. Values are looked at through [`Node`], a cheap copyable handle.

use parse::Names;
use std::borrow::Cow;
use std::sync::Arc;

mod order;
mod parse;
mod strings;

pub(crate) use order::sorted_names;

pub use parse::{MAX_DEPTH, MAX_EXPONENT, MAX_NUMBER_LENGTH, MAX_TEXT_BYTES, ReadError};
pub(crate) use strings::append;
pub use strings::{escape_into, specials, utf16_order};

/// A parsed JSON text. It borrows the text; every value remembers the exact bytes it came as.
#[derive(Debug)]
pub struct Document<'t> {
    text: &'t str,
    slots: Vec<Slot>,
}

/// One value (or member name) of a document: its span in the text, its kind and where its subtree ends.
#[derive(Debug, Clone, Copy)]
struct Slot {
    start: u32,
    end: u32,
    /// Kind in the top three bits, "has escapes" in the next, the index after the subtree in the rest.
    link: u32,
}

const KIND_SHIFT: u32 = 29;
const ESCAPED_BIT: u32 = 1 << 28;
const INDEX_MASK: u32 = ESCAPED_BIT - 1;

impl Slot {
    #[inline(always)]
    fn kind(self) -> Kind {
        match self.link >> KIND_SHIFT {
            0 => Kind::Null,
            1 => Kind::False,
            2 => Kind::True,
            3 => Kind::Number,
            4 => Kind::String,
            5 => Kind::Array,
            _ => Kind::Object,
        }
    }

    #[inline(always)]
    fn is_escaped(self) -> bool {
        self.link & ESCAPED_BIT != 0
    }

    #[inline(always)]
    fn next(self) -> u32 {
        self.link & INDEX_MASK
    }
}

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// So many bytes of a text cost as much as one value.
const BYTES_PER_WORK: u64 = 32;

impl<'t> Document<'t> {
    /// Reads a whole text as one JSON value.
    pub fn parse(text: &'t str) -> Result<Self, ReadError> {
        parse::parse(text, Names::Checked).map(|slots| Document { text, slots })
    }

    /// Reads a text again that was read before: that no name appears twice is known.
    pub(crate) fn parse_again(text: &'t str) -> Result<Self, ReadError> {
        parse::parse(text, Names::Known).map(|slots| Document { text, slots })
    }

    /// Reads bytes, which must be UTF-8.
    pub fn parse_bytes(bytes: &'t [u8]) -> Result<Self, ReadError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| ReadError::NotUtf8 { offset: error.valid_up_to() })?;
        Self::parse(text)
    }

    /// The outermost value.
    pub fn root(&self) -> Node<'_> {
        Node { text: self.text, slots: &self.slots, index: 0 }
    }
}

/// A document with its text, which others keep as well: what is read of it in several places is parsed once.
#[derive(Debug)]
pub struct SharedDocument {
    text: Arc<str>,
    slots: Vec<Slot>,
}

impl SharedDocument {
    /// Reads a whole text as one JSON value.
    pub fn parse(text: Arc<str>) -> Result<Self, ReadError> {
        let slots = parse::parse(&text, Names::Checked)?;
        Ok(SharedDocument { text, slots })
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The outermost value.
    pub fn root(&self) -> Node<'_> {
        Node { text: &self.text, slots: &self.slots, index: 0 }
    }
}

/// A value inside a document.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    text: &'a str,
    slots: &'a [Slot],
    index: u32,
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.raw())
    }
}

impl<'a> Node<'a> {
    #[inline(always)]
    fn slot(self) -> Slot {
        // The index comes from the parser, so it is always within the slots; a null is what is answered otherwise.
        self.slots.get(self.index as usize).copied().unwrap_or(Slot { start: 0, end: 0, link: 0 })
    }

    /// Another value of the same document, by its index.
    #[inline(always)]
    pub(crate) fn at(self, index: u32) -> Self {
        Node { index, ..self }
    }

    #[inline(always)]
    pub fn kind(self) -> Kind {
        self.slot().kind()
    }

    /// A number that names this value within its document.
    pub fn index(self) -> u32 {
        self.index
    }

    /// How many values and member names there are in this subtree, itself included.
    pub fn size(self) -> u32 {
        self.slot().next().saturating_sub(self.index)
    }

    /// What working through this subtree costs: its values, and its bytes where they are many.
    pub(crate) fn weight(self) -> u64 {
        u64::from(self.size()) + self.raw().len() as u64 / BYTES_PER_WORK
    }

    /// The bytes that this value came as.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub fn raw(self) -> &'a str {
        let slot = self.slot();
        self.text.get(slot.start as usize..slot.end as usize).unwrap_or("")
    }

    /// Where its bytes start and end in the document's text.
    pub fn span(self) -> std::ops::Range<usize> {
        let slot = self.slot();
        slot.start as usize..slot.end as usize
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    pub fn as_bool(self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// The text of a string, unescaped.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| self.string_text())
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn string_text(self) -> Cow<'a, str> {
        let raw = self.raw();
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
        if self.slot().is_escaped() {
            Cow::Owned(strings::unescape(inner))
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// Whether a string was written with escapes, so that its bytes are not its text.
    #[inline(always)]
    pub(crate) fn has_escapes(self) -> bool {
        self.slot().is_escaped()
    }

    /// The number's spelling, where it is a number.
    pub fn as_number(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    /// The elements of an array; nothing for any other value.
    pub fn items(self) -> Items<'a> {
        let slot = self.slot();
        let end = if slot.kind() == Kind::Array { slot.next() } else { self.index };
        Items { node: self.at(self.index.saturating_add(1)), end }
    }

    /// The members of an object in the order they came; nothing for any other value.
    pub fn members(self) -> Members<'a> {
        let slot = self.slot();
        let end = if slot.kind() == Kind::Object { slot.next() } else { self.index };
        Members { node: self.at(self.index.saturating_add(1)), end }
    }

    /// A member of an object by name.
    pub fn get(self, name: &str) -> Option<Node<'a>> {
        self.members().find(|(key, _)| key.is_text(name)).map(|(_, value)| value)
    }

    /// Whether this is a string with exactly this text.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub fn is_text(self, text: &str) -> bool {
        if self.kind() != Kind::String {
            return false;
        }
        if self.has_escapes() {
            return self.string_text() == text;
        }
        let raw = self.raw();
        raw.len() == text.len() + 2 && raw.get(1..raw.len() - 1) == Some(text)
    }
}

/// See [`Node::items`].
#[derive(Debug, Clone)]
pub struct Items<'a> {
    node: Node<'a>,
    end: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        if self.node.index >= self.end {
            return None;
        }
        let current = self.node;
        self.node = current.at(current.slot().next());
        Some(current)
    }
}

/// See [`Node::members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    node: Node<'a>,
    end: u32,
}

impl<'a> Iterator for Members<'a> {
    /// The name (a string node) and the value.
    type Item = (Node<'a>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.node.index >= self.end {
            return None;
        }
        let name = self.node;
        let value = name.at(name.index.saturating_add(1));
        self.node = value.at(value.slot().next());
        Some((name, value))
    }
}

#[cfg(test)]
mod tests;

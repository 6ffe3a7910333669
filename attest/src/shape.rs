//! Reads JSON objects of a known shape from untrusted bytes: every size is bounded, and errors name
//! what is wrong.

use crate::body::SIGNATURE;
use crate::limits::MAX_TEXT_BYTES;
use contract::json::{Document, Node, ReadError};
use contract::time::Timestamp;
use std::collections::BTreeMap;

/// Why bytes are not the expected object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error(transparent)]
    Json(#[from] ReadError),
    #[error("{what} is not a JSON object")]
    NotAnObject { what: &'static str },
    #[error("`{member}` is missing")]
    Missing { member: &'static str },
    #[error("`{member}` is not {expected}")]
    Unexpected { member: &'static str, expected: &'static str },
    #[error("a text in `{member}` is longer than {limit} bytes")]
    TextTooLong { member: &'static str, limit: usize },
    #[error("`{member}` has more than {limit} elements")]
    TooMany { member: &'static str, limit: usize },
    #[error("`{name}` is not a known member")]
    UnknownMember { name: String },
    #[error("`{name}` is empty: fill it in, or remove it")]
    Empty { name: String },
}

/// Parses at most `limit` bytes as JSON.
pub(crate) fn read(bytes: &[u8], limit: usize) -> Result<Document<'_>, ShapeError> {
    if bytes.len() > limit {
        return Err(ShapeError::TooLong { limit });
    }
    Ok(Document::parse_bytes(bytes)?)
}

/// A timestamp together with its original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) text: String,
    pub(crate) at: Timestamp,
}

/// An object's members by name. A member that is `null` counts as absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(Node<'a>);

impl<'a> Fields<'a> {
    pub(crate) fn of(node: Node<'a>, what: &'static str) -> Result<Fields<'a>, ShapeError> {
        if node.is_object() { Ok(Fields(node)) } else { Err(ShapeError::NotAnObject { what }) }
    }

    /// Refuses unknown members and members without a value: in a file written by a person, either
    /// is a mistake that matters. A template's `"notAfter": ""` must not mean "forever".
    pub(crate) fn only(self, known: &[&str]) -> Result<(), ShapeError> {
        for (name, value) in self.0.members() {
            let name = name.as_str().unwrap_or_default();
            let told = || name.chars().take(MAX_TEXT_BYTES).collect();
            if !known.contains(&name.as_ref()) {
                return Err(ShapeError::UnknownMember { name: told() });
            }
            let is_blank = value.as_str().is_some_and(|text| trim(&text).is_empty());
            // The signer ignores an existing signature, and the verifier reports a missing one.
            if (value.is_null() || is_blank) && name != SIGNATURE {
                return Err(ShapeError::Empty { name: told() });
            }
        }
        Ok(())
    }

    fn member(self, member: &str) -> Option<Node<'a>> {
        self.0.get(member).filter(|node| !node.is_null())
    }

    /// Whether the member is present with exactly this spelling.
    pub(crate) fn is_spelled(self, member: &str, spelling: &str) -> bool {
        self.member(member).is_some_and(|node| node.raw() == spelling)
    }

    /// Whether the member has exactly this text.
    pub(crate) fn has_text(self, member: &str, text: &str) -> bool {
        self.member(member).and_then(Node::as_str).is_some_and(|found| found == text)
    }

    /// A text without surrounding white space. Returns `None` if nothing is left.
    pub(crate) fn text(self, member: &'static str) -> Result<Option<String>, ShapeError> {
        let Some(node) = self.member(member) else { return Ok(None) };
        let text = text_of(node, member)?;
        let trimmed = trim(&text);
        Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
    }

    /// A signature exactly as written, since only one spelling is valid. Returns `None` if it is
    /// blank.
    pub(crate) fn signature(self) -> Result<Option<String>, ShapeError> {
        let Some(node) = self.member(SIGNATURE) else { return Ok(None) };
        let text = text_of(node, SIGNATURE)?;
        Ok((!trim(&text).is_empty()).then_some(text))
    }

    /// A text that may be absent or `null` but not blank: an unfilled placeholder is not the same
    /// as an omission.
    pub(crate) fn filled_text(self, member: &'static str) -> Result<Option<String>, ShapeError> {
        match self.text(member)? {
            None if self.member(member).is_some() => {
                Err(ShapeError::Empty { name: member.to_owned() })
            }
            text => Ok(text),
        }
    }

    pub(crate) fn required_text(self, member: &'static str) -> Result<String, ShapeError> {
        self.text(member)?.ok_or(ShapeError::Missing { member })
    }

    /// A text as written, with its own length limit.
    pub(crate) fn long_text(
        self,
        member: &'static str,
        limit: usize,
    ) -> Result<String, ShapeError> {
        let node = self.member(member).ok_or(ShapeError::Missing { member })?;
        let text = node.as_str().ok_or(ShapeError::Unexpected { member, expected: "text" })?;
        if text.len() > limit {
            return Err(ShapeError::TextTooLong { member, limit });
        }
        Ok(text.into_owned())
    }

    /// The texts of a required array, none of them blank.
    pub(crate) fn required_texts(
        self,
        member: &'static str,
        limit: usize,
    ) -> Result<Vec<String>, ShapeError> {
        let texts = self.texts(member, limit)?.ok_or(ShapeError::Missing { member })?;
        if texts.iter().any(|text| trim(text).is_empty()) {
            return Err(ShapeError::Empty { name: member.to_owned() });
        }
        Ok(texts)
    }

    /// The texts of an array, as written.
    pub(crate) fn texts(
        self,
        member: &'static str,
        limit: usize,
    ) -> Result<Option<Vec<String>>, ShapeError> {
        let Some(items) = self.items(member, limit)? else { return Ok(None) };
        items.into_iter().map(|item| text_of(item, member)).collect::<Result<_, _>>().map(Some)
    }

    /// The elements of an array.
    pub(crate) fn items(
        self,
        member: &'static str,
        limit: usize,
    ) -> Result<Option<Vec<Node<'a>>>, ShapeError> {
        let Some(node) = self.member(member) else { return Ok(None) };
        if !node.is_array() {
            return Err(ShapeError::Unexpected { member, expected: "an array" });
        }
        let items: Vec<_> = node.items().take(limit.saturating_add(1)).collect();
        if items.len() > limit {
            return Err(ShapeError::TooMany { member, limit });
        }
        Ok(Some(items))
    }

    /// The members of an object of texts, with names and values as written.
    pub(crate) fn table(
        self,
        member: &'static str,
        limit: usize,
    ) -> Result<BTreeMap<String, String>, ShapeError> {
        let Some(node) = self.member(member) else { return Ok(BTreeMap::new()) };
        if !node.is_object() {
            return Err(ShapeError::Unexpected { member, expected: "an object" });
        }
        let mut table = BTreeMap::new();
        for (name, value) in node.members() {
            if table.len() == limit {
                return Err(ShapeError::TooMany { member, limit });
            }
            let value = text_of(value, member)?;
            if trim(&value).is_empty() {
                return Err(ShapeError::Empty { name: member.to_owned() });
            }
            table.insert(text_of(name, member)?, value);
        }
        Ok(table)
    }

    pub(crate) fn flag(self, member: &'static str) -> Result<bool, ShapeError> {
        let Some(node) = self.member(member) else { return Ok(false) };
        node.as_bool().ok_or(ShapeError::Unexpected { member, expected: "true or false" })
    }

    /// An integer below 256.
    pub(crate) fn small_number(self, member: &'static str) -> Result<u8, ShapeError> {
        let node = self.member(member).ok_or(ShapeError::Missing { member })?;
        let number = node.as_number().and_then(|text| text.parse().ok());
        number.ok_or(ShapeError::Unexpected { member, expected: "a small whole number" })
    }

    pub(crate) fn moment(self, member: &'static str) -> Result<Option<Moment>, ShapeError> {
        let Some(text) = self.filled_text(member)? else { return Ok(None) };
        match Timestamp::parse(&text) {
            Some(at) => Ok(Some(Moment { text, at })),
            None => Err(ShapeError::Unexpected {
                member,
                expected: "a moment in UTC like `2027-01-31T00:00:00Z`, or a date for its first moment",
            }),
        }
    }
}

/// The text of a string, as written.
pub(crate) fn text_of(node: Node<'_>, member: &'static str) -> Result<String, ShapeError> {
    let text = node.as_str().ok_or(ShapeError::Unexpected { member, expected: "text" })?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(ShapeError::TextTooLong { member, limit: MAX_TEXT_BYTES });
    }
    Ok(text.into_owned())
}

/// Trims exactly the white space that the reference implementation's language trims. Otherwise the
/// two would sign different bytes.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|character| {
        matches!(
            character,
            '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}'
                | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
        )
    })
}

#[cfg(test)]
mod tests;

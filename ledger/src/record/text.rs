//! Texts of limited length, and the values with their own notation.

use crate::digits;
use contract::time::Timestamp;
use serde::{Serialize, Serializer};

/// The longest text in a receipt, in bytes. A longer one is cut, and ends in `…`.
pub const MAX_TEXT_BYTES: usize = 512;

/// The most words (reason codes, kinds) listed in one receipt. A longer list is cut, and ends in
/// `…`.
pub const MAX_WORDS: usize = 64;

const CUT: &str = "…";

/// A text that is cut when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a>(pub &'a str);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text(text)
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.len() <= MAX_TEXT_BYTES {
            return serializer.serialize_str(self.0);
        }
        let end = self.0.floor_char_boundary(MAX_TEXT_BYTES - CUT.len());
        let kept = self.0.get(..end).unwrap_or_default();
        serializer.serialize_str(&format!("{kept}{CUT}"))
    }
}

/// Words from closed lists, in the order in which they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Words<'a>(pub &'a [&'a str]);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.len() <= MAX_WORDS {
            return serializer.collect_seq(self.0.iter().map(|word| Text(word)));
        }
        let kept = self.0.iter().take(MAX_WORDS).copied().chain([CUT]);
        serializer.collect_seq(kept.map(Text))
    }
}

/// Writes hexadecimal digits without allocation: receipts are written on the path of a call.
pub(super) fn hex_digits<const BYTES: usize, const DIGITS: usize, S: Serializer>(
    bytes: [u8; BYTES],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return serializer.serialize_bytes(&bytes);
    }
    let digits: [u8; DIGITS] = digits::encode(&bytes);
    serializer.serialize_str(std::str::from_utf8(&digits).map_err(serde::ser::Error::custom)?)
}

pub(super) fn optional_moment<S: Serializer>(
    value: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => moment(*value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Writes a time in the ledger's notation.
pub(crate) fn moment<S: Serializer>(moment: Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    match moment.precise_text() {
        Some(text) => serializer.serialize_str(str::from_utf8(&text).unwrap_or_default()),
        None => serializer.collect_str(&moment.precise()),
    }
}

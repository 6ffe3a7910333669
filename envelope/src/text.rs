//! The strings of a message: unescaping, and member names that fold to a protocol member's name.

use std::borrow::Cow;

/// The inside of a string whose escapes have been validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) inner: &'a [u8],
    /// How many escapes it contains. Not a flag: that would give every `Result` containing this an
    /// odd size, and moving those costs as much as reading the string.
    pub(super) escapes: usize,
}

impl<'a> Text<'a> {
    /// Decodes the text. Returns `None` if it contains a lone surrogate.
    pub(super) fn decode(self) -> Option<Cow<'a, str>> {
        let inner = std::str::from_utf8(self.inner).ok()?;
        if self.escapes == 0 {
            return Some(Cow::Borrowed(inner));
        }
        let (text, is_whole) = unescape(inner);
        is_whole.then_some(Cow::Owned(text))
    }

    /// Decodes to bytes, without validating them again if there are no escapes. The frame is UTF-8.
    #[inline]
    pub(super) fn decode_bytes(self) -> Option<Cow<'a, [u8]>> {
        if self.escapes == 0 {
            return Some(Cow::Borrowed(self.inner));
        }
        self.decode().map(|text| Cow::Owned(text.into_owned().into_bytes()))
    }

    /// Decodes the text, with U+FFFD for lone surrogates.
    pub(super) fn decode_lossy(self) -> Cow<'a, str> {
        let inner = String::from_utf8_lossy(self.inner);
        if self.escapes > 0 { Cow::Owned(unescape(&inner).0) } else { inner }
    }
}

/// Returns the text, and whether it contained no lone surrogate.
fn unescape(inner: &str) -> (String, bool) {
    let mut text = String::with_capacity(inner.len());
    let mut is_whole = true;
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let (character, used) = unescape_one(escape);
        is_whole &= character.is_some();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = escape.get(used..).unwrap_or_default();
    }
    text.push_str(rest);
    (text, is_whole)
}

/// Decodes one escape, without its backslash. Returns the character (`None` for a lone surrogate)
/// and the length of the escape in bytes.
fn unescape_one(escape: &str) -> (Option<char>, usize) {
    let simple = match escape.bytes().next() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_code(escape),
        Some(other) => char::from(other),
        None => return (None, 0),
    };
    (Some(simple), 1)
}

fn unescape_code(escape: &str) -> (Option<char>, usize) {
    let first = hexadecimal(escape.get(1..5));
    if !(0xd800..0xdc00).contains(&first) {
        return (char::from_u32(first), 5);
    }
    let second = match escape.get(5..7) {
        Some("\\u") => hexadecimal(escape.get(7..11)),
        _ => 0,
    };
    if !(0xdc00..0xe000).contains(&second) {
        return (None, 5);
    }
    (char::from_u32(0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff)), 11)
}

fn hexadecimal(digits: Option<&str>) -> u32 {
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// The member of `members` that a lenient reader takes a name for, if the name is spelled
/// differently.
pub(super) fn folded_member(name: &[u8], members: &[&'static str]) -> Option<&'static str> {
    contract::names::folds_to(std::str::from_utf8(name).ok()?, members)
}

//! The strings of a message: unescaped where they are read, and member names that fold to a protocol member's.

use std::borrow::Cow;

/// The inside of a string whose escapes were checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) inner: &'a [u8],
    /// How many escapes there are in it. A number, because a flag would make every result that carries this a thing of odd
    /// size, and moving those about costs as much as reading the string.
    pub(super) escapes: usize,
}

impl<'a> Text<'a> {
    /// What it says; nothing where no text says that, which is a lone surrogate.
    pub(super) fn decode(self) -> Option<Cow<'a, str>> {
        let inner = std::str::from_utf8(self.inner).ok()?;
        if self.escapes == 0 {
            return Some(Cow::Borrowed(inner));
        }
        let (text, is_whole) = unescape(inner);
        is_whole.then_some(Cow::Owned(text))
    }

    /// What it says as bytes, without looking at them again where it has no escapes. The frame is UTF-8.
    #[inline]
    pub(super) fn decode_bytes(self) -> Option<Cow<'a, [u8]>> {
        if self.escapes == 0 {
            return Some(Cow::Borrowed(self.inner));
        }
        self.decode().map(|text| Cow::Owned(text.into_owned().into_bytes()))
    }

    /// What it says, with U+FFFD for what no text can.
    pub(super) fn decode_lossy(self) -> Cow<'a, str> {
        let inner = String::from_utf8_lossy(self.inner);
        if self.escapes > 0 { Cow::Owned(unescape(&inner).0) } else { inner }
    }
}

/// The text, and whether there was no lone surrogate in it.
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

/// The character of an escape (without its backslash), none for a lone surrogate, and how many bytes the escape has.
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

/// The one of `members` that a lenient reader takes a name for, if it is spelled differently.
pub(super) fn folded_member(name: &[u8], members: &[&'static str]) -> Option<&'static str> {
    contract::names::folds_to(std::str::from_utf8(name).ok()?, members)
}

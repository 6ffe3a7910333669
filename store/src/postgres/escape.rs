//! PostgreSQL text cannot contain NUL, but a tool's name may. NUL is stored as two characters.
//!
//! `NUL` becomes `DLE 0`, and `DLE` becomes `DLE 1`. JSON text never contains unescaped control
//! characters, so entries and captures are stored unchanged.

use std::borrow::Cow;

/// Data link escape: marks an escaped character.
const MARK: char = '\u{10}';
const MARK_BYTE: u8 = 0x10;

pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == 0 || byte == MARK_BYTE) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => out.extend([MARK, '0']),
            MARK => out.extend([MARK, '1']),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The original text, if it differs from the stored one. A mark that escapes nothing was not
/// written by Holdpoint and stays.
pub(super) fn unescaped(stored: &[u8]) -> Option<String> {
    if !stored.contains(&MARK_BYTE) {
        return None;
    }
    let text = std::str::from_utf8(stored).ok()?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let next = (character == MARK).then(|| rest.clone().next()).flatten();
        let meant = match next {
            Some('0') => '\0',
            Some('1') => MARK,
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push(meant);
        rest.next();
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{escaped, unescaped};

    #[test]
    fn every_text_comes_back_and_none_is_stored_with_a_nul() {
        for text in ["", "plain", "a\0b", "\0", "\u{10}", "\u{10}0", "\0\u{10}1\0", "ä\0ö\u{10}"]
        {
            let stored = escaped(text);
            assert!(!stored.contains('\0'));
            let back = unescaped(stored.as_bytes()).unwrap_or_else(|| stored.clone().into_owned());
            assert_eq!(back, text);
        }
    }

    #[test]
    fn different_texts_are_stored_differently() {
        let texts = ["a\0", "a\u{10}0", "a\u{10}1", "a\u{10}", "a0"];
        let stored: std::collections::BTreeSet<_> =
            texts.iter().map(|text| escaped(text)).collect();
        assert_eq!(stored.len(), texts.len());
    }

    #[test]
    fn a_mark_that_marks_nothing_stays() {
        assert_eq!(unescaped(b"a\x10x\x10").as_deref(), Some("a\u{10}x\u{10}"));
        assert_eq!(unescaped(b"plain"), None);
    }
}

//! What stands around a word: other parts of a name, the end of a sentence, punctuation.

use super::letters::normalized_byte;
use super::lexicon::Affixes;

/// Whether a word is a part of a name: `call` in `call_tool` and in `callTool`.
pub(super) fn is_part_of_a_name(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_name =
        |byte: Option<&u8>| byte.is_some_and(|&byte| byte == b'_' || byte.is_ascii_alphanumeric());
    is_name(start.checked_sub(1).and_then(|at| bytes.get(at))) || is_name(bytes.get(end))
}

/// Whether a byte ends a sentence: a full stop before white space, or an empty line. `e.g. ` ends none.
pub(super) fn ends_sentence(bytes: &[u8], offset: usize, byte: u8) -> bool {
    let next = bytes.get(offset + 1).copied().unwrap_or(b' ');
    match byte {
        b'!' | b'?' => next.is_ascii_whitespace(),
        b'.' => {
            let letter = |back: usize| {
                offset
                    .checked_sub(back)
                    .and_then(|at| bytes.get(at))
                    .is_some_and(u8::is_ascii_alphanumeric)
            };
            next.is_ascii_whitespace() && (letter(2) || !letter(1))
        }
        b'\n' => matches!(next, b'\n' | b'-' | b'*' | b'#'),
        _ => false,
    }
}

/// Whether the punctuation that a phrase asks for stands around a word.
pub(super) fn has_affixes(affixes: &Affixes, bytes: &[u8], start: usize, end: usize) -> bool {
    let (head, rest) = (bytes.get(..start).unwrap_or(&[]), bytes.get(end..).unwrap_or(&[]));
    let before = match affixes.before.as_bytes() {
        [] => true,
        // A file name that begins with a dot, not a member of something (`process.env`).
        [b'.'] => head.strip_suffix(b".").is_some_and(|head| {
            head.last().is_none_or(|&byte| normalized_byte(byte).is_none() && byte != b')')
        }),
        before => head.ends_with(before),
    };
    let after = match affixes.after.as_bytes() {
        [] => true,
        // The end of a tag, or its attributes.
        [b'>'] => rest.first().is_some_and(|&byte| byte == b'>' || byte.is_ascii_whitespace()),
        after => rest.starts_with(after),
    };
    before && after
}

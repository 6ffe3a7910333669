//! Finds text disguised so that people do not read it: encoded, spelled out, reversed, in mixed
//! scripts.
//!
//! The hidden text is read by the same rules as plain text. A disguise alone is only a finding for
//! words in mixed scripts and encoded prose, for which an honest description has little reason.

use contract::markers::decoded_texts;

/// The minimum number of encoded characters for a text to be decoded.
const MIN_ENCODED: usize = 8;
/// The minimum number of consecutive single letters that count as spelled-out words.
const MIN_SPELLED: usize = 8;

/// A hidden reading of a text.
#[derive(Debug)]
pub(super) struct Disguise {
    pub(super) how: &'static str,
    pub(super) text: String,
    /// Whether an honest text may look like this by chance.
    pub(super) is_ordinary: bool,
}

/// The hidden readings of a text.
pub(super) fn readings(text: &str) -> Vec<Disguise> {
    let mut found: Vec<Disguise> = decoded_texts(text)
        .into_iter()
        .filter(|decoded| is_prose(decoded))
        .map(|text| Disguise { how: "encoded.base64-or-hex", text, is_ordinary: false })
        .collect();
    let mut push = |how, reading: Option<String>, is_ordinary| {
        found.extend(reading.map(|text| Disguise { how, text, is_ordinary }));
    };
    push("encoded.percent", percent(text), true);
    push("encoded.character-references", references(text), true);
    push("encoded.escapes", escapes(text), true);
    push("encoded.spelled-out", spelled_out(text), true);
    let reversed: String = text.chars().rev().collect();
    push("encoded.reversed", Some(reversed).filter(|text| is_english(text)), true);
    push("encoded.rot13", Some(rot13(text)).filter(|text| is_english(text)), true);
    found
}

/// Words that most English texts contain, and that reversed or rotated English text does not.
const COMMON: [&str; 18] = [
    "the",
    "all",
    "and",
    "you",
    "your",
    "this",
    "that",
    "previous",
    "instructions",
    "user",
    "ignore",
    "send",
    "read",
    "not",
    "with",
    "from",
    "before",
    "file",
];

/// Whether a text contains at least two common English words.
fn is_english(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    words
        .filter(|word| COMMON.iter().any(|common| word.eq_ignore_ascii_case(common)))
        .nth(1)
        .is_some()
}

/// Whether decoded bytes are prose and not identifiers: several words separated by spaces.
fn is_prose(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| {
        word.len() > 1
            && word
                .trim_matches(|c: char| c.is_ascii_punctuation())
                .chars()
                .all(|c| c.is_ascii_alphabetic() || c == '\'')
    });
    words.count() >= 3 && !text.trim_start().starts_with('<')
}

/// The text with `%69` decoded, if there are many such escapes.
fn percent(text: &str) -> Option<String> {
    let is_pair = |window: &[u8]| matches!(window, [b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
    let count = text.as_bytes().windows(3).filter(|window| is_pair(window)).count();
    if count < MIN_ENCODED {
        return None;
    }
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

/// The text with `&#105;` and `&#x69;` decoded.
fn references(text: &str) -> Option<String> {
    replaced(text, "&#", |rest| {
        let end = rest.find(';').filter(|end| (1..=8).contains(end))?;
        let number = rest.get(..end)?;
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        Some((char::from_u32(code)?, end + 1))
    })
}

/// The text with `\u0069`, `\x69` decoded.
fn escapes(text: &str) -> Option<String> {
    replaced(text, "\\", |rest| {
        let digits = match rest.as_bytes().first()? {
            b'u' => 4,
            b'x' => 2,
            _ => return None,
        };
        let code = u32::from_str_radix(rest.get(1..=digits)?, 16).ok()?;
        Some((char::from_u32(code)?, digits + 1))
    })
}

/// Replaces the escapes after each mark; `None` if there are few.
fn replaced(
    text: &str,
    mark: &str,
    decode: impl Fn(&str) -> Option<(char, usize)>,
) -> Option<String> {
    let (mut out, mut count, mut rest) = (String::new(), 0, text);
    while let Some(at) = rest.find(mark) {
        out.push_str(rest.get(..at)?);
        let behind = rest.get(at + mark.len()..)?;
        rest = match decode(behind) {
            Some((character, length)) => {
                out.push(character);
                count += 1;
                behind.get(length..)?
            }
            None => {
                out.push_str(mark);
                behind
            }
        };
    }
    out.push_str(rest);
    (count >= MIN_ENCODED).then_some(out)
}

/// Reads `i g n o r e  a l l` as words: joins single letters, with wider gaps as word boundaries.
fn spelled_out(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut longest, mut run) = (0, 0);
    for word in text.split(' ') {
        let mut letters = word.chars().filter(|letter| letter.is_alphanumeric());
        match (letters.next(), letters.next(), word.is_empty()) {
            (Some(letter), None, _) => {
                run += 1;
                out.push(letter);
            }
            (_, _, true) => out.push(' '),
            _ => {
                run = 0;
                out.push(' ');
                out.push_str(word);
                out.push(' ');
            }
        }
        longest = longest.max(run);
    }
    (longest >= MIN_SPELLED).then_some(out)
}

fn rot13(text: &str) -> String {
    let turn = |letter: u8, first: u8| char::from(first + (letter - first + 13) % 26);
    text.chars()
        .map(|character| match character {
            'a'..='z' => turn(character as u8, b'a'),
            'A'..='Z' => turn(character as u8, b'A'),
            other => other,
        })
        .collect()
}

/// The first word that mixes Latin letters with similar-looking Cyrillic, Armenian or Cherokee
/// ones.
pub(super) fn mixed_script_word(text: &str) -> Option<(usize, usize)> {
    if text.is_ascii() {
        return None;
    }
    let mut start = 0;
    let is_other = |c: char| matches!(c, '\u{400}'..='\u{52f}' | '\u{531}'..='\u{587}' | '\u{13a0}'..='\u{13ff}');
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        if character.is_alphabetic() {
            continue;
        }
        let word = text.get(start..at).unwrap_or("");
        if word.chars().any(is_other) && word.chars().any(|c| c.is_ascii_alphabetic()) {
            return Some((start, at));
        }
        start = at + character.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests;

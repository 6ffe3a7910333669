//! Describes how to restore a text from its changed version: ranges of the changed text, and
//! between them the few literals that it lacks. By itself it reveals nothing else about the file.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Shorter parts of a text are not searched for in the first pass.
const BLOCK: usize = 16;
/// The shortest part of a literal that is replaced by a range.
const MIN_RANGE: usize = 4;
/// The longest word of a literal.
const MAX_WORD_BYTES: usize = 64;

/// Instructions to make one text from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inverse(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Piece {
    /// A range of bytes of the changed text: the start, and the exclusive end.
    Range(usize, usize),
    Literal(String),
}

impl Inverse {
    /// How to make `original` from `changed`. Returns `None` if that would require keeping more
    /// than punctuation and names.
    pub(crate) fn of(original: &str, changed: &str) -> Option<Inverse> {
        let mut pieces = Vec::new();
        for piece in coarse(original, changed) {
            match piece {
                Piece::Literal(text) => refine(&text, changed, &mut pieces),
                range @ Piece::Range(..) => pieces.push(range),
            }
        }
        let is_plain = |piece: &Piece| match piece {
            Piece::Literal(text) => is_plain(text),
            Piece::Range(..) => true,
        };
        let inverse = Inverse(pieces);
        let is_right = inverse.apply(changed).as_deref() == Some(original);
        (is_right && inverse.0.iter().all(is_plain)).then_some(inverse)
    }

    /// The original. Returns `None` if the text is not the one that this was made for.
    pub(crate) fn apply(&self, changed: &str) -> Option<String> {
        let mut out = String::with_capacity(changed.len());
        for piece in &self.0 {
            out.push_str(match piece {
                Piece::Range(from, to) => changed.get(*from..*to)?,
                Piece::Literal(text) => text,
            });
        }
        Some(out)
    }
}

/// Ranges of at least [`BLOCK`] bytes, with the text between them as literals.
fn coarse(original: &str, changed: &str) -> Vec<Piece> {
    let (from, to) = (original.as_bytes(), changed.as_bytes());
    let mut blocks: HashMap<&[u8], usize> = HashMap::new();
    for (number, block) in to.chunks_exact(BLOCK).enumerate() {
        blocks.entry(block).or_insert(number * BLOCK);
    }
    let mut pieces = Vec::new();
    // The start of the pending literal, the current position, and where the changed text would
    // continue.
    let (mut pending, mut at, mut expected) = (0, 0, 0);
    while let Some(window) = from.get(at..at + BLOCK) {
        let goes_on = to.get(expected..expected + BLOCK) == Some(window);
        let found = if goes_on { Some(expected) } else { blocks.get(window).copied() };
        let Some(found) = found else {
            at += 1;
            continue;
        };
        let back = common(from.get(pending..at), to.get(..found), true);
        let (mut start, mut end) = (at - back, at + common(from.get(at..), to.get(found..), false));
        while !original.is_char_boundary(start) {
            start += 1;
        }
        while !original.is_char_boundary(end) {
            end -= 1;
        }
        literal(original, pending, start, &mut pieces);
        let begin = (found + start).saturating_sub(at);
        pieces.push(Piece::Range(begin, begin + (end - start)));
        (pending, at, expected) = (end, end.max(at + 1), begin + (end - start));
    }
    literal(original, pending, original.len(), &mut pieces);
    pieces
}

/// The length of the common prefix or suffix of two texts.
fn common(one: Option<&[u8]>, other: Option<&[u8]>, from_end: bool) -> usize {
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let is_same = |(one, other): &(&u8, &u8)| one == other;
    if from_end {
        one.iter().rev().zip(other.iter().rev()).take_while(is_same).count()
    } else {
        one.iter().zip(other).take_while(is_same).count()
    }
}

fn literal(original: &str, from: usize, to: usize, pieces: &mut Vec<Piece>) {
    if let Some(text) = original.get(from..to).filter(|text| !text.is_empty()) {
        pieces.push(Piece::Literal(text.to_owned()));
    }
}

/// Replaces parts of a literal that occur in the changed text, for example a moved address.
fn refine(text: &str, changed: &str, pieces: &mut Vec<Piece>) {
    let (mut pending, mut at) = (0, 0);
    while at < text.len() {
        match longest(text.get(at..).unwrap_or_default(), changed) {
            Some((found, length)) => {
                literal(text, pending, at, pieces);
                pieces.push(Piece::Range(found, found + length));
                at += length;
                pending = at;
            }
            None => {
                at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            }
        }
    }
    literal(text, pending, text.len(), pieces);
}

/// The longest prefix of a text that occurs in another one: its position and length.
fn longest(text: &str, other: &str) -> Option<(usize, usize)> {
    let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let mut length = ends.find(|end| *end >= MIN_RANGE)?;
    let mut found = other.find(text.get(..length)?)?;
    for end in ends {
        let part = text.get(..end)?;
        if other.get(found..).is_some_and(|rest| rest.starts_with(part)) {
            length = end;
        } else if let Some(at) = other.find(part) {
            (found, length) = (at, end);
        } else {
            break;
        }
    }
    Some((found, length))
}

/// Whether a text is only punctuation and names: no comment, and no word containing a digit.
pub(crate) fn is_plain(text: &str) -> bool {
    let has_comment = ["//", "/*", "#"].iter().any(|mark| text.contains(mark));
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.';
    let has_number =
        |word: &str| word.as_bytes().windows(2).any(|two| two.iter().all(u8::is_ascii_digit));
    let is_name = |word: &str| {
        word.len() < MIN_RANGE
            || word.len() <= MAX_WORD_BYTES && word.is_ascii() && !has_number(word)
    };
    !has_comment && text.split(|c| !is_word(c)).all(is_name)
}

#[cfg(test)]
mod tests;

//! Text folded for matching: compatibility forms opened, marks and format characters dropped, look-alikes made Latin.
//!
//! The result is ASCII; what has no Latin reading becomes [`OTHER`], which separates words. Case is left to the
//! matcher, which needs it to split `camelCase`.

use super::confusable::latin_look_alike;
use super::hidden::is_removed_in_folding;
use std::sync::OnceLock;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// A character without a Latin reading.
const OTHER: u8 = 0x80;
/// The most bytes that one character becomes.
pub(super) const MAX_EXPANSION: usize = 7;

/// Below this most characters have one folded byte or none, which a table holds.
const TABLE_END: u32 = 0x3000;
const NOTHING: u8 = 0;
const SEVERAL: u8 = 0xff;

/// Writes the folded text.
pub(super) fn fold_into(text: &str, folded: &mut Vec<u8>) {
    folded.clear();
    let table = table();
    for character in text.chars() {
        push_folded(character, table, folded);
    }
}

/// For offsets into the folded text, in ascending order, the offsets of the characters they came from.
pub(super) fn original_offsets(text: &str, offsets: &[usize]) -> Vec<usize> {
    let table = table();
    let mut originals = Vec::with_capacity(offsets.len());
    let mut wanted = offsets.iter().peekable();
    let mut length = 0;
    let mut piece = Vec::new();
    for (at, character) in text.char_indices() {
        piece.clear();
        push_folded(character, table, &mut piece);
        length += piece.len();
        while wanted.next_if(|&&offset| offset < length).is_some() {
            originals.push(at);
        }
        if wanted.peek().is_none() {
            break;
        }
    }
    originals.resize(offsets.len(), text.len());
    originals
}

fn push_folded(character: char, table: &[u8], folded: &mut Vec<u8>) {
    if character.is_ascii() {
        folded.push(character as u8);
        return;
    }
    match table.get(character as usize).copied().unwrap_or(SEVERAL) {
        NOTHING => {}
        SEVERAL => push_slowly(character, folded),
        byte => folded.push(byte),
    }
}

fn push_slowly(character: char, folded: &mut Vec<u8>) {
    // Han, Hangul and Arabic ligatures: there is nothing Latin in them, and opening some of them costs a lot.
    if matches!(character, '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{fb50}'..='\u{fdff}')
    {
        folded.push(OTHER);
        return;
    }
    if is_removed_in_folding(character) {
        return;
    }
    if let Some(latin) = latin_look_alike(character) {
        folded.push(latin);
        return;
    }
    let mut room = MAX_EXPANSION;
    decompose_compatible(character, |part| {
        if let (Some(byte), Some(left)) = (fold_part(part), room.checked_sub(1)) {
            folded.push(byte);
            room = left;
        }
    });
}

/// One character of a decomposition: an ASCII byte, or nothing for a mark.
fn fold_part(part: char) -> Option<u8> {
    if part.is_ascii() {
        return Some(part as u8);
    }
    if is_combining_mark(part) || is_removed_in_folding(part) {
        return None;
    }
    if part.is_whitespace() {
        return Some(b' ');
    }
    let lower = part.to_lowercase().next().unwrap_or(part);
    if lower.is_ascii() {
        return Some(lower as u8);
    }
    Some(latin_look_alike(part).or_else(|| latin_look_alike(lower)).unwrap_or(OTHER))
}

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut folded = Vec::new();
        let entry = |code: u32| {
            folded.clear();
            push_slowly(char::from_u32(code).unwrap_or('\u{fffd}'), &mut folded);
            match folded.as_slice() {
                [] => NOTHING,
                [byte] => *byte,
                _ => SEVERAL,
            }
        };
        (0..TABLE_END).map(entry).collect()
    })
}

#[cfg(test)]
mod tests;

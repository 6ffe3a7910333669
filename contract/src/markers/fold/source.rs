//! How characters fold, worked out from Unicode's tables. `build.rs` writes it down as static data, which is a tenth of those
//! tables; the library has this file for its tests only.

use super::confusable::latin_look_alike;
use super::invisible::is_removed_in_folding;
use super::runs::{Fold, OTHER, Run, Runs, blocks_of};
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// The most bytes that one character becomes.
pub(crate) const MAX_EXPANSION: usize = 7;

/// Appends what a character becomes.
pub(crate) fn push_slowly(character: char, folded: &mut Vec<u8>) {
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

/// The runs of all characters.
pub(crate) fn runs() -> Runs {
    let mut runs: Vec<Run> = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let mut folded = Vec::new();
    for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_ascii()) {
        folded.clear();
        push_slowly(character, &mut folded);
        let fold = match folded.as_slice() {
            [OTHER] => continue,
            [] => Fold::Nothing,
            [byte] => Fold::Byte(*byte),
            several => {
                Fold::Several { at: place(several, &mut bytes), length: several.len() as u8 }
            }
        };
        let first = u32::from(character);
        let before = runs.last_mut().filter(|run| run.first + u32::from(run.length) == first);
        if !before.is_some_and(|run| run.takes(fold)) {
            runs.push(Run { first, length: 1, fold });
        }
    }
    let blocks = blocks_of(&runs);
    let mut marks: Vec<(u32, u32)> = Vec::new();
    for mark in ('\0'..=char::MAX).filter(|character| is_combining_mark(*character)) {
        let mark = u32::from(mark);
        match marks.last_mut().filter(|(_, last)| last + 1 == mark) {
            Some((_, last)) => *last = mark,
            None => marks.push((mark, mark)),
        }
    }
    Runs { runs: runs.leak(), bytes: bytes.leak(), blocks: blocks.leak(), marks: marks.leak() }
}

/// Where some bytes are among those that are there, or behind them.
fn place(several: &[u8], bytes: &mut Vec<u8>) -> u16 {
    let found = bytes.windows(several.len()).position(|there| there == several);
    let at = found.unwrap_or(bytes.len());
    if found.is_none() {
        bytes.extend_from_slice(several);
    }
    at as u16
}

impl Run {
    /// Takes the next character in if it folds alike. A run of one may become one of bytes that count up.
    fn takes(&mut self, next: Fold) -> bool {
        let fold = match (self.fold, next) {
            (Fold::Byte(first) | Fold::Counting(first), Fold::Byte(next))
                if u32::from(first) + u32::from(self.length) == u32::from(next)
                    && (self.length == 1 || self.fold == Fold::Counting(first)) =>
            {
                Fold::Counting(first)
            }
            (fold, next) if fold == next => fold,
            _ => return false,
        };
        self.fold = fold;
        self.length += 1;
        true
    }
}

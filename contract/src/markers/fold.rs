//! Text folded for matching: compatibility forms opened, marks and format characters dropped, look-alikes made Latin.
//!
//! The result is ASCII; what has no Latin reading becomes `OTHER`, which separates words. Case is left to the
//! matcher, which needs it to split `camelCase`.

#[cfg(test)]
use super::{confusable, invisible};

use runs::{BLOCK_BITS, Fold, OTHER, Run, Runs};

#[cfg(test)]
mod pack;
mod runs;
#[cfg(test)]
mod source;
#[cfg(any(test, target_family = "wasm"))]
mod unpack;

// `FOLDS` as static data, and for WebAssembly as `PACKED_FOLDS`, which are a third of its bytes when it is downloaded.
include!(concat!(env!("OUT_DIR"), "/folds.rs"));
#[cfg(target_family = "wasm")]
static FOLDS: std::sync::LazyLock<Runs> = std::sync::LazyLock::new(|| unpack::unpack(PACKED_FOLDS));

/// Writes the folded text.
pub(super) fn fold_into(text: &str, folded: &mut Vec<u8>) {
    folded.clear();
    for character in text.chars() {
        push_folded(character, folded);
    }
}

/// Whether a character of a text folds to anything but a separator, so that other words may appear in the folded text.
pub(super) fn changes_words(text: &str) -> bool {
    text.chars().any(|character| !character.is_ascii() && FOLDS.of(u32::from(character)).is_some())
}

/// For offsets into the folded text, in ascending order, the offsets of the characters they came from.
pub(super) fn original_offsets(text: &str, offsets: &[usize]) -> Vec<usize> {
    let mut originals = Vec::with_capacity(offsets.len());
    let mut wanted = offsets.iter().peekable();
    let mut length = 0;
    let mut piece = Vec::new();
    for (at, character) in text.char_indices() {
        piece.clear();
        push_folded(character, &mut piece);
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

fn push_folded(character: char, folded: &mut Vec<u8>) {
    if character.is_ascii() {
        folded.push(character as u8);
        return;
    }
    let code = u32::from(character);
    match FOLDS.of(code) {
        None => folded.push(OTHER),
        Some(Run { fold: Fold::Nothing, .. }) => {}
        Some(Run { fold: Fold::Byte(byte), .. }) => folded.push(*byte),
        Some(Run { fold: Fold::Counting(byte), first, .. }) => {
            folded.push(byte.saturating_add((code - first) as u8));
        }
        Some(Run { fold: Fold::Several { at, length }, .. }) => {
            let bytes = FOLDS.bytes.get(usize::from(*at)..).unwrap_or_default();
            folded.extend(bytes.iter().take(usize::from(*length)));
        }
    }
}

impl Runs {
    /// The run that a character is in.
    fn of(&self, code: u32) -> Option<&'static Run> {
        let block = (code >> BLOCK_BITS) as usize;
        let start = usize::from(*self.blocks.get(block)?);
        // A run that ends behind the block may be the first of the next one.
        let end = self.blocks.get(block + 1).map_or(self.runs.len(), |next| usize::from(*next) + 1);
        let runs = self.runs.get(start..end.min(self.runs.len()))?;
        let at = runs.partition_point(|run| run.first + u32::from(run.length) <= code);
        runs.get(at).filter(|run| run.first <= code)
    }
}

/// Whether a character is a mark on the one before it.
pub(super) fn is_combining_mark(character: char) -> bool {
    let code = u32::from(character);
    let at = FOLDS.marks.partition_point(|(_, last)| *last < code);
    FOLDS.marks.get(at).is_some_and(|(first, _)| *first <= code)
}

#[cfg(test)]
mod tests;

//! The phrases of `markers.toml`, compiled by `build.rs` into static data: a vocabulary of words, and for each word the
//! places of phrases it can stand in. How a phrase is read is in `lexicon/source.rs`.

use super::MarkerClass;
#[cfg(any(test, target_family = "wasm"))]
use super::letters;
use std::ops::Range;
use tree::{TABLE_SIZE, first_slot};

#[cfg(test)]
mod pack;
#[cfg(test)]
mod source;
mod tree;
#[cfg(any(test, target_family = "wasm"))]
mod unpack;

#[cfg(not(target_family = "wasm"))]
use tree::Rule;
pub(super) use tree::{Affixes, Lexicon, Node, Posting, Word};

// `BUILT_IN` as static data, and for WebAssembly as `PACKED`, which are a fifth of its bytes when it is downloaded.
include!(concat!(env!("OUT_DIR"), "/lexicon.rs"));
#[cfg(target_family = "wasm")]
static BUILT_IN: std::sync::LazyLock<Lexicon> = std::sync::LazyLock::new(|| unpack::unpack(PACKED));

impl Lexicon {
    /// The built-in rules.
    pub(super) fn built_in() -> &'static Lexicon {
        &BUILT_IN
    }

    /// Where the name of a tool that is not the server's can stand.
    pub(super) fn foreign(&self) -> &'static [u16] {
        self.foreign
    }

    /// Where a mail address can stand.
    pub(super) fn addresses(&self) -> &'static [u16] {
        self.addresses
    }

    /// The rules of the phrases that end at an element.
    pub(super) fn ends(&self, node: &Node) -> &'static [u16] {
        part(self.ends, &node.ends)
    }

    pub(super) fn normalized(&self, word: &Word) -> &'static [u8] {
        part(self.letters, &word.normalized)
    }

    pub(super) fn postings(&self, word: &Word) -> &'static [Posting] {
        part(self.postings, &word.postings)
    }

    /// The punctuation that has to stand around a word in this place, if any has to.
    pub(super) fn affixes(&self, posting: &Posting) -> Option<&'static Affixes> {
        self.affixes.get(usize::from(posting.affixes?))
    }

    /// The word with this hash and these bytes (already normalized ones).
    pub(super) fn word(&self, hash: u32, is_it: impl Fn(&Word) -> bool) -> Option<&'static Word> {
        let mut slot = first_slot(hash);
        loop {
            let number = self.table.get(slot).copied().filter(|&number| number != 0)?;
            let word = self.words.get(usize::from(number) - 1)?;
            if word.hash == hash && is_it(word) {
                return Some(word);
            }
            slot = (slot + 1) % TABLE_SIZE;
        }
    }
}

fn part<T>(all: &'static [T], range: &Range<u16>) -> &'static [T] {
    all.get(usize::from(range.start)..usize::from(range.end)).unwrap_or_default()
}

#[cfg(test)]
mod tests;

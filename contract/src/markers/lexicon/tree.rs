//! What the lexicon is made of. `build.rs` uses this file too: it fills these types from `markers.toml` and writes them
//! as Rust source by their `Debug` form. So every field has a type whose `Debug` form is the Rust expression for it.

use super::MarkerClass;
use std::ops::Range;

/// How many slots the table of words has; few enough are taken that a look-up hardly ever looks twice.
pub(crate) const TABLE_SIZE: usize = 1 << TABLE_BITS;
const TABLE_BITS: u32 = 14;

/// The slot of the table in which the search for a word begins.
pub(crate) fn first_slot(hash: u32) -> usize {
    (hash.wrapping_mul(0x9e37_79b1) >> (u32::BITS - TABLE_BITS)) as usize
}

/// The table of some words: open addressing, each by one more than its number.
#[allow(dead_code, reason = "the build script uses it, and the library for WebAssembly")]
pub(crate) fn table_of(words: &[Word]) -> Vec<u16> {
    let mut table = vec![0; TABLE_SIZE];
    for (number, word) in (1..).zip(words) {
        let mut slot = first_slot(word.hash);
        while table.get(slot).is_some_and(|&taken| taken != 0) {
            slot = (slot + 1) % TABLE_SIZE;
        }
        if let Some(free) = table.get_mut(slot) {
            *free = number;
        }
    }
    table
}

/// All rules, ready to match. Elements refer to each other by number, not by address, so that a program that is loaded
/// at any address has nothing to adjust in them and their pages stay shared with the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lexicon {
    pub(crate) rules: &'static [Rule],
    pub(crate) nodes: &'static [Node],
    /// The rules of the phrases that end at a node, each node's together.
    pub(crate) ends: &'static [u16],
    pub(crate) words: &'static [Word],
    /// The normalized letters of all words.
    pub(crate) letters: &'static [u8],
    /// The places of all words, each word's together.
    pub(crate) postings: &'static [Posting],
    pub(crate) affixes: &'static [Affixes],
    /// The places of the names of other tools, the deepest first.
    pub(crate) foreign: &'static [u16],
    /// The places of mail addresses, the deepest first.
    pub(crate) addresses: &'static [u16],
    /// Open addressing over `words`: zero is empty, otherwise one more than the word's number.
    pub(crate) table: &'static [u16],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) class: MarkerClass,
    pub(crate) parameters_only: bool,
    /// A negation before it in its sentence makes it harmless.
    pub(crate) unless_negated: bool,
}

/// An element of a phrase, in the tree of all phrases.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The element before it.
    pub(crate) parent: Option<u16>,
    /// How many words may stand in between.
    pub(crate) gap: u8,
    /// They have to be of the same sentence.
    pub(crate) in_sentence: bool,
    /// The word has to stand on its own, not as a part of a name.
    pub(crate) is_plain: bool,
    /// The rules of the phrases that end here, in `Lexicon::ends`.
    pub(crate) ends: Range<u16>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) hash: u32,
    /// Its letters, in `Lexicon::letters`.
    pub(crate) normalized: Range<u16>,
    /// Where it can stand, in `Lexicon::postings`, the deepest places first, so that one word never fills two places of
    /// a phrase at once.
    pub(crate) postings: Range<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) node: u16,
    /// One more than the number of the element before it, 0 if there is none. Most often that one was not found, and the
    /// element itself is not looked at.
    pub(crate) after: u16,
    /// The punctuation that few words ask for, in `Lexicon::affixes`.
    pub(crate) affixes: Option<u8>,
}

impl Posting {
    #[allow(dead_code, reason = "the build script uses it, and the library for WebAssembly")]
    pub(crate) fn new(node: u16, parent: Option<u16>, affixes: Option<u8>) -> Posting {
        Posting { node, after: parent.map_or(0, |parent| parent + 1), affixes }
    }
}

/// The punctuation around a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Affixes {
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

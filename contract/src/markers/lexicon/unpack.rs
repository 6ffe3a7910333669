//! The lexicon from the few bytes that `pack.rs` wrote, where it is not static data.

use super::MarkerClass;
use super::letters::{HASH_START, hash_step};
use super::tree::{Affixes, Lexicon, Node, Posting, Rule, Word, table_of};
use crate::packing::Unpacking;
use std::cmp::Reverse;
use std::ops::Range;

/// The lexicon, which is never freed: there is one.
pub(super) fn unpack(bytes: &'static [u8]) -> Lexicon {
    let mut from = Unpacking(bytes);
    let rules = from.several(|from| {
        let id = from.text();
        let class = from.byte();
        let class = MarkerClass::ALL.into_iter().find(|other| *other as u8 == class);
        let flags = from.byte();
        Rule {
            id,
            class: class.unwrap_or(MarkerClass::InstructionOverride),
            parameters_only: flags & 1 != 0,
            unless_negated: flags & 2 != 0,
        }
    });
    let affixes = from.several(|from| Affixes { before: from.text(), after: from.text() });
    let mut letters = Vec::new();
    let mut words = unpack_words(&mut from, &mut letters);
    let mut ends = Vec::new();
    let mut number = 0;
    let elements = from.several(|from| {
        let back = from.number() as u16;
        let shape = from.byte();
        let rules = from.several(|from| from.number() as u16);
        let node = Node {
            parent: (back > 0).then(|| u16::saturating_sub(number, back)),
            gap: shape & 0x3f,
            in_sentence: shape & 0x40 != 0,
            is_plain: shape & 0x80 != 0,
            ends: append(&mut ends, rules),
        };
        number += 1;
        (node, from.number() as usize)
    });
    let sets = from.several(unpack_set);
    let (nodes, of_nodes): (Vec<Node>, Vec<usize>) = elements.into_iter().unzip();
    let postings = place_words(&mut words, &nodes, &of_nodes, &sets);
    let mut places = || from.several(|from| from.number() as u16).leak();
    Lexicon {
        rules: rules.leak(),
        foreign: places(),
        addresses: places(),
        nodes: nodes.leak(),
        ends: ends.leak(),
        table: table_of(&words).leak(),
        words: words.leak(),
        letters: letters.leak(),
        postings: postings.leak(),
        affixes: affixes.leak(),
    }
}

fn unpack_words(from: &mut Unpacking, letters: &mut Vec<u8>) -> Vec<Word> {
    let mut before: Vec<u8> = Vec::new();
    from.several(|from| {
        before.truncate(from.number() as usize);
        before.extend_from_slice(from.text().as_bytes());
        let hash = before.iter().copied().fold(HASH_START, hash_step);
        Word { hash, normalized: append(letters, before.clone()), postings: 0..0 }
    })
}

/// The words of a set: the number of each, and the punctuation that it asks for.
fn unpack_set(from: &mut Unpacking) -> Vec<(usize, Option<u8>)> {
    let mut word = 0;
    from.several(|from| {
        let number = from.number();
        word += (number >> 1) as usize;
        (word, (number & 1 != 0).then(|| from.byte()))
    })
}

/// Gives each word its places, the deepest first.
fn place_words(
    words: &mut [Word],
    nodes: &[Node],
    of_nodes: &[usize],
    sets: &[Vec<(usize, Option<u8>)>],
) -> Vec<Posting> {
    let mut depths: Vec<u8> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = node.parent.and_then(|parent| depths.get(usize::from(parent)));
        depths.push(before.map_or(0, |depth| depth.saturating_add(1)));
    }
    let mut places: Vec<Vec<Posting>> = words.iter().map(|_| Vec::new()).collect();
    for ((number, node), set) in (0..).zip(nodes).zip(of_nodes) {
        for (word, affixes) in sets.get(*set).into_iter().flatten() {
            if let Some(places) = places.get_mut(*word) {
                places.push(Posting::new(number, node.parent, *affixes));
            }
        }
    }
    let mut postings = Vec::new();
    for (word, mut places) in words.iter_mut().zip(places) {
        places.sort_by_key(|posting| Reverse(depths.get(usize::from(posting.node)).copied()));
        word.postings = append(&mut postings, places);
    }
    postings
}

/// Puts some items behind all others, and says where they are.
fn append<T>(all: &mut Vec<T>, items: Vec<T>) -> Range<u16> {
    let start = all.len() as u16;
    all.extend(items);
    start..all.len() as u16
}

//! The lexicon as few bytes, for WebAssembly, which is downloaded. `build.rs` writes them, `unpack.rs` reads them back.
//!
//! Numbers are written in groups of seven bits. Most elements take one of a few sets of words, so a set is written once
//! and elements name it.

use super::tree::{Lexicon, Posting};
use crate::packing::{push_number, push_text};
use std::collections::BTreeMap;

/// The words that can stand in a place: the number of each, and the punctuation that it asks for.
type Set = Vec<(u32, Option<u8>)>;

pub(crate) fn pack(lexicon: &Lexicon) -> Vec<u8> {
    let mut out = Vec::new();
    push_number(lexicon.rules.len() as u32, &mut out);
    for rule in lexicon.rules {
        push_text(rule.id.as_bytes(), &mut out);
        out.push(rule.class as u8);
        out.push(u8::from(rule.parameters_only) | u8::from(rule.unless_negated) << 1);
    }
    push_number(lexicon.affixes.len() as u32, &mut out);
    for affixes in lexicon.affixes {
        push_text(affixes.before.as_bytes(), &mut out);
        push_text(affixes.after.as_bytes(), &mut out);
    }
    let sets = pack_words(lexicon, &mut out);
    pack_elements(lexicon, &sets, &mut out);
    for places in [lexicon.foreign, lexicon.addresses] {
        push_number(places.len() as u32, &mut out);
        places.iter().for_each(|&place| push_number(u32::from(place), &mut out));
    }
    out
}

/// The words, each by what it shares with the one before. Returns the set of each element.
fn pack_words(lexicon: &Lexicon, out: &mut Vec<u8>) -> BTreeMap<u16, Set> {
    let mut sets: BTreeMap<u16, Set> = BTreeMap::new();
    push_number(lexicon.words.len() as u32, out);
    let mut before: &[u8] = &[];
    for (number, word) in (0..).zip(lexicon.words) {
        let letters = part(lexicon.letters, &word.normalized);
        let shared = before.iter().zip(letters).take_while(|(one, other)| one == other).count();
        push_number(shared as u32, out);
        push_text(letters.get(shared..).unwrap_or_default(), out);
        before = letters;
        for Posting { node, affixes, .. } in part(lexicon.postings, &word.postings) {
            sets.entry(*node).or_default().push((number, *affixes));
        }
    }
    sets
}

fn pack_elements(lexicon: &Lexicon, sets: &BTreeMap<u16, Set>, out: &mut Vec<u8>) {
    let mut numbers: BTreeMap<&Set, u32> = BTreeMap::new();
    let (none, mut written) = (Set::new(), Vec::new());
    push_number(lexicon.nodes.len() as u32, out);
    for (number, node) in (0..).zip(lexicon.nodes) {
        // How far back the element is that this one follows; 0 for the first of a phrase.
        push_number(node.parent.map_or(0, |parent| u32::from(number - parent)), out);
        out.push(node.gap | u8::from(node.in_sentence) << 6 | u8::from(node.is_plain) << 7);
        let ends = part(lexicon.ends, &node.ends);
        push_number(ends.len() as u32, out);
        ends.iter().for_each(|&rule| push_number(u32::from(rule), out));
        let set = sets.get(&number).unwrap_or(&none);
        let next = numbers.len() as u32;
        let known = *numbers.entry(set).or_insert(next);
        push_number(known, out);
        if known == next {
            pack_set(set, &mut written);
        }
    }
    push_number(numbers.len() as u32, out);
    out.extend(written);
}

/// A set by the distances between its words, which ascend.
fn pack_set(set: &Set, out: &mut Vec<u8>) {
    push_number(set.len() as u32, out);
    let mut before = 0;
    for (word, affixes) in set {
        push_number((word - before) << 1 | u32::from(affixes.is_some()), out);
        out.extend(affixes);
        before = *word;
    }
}

fn part<'a, T>(all: &'a [T], range: &std::ops::Range<u16>) -> &'a [T] {
    all.get(usize::from(range.start)..usize::from(range.end)).unwrap_or_default()
}

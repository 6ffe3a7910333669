//! The phrases of `markers.toml`, compiled once: a vocabulary of words, and for each word the places of phrases it can
//! stand in.
//!
//! A phrase is a row of elements. An element is one of some words (`ignore,disregard`, or a named set `{disregard}`);
//! `~4` before it allows up to four other words in between, `_4` the same within one sentence. A word may ask for the
//! punctuation around it (`.env`, `<system>`). `@tool` is the name of a tool that is not the server's. Phrases that begin
//! alike share their beginning, as the branches of a tree do.

use super::MarkerClass;
use super::words::normalized_byte;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("../markers.toml");

/// The most elements that a phrase may have.
const MAX_ELEMENTS: u8 = 12;
/// The widest gap, in words.
const MAX_GAP: u32 = 16;
/// How many slots the table of words has; few enough are taken that a look-up hardly ever looks twice.
const TABLE_SIZE: usize = 16_384;
/// The element that stands for the name of a tool that is not the server's.
const FOREIGN_TOOL: &str = "@tool";
/// The element that stands for an address of electronic mail.
const ADDRESS: &str = "@address";

/// All rules, ready to match.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    pub(super) rules: Vec<Rule>,
    pub(super) nodes: Vec<Node>,
    words: Vec<Word>,
    /// The places of all words, each word's together.
    postings: Vec<Posting>,
    /// The places of the names of other tools, the deepest first.
    foreign: Vec<u16>,
    /// The places of mail addresses, the deepest first.
    addresses: Vec<u16>,
    /// Open addressing over `words`: zero is empty, otherwise one more than the word's number.
    table: Vec<u16>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) class: MarkerClass,
    pub(super) parameters_only: bool,
    /// A negation before it in its sentence makes it harmless.
    pub(super) unless_negated: bool,
}

/// An element of a phrase, in the tree of all phrases.
#[derive(Debug)]
pub(super) struct Node {
    /// The element before it.
    pub(super) parent: Option<u16>,
    /// How many words may stand in between.
    pub(super) gap: u32,
    /// They have to be of the same sentence.
    pub(super) in_sentence: bool,
    /// The word has to stand on its own, not as a part of a name.
    pub(super) is_plain: bool,
    depth: u8,
    /// The rules of the phrases that end here.
    pub(super) ends: Vec<u16>,
}

#[derive(Debug)]
pub(super) struct Word {
    hash: u32,
    pub(super) normalized: Box<[u8]>,
    /// Where it can stand, the deepest places first, so that one word never fills two places of a phrase at once.
    postings: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) node: u16,
    /// Few words ask for punctuation.
    pub(super) affixes: Option<Box<Affixes>>,
}

/// The punctuation around a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Affixes {
    pub(super) before: Box<[u8]>,
    pub(super) after: Box<[u8]>,
}

/// How an element stands to the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    words: u32,
    in_sentence: bool,
    /// Not between but of the element itself: it may not be a part of a name.
    is_plain: bool,
}

/// What is at hand while the tree grows.
struct Growth<'a> {
    sets: &'a BTreeMap<String, String>,
    /// The nodes that are there: by what comes before, the gap and the element as it is written.
    nodes: BTreeMap<(Option<u16>, Gap, &'a str), u16>,
    postings: BTreeMap<Vec<u8>, Vec<Posting>>,
}

/// What is wrong with the data file.
#[derive(Debug, thiserror::Error)]
pub(super) enum LexiconError {
    #[error("the data file is not what it should be")]
    Toml(#[from] toml::de::Error),
    #[error("`{0}` is no class that has phrases")]
    Class(String),
    #[error("rule `{0}` is there twice")]
    Repeated(String),
    #[error("`{phrase}`: {reason}")]
    Phrase { phrase: String, reason: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    sets: BTreeMap<String, String>,
    rule: Vec<RuleSource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RuleSource {
    class: String,
    id: String,
    #[serde(default)]
    parameters_only: bool,
    #[serde(default)]
    unless_negated: bool,
    phrases: Vec<String>,
}

impl Lexicon {
    /// The built-in rules. A test holds that the data file is well formed, so that the empty ones are never seen.
    pub(super) fn built_in() -> &'static Lexicon {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| Lexicon::parse(SOURCE).unwrap_or_default())
    }

    pub(super) fn parse(source: &str) -> Result<Lexicon, LexiconError> {
        let source: Source = toml::from_str(source)?;
        let mut lexicon = Lexicon::default();
        let mut growth =
            Growth { sets: &source.sets, nodes: BTreeMap::new(), postings: BTreeMap::new() };
        for rule in &source.rule {
            let number = lexicon.add_rule(rule)?;
            for phrase in &rule.phrases {
                lexicon
                    .add_phrase(number, phrase, &mut growth)
                    .map_err(|reason| LexiconError::Phrase { phrase: phrase.clone(), reason })?;
            }
        }
        lexicon.add_words(growth.postings);
        let nodes = &lexicon.nodes;
        let depth = |node: &u16| nodes.get(usize::from(*node)).map(|node| node.depth);
        lexicon.foreign.sort_by_key(|node| std::cmp::Reverse(depth(node)));
        lexicon.addresses.sort_by_key(|node| std::cmp::Reverse(depth(node)));
        Ok(lexicon)
    }

    fn add_rule(&mut self, rule: &RuleSource) -> Result<u16, LexiconError> {
        let class = MarkerClass::ALL
            .into_iter()
            .find(|class| class.as_str() == rule.class)
            .filter(|class| class.has_phrases())
            .ok_or_else(|| LexiconError::Class(rule.class.clone()))?;
        if self.rules.iter().any(|other| other.id == rule.id) {
            return Err(LexiconError::Repeated(rule.id.clone()));
        }
        let (parameters_only, unless_negated) = (rule.parameters_only, rule.unless_negated);
        self.rules.push(Rule { id: rule.id.clone(), class, parameters_only, unless_negated });
        Ok(self.rules.len().saturating_sub(1) as u16)
    }

    fn add_phrase<'a>(
        &mut self,
        rule: u16,
        phrase: &'a str,
        growth: &mut Growth<'a>,
    ) -> Result<(), &'static str> {
        let mut last: Option<u16> = None;
        let mut depth = 0;
        // Names of tools are full of verbs.
        let is_plain = self.rules.last().is_some_and(|rule| rule.class == MarkerClass::ToolOrder);
        let close = Gap { is_plain, ..Gap::default() };
        let mut gap = close;
        for part in phrase.split_whitespace() {
            let within = part.strip_prefix('_');
            if let Some(width) = part.strip_prefix('~').or(within) {
                let words = width.parse().map_err(|_| "a gap is not a number")?;
                gap = Gap { words, in_sentence: within.is_some(), is_plain };
                if words > MAX_GAP || last.is_none() {
                    return Err("a gap is too wide or comes first");
                }
                continue;
            }
            if depth == MAX_ELEMENTS {
                return Err("too many elements");
            }
            depth += 1;
            last = Some(match growth.nodes.get(&(last, gap, part)) {
                Some(&node) => node,
                None => self.add_node(
                    Node {
                        parent: last,
                        gap: gap.words,
                        in_sentence: gap.in_sentence,
                        is_plain,
                        depth,
                        ends: Vec::new(),
                    },
                    part,
                    growth,
                )?,
            });
            gap = close;
        }
        let end = last.and_then(|last| self.nodes.get_mut(usize::from(last)));
        match end.filter(|_| gap == close) {
            Some(node) => node.ends.push(rule),
            None => return Err("it has no words, or ends in a gap"),
        }
        Ok(())
    }

    fn add_node<'a>(
        &mut self,
        node: Node,
        part: &'a str,
        growth: &mut Growth<'a>,
    ) -> Result<u16, &'static str> {
        let number = u16::try_from(self.nodes.len()).map_err(|_| "too many elements")?;
        for alternative in alternatives(part, growth.sets).ok_or("an unknown set")? {
            match alternative {
                FOREIGN_TOOL => self.foreign.push(number),
                ADDRESS => self.addresses.push(number),
                other if other.starts_with('@') => return Err("an unknown element"),
                word => {
                    let (word, affixes) =
                        split_affixes(word).ok_or("a word that is not letters and digits")?;
                    let posting = Posting { node: number, affixes };
                    let places = growth.postings.entry(word).or_default();
                    if !places.contains(&posting) {
                        places.push(posting);
                    }
                }
            }
        }
        let (words, in_sentence, is_plain) = (node.gap, node.in_sentence, node.is_plain);
        let gap = Gap { words, in_sentence, is_plain };
        growth.nodes.insert((node.parent, gap, part), number);
        self.nodes.push(node);
        Ok(number)
    }

    fn add_words(&mut self, postings: BTreeMap<Vec<u8>, Vec<Posting>>) {
        self.table = vec![0; TABLE_SIZE];
        self.words = Vec::with_capacity(postings.len());
        self.postings = Vec::with_capacity(postings.values().map(Vec::len).sum());
        for (normalized, mut postings) in postings {
            let depth = |posting: &Posting| {
                self.nodes.get(usize::from(posting.node)).map(|node| node.depth)
            };
            postings.sort_by_key(|posting| std::cmp::Reverse(depth(posting)));
            let hash = word_hash(normalized.iter().copied());
            let first = self.postings.len();
            self.postings.append(&mut postings);
            let postings = first..self.postings.len();
            self.words.push(Word { hash, normalized: normalized.into(), postings });
            let number = self.words.len() as u16;
            let mut slot = first_slot(hash);
            while self.table.get(slot).is_some_and(|&taken| taken != 0) {
                slot = (slot + 1) % TABLE_SIZE;
            }
            if let Some(free) = self.table.get_mut(slot) {
                *free = number;
            }
        }
    }

    /// Where the name of a tool that is not the server's can stand.
    pub(super) fn foreign(&self) -> &[u16] {
        &self.foreign
    }

    /// Where a mail address can stand.
    pub(super) fn addresses(&self) -> &[u16] {
        &self.addresses
    }

    pub(super) fn postings(&self, word: &Word) -> &[Posting] {
        self.postings.get(word.postings.clone()).unwrap_or_default()
    }

    /// The word with this hash and these bytes (already normalized ones).
    pub(super) fn word(&self, hash: u32, is_it: impl Fn(&Word) -> bool) -> Option<&Word> {
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

/// The hash that the word loop keeps as it goes: one step a byte.
pub(super) fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

pub(super) const HASH_START: u32 = 0x811c_9dc5;

fn word_hash(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(HASH_START, hash_step)
}

fn first_slot(hash: u32) -> usize {
    (hash ^ (hash >> 15)) as usize % TABLE_SIZE
}

fn alternatives<'a>(part: &'a str, sets: &'a BTreeMap<String, String>) -> Option<Vec<&'a str>> {
    let mut words = Vec::new();
    for alternative in part.split(',') {
        match alternative.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(set) => words.extend(sets.get(set)?.split_whitespace()),
            None => words.push(alternative),
        }
    }
    Some(words)
}

/// Splits `<system>` into the normalized word and what stands around it.
fn split_affixes(word: &str) -> Option<(Vec<u8>, Option<Box<Affixes>>)> {
    let start = word.find(|character: char| character.is_ascii_alphanumeric())?;
    let (before, rest) = word.split_at_checked(start)?;
    let end = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (middle, after) = rest.split_at_checked(end)?;
    let is_plain = after.bytes().all(|byte| byte.is_ascii_punctuation())
        && before.bytes().all(|byte| byte.is_ascii_punctuation());
    let normalized = middle.bytes().filter_map(normalized_byte).collect();
    let affixes = (!before.is_empty() || !after.is_empty())
        .then(|| Affixes { before: before.as_bytes().into(), after: after.as_bytes().into() });
    is_plain.then_some((normalized, affixes.map(Box::new)))
}

#[cfg(test)]
mod tests;

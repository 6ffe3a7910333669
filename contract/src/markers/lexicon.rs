//! The phrases of `markers.toml`, compiled once: a vocabulary of words, and for each word the places of phrases it can
//! stand in.
//!
//! A phrase is a row of elements. An element is one of some words (`ignore,disregard`, or a named set `{disregard}`);
//! `~4` before it allows up to four other words in between. A word may ask for the punctuation around it (`.env`,
//! `<system>`).

use super::MarkerClass;
use super::words::normalized_byte;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("../markers.toml");

/// The most elements that a phrase may have.
const MAX_ELEMENTS: usize = 12;
/// The widest gap, in words.
const MAX_GAP: u32 = 16;
/// How many slots the table of words has; few enough are taken that a look-up hardly ever looks twice.
const TABLE_SIZE: usize = 8192;

/// All rules, ready to match.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    pub(super) rules: Vec<Rule>,
    pub(super) phrases: Vec<Phrase>,
    words: Vec<Word>,
    /// Open addressing over `words`: zero is empty, otherwise one more than the word's number.
    table: Vec<u16>,
    /// How many elements all phrases have together.
    pub(super) progress_size: usize,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) class: MarkerClass,
    pub(super) parameters_only: bool,
}

#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) rule: u16,
    /// The place of its first element among the elements of all phrases.
    pub(super) first: usize,
    /// The gap allowed before each element.
    pub(super) gaps: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Word {
    hash: u32,
    pub(super) normalized: Vec<u8>,
    /// Where it can stand, later elements of a phrase first, so that one word never fills two places at once.
    pub(super) postings: Vec<Posting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) phrase: u16,
    pub(super) element: u8,
    pub(super) before: Box<[u8]>,
    pub(super) after: Box<[u8]>,
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
        let mut postings: BTreeMap<Vec<u8>, Vec<Posting>> = BTreeMap::new();
        for rule in &source.rule {
            let number = lexicon.add_rule(rule)?;
            for phrase in &rule.phrases {
                lexicon.add_phrase(number, phrase, &source.sets, &mut postings)?;
            }
        }
        lexicon.add_words(postings);
        Ok(lexicon)
    }

    fn add_rule(&mut self, rule: &RuleSource) -> Result<u16, LexiconError> {
        let class = MarkerClass::ALL
            .into_iter()
            .find(|class| class.as_str() == rule.class)
            .filter(|class| *class != MarkerClass::HiddenCharacters)
            .ok_or_else(|| LexiconError::Class(rule.class.clone()))?;
        if self.rules.iter().any(|other| other.id == rule.id) {
            return Err(LexiconError::Repeated(rule.id.clone()));
        }
        let parameters_only = rule.parameters_only;
        self.rules.push(Rule { id: rule.id.clone(), class, parameters_only });
        Ok(self.rules.len().saturating_sub(1) as u16)
    }

    fn add_phrase(
        &mut self,
        rule: u16,
        phrase: &str,
        sets: &BTreeMap<String, String>,
        postings: &mut BTreeMap<Vec<u8>, Vec<Posting>>,
    ) -> Result<(), LexiconError> {
        let fail = |reason| LexiconError::Phrase { phrase: phrase.to_owned(), reason };
        let number = u16::try_from(self.phrases.len()).map_err(|_| fail("too many phrases"))?;
        let mut gaps = Vec::new();
        let mut gap = 0;
        for part in phrase.split_whitespace() {
            if let Some(width) = part.strip_prefix('~') {
                gap = width.parse().map_err(|_| fail("a gap is not a number"))?;
                if gap > MAX_GAP || gaps.is_empty() {
                    return Err(fail("a gap is too wide or comes first"));
                }
                continue;
            }
            if gaps.len() == MAX_ELEMENTS {
                return Err(fail("too many elements"));
            }
            let element = gaps.len() as u8;
            for alternative in alternatives(part, sets).ok_or_else(|| fail("an unknown set"))? {
                let (before, word, after) = affixes(alternative)
                    .ok_or_else(|| fail("a word that is not letters and digits"))?;
                let posting =
                    Posting { phrase: number, element, before: before.into(), after: after.into() };
                let places = postings.entry(word).or_default();
                if !places.contains(&posting) {
                    places.push(posting);
                }
            }
            gaps.push(gap);
            gap = 0;
        }
        if gaps.is_empty() || gap != 0 {
            return Err(fail("it has no words, or ends in a gap"));
        }
        let first = self.progress_size;
        self.progress_size += gaps.len();
        self.phrases.push(Phrase { rule, first, gaps });
        Ok(())
    }

    fn add_words(&mut self, postings: BTreeMap<Vec<u8>, Vec<Posting>>) {
        self.table = vec![0; TABLE_SIZE];
        for (normalized, mut postings) in postings {
            postings.sort_by_key(|posting| std::cmp::Reverse(posting.element));
            let hash = word_hash(normalized.iter().copied());
            self.words.push(Word { hash, normalized, postings });
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

/// Splits `<system>` into what stands before, the normalized word and what stands after.
fn affixes(word: &str) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let start = word.find(|character: char| character.is_ascii_alphanumeric())?;
    let (before, rest) = word.split_at_checked(start)?;
    let end = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (middle, after) = rest.split_at_checked(end)?;
    let is_plain = after.bytes().all(|byte| byte.is_ascii_punctuation())
        && before.bytes().all(|byte| byte.is_ascii_punctuation());
    let normalized = middle.bytes().filter_map(normalized_byte).collect();
    is_plain.then_some((before.as_bytes(), normalized, after.as_bytes()))
}

#[cfg(test)]
mod tests;

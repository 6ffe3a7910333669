//! Reads `markers.toml` and builds the lexicon: in `build.rs` the built-in one, in tests one of other phrases.
//!
//! A phrase is a row of elements. An element is one of some words (`ignore,disregard`, or a named set `{disregard}`);
//! `~4` before it allows up to four other words in between, `_4` the same within one sentence. A word may ask for the
//! punctuation around it (`.env`, `<system>`). `@tool` is the name of a tool that is not the server's. Phrases that begin
//! alike share their beginning, as the branches of a tree do.

use super::MarkerClass;
use super::letters::{HASH_START, hash_step, normalized_byte};
use super::tree::{Affixes, Lexicon, Node, Posting, Rule, TABLE_SIZE, Word, table_of};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most elements that a phrase may have.
pub(crate) const MAX_ELEMENTS: u8 = 12;
/// The widest gap, in words.
const MAX_GAP: u8 = 16;
/// The element that stands for the name of a tool that is not the server's.
const FOREIGN_TOOL: &str = "@tool";
/// The element that stands for an address of electronic mail.
const ADDRESS: &str = "@address";

/// What is wrong with the data file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LexiconError {
    #[error("the data file is not what it should be: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("`{0}` is no class that has phrases")]
    Class(String),
    #[error("rule `{0}` is there twice")]
    Repeated(String),
    #[error("`{phrase}`: {reason}")]
    Phrase { phrase: String, reason: &'static str },
    #[error("the phrases have too many {0}")]
    Size(&'static str),
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

/// How an element stands to the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    words: u8,
    in_sentence: bool,
    /// Not between but of the element itself: it may not be a part of a name.
    is_plain: bool,
}

/// An element of the tree while the tree grows.
struct Element {
    parent: Option<u16>,
    gap: Gap,
    depth: u8,
    /// The rules of the phrases that end here.
    ends: Vec<u16>,
}

/// The lexicon while it grows.
struct Growth<'a> {
    sets: &'a BTreeMap<String, String>,
    rules: Vec<Rule>,
    elements: Vec<Element>,
    /// The elements that are there: by what comes before, the gap and the element as it is written.
    numbers: BTreeMap<(Option<u16>, Gap, &'a str), u16>,
    postings: BTreeMap<Vec<u8>, Vec<Posting>>,
    affixes: Vec<Affixes>,
    foreign: Vec<u16>,
    addresses: Vec<u16>,
}

/// The lexicon of a data file. What it refers to is never freed: a build script and a test end soon.
pub(crate) fn parse(source: &str) -> Result<Lexicon, LexiconError> {
    let source: Source = toml::from_str(source)?;
    let mut growth = Growth {
        sets: &source.sets,
        rules: Vec::new(),
        elements: Vec::new(),
        numbers: BTreeMap::new(),
        postings: BTreeMap::new(),
        affixes: Vec::new(),
        foreign: Vec::new(),
        addresses: Vec::new(),
    };
    for rule in &source.rule {
        let number = growth.add_rule(rule)?;
        for phrase in &rule.phrases {
            growth
                .add_phrase(number, phrase)
                .map_err(|reason| LexiconError::Phrase { phrase: phrase.clone(), reason })?;
        }
    }
    growth.finish()
}

impl<'a> Growth<'a> {
    fn add_rule(&mut self, rule: &RuleSource) -> Result<u16, LexiconError> {
        let class = MarkerClass::ALL
            .into_iter()
            .find(|class| class.as_str() == rule.class)
            .filter(|&class| has_phrases(class))
            .ok_or_else(|| LexiconError::Class(rule.class.clone()))?;
        if self.rules.iter().any(|other| other.id == rule.id) {
            return Err(LexiconError::Repeated(rule.id.clone()));
        }
        let number = u16::try_from(self.rules.len()).map_err(|_| LexiconError::Size("rules"))?;
        let (parameters_only, unless_negated) = (rule.parameters_only, rule.unless_negated);
        let id = rule.id.clone().leak();
        self.rules.push(Rule { id, class, parameters_only, unless_negated });
        Ok(number)
    }

    fn add_phrase(&mut self, rule: u16, phrase: &'a str) -> Result<(), &'static str> {
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
            last = Some(match self.numbers.get(&(last, gap, part)) {
                Some(&number) => number,
                None => {
                    self.add_element(Element { parent: last, gap, depth, ends: Vec::new() }, part)?
                }
            });
            gap = close;
        }
        let end = last.and_then(|last| self.elements.get_mut(usize::from(last)));
        match end.filter(|_| gap == close) {
            Some(element) => element.ends.push(rule),
            None => return Err("it has no words, or ends in a gap"),
        }
        Ok(())
    }

    fn add_element(&mut self, element: Element, part: &'a str) -> Result<u16, &'static str> {
        let number = u16::try_from(self.elements.len()).map_err(|_| "too many elements")?;
        for alternative in alternatives(part, self.sets).ok_or("an unknown set")? {
            match alternative {
                FOREIGN_TOOL => self.foreign.push(number),
                ADDRESS => self.addresses.push(number),
                other if other.starts_with('@') => return Err("an unknown element"),
                word => {
                    let (normalized, before, after) =
                        split_affixes(word).ok_or("a word that is not letters and digits")?;
                    let affixes = self.affixes(before, after)?;
                    let posting = Posting::new(number, element.parent, affixes);
                    let places = self.postings.entry(normalized).or_default();
                    if !places.contains(&posting) {
                        places.push(posting);
                    }
                }
            }
        }
        self.numbers.insert((element.parent, element.gap, part), number);
        self.elements.push(element);
        Ok(number)
    }

    /// The number of this punctuation; `None` for none.
    fn affixes(&mut self, before: &str, after: &str) -> Result<Option<u8>, &'static str> {
        if before.is_empty() && after.is_empty() {
            return Ok(None);
        }
        let is_it = |known: &Affixes| known.before == before && known.after == after;
        let place = self.affixes.iter().position(is_it).unwrap_or(self.affixes.len());
        if place == self.affixes.len() {
            let (before, after) = (before.to_owned().leak(), after.to_owned().leak());
            self.affixes.push(Affixes { before, after });
        }
        u8::try_from(place).map(Some).map_err(|_| "too many kinds of punctuation")
    }

    fn finish(mut self) -> Result<Lexicon, LexiconError> {
        let elements = &self.elements;
        let depth = |number: u16| elements.get(usize::from(number)).map(|element| element.depth);
        self.foreign.sort_by_key(|&number| Reverse(depth(number)));
        self.addresses.sort_by_key(|&number| Reverse(depth(number)));
        let (mut words, mut letters, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (normalized, mut postings) in self.postings {
            postings.sort_by_key(|posting| Reverse(depth(posting.node)));
            let hash = normalized.iter().copied().fold(HASH_START, hash_step);
            let normalized = append(&mut letters, normalized, "letters")?;
            let postings = append(&mut places, postings, "places of words")?;
            words.push(Word { hash, normalized, postings });
        }
        // A table that is half full would be slow, and one that is full would have no end.
        if words.len() * 2 >= TABLE_SIZE {
            return Err(LexiconError::Size("words"));
        }
        let table = table_of(&words);
        let (mut nodes, mut ends) = (Vec::new(), Vec::new());
        for Element { parent, gap, ends: rules, .. } in self.elements {
            let Gap { words: gap, in_sentence, is_plain } = gap;
            let ends = append(&mut ends, rules, "ends of phrases")?;
            nodes.push(Node { parent, gap, in_sentence, is_plain, ends });
        }
        Ok(Lexicon {
            rules: self.rules.leak(),
            nodes: nodes.leak(),
            ends: ends.leak(),
            words: words.leak(),
            letters: letters.leak(),
            postings: places.leak(),
            affixes: self.affixes.leak(),
            foreign: self.foreign.leak(),
            addresses: self.addresses.leak(),
            table: table.leak(),
        })
    }
}

/// Whether a class is found by the phrases of the data file.
pub(crate) const fn has_phrases(class: MarkerClass) -> bool {
    !matches!(class, MarkerClass::HiddenCharacters | MarkerClass::DecodedCommand)
}

/// Puts some items behind all others, and says where they are.
fn append<T>(
    all: &mut Vec<T>,
    items: Vec<T>,
    name: &'static str,
) -> Result<Range<u16>, LexiconError> {
    let number = |length: usize| u16::try_from(length).map_err(|_| LexiconError::Size(name));
    let start = number(all.len())?;
    all.extend(items);
    Ok(start..number(all.len())?)
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

/// Splits `<system>` into the normalized word and the punctuation before and after it.
fn split_affixes(word: &str) -> Option<(Vec<u8>, &str, &str)> {
    let start = word.find(|character: char| character.is_ascii_alphanumeric())?;
    let (before, rest) = word.split_at_checked(start)?;
    let end = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (middle, after) = rest.split_at_checked(end)?;
    let is_plain = after.bytes().all(|byte| byte.is_ascii_punctuation())
        && before.bytes().all(|byte| byte.is_ascii_punctuation());
    let normalized = middle.bytes().filter_map(normalized_byte).collect();
    is_plain.then_some((normalized, before, after))
}

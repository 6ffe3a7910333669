//! Words and phrases in bytes, in one pass.
//!
//! Why it is linear whatever the bytes are: each byte is read once by the word loop and at most once more to split a
//! `camelCase` word; each word is looked up once in a table of fixed size; a known word touches the few places of
//! phrases that it can stand in, a number that the data file fixes. For a place only its latest end is kept: gaps are
//! bounded by distance alone, so an earlier end can complete nothing that the latest one cannot.

use super::Place;
use super::around::{ends_sentence, has_affixes, is_part_of_a_name};
use super::encoded::MIN_BASE64;
use super::foreign::{OwnNames, is_written_like_a_tool};
use super::letters::{
    CAPITAL, HASH_START, SEPARATOR, SKIPPED, class, hash_step, normalized_byte, traits,
};
use super::lexicon::{Lexicon, Node, Posting, Word};
use super::quoted::{is_negated, is_talked_about};

/// A phrase that was found, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) rule: u16,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// How far a phrase has come: its elements up to some place were found, the last of them at a word.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    word: u32,
    start: u32,
}

/// Letters that may be the name of a tool: where they start, the number of the first word in them, and whether an
/// underscore is among them.
#[derive(Debug, Clone, Copy)]
struct Name {
    start: usize,
    first_word: u32,
    has_underscore: bool,
}

/// Where an element of a phrase stands.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    first_word: u32,
}

/// Matches all phrases at once.
#[derive(Debug)]
pub(super) struct Matcher {
    lexicon: &'static Lexicon,
    progress: Vec<Progress>,
    is_reported: Vec<bool>,
    has_reported: bool,
    /// The number of the word last read. It goes on from text to text; `base` is where the present text began, and
    /// progress at or below it is of another text.
    word: u32,
    base: u32,
    /// The number of the last word before the present sentence.
    sentence: u32,
    /// A phrase was complete in the present text, whether it counted or not.
    has_completed: bool,
    place: Place,
    hits: Vec<Hit>,
}

impl Matcher {
    pub(super) fn new(lexicon: &'static Lexicon) -> Self {
        Matcher {
            lexicon,
            progress: vec![Progress::default(); lexicon.nodes.len()],
            is_reported: vec![false; lexicon.rules.len()],
            has_reported: false,
            word: 0,
            base: 0,
            sentence: 0,
            has_completed: false,
            place: Place::Anywhere,
            hits: Vec::new(),
        }
    }

    pub(super) fn lexicon(&self) -> &'static Lexicon {
        self.lexicon
    }

    /// Whether a phrase was complete in the bytes that were searched last.
    pub(super) fn has_completed(&self) -> bool {
        self.has_completed
    }

    /// Begins a string: each rule is reported once in it, however often it is found, as written or folded.
    pub(super) fn begin(&mut self, place: Place) {
        self.place = place;
        if self.has_reported {
            self.is_reported.fill(false);
            self.has_reported = false;
        }
    }

    /// Whether a text is one plain word that is no phrase by itself, as most names and values of a schema are. Nothing is
    /// found in it, as written or folded.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn is_plain_word(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut hash = HASH_START;
        for &byte in bytes {
            if !byte.is_ascii_lowercase() {
                return false;
            }
            hash = hash_step(hash, class(byte));
        }
        let lexicon = self.lexicon;
        let is_phrase = |posting: &Posting| {
            posting.parent.is_none()
                && lexicon
                    .nodes
                    .get(usize::from(posting.node))
                    .is_none_or(|node| !node.ends.is_empty())
        };
        bytes.len() < MIN_BASE64
            && !self
                .known(bytes, 0, bytes.len(), hash)
                .is_some_and(|word| lexicon.postings(word).iter().any(is_phrase))
    }

    /// The phrases in some bytes that were not reported for this string yet. Without names of the server's own, the bytes
    /// are not searched for names of tools.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn find(&mut self, bytes: &[u8], mut own: Option<&mut OwnNames<'_>>) -> Vec<Hit> {
        if self.word > u32::MAX / 2 {
            self.progress.fill(Progress::default());
            self.word = 0;
        }
        self.base = self.word;
        self.sentence = self.word;
        self.has_completed = false;
        let mut start = None;
        let mut name: Option<Name> = None;
        let mut hash = HASH_START;
        // What each letter of the word had in common with the one before it, as [`traits`] shifted by one: a capital behind
        // a small letter.
        let mut humps = 0;
        let mut before = 0;
        let mut rest = bytes.iter();
        loop {
            // Where the letters end that begin here.
            let first = bytes.len() - rest.len();
            let mut end = None;
            for &byte in rest.by_ref() {
                let traits = traits(byte);
                let letter = traits as u8;
                if letter <= SKIPPED {
                    end = Some(byte);
                    break;
                }
                hash = hash_step(hash, letter);
                humps |= traits & (before >> 1);
                before = traits;
            }
            let offset = bytes.len() - rest.len() - usize::from(end.is_some());
            if offset > first {
                let first_word = self.word.saturating_add(1);
                name.get_or_insert(Name { start: first, first_word, has_underscore: false });
                start.get_or_insert(first);
            }
            let Some(byte) = end else { break };
            // An apostrophe ends a name, and not a word.
            if class(byte) == SEPARATOR {
                if let Some(first) = start.take() {
                    self.word(bytes, first, offset, hash, humps & CAPITAL != 0);
                    hash = HASH_START;
                    humps = 0;
                    before = 0;
                }
                if byte == b'_' || byte == b'-' {
                    if let Some(name) = &mut name {
                        name.has_underscore |= byte == b'_';
                    }
                    continue;
                }
            }
            if let (Some(name), Some(own)) = (name.take(), &mut own) {
                self.name(bytes, name, offset, own);
            }
            if byte == b'@' {
                self.address(bytes, offset);
            }
            if ends_sentence(bytes, offset, byte) {
                self.sentence = self.word;
            }
        }
        if let Some(first) = start {
            self.word(bytes, first, bytes.len(), hash, humps & CAPITAL != 0);
        }
        if let (Some(name), Some(own)) = (name, own) {
            self.name(bytes, name, bytes.len(), own);
        }
        std::mem::take(&mut self.hits)
    }

    /// Takes letters as the name of a tool, if they are written like one and some phrase waits for one.
    #[inline(always)]
    fn name(&mut self, bytes: &[u8], name: Name, end: usize, own: &mut OwnNames<'_>) {
        // One plain word is the common case.
        let is_plain = self.word == name.first_word && !name.has_underscore;
        if !is_plain && is_written_like_a_tool(bytes, name.start, end) {
            self.tool(bytes, name, end, own);
        }
    }

    fn tool(&mut self, bytes: &[u8], name: Name, end: usize, own: &mut OwnNames<'_>) {
        let Name { start, first_word, .. } = name;
        let span = Span { start, first_word };
        let lexicon = self.lexicon;
        let mut is_foreign = None;
        for &node in lexicon.foreign() {
            let begun = self.begun(node, span);
            let Some(begun) = begun else { continue };
            let name = bytes.get(start..end).unwrap_or(&[]);
            if !*is_foreign.get_or_insert_with(|| !own.contains(name)) {
                return;
            }
            self.reach(node, begun, bytes, end);
        }
    }

    /// Takes an `@` between two letters as a mail address.
    fn address(&mut self, bytes: &[u8], offset: usize) {
        let letter = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric)
        };
        if !letter(offset.checked_sub(1)) || !letter(offset.checked_add(1)) {
            return;
        }
        let span = Span { start: offset, first_word: self.word };
        let lexicon = self.lexicon;
        for &node in lexicon.addresses() {
            if let Some(begun) = self.begun(node, span) {
                self.reach(node, begun, bytes, offset);
            }
        }
    }

    /// Takes a word as a whole if it is known, else by its humps: `iGnOrE` is one word, `ignorePrevious` is two.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn word(&mut self, bytes: &[u8], start: usize, end: usize, hash: u32, is_camel: bool) {
        let found = self.known(bytes, start, end, hash);
        if found.is_none() && is_camel {
            return self.humps(bytes, start, end);
        }
        self.word = self.word.saturating_add(1);
        if let Some(word) = found {
            self.advance(word, bytes, start, end);
        }
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn humps(&mut self, bytes: &[u8], start: usize, end: usize) {
        let mut first = start;
        let mut hash = HASH_START;
        let mut after_lower = false;
        for (distance, &byte) in bytes.get(start..end).unwrap_or(&[]).iter().enumerate() {
            let offset = start + distance;
            if after_lower && byte.is_ascii_uppercase() {
                self.word(bytes, first, offset, hash, false);
                first = offset;
                hash = HASH_START;
            }
            if let Some(letter) = normalized_byte(byte) {
                hash = hash_step(hash, letter);
            }
            after_lower = byte.is_ascii_lowercase();
        }
        self.word(bytes, first, end, hash, false);
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn known(&self, bytes: &[u8], start: usize, end: usize, hash: u32) -> Option<&'static Word> {
        self.lexicon.word(hash, |word| {
            let spelled = bytes.get(start..end).unwrap_or(&[]);
            let letters = self.lexicon.normalized(word);
            // Without an apostrophe there is a letter for each byte.
            match spelled.len() == letters.len() {
                true => spelled.iter().zip(letters).all(|(&byte, &letter)| class(byte) == letter),
                false => {
                    let spelled = spelled.iter().filter_map(|&byte| normalized_byte(byte));
                    spelled.eq(letters.iter().copied())
                }
            }
        })
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn advance(&mut self, word: &Word, bytes: &[u8], start: usize, end: usize) {
        let span = Span { start, first_word: self.word };
        for posting in self.lexicon.postings(word) {
            if posting.parent.is_some_and(|parent| !self.is_reached(parent)) {
                continue;
            }
            let Some(node) = self.lexicon.nodes.get(usize::from(posting.node)) else { continue };
            let Some(begun) = self.begun_at(node, span) else { continue };
            if node.is_plain && is_part_of_a_name(bytes, start, end) {
                continue;
            }
            let affixes = self.lexicon.affixes(posting);
            if affixes.is_none_or(|affixes| has_affixes(affixes, bytes, start, end)) {
                self.reach(posting.node, begun, bytes, end);
            }
        }
    }

    /// Whether an element was found in the present text.
    #[inline(always)]
    fn is_reached(&self, node: u16) -> bool {
        self.progress.get(usize::from(node)).is_some_and(|progress| progress.word > self.base)
    }

    /// Where the phrase began that can go on with this element here; `None` if the elements before it are missing.
    #[inline(always)]
    fn begun(&self, node: u16, span: Span) -> Option<u32> {
        self.begun_at(self.lexicon.nodes.get(usize::from(node))?, span)
    }

    #[inline(always)]
    fn begun_at(&self, node: &Node, span: Span) -> Option<u32> {
        let Some(parent) = node.parent else { return Some(span.start as u32) };
        let before = self.progress.get(usize::from(parent))?;
        let floor = if node.in_sentence { self.sentence } else { self.base };
        let is_near = before.word > floor
            && before.word < span.first_word
            && span.first_word - before.word <= u32::from(node.gap) + 1;
        is_near.then_some(before.start)
    }

    /// An element was found: notes how far its phrase has come, and reports what ends here.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn reach(&mut self, node: u16, begun: u32, bytes: &[u8], end: usize) {
        let at = usize::from(node);
        if let Some(progress) = self.progress.get_mut(at) {
            *progress = Progress { word: self.word, start: begun };
        }
        let lexicon = self.lexicon;
        for &rule in lexicon.nodes.get(at).map_or(&[][..], |node| lexicon.ends(node)) {
            self.report(rule, bytes, begun as usize, end);
        }
    }

    fn report(&mut self, number: u16, bytes: &[u8], start: usize, end: usize) {
        self.has_completed = true;
        let lexicon = self.lexicon;
        let Some(rule) = lexicon.rules.get(usize::from(number)) else { return };
        if rule.parameters_only && self.place != Place::Parameter {
            return;
        }
        let Some(is_reported) = self.is_reported.get_mut(usize::from(number)) else { return };
        // One that does not count is not reported, and does not keep a later one from being reported.
        let is_void = || {
            rule.unless_negated && is_negated(bytes, start)
                || is_talked_about(rule.class, bytes, start)
        };
        if !*is_reported && !is_void() {
            *is_reported = true;
            self.has_reported = true;
            self.hits.push(Hit { rule: number, start, end });
        }
    }
}

#[cfg(test)]
mod tests;

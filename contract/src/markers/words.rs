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
    CAPITAL, HASH_START, OF_NO_NAME, SEPARATOR, SKIPPED, SMALL, class, hash_step, normalized_byte,
    traits,
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
    /// The word at which each element was last found, with all those before it in its phrase, one place behind its number.
    /// The first place stands before all phrases and is always reached.
    reached: Vec<u32>,
    /// Where the phrase began then.
    begun: Vec<u32>,
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
    /// In another place of an entry, or for a server with other tools, something else might be found in the present string.
    is_conditional: bool,
    /// What the bytes that are no letters look like: see [`Self::traits`].
    traits: u16,
    place: Place,
    hits: Vec<Hit>,
}

impl Matcher {
    pub(super) fn new(lexicon: &'static Lexicon) -> Self {
        Matcher {
            lexicon,
            reached: reached_nothing(lexicon),
            begun: vec![0; lexicon.nodes.len() + 1],
            is_reported: vec![false; lexicon.rules.len()],
            has_reported: false,
            word: 0,
            base: 0,
            sentence: 0,
            has_completed: false,
            is_conditional: false,
            traits: 0,
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

    /// Whether a phrase was complete in the present string, or the names of the server's own tools were asked for.
    pub(super) fn is_conditional(&self) -> bool {
        self.is_conditional
    }

    /// The traits of all bytes that were searched last, but for those of letters and digits.
    pub(super) fn traits(&self) -> u16 {
        self.traits
    }

    /// Begins a string: each rule is reported once in it, however often it is found, as written or folded.
    pub(super) fn begin(&mut self, place: Place) {
        self.place = place;
        self.is_conditional = false;
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
            posting.after == 0
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

    /// The phrases in some bytes that were not reported for this string yet.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(super) fn find(&mut self, bytes: &[u8], own: &mut OwnNames<'_>) -> Vec<Hit> {
        if self.word > u32::MAX / 2 {
            self.reached = reached_nothing(self.lexicon);
            self.word = 0;
        }
        self.base = self.word;
        self.sentence = self.word;
        self.has_completed = false;
        let mut start = None;
        let mut name: Option<Name> = None;
        let mut hash = HASH_START;
        // The traits of the letters of the word, and of all other bytes.
        let mut of_word = 0;
        let mut of_others = 0;
        let mut rest = bytes.iter();
        loop {
            // Where the letters end that begin here.
            let first = bytes.len() - rest.len();
            let mut end = None;
            for &byte in rest.by_ref() {
                let traits = traits(byte);
                let letter = traits as u8;
                if letter <= SKIPPED {
                    of_others |= traits;
                    end = Some(byte);
                    break;
                }
                hash = hash_step(hash, letter);
                of_word |= traits;
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
                    self.word(bytes, first, offset, hash, of_word);
                    hash = HASH_START;
                    of_word = 0;
                }
                if byte == b'_' || byte == b'-' {
                    if let Some(name) = &mut name {
                        name.has_underscore |= byte == b'_';
                    }
                    continue;
                }
            }
            if let Some(name) = name.take() {
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
            self.word(bytes, first, bytes.len(), hash, of_word);
        }
        // No phrase is the name of a tool alone, so that a text that is one name does not speak of a tool.
        if let Some(name) = name.filter(|_| of_others & OF_NO_NAME != 0) {
            self.name(bytes, name, bytes.len(), own);
        }
        self.traits = of_others;
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
            let begun = self.begun_in(node, span);
            let Some(begun) = begun else { continue };
            self.is_conditional = true;
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
            if let Some(begun) = self.begun_in(node, span) {
                self.reach(node, begun, bytes, offset);
            }
        }
    }

    /// Takes a word as a whole if it is known, else by its humps: `iGnOrE` is one word, `ignorePrevious` is two. `traits` are
    /// those of its letters.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn word(&mut self, bytes: &[u8], start: usize, end: usize, hash: u32, traits: u16) {
        let found = self.known(bytes, start, end, hash);
        let is_mixed = traits & (CAPITAL | SMALL) == CAPITAL | SMALL;
        if found.is_none()
            && is_mixed
            && bytes.get(start + 1..end).is_some_and(|rest| rest.iter().any(u8::is_ascii_uppercase))
        {
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
                self.word(bytes, first, offset, hash, 0);
                first = offset;
                hash = HASH_START;
            }
            if let Some(letter) = normalized_byte(byte) {
                hash = hash_step(hash, letter);
            }
            after_lower = byte.is_ascii_lowercase();
        }
        self.word(bytes, first, end, hash, 0);
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
            if !self.is_reached(posting.after) {
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

    /// Whether an element can follow what was found in the present text.
    #[inline(always)]
    fn is_reached(&self, after: u16) -> bool {
        self.reached.get(usize::from(after)).is_some_and(|word| *word > self.base)
    }

    /// Where the phrase began that can go on with this element here; `None` if the elements before it are missing.
    #[inline(always)]
    fn begun_in(&self, node: u16, span: Span) -> Option<u32> {
        self.begun_at(self.lexicon.nodes.get(usize::from(node))?, span)
    }

    #[inline(always)]
    fn begun_at(&self, node: &Node, span: Span) -> Option<u32> {
        let Some(parent) = node.parent else { return Some(span.start as u32) };
        let place = usize::from(parent) + 1;
        let before = *self.reached.get(place)?;
        let floor = if node.in_sentence { self.sentence } else { self.base };
        let is_near = before > floor
            && before < span.first_word
            && span.first_word - before <= u32::from(node.gap) + 1;
        if is_near { self.begun.get(place).copied() } else { None }
    }

    /// An element was found: notes how far its phrase has come, and reports what ends here.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn reach(&mut self, node: u16, begun: u32, bytes: &[u8], end: usize) {
        let at = usize::from(node);
        if let (Some(reached), Some(start)) =
            (self.reached.get_mut(at + 1), self.begun.get_mut(at + 1))
        {
            (*reached, *start) = (self.word, begun);
        }
        let lexicon = self.lexicon;
        for &rule in lexicon.nodes.get(at).map_or(&[][..], |node| lexicon.ends(node)) {
            self.report(rule, bytes, begun as usize, end);
        }
    }

    fn report(&mut self, number: u16, bytes: &[u8], start: usize, end: usize) {
        self.has_completed = true;
        self.is_conditional = true;
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

fn reached_nothing(lexicon: &Lexicon) -> Vec<u32> {
    let mut reached = vec![0; lexicon.nodes.len() + 1];
    reached.iter_mut().take(1).for_each(|first| *first = u32::MAX);
    reached
}

#[cfg(test)]
mod tests;

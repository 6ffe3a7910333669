//! The marker scan (`docs/markers.md`): a trip-wire for text that speaks to the model over the user's head.
//!
//! It reads every string of an entry, names included, as it stands and folded. It judges words, never intent: what it
//! finds asks for a person's look, and what it does not find is not thereby harmless.

use crate::json::{Kind, Node};

mod around;
mod class;
mod commands;
#[cfg(test)]
mod confusable;
mod encoded;
mod excerpt;
mod fold;
mod foreign;
mod hidden;
mod invisible;
mod known;
mod letters;
mod lexicon;
mod quiet;
mod quoted;
mod text;
mod words;

pub use class::MarkerClass;
use foreign::OwnNames;
pub use foreign::{ToolNames, is_named};
pub(crate) use hidden::is_invisible;
pub(crate) use known::KnownStrings;
use quiet::QuietTexts;
use text::TextScanner;

/// The most markers that one scan reports; an entry with this many is marked whatever else it has.
pub const MAX_MARKERS: usize = 64;
/// The longest excerpt, in characters.
pub const MAX_EXCERPT: usize = 120;
/// The most characters of one name that a pointer repeats; a longer name is cut there and ends in `…`.
pub const MAX_POINTER_NAME: usize = 128;

/// One place of an entry that trips the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub class: MarkerClass,
    /// JSON pointer of the string, or of the member whose name it is. Names may hold any character, so
    /// code that shows a pointer has to escape it.
    pub pointer: String,
    /// A stable id, such as `override.ignore-previous`.
    pub rule: &'static str,
    /// What was found, at most [`MAX_EXCERPT`] characters, hidden characters escaped.
    pub excerpt: String,
}

/// Scans entries one after the other, with one set of buffers for all of them.
#[derive(Debug)]
pub struct Scanner(TextScanner);

impl Default for Scanner {
    fn default() -> Self {
        Scanner(TextScanner::new(QuietTexts::of_many_entries()))
    }
}

impl Scanner {
    fn of_one_entry() -> Scanner {
        Scanner(TextScanner::new(QuietTexts::default()))
    }

    /// The markers of an entry, in the order of its text, at most [`MAX_MARKERS`] of them. `tools` are the server's own.
    pub fn scan(&mut self, entry: Node<'_>, tools: &ToolNames) -> Vec<Marker> {
        Walk::over(entry, tools, None, &mut self.0)
    }

    /// The markers in those strings and names of an entry that the one a person approved does not have.
    pub fn scan_new(
        &mut self,
        entry: Node<'_>,
        approved_by_person: Node<'_>,
        tools: &ToolNames,
    ) -> Vec<Marker> {
        Walk::over(entry, tools, Some(&KnownStrings::of(approved_by_person)), &mut self.0)
    }
}

/// The markers of one entry. Many entries cost less with a [`Scanner`].
pub fn scan(entry: Node<'_>, tools: &ToolNames) -> Vec<Marker> {
    Scanner::of_one_entry().scan(entry, tools)
}

/// The same for the strings and names that the entry a person approved does not have.
pub fn scan_new(entry: Node<'_>, approved_by_person: Node<'_>, tools: &ToolNames) -> Vec<Marker> {
    Scanner::of_one_entry().scan_new(entry, approved_by_person, tools)
}

/// A text as phrases are matched in it: compatibility forms opened, marks and format characters dropped, look-alikes made
/// Latin, what has no Latin reading replaced by a space.
pub fn folded(text: &str) -> String {
    let mut folded = Vec::new();
    fold::fold_into(text, &mut folded);
    folded.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { ' ' }).collect()
}

/// What runs of base64 and hex in a text decode to, where that is printable text.
pub fn decoded_texts(text: &str) -> Vec<String> {
    let mut texts = Vec::new();
    encoded::decode_runs(text.as_bytes(), |bytes| {
        let is_text = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        if bytes.len() >= encoded::MIN_TEXT && bytes.iter().all(|&byte| is_text(byte)) {
            texts.extend(String::from_utf8(bytes.to_vec()));
        }
    });
    texts
}

/// At most [`MAX_EXCERPT`] characters of a text from `start` on, hidden characters escaped.
pub fn excerpt_of(text: &str, start: usize, end: usize) -> String {
    excerpt::excerpt(text, start, end)
}

/// Where a string stands, as far as rules ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// A parameter's name, or anything said below it.
    Parameter,
}

/// One step of a JSON pointer.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(Node<'a>),
    Index(usize),
}

struct Walk<'a, 'k> {
    known: Option<&'k KnownStrings<'k>>,
    own: OwnNames<'a>,
    steps: Vec<Step<'a>>,
    scanner: &'k mut TextScanner,
    markers: Vec<Marker>,
}

impl<'a, 'k> Walk<'a, 'k> {
    fn over(
        entry: Node<'a>,
        tools: &'a ToolNames,
        known: Option<&'k KnownStrings<'k>>,
        scanner: &'k mut TextScanner,
    ) -> Vec<Marker> {
        let own = OwnNames::new(tools, entry);
        let mut walk = Walk { known, own, steps: Vec::new(), scanner, markers: Vec::new() };
        walk.value(entry, Place::Anywhere, false);
        walk.markers
    }

    /// Reads a value and what is below it. The parser bounds how deep this goes.
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn value(&mut self, node: Node<'a>, place: Place, is_output: bool) {
        match node.kind() {
            Kind::String => self.string(node, place),
            Kind::Array => {
                for (index, item) in node.items().enumerate() {
                    self.steps.push(Step::Index(index));
                    self.value(item, place, is_output);
                    self.steps.pop();
                    if self.is_full() {
                        return;
                    }
                }
            }
            Kind::Object => {
                for (name, value) in node.members() {
                    self.steps.push(Step::Name(name));
                    self.string(name, place);
                    let is_output = is_output || name.is_text("outputSchema");
                    let holds_parameters = name.is_text("properties") || name.is_text("arguments");
                    let below =
                        if holds_parameters && !is_output { Place::Parameter } else { place };
                    self.value(value, below, is_output);
                    self.steps.pop();
                    if self.is_full() {
                        return;
                    }
                }
            }
            Kind::Null | Kind::False | Kind::True | Kind::Number => {}
        }
    }

    fn is_full(&self) -> bool {
        self.markers.len() >= MAX_MARKERS
    }

    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn string(&mut self, node: Node<'a>, place: Place) {
        let Some(text) = node.as_str() else { return };
        if self.is_full() || self.known.is_some_and(|known| known.contains(&text)) {
            return;
        }
        let findings = self.scanner.scan(&text, place, &mut self.own);
        if findings.is_empty() {
            return;
        }
        let pointer = self.pointer();
        let room = MAX_MARKERS.saturating_sub(self.markers.len());
        self.markers.extend(findings.into_iter().take(room).map(|finding| Marker {
            class: finding.class,
            pointer: pointer.clone(),
            rule: finding.rule,
            excerpt: finding.excerpt,
        }));
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.steps {
            match step {
                Step::Name(name) => {
                    push_pointer_name(&mut pointer, &name.as_str().unwrap_or_default());
                }
                Step::Index(index) => push_pointer_name(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

/// Appends a name to a JSON pointer, cut at [`MAX_POINTER_NAME`] so that a hostile name cannot be multiplied.
pub fn push_pointer_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    for (count, character) in name.chars().enumerate() {
        match character {
            _ if count == MAX_POINTER_NAME => {
                pointer.push('…');
                return;
            }
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests;

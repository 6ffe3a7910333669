//! The marker scan (`docs/markers.md`): a trip-wire for text that speaks to the model over the user's head.
//!
//! It reads every string of an entry, names included, as it stands and folded. It judges words, never intent: what it
//! finds asks for a person's look, and what it does not find is not thereby harmless.

use crate::json::{Kind, Node};

mod around;
mod class;
mod commands;
mod confusable;
mod encoded;
mod excerpt;
mod fold;
mod foreign;
mod hidden;
mod known;
mod letters;
mod lexicon;
mod quoted;
mod text;
mod words;

pub use class::MarkerClass;
use foreign::OwnNames;
pub use foreign::{ToolNames, is_named};
pub(crate) use hidden::is_invisible;
pub(crate) use known::KnownStrings;
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

/// The markers of an entry, in the order of its text, at most [`MAX_MARKERS`] of them. `tools` are the server's own.
pub fn scan(entry: Node<'_>, tools: &ToolNames) -> Vec<Marker> {
    Walk::over(entry, tools, None)
}

/// The markers in those strings and names of an entry that the one a person approved does not have.
pub fn scan_new(entry: Node<'_>, approved_by_person: Node<'_>, tools: &ToolNames) -> Vec<Marker> {
    Walk::over(entry, tools, Some(&KnownStrings::of(approved_by_person)))
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
    scanner: TextScanner,
    markers: Vec<Marker>,
}

impl<'a, 'k> Walk<'a, 'k> {
    fn over(
        entry: Node<'a>,
        tools: &'a ToolNames,
        known: Option<&'k KnownStrings<'k>>,
    ) -> Vec<Marker> {
        let own = OwnNames::new(tools, entry);
        let mut walk = Walk {
            known,
            own,
            steps: Vec::new(),
            scanner: TextScanner::new(),
            markers: Vec::new(),
        };
        walk.value(entry, Place::Anywhere, false);
        walk.markers
    }

    /// Reads a value and what is below it. The parser bounds how deep this goes.
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
                Step::Name(name) => push_name(&mut pointer, &name.as_str().unwrap_or_default()),
                Step::Index(index) => push_name(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

/// Appends a name to a JSON pointer, cut at [`MAX_POINTER_NAME`] so that a hostile name cannot be multiplied.
pub(crate) fn push_name(pointer: &mut String, name: &str) {
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

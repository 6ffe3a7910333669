//! The mistakes in a `gateway.toml`, all reported together, each with its line and its key.

use crate::error::{describe, known_keys, names};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path as KeyPath, Segment};
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// The most mistakes reported for one file.
const MAX_MISTAKES: usize = 100;

/// One mistake in a configuration, as a sentence that names the key and what to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Counted from 1; `None` if the key is missing from the whole file.
    pub line: Option<usize>,
    pub sentence: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "line {line}: {}", self.sentence),
            None => formatter.write_str(&self.sentence),
        }
    }
}

/// One step on the path from the top of the file to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The place of a value in the file, even if the value is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place(Vec<Step>);

impl Place {
    pub(super) fn top() -> Place {
        Place::default()
    }

    pub(super) fn key(&self, key: &str) -> Place {
        self.step(Step::Key(key.to_owned()))
    }

    pub(super) fn index(&self, index: usize) -> Place {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Place {
        Place(self.0.iter().cloned().chain([step]).collect())
    }

    fn of(path: &KeyPath) -> Place {
        let steps = path.iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        Place(steps.collect())
    }
}

/// Collects the mistakes of one file while it is read.
pub(super) struct Mistakes<'a> {
    text: &'a str,
    root: Spanned<DeTable<'a>>,
    found: Vec<Mistake>,
    unreadable: Vec<Place>,
}

impl<'a> Mistakes<'a> {
    /// If a file is not valid TOML, only its syntax errors are reported.
    pub(super) fn begin(text: &'a str) -> Result<Mistakes<'a>, Vec<Mistake>> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Ok(Mistakes { text, root, found: Vec::new(), unreadable: Vec::new() });
        }
        let mistake = |error: toml::de::Error| Mistake {
            line: error.span().and_then(|span| line_at(text, span.start)),
            sentence: format!("not TOML: {}", error.message().replace('\n', ", ")),
        };
        Err(errors.into_iter().take(MAX_MISTAKES).map(mistake).collect())
    }

    /// The tables of the file. Serde stops at the first wrong value, so that value is recorded and
    /// removed and the rest is read again. The result contains every value that could be read.
    pub(super) fn read<T: DeserializeOwned + Serialize>(&mut self, sample: &T) -> Option<T> {
        let known = known_keys(sample);
        let mut rest = self.root.clone();
        loop {
            let error = match serde_path_to_error::deserialize(Deserializer::from(rest.clone())) {
                Ok(tables) => return Some(tables),
                Err(error) => error,
            };
            let place = Place::of(error.path());
            let general = names(error.path()).join(".");
            let message = error.inner().message().replace('\n', ", ");
            let sentence = describe(&known, &general, &self.name(&place), &message);
            let line = error.inner().span().and_then(|span| line_at(self.text, span.start));
            self.found.push(Mistake { line: line.or_else(|| self.line(&place)), sentence });
            if self.found.len() >= MAX_MISTAKES || !take_out(rest.get_mut(), &place) {
                return None;
            }
            self.unreadable.push(place);
        }
    }

    /// Whether the file has an unreadable value here: its apparent absence is not an additional
    /// mistake.
    pub(super) fn is_unreadable(&self, place: &Place) -> bool {
        self.unreadable.iter().any(|unreadable| unreadable.0.starts_with(&place.0))
    }

    /// Records a mistake. `problem` continues a sentence that starts with the key.
    pub(super) fn add(&mut self, place: &Place, problem: impl fmt::Display) {
        if self.is_unreadable(place) {
            return;
        }
        let sentence = format!("`{}`: {problem}", self.name(place));
        let line = self.line(place);
        self.found.push(Mistake { line, sentence });
    }

    /// All mistakes in file order.
    pub(super) fn finish(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
        self.found
    }

    /// The key as shown to a person: an element of a list is identified by its `id` if it has one.
    fn name(&self, place: &Place) -> String {
        let mut name = String::new();
        let mut here = Some(Found::Table(self.root.get_ref()));
        for step in &place.0 {
            here = here.and_then(|found| found.child(step)).map(|(found, _)| found);
            match step {
                Step::Key(key) if name.is_empty() => name.push_str(key),
                Step::Key(key) => name = format!("{name}.{key}"),
                Step::Index(index) => match here.and_then(Found::id) {
                    Some(id) => name = format!("{name}.{id}"),
                    None => name = format!("{name}[{index}]"),
                },
            }
        }
        name
    }

    /// The line of the value, or of the innermost table around it that is present.
    fn line(&self, place: &Place) -> Option<usize> {
        let mut here = Found::Table(self.root.get_ref());
        let mut line = None;
        for step in &place.0 {
            let Some((found, start)) = here.child(step) else { break };
            (here, line) = (found, line_at(self.text, start));
        }
        line
    }
}

/// A value on the path to a place.
#[derive(Clone, Copy)]
enum Found<'t, 'a> {
    Table(&'t DeTable<'a>),
    Value(&'t DeValue<'a>),
}

impl<'t, 'a> Found<'t, 'a> {
    /// The value that a step leads to, and its position in the text.
    fn child(self, step: &Step) -> Option<(Found<'t, 'a>, usize)> {
        let table = match self {
            Found::Table(table) | Found::Value(DeValue::Table(table)) => Some(table),
            Found::Value(_) => None,
        };
        match (step, self) {
            (Step::Key(key), _) => {
                let (key, value) = table?.get_key_value(key.as_str())?;
                Some((Found::Value(value.get_ref()), key.span().start))
            }
            (Step::Index(index), Found::Value(DeValue::Array(array))) => {
                let value = array.get(*index)?;
                Some((Found::Value(value.get_ref()), value.span().start))
            }
            (Step::Index(_), _) => None,
        }
    }

    fn id(self) -> Option<&'t str> {
        match self.child(&Step::Key("id".to_owned()))?.0 {
            Found::Value(DeValue::String(id)) => Some(id.as_ref()),
            Found::Value(_) | Found::Table(_) => None,
        }
    }
}

fn line_at(text: &str, position: usize) -> Option<usize> {
    text.get(..position).map(|before| before.matches('\n').count() + 1)
}

/// Removes the value at a place. For a value within a list the whole list is removed, so that other
/// indices stay valid.
fn take_out(root: &mut DeTable<'_>, place: &Place) -> bool {
    let last = place.0.iter().rposition(|step| matches!(step, Step::Key(_)));
    let Some((Step::Key(key), before)) =
        last.and_then(|last| place.0.get(..=last)).and_then(<[Step]>::split_last)
    else {
        return false;
    };
    let mut table = root;
    let mut steps = before.iter();
    while let Some(step) = steps.next() {
        let Step::Key(key) = step else { return false };
        let Some(value) = table.get_mut(key.as_str()) else { return false };
        let mut value = value.get_mut();
        while let DeValue::Array(array) = value {
            let Some(Step::Index(index)) = steps.next() else { return false };
            let Some(element) = array.get_mut(*index) else { return false };
            value = element.get_mut();
        }
        let DeValue::Table(inner) = value else { return false };
        table = inner;
    }
    table.remove(key.as_str()).is_some()
}

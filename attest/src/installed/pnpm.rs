//! Reads pnpm's lockfile: `packages`, keyed by name and version, each with the `integrity` of its
//! `resolution`.
//!
//! It is YAML, of which pnpm uses only the plain part. An anchor, an alias, a tag or a second
//! document is refused.

use super::place::{Keeper, PATCH_MARK, Place, Stored};
use super::{Manifest, RecordError, Recorded, integrity};
use crate::limits::MAX_RECORD_DEPTH;
use saphyr_parser::{Event, Parser};

pub(super) fn read(
    bytes: &[u8],
    place: &Place,
    manifest: &Manifest,
) -> Result<Recorded, RecordError> {
    let Manifest { name, version } = manifest;
    // Outside of pnpm's own folder, a package cannot be distinguished from another version of
    // itself.
    let is_named = place.names().len() == 1
        && place
            .stored()
            .is_some_and(|stored| stored.by == Keeper::Pnpm && stored.is_of(name, version));
    if !is_named {
        return Err(RecordError::NotThere);
    }
    if place.stored().is_some_and(Stored::is_patched) {
        return Err(RecordError::Patched);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let label = format!("{name}@{version}");
    let mut search = Search { label: &label, open: Vec::new(), seen: [false; 4], integrity: None };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| wrong(error.info()))?;
        if let Event::DocumentStart(_) = event {
            documents += 1;
        }
        if documents > 1 {
            return Err(wrong("it has several documents"));
        }
        search.take(event)?;
    }
    search.finish(version)
}

/// The member in which pnpm lists its patches.
const PATCHES: &str = "patchedDependencies";

/// Whether a key is that of a patched package: `name@version(patch_hash=…)`.
fn is_patched(key: &str, label: &str) -> bool {
    let key = key.strip_prefix('/').unwrap_or(key);
    key.strip_prefix(label).is_some_and(|rest| rest.contains(PATCH_MARK))
}

fn wrong(what: &str) -> RecordError {
    RecordError::Yaml(what.to_owned())
}

/// A list or a map that has not ended yet.
enum Open {
    List,
    /// The key whose value comes next.
    Map(Option<String>),
}

/// Searches for the path to the one wanted text. Each key on the path must be unique, because
/// another reader may take the other one.
struct Search<'l> {
    label: &'l str,
    open: Vec<Open>,
    seen: [bool; 4],
    integrity: Option<String>,
}

impl Search<'_> {
    fn take(&mut self, event: Event<'_>) -> Result<(), RecordError> {
        match event {
            Event::Scalar(text, _, anchor, tag) => {
                refuse_shared(anchor, tag.is_some())?;
                self.scalar(&text)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_shared(anchor, tag.is_some())?;
                self.begin(Open::List)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_shared(anchor, tag.is_some())?;
                self.begin(Open::Map(None))
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                self.value_ended();
                Ok(())
            }
            Event::Alias(_) => Err(wrong("it has an alias")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), RecordError> {
        if self.open.len() >= MAX_RECORD_DEPTH {
            return Err(wrong("it is nested too deeply"));
        }
        if let Some(Open::Map(None)) = self.open.last() {
            return Err(wrong("a key is not a text"));
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: &str) -> Result<(), RecordError> {
        let is_on_way = self.is_on_way();
        let depth = self.open.len();
        match self.open.last_mut() {
            Some(Open::Map(key @ None)) => {
                // pnpm records patches in several forms. The folder alone is not enough, because
                // long folder names are truncated.
                if (depth == 1 && text == PATCHES) || (depth == 2 && is_patched(text, self.label)) {
                    return Err(RecordError::Patched);
                }
                if is_on_way && is_step(depth, text, self.label) {
                    let step = self.seen.get_mut(depth - 1);
                    if step.is_some_and(|seen| std::mem::replace(seen, true)) {
                        return Err(wrong("a key appears twice"));
                    }
                }
                *key = Some(text.to_owned());
                return Ok(());
            }
            Some(Open::Map(Some(key))) => {
                if depth == 4 && is_on_way && is_step(depth, key, self.label) {
                    self.integrity = Some(text.to_owned());
                }
            }
            Some(Open::List) | None => {}
        }
        self.value_ended();
        Ok(())
    }

    fn value_ended(&mut self) {
        if let Some(Open::Map(key)) = self.open.last_mut() {
            *key = None;
        }
    }

    /// Whether every map around the innermost one is on the path.
    fn is_on_way(&self) -> bool {
        let outer = self.open.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().enumerate().all(|(index, open)| match open {
            Open::Map(Some(key)) => is_step(index + 1, key, self.label),
            Open::Map(None) | Open::List => false,
        })
    }

    fn finish(self, version: &str) -> Result<Recorded, RecordError> {
        let [packages, package, ..] = self.seen;
        let integrity = match (packages, package, self.integrity) {
            (false, ..) => return Err(RecordError::UnknownForm),
            (_, false, _) => return Err(RecordError::NotThere),
            (.., None) => return Err(RecordError::NoIntegrity),
            (.., Some(text)) => integrity(&text)?,
        };
        Ok(Recorded { version: version.to_owned(), integrity })
    }
}

/// Whether a key is the next step on the path to the wanted text, in a map at this depth. Older
/// versions of the file have a `/` before the package's name.
fn is_step(depth: usize, key: &str, label: &str) -> bool {
    match depth {
        1 => key == "packages",
        2 => key.strip_prefix('/').unwrap_or(key) == label,
        3 => key == "resolution",
        4 => key == "integrity",
        _ => false,
    }
}

fn refuse_shared(anchor: usize, is_tagged: bool) -> Result<(), RecordError> {
    if anchor == 0 && !is_tagged { Ok(()) } else { Err(wrong("it has an anchor or a tag")) }
}

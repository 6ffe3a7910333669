//! Compares the annotations of schemas: texts, defaults and header bindings, which do not affect
//! which instances a schema accepts.
//!
//! The comparison of views only covers keywords that apply to an instance. This module reads both
//! schemas as written, so that nothing a model or a client reads can hide where no instance leads:
//! in a branch, in an unreferenced definition, next to a `$ref` that overrides it, under a type
//! that excludes it.

use super::MAX_FINDINGS;
use super::compare::{is_identifier, is_spelling_of};
use super::document::Place;
use super::path::Path;
use crate::canonical::{Position, bounded_text, canonical};
use crate::change::{ChangeKind, Finding};
use crate::json::{Kind, Node};
use crate::percent::percent_decoded;
use crate::sorted::{SortedMap, SortedSet};
use std::borrow::Cow;

/// One text, default or binding: its keyword, its place, and the property it belongs to.
struct Annotation<'a> {
    keyword: &'static str,
    place: Place<'a>,
    property: Option<Cow<'a, str>>,
}

/// All annotations of a schema, and all of its references with their places.
#[derive(Default)]
struct Annotations<'a> {
    annotations: Vec<Annotation<'a>>,
    references: Vec<Place<'a>>,
}

type Key<'a> = (&'static str, Cow<'a, [u8]>);

impl<'a> Annotations<'a> {
    fn of(root: Node<'a>, pointer: &'a str) -> Annotations<'a> {
        let mut annotations = Annotations::default();
        let place = Place { node: root, path: Path::root(pointer) };
        annotations.walk(&place, Position::Schema, None);
        annotations
    }

    fn walk(&mut self, place: &Place<'a>, position: Position, property: Option<&Cow<'a, str>>) {
        match (place.node.kind(), position) {
            (Kind::Object, Position::Schema | Position::SchemaList) => self.schema(place, property),
            (Kind::Object, Position::SchemaMap | Position::SetMap) => {
                for (name, member) in place.members() {
                    self.walk(&member, Position::Schema, Some(&name));
                }
            }
            (Kind::Array, Position::SchemaList) => {
                for item in place.items() {
                    self.walk(&item, Position::Schema, property);
                }
            }
            _ => {}
        }
    }

    fn schema(&mut self, place: &Place<'a>, property: Option<&Cow<'a, str>>) {
        for (name, member) in place.members() {
            let keyword = match name.as_ref() {
                "description" => "description",
                "title" => "title",
                "examples" => "examples",
                "$comment" => "$comment",
                "deprecated" => "deprecated",
                "default" => "default",
                "x-mcp-header" => "x-mcp-header",
                "$ref" => {
                    self.references.push(member);
                    continue;
                }
                other => {
                    self.walk(&member, Position::of_keyword(other), property);
                    continue;
                }
            };
            self.annotations.push(Annotation {
                keyword,
                place: member,
                property: property.cloned(),
            });
        }
    }

    fn counts(&self) -> SortedMap<Key<'a>, usize> {
        let mut counts = SortedMap::new();
        for annotation in &self.annotations {
            *counts.get_or_default(annotation.key()) += 1;
        }
        counts
    }
}

impl<'a> Annotation<'a> {
    fn key(&self) -> Key<'a> {
        let node = self.place.node;
        let is_plain = node.kind() == Kind::String && !node.has_escapes();
        let form = match is_plain {
            true => Cow::Borrowed(node.raw().as_bytes()),
            false => Cow::Owned(canonical(node, Position::Plain)),
        };
        (self.keyword, form)
    }

    fn kind(&self) -> ChangeKind {
        match self.keyword {
            "default" => ChangeKind::DefaultChanged,
            "x-mcp-header" => ChangeKind::HeaderBindingChanged,
            _ => ChangeKind::DescriptionOnly,
        }
    }

    /// Header bindings are matched by count. A text or a default that occurs anywhere in the other
    /// schema has only moved.
    fn is_matched(
        &self,
        others: &SortedMap<Key<'a>, usize>,
        own: &SortedMap<Key<'a>, usize>,
    ) -> bool {
        let key = self.key();
        let there = others.get(&key).copied().unwrap_or(0);
        match self.keyword {
            "x-mcp-header" => there == own.get(&key).copied().unwrap_or(0),
            _ => there > 0,
        }
    }

    /// Whether this adds nothing anywhere: a title that spells the property's name, a default of
    /// null, `deprecated` that is not true.
    fn adds_nothing(&self) -> bool {
        match self.keyword {
            "title" => is_spelling_of(self.place.node, self.property.as_deref()),
            "default" => self.place.node.is_null(),
            // Values that are not booleans are compared as a keyword without a rule.
            "deprecated" => self.place.node.kind() != Kind::True,
            _ => false,
        }
    }
}

/// Findings for what only one of the schemas says, unless the comparison has already reported it.
pub(super) fn compare<'a>(
    old: Node<'a>,
    new: Node<'a>,
    pointer: &'a str,
    known: &[Finding],
) -> Vec<Finding> {
    let (old_annotations, new_annotations) =
        (Annotations::of(old, pointer), Annotations::of(new, pointer));
    let paths = |kinds: &[ChangeKind]| -> SortedSet<String> {
        let found = known.iter().filter(|finding| kinds.contains(&finding.kind));
        found.map(|finding| finding.path.clone()).collect()
    };
    // The report of an added or removed parameter covers everything inside it, and so does a report
    // that something is undiffable.
    let mut added = paths(&[
        ChangeKind::AddedOptionalParam,
        ChangeKind::AddedRequiredParam,
        ChangeKind::DeepSchemaUndiffable,
    ]);
    let removed = paths(&[ChangeKind::RemovedParam, ChangeKind::DeepSchemaUndiffable]);
    add_definitions(&mut added, old, &new_annotations, pointer);
    let mut seen = Seen::default();
    known.iter().for_each(|finding| seen.add(finding.kind, &finding.path));
    let (old_counts, new_counts) = (old_annotations.counts(), new_annotations.counts());
    // A generated title that is another identifier is already reported as metadata.
    let is_generated = |root: Node<'_>| root.get("title").is_some_and(is_identifier);
    let generated = (is_generated(old) && is_generated(new)).then(|| format!("{pointer}/title"));
    let mut findings = Vec::new();
    let mut is_more = false;
    let sides = [
        (&new_annotations, &old_counts, &new_counts, &added, true),
        (&old_annotations, &new_counts, &old_counts, &removed, false),
    ];
    for (annotations, others, own, apart, is_new) in sides {
        // In order of pointer, whatever the order in the documents.
        let mut changed: Vec<(String, &Annotation<'_>)> = annotations
            .annotations
            .iter()
            .filter(|annotation| !annotation.is_matched(others, own) && !annotation.adds_nothing())
            .take(MAX_FINDINGS + 1)
            .map(|annotation| (annotation.place.path.pointer(), annotation))
            .collect();
        is_more |= changed.len() > MAX_FINDINGS;
        changed.sort_by(|left, right| left.0.cmp(&right.0));
        for (path, annotation) in changed {
            let is_told =
                seen.is_known(annotation.kind(), &path) || generated.as_ref() == Some(&path);
            if is_told || is_beneath(&path, apart) {
                continue;
            }
            // If the text of a parameter is already reported as changed, its old text is not
            // another change.
            if !is_new && seen.is_any_within(annotation.kind(), parameter_of(&path)) {
                continue;
            }
            seen.add(annotation.kind(), &path);
            let text = bounded_text(annotation.place.node, Position::Plain);
            let (before, after) = match is_new {
                true => (None, Some(text.as_str())),
                false => (Some(text.as_str()), None),
            };
            findings.push(Finding::new(annotation.kind(), path, before, after));
        }
    }
    if is_more {
        let reason = Some("more is said differently than is listed");
        findings.push(Finding::new(ChangeKind::DeepSchemaUndiffable, pointer, None, reason));
    }
    findings
}

/// The pointers of reported changes, by kind. Searching all findings for each one would take
/// quadratic time.
#[derive(Default)]
struct Seen(SortedMap<ChangeKind, SortedSet<String>>);

impl Seen {
    fn add(&mut self, kind: ChangeKind, path: &str) {
        self.0.get_or_default(kind).insert(path.to_owned());
    }

    fn is_known(&self, kind: ChangeKind, path: &str) -> bool {
        self.0.get(&kind).is_some_and(|paths| paths.contains(path))
    }

    /// Whether a finding of this kind has been reported at a place or below it.
    fn is_any_within(&self, kind: ChangeKind, place: &str) -> bool {
        // `/properties/a` is not above `/properties/ab`.
        let inside = format!("{place}/");
        let is_inside = |paths: &SortedSet<String>| {
            let first = paths.first_from(&inside);
            paths.contains(place) || first.is_some_and(|path| path.starts_with(&inside))
        };
        self.0.get(&kind).is_some_and(is_inside)
    }
}

/// A new parameter may bring its own definitions, and everything they say is new with it.
fn add_definitions(
    added: &mut SortedSet<String>,
    old: Node<'_>,
    new: &Annotations<'_>,
    pointer: &str,
) {
    if added.is_empty() {
        return;
    }
    let containers = ["$defs", "definitions"];
    let known: SortedSet<(&str, Cow<'_, str>)> = containers
        .into_iter()
        .flat_map(|container| {
            let definitions = old.get(container).into_iter().flat_map(Node::members);
            definitions.filter_map(move |(name, _)| Some((container, name.as_str()?)))
        })
        .collect();
    // For each definition that contains references (`None` for the rest of the schema), the new
    // definitions they lead to.
    let mut within: SortedMap<Option<String>, Vec<(String, String)>> = SortedMap::new();
    for reference in &new.references {
        let Some(text) = reference.node.as_str() else { continue };
        let Some(target) = text.strip_prefix('#').and_then(percent_decoded) else { continue };
        let steps: Vec<&str> = target.split('/').collect();
        let ["", container @ ("$defs" | "definitions"), name] = steps.as_slice() else { continue };
        let name = name.replace("~1", "/").replace("~0", "~");
        if known.contains(&(*container, Cow::Borrowed(name.as_str()))) {
            continue;
        }
        let definition = format!("{pointer}/{container}/{}", super::pointer_step(&name));
        let place = reference.path.pointer();
        within.get_or_default(definition_around(&place, pointer)).push((place, definition));
    }
    let mut reached: Vec<String> = Vec::new();
    let references = within.values().flatten();
    let first = references.filter(|(place, _)| is_beneath(place, added));
    reached.extend(first.map(|(_, definition)| definition.clone()));
    while let Some(definition) = reached.pop() {
        if added.insert(definition.clone()) {
            let further = within.remove(&Some(definition)).unwrap_or_default();
            reached.extend(further.into_iter().map(|(_, definition)| definition));
        }
    }
}

/// The pointer of the definition that contains a place.
fn definition_around(path: &str, root: &str) -> Option<String> {
    let mut steps = path.strip_prefix(root)?.strip_prefix('/')?.split('/');
    let (container, name) = (steps.next()?, steps.next()?);
    let is_definition = matches!(container, "$defs" | "definitions");
    is_definition.then(|| format!("{root}/{container}/{name}"))
}

/// The pointer of the parameter that contains a place, or else the pointer itself.
fn parameter_of(path: &str) -> &str {
    const STEP: &str = "/properties/";
    let Some(start) = path.rfind(STEP).map(|at| at + STEP.len()) else {
        return path.split('/').nth(1).map_or("", |first| path.get(..=first.len()).unwrap_or(""));
    };
    let end = path.get(start..).and_then(|rest| rest.find('/')).map_or(path.len(), |at| start + at);
    path.get(..end).unwrap_or(path)
}

/// Whether a place is below one of some other places.
fn is_beneath(path: &str, others: &SortedSet<String>) -> bool {
    path.char_indices()
        .filter(|(_, character)| *character == '/')
        .any(|(at, _)| path.get(..at).is_some_and(|ancestor| others.contains(ancestor)))
}

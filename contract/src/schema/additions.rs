//! The members of a call that only the new definition declares.
//!
//! While a new definition awaits approval, calls continue under the approved one. A call that uses
//! a parameter that only the new one declares must not continue, wherever the parameter occurs:
//! nested, behind a reference, in a branch or in a map.

use super::document::{Dialect, Features, Place, SchemaDocument, Target};
use super::path::Path;
use crate::json::{Document, Node};
use crate::sorted::{SortedMap, SortedSet};
use crate::surface::{Entry, EntryType};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// The work allowed for comparing two definitions: this base, plus an allowance per weight. If it
/// is exceeded, every call counts as using an addition.
const WORK_BASE: u64 = 2_000;
const WORK_PER_WEIGHT: u64 = 8;
const MAX_WORK: u64 = 200_000;

/// The members that a new definition adds, ready to be looked up in calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Additions {
    None,
    /// Places in a call, starting with its arguments. A recursive schema leads back to an existing
    /// place.
    At(Vec<CallPlace>),
    /// The definitions are too large to compare, or cannot be read.
    Unknown,
}

/// The members and items allowed at one place of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallPlace {
    members: SortedMap<Box<str>, Member>,
    /// The place for members that are not declared by name.
    further: Option<usize>,
    items: Option<usize>,
}

impl CallPlace {
    /// Whether this place allows an object or a list.
    fn has_parts(&self) -> bool {
        !self.members.is_empty() || self.further.is_some() || self.items.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Added,
    /// Both definitions declare the member; its contents are described by this place.
    Known(usize),
}

impl Additions {
    /// The members that `new` declares and `old` does not.
    pub fn between(old: &Entry, new: &Entry) -> Additions {
        let (Ok(old_document), Ok(new_document)) = (old.document(), new.document()) else {
            return Additions::Unknown;
        };
        let (old, new, entry_type) = (old_document.root(), new_document.root(), new.entry_type());
        match entry_type {
            EntryType::Tool => {
                let Some(new) = new.get("inputSchema") else { return Additions::None };
                let empty = Document::parse("{}");
                let empty = empty.as_ref().ok().map(Document::root);
                let old = old.get("inputSchema").or(empty);
                old.map_or(Additions::Unknown, |old| between_schemas(old, new))
            }
            EntryType::Prompt => between_arguments(old, new),
            EntryType::Resource
            | EntryType::Template
            | EntryType::Instructions
            | EntryType::Identity
            | EntryType::Origin => Additions::None,
        }
    }

    /// Whether a call with these arguments uses an addition. Invalid or ambiguous arguments count
    /// as using one.
    pub fn are_used_by(&self, arguments: &[u8]) -> bool {
        match self {
            Additions::None => false,
            Additions::Unknown => true,
            Additions::At(places) => Document::parse_bytes(arguments)
                .map_or(true, |document| is_used(places, 0, document.root())),
        }
    }

    fn of(places: Vec<CallPlace>) -> Additions {
        let has_addition =
            |place: &CallPlace| place.members.values().any(|member| *member == Member::Added);
        if places.iter().any(has_addition) { Additions::At(places) } else { Additions::None }
    }
}

fn is_used(places: &[CallPlace], at: usize, value: Node<'_>) -> bool {
    let Some(place) = places.get(at) else { return false };
    let is_used_in =
        |next: Option<usize>, value| next.is_some_and(|next| is_used(places, next, value));
    let in_members = value.members().any(|(name, value)| {
        match place.members.get(name.as_str().unwrap_or_default().as_ref()) {
            Some(Member::Added) => true,
            Some(Member::Known(next)) => is_used_in(Some(*next), value),
            None => is_used_in(place.further, value),
        }
    });
    in_members
        || value.items().any(|item| is_used_in(place.items, item))
        || place.has_parts()
            && value.as_str().is_some_and(|text| is_used_in_text(places, at, &text))
}

/// Some servers accept an object or a list given as JSON text, so such text is searched too.
fn is_used_in_text(places: &[CallPlace], place: usize, text: &str) -> bool {
    if !text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    // A more lenient reader may find members in text that this one cannot parse.
    Document::parse(text.trim()).map_or(true, |document| is_used(places, place, document.root()))
}

fn between_arguments(old: Node<'_>, new: Node<'_>) -> Additions {
    let names = |prompt: Node<'_>| -> SortedSet<Box<str>> {
        let arguments = prompt.get("arguments").into_iter().flat_map(Node::items);
        arguments.filter_map(|argument| Some(argument.get("name")?.as_str()?.into())).collect()
    };
    let (old, new) = (names(old), names(new));
    let members = new.difference(&old).map(|name| (name.clone(), Member::Added)).collect();
    Additions::of(vec![CallPlace { members, ..CallPlace::default() }])
}

fn between_schemas(old: Node<'_>, new: Node<'_>) -> Additions {
    let mut comparison = Comparison {
        old: Side::of(old),
        new: Side::of(new),
        places: Vec::new(),
        known: HashMap::new(),
        waiting: Vec::new(),
        work: MAX_WORK.min(WORK_BASE + WORK_PER_WEIGHT * (old.weight() + new.weight())),
    };
    comparison.place(vec![old], vec![new]);
    while let Some((place, old, new)) = comparison.waiting.pop() {
        comparison.look_into(place, &old, &new);
        if comparison.work == 0 {
            return Additions::Unknown;
        }
    }
    Additions::of(comparison.places)
}

struct Side<'a> {
    document: SchemaDocument<'a>,
}

/// The schemas that apply to one place of a call, each by its index in its document.
type Key = (Vec<u32>, Vec<u32>);

struct Comparison<'a> {
    old: Side<'a>,
    new: Side<'a>,
    places: Vec<CallPlace>,
    known: HashMap<Key, usize>,
    waiting: Vec<(usize, Vec<Node<'a>>, Vec<Node<'a>>)>,
    work: u64,
}

impl<'a> Comparison<'a> {
    /// The place where these schemas apply. A new place is queued and visited later.
    fn place(&mut self, old: Vec<Node<'a>>, new: Vec<Node<'a>>) -> usize {
        let old = self.old.applied(old, &mut self.work);
        let new = self.new.applied(new, &mut self.work);
        let indexes = |nodes: &[Node<'_>]| nodes.iter().map(|node| node.index()).collect();
        let key = (indexes(&old), indexes(&new));
        let next = self.places.len();
        let place = *self.known.entry(key).or_insert(next);
        if place == next {
            self.places.push(CallPlace::default());
            self.waiting.push((place, old, new));
        }
        place
    }

    fn look_into(&mut self, place: usize, old: &[Node<'a>], new: &[Node<'a>]) {
        let mut found = CallPlace::default();
        let (old_declared, new_declared) = (declared(old), declared(new));
        let names: SortedSet<&Cow<'a, str>> =
            new_declared.iter().flat_map(|schema| schema.named.keys()).collect();
        for name in names {
            self.work = self.work.saturating_sub(1 + (old.len() + new.len()) as u64);
            if self.work == 0 {
                return;
            }
            let of = |schemas: &[DeclaredMembers<'a>]| {
                schemas.iter().filter_map(|schema| schema.member(name)).collect()
            };
            let is_known = old_declared.iter().any(|schema| schema.named.contains_key(name));
            let member = match is_known {
                true => Member::Known(self.place(of(&old_declared), of(&new_declared))),
                false => Member::Added,
            };
            found.members.insert(name.as_ref().into(), member);
        }
        let all = |schemas: &[Node<'a>], of: fn(Node<'a>) -> Vec<Node<'a>>| {
            schemas.iter().flat_map(|schema| of(*schema)).collect::<Vec<_>>()
        };
        for (of, slot) in [
            (further as fn(Node<'a>) -> Vec<Node<'a>>, &mut found.further),
            (items, &mut found.items),
        ] {
            let (old, new) = (all(old, of), all(new, of));
            if !new.is_empty() {
                *slot = Some(self.place(old, new));
            }
        }
        if let Some(place) = self.places.get_mut(place) {
            *place = found;
        }
    }
}

impl<'a> Side<'a> {
    fn of(root: Node<'a>) -> Side<'a> {
        let root_place = Place { node: root, path: Path::root("") };
        // Only references are followed, and they work the same in every dialect.
        let dialect = Dialect::Draft2020;
        Side {
            document: SchemaDocument {
                root: root_place,
                dialect,
                features: Rc::new(Features::of(root)),
            },
        }
    }

    /// The given schemas and all others that apply to the same value, through references and
    /// branches.
    fn applied(&self, schemas: Vec<Node<'a>>, work: &mut u64) -> Vec<Node<'a>> {
        let mut found: SortedMap<u32, Node<'a>> = SortedMap::new();
        let mut waiting = schemas;
        while let Some(schema) = waiting.pop() {
            *work = work.saturating_sub(1);
            if *work == 0 {
                break;
            }
            if found.insert(schema.index(), schema).is_some() {
                continue;
            }
            for (keyword, value) in schema.members() {
                match keyword.as_str().as_deref() {
                    Some("$ref" | "$recursiveRef") => {
                        let reference = value.as_str().unwrap_or_default();
                        if let Target::Schema(place) = self.document.resolve(&reference, work) {
                            waiting.push(place.node);
                        }
                    }
                    Some("allOf" | "anyOf" | "oneOf") => waiting.extend(value.items()),
                    Some("if" | "then" | "else") => waiting.push(value),
                    Some("dependentSchemas" | "dependencies") => {
                        waiting.extend(value.members().map(|(_, schema)| schema));
                    }
                    _ => {}
                }
            }
        }
        found.into_values().collect()
    }
}

/// The members that one schema declares.
struct DeclaredMembers<'a> {
    named: SortedMap<Cow<'a, str>, Node<'a>>,
    further: Option<Node<'a>>,
}

impl<'a> DeclaredMembers<'a> {
    /// The schema of a member: the one declared by name, or else the one for further members.
    fn member(&self, name: &str) -> Option<Node<'a>> {
        self.named.get(name).copied().or(self.further)
    }
}

fn declared<'a>(schemas: &[Node<'a>]) -> Vec<DeclaredMembers<'a>> {
    let declared = schemas.iter().map(|schema| {
        let properties = schema.get("properties").into_iter().flat_map(Node::members);
        let named = properties.filter_map(|(name, schema)| Some((name.as_str()?, schema)));
        DeclaredMembers { named: named.collect(), further: schema.get("additionalProperties") }
    });
    declared.collect()
}

fn further(schema: Node<'_>) -> Vec<Node<'_>> {
    let patterns = schema.get("patternProperties").into_iter().flat_map(Node::members);
    let others = ["additionalProperties", "unevaluatedProperties"];
    let others = others.into_iter().filter_map(|keyword| schema.get(keyword));
    patterns.map(|(_, schema)| schema).chain(others).collect()
}

fn items(schema: Node<'_>) -> Vec<Node<'_>> {
    let keywords = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
    let values = keywords.into_iter().filter_map(|keyword| schema.get(keyword));
    values
        .flat_map(|value| if value.is_array() { value.items().collect() } else { vec![value] })
        .collect()
}

#[cfg(test)]
mod tests;

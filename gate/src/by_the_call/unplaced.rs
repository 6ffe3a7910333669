//! Compares what schemas say where no path of a call leads: in an unreferenced definition, or in a
//! condition.

use super::Undecided;
use super::schema::{Schema, properties};
use contract::canonical::{Position, canonical};
use contract::json::Node;
use contract::sorted::SortedMap;
use std::borrow::Cow;
use std::collections::HashSet;

/// A schema, and its subschemas that belong to a place.
type Seen<'s, 'a> = (&'s Schema<'a>, &'s HashSet<u32>);

/// Whether two definitions differ outside of all places. Such a change cannot be attributed to a
/// parameter.
pub(super) fn differ(old: Seen<'_, '_>, new: Seen<'_, '_>) -> Result<bool, Undecided> {
    let (old_definitions, new_definitions) = (definitions(old.0), definitions(new.0));
    let mut ignored = (Vec::new(), Vec::new());
    for (name, before) in &old_definitions {
        match new_definitions.get(name) {
            // Ignore an unchanged definition: adding or removing a parameter that refers to it only
            // changes whether it belongs to a place.
            Some(after) if is_same((old.0, *before), (new.0, *after))? => {
                ignored.0.push(*before);
                ignored.1.push(*after);
            }
            Some(_) => {}
            // An unreferenced definition had no effect on calls.
            None => ignored.0.push(*before),
        }
    }
    Ok(apart(old, &ignored.0) != apart(new, &ignored.1))
}

/// The definitions of a schema, by name.
fn definitions<'a>(schema: &Schema<'a>) -> SortedMap<Cow<'a, str>, Node<'a>> {
    let containers = ["$defs", "definitions"].into_iter().filter_map(|name| schema.root.get(name));
    let members = containers.flat_map(Node::members);
    members.map(|(name, definition)| (name.as_str().unwrap_or_default(), definition)).collect()
}

fn is_same(
    (old_schema, old): (&Schema<'_>, Node<'_>),
    (new_schema, new): (&Schema<'_>, Node<'_>),
) -> Result<bool, Undecided> {
    if old.raw() == new.raw() {
        return Ok(true);
    }
    old_schema.work.spend_on_all(old)?;
    new_schema.work.spend_on_all(new)?;
    Ok(canonical(old, Position::Schema) == canonical(new, Position::Schema))
}

/// What subschemas outside of all places say, with counts: texts, defaults, types, formats,
/// properties.
fn apart(
    (schema, visited): Seen<'_, '_>,
    ignored: &[Node<'_>],
) -> SortedMap<(String, Vec<u8>), usize> {
    let mut ranges: Vec<(u32, u32)> = ignored
        .iter()
        .map(|node| (node.index(), node.index().saturating_add(node.size())))
        .collect();
    ranges.sort_unstable();
    let is_ignored = |index: u32| {
        let before = ranges.partition_point(|(start, _)| *start <= index);
        let last = before.checked_sub(1).and_then(|at| ranges.get(at));
        last.is_some_and(|(_, end)| index < *end)
    };
    let mut said = SortedMap::new();
    let nodes = schema.all().into_iter();
    let nodes = nodes.filter(|node| !visited.contains(&node.index()) && !is_ignored(node.index()));
    for node in nodes {
        for (name, value) in node.members() {
            let keyword = name.as_str().unwrap_or_default();
            let position = match keyword.as_ref() {
                // The alternative "or null" belongs to the parameter that contains it, whose types
                // are compared.
                "type" if value.is_text("null") => continue,
                "title" | "description" | "examples" | "$comment" | "default" | "format"
                | "contentEncoding" | "contentMediaType" | "deprecated" => Position::Plain,
                "type" => Position::Set,
                _ => continue,
            };
            let key = (keyword.into_owned(), canonical(value, position));
            *said.get_or_default(key) += 1;
        }
        for (name, _) in properties(node) {
            let key = ("properties".to_owned(), name.as_bytes().to_vec());
            *said.get_or_default(key) += 1;
        }
    }
    said
}

//! What a schema says where no path of a call leads: in a definition that nothing refers to, or in a condition.

use super::schema::{Schema, properties};
use contract::canonical::{Position, canonical};
use std::collections::{BTreeMap, HashSet};

/// What subschemas that belong to no place say, each with how often: texts, defaults, types, formats, properties. Two
/// definitions that differ in it changed in a way that no parameter can be blamed for.
pub(super) fn apart(
    schema: &Schema<'_>,
    visited: &HashSet<u32>,
) -> BTreeMap<(String, Vec<u8>), usize> {
    let mut said = BTreeMap::new();
    for node in schema.all().into_iter().filter(|node| !visited.contains(&node.index())) {
        for (name, value) in node.members() {
            let keyword = name.as_str().unwrap_or_default();
            let position = match keyword.as_ref() {
                // The alternative "or null" belongs to the parameter that it is written in, whose types are compared.
                "type" if value.is_text("null") => continue,
                "title" | "description" | "examples" | "$comment" | "default" | "format"
                | "contentEncoding" | "contentMediaType" => Position::Plain,
                "type" => Position::Set,
                _ => continue,
            };
            let key = (keyword.into_owned(), canonical(value, position));
            *said.entry(key).or_insert(0) += 1;
        }
        for (name, _) in properties(node) {
            let key = ("properties".to_owned(), name.as_bytes().to_vec());
            *said.entry(key).or_insert(0) += 1;
        }
    }
    said
}

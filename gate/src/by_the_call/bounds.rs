//! Checks the bounds of a schema before it is compiled: how many subschemas apply to one place of a
//! call.
//!
//! A validator visits each of them. Two references in an `allOf`, nested 28 levels deep, make 2 KB
//! of schema and 270 million visits; a reference that leads back to itself without descending into
//! the call never terminates.

use super::Undecided;
use super::schema::{Schema, is_reference, is_schema, parts, properties};
use contract::json::Node;
use contract::sorted::SortedMap;
use std::collections::HashSet;

/// The most subschemas that may apply to one place of a call, with references and branches
/// followed.
pub const MAX_APPLIED: usize = 1_000;

/// Keywords whose subschemas apply one level deeper in the call.
const STEPS: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Checks that no place of a call has more than [`MAX_APPLIED`] subschemas.
pub(super) fn check(schema: &Schema<'_>) -> Result<(), Undecided> {
    let mut known: HashSet<Vec<u32>> = HashSet::new();
    let mut followed: HashSet<Vec<u32>> = HashSet::new();
    let mut waiting = vec![vec![schema.root]];
    while let Some(place) = waiting.pop() {
        schema.work.spend(1 + place.len())?;
        if !known.insert(key(&place)) {
            continue;
        }
        let mut leading = applied(schema, &place)?;
        leading.retain(|node| leads_further(*node));
        // Many parameters may refer to one wide definition, so visit its members only once.
        if followed.insert(key(&leading)) {
            waiting.extend(steps(schema, &leading)?);
        }
    }
    Ok(())
}

/// A key that is the same for the same schemas in any order.
fn key(schemas: &[Node<'_>]) -> Vec<u32> {
    let mut key: Vec<u32> = schemas.iter().map(|node| node.index()).collect();
    key.sort_unstable();
    key
}

/// Whether a subschema applies to members or elements.
fn leads_further(schema: Node<'_>) -> bool {
    let mut keywords = schema.members().map(|(keyword, _)| keyword);
    keywords.any(|keyword| STEPS.iter().any(|step| keyword.is_text(step)))
}

/// All subschemas that apply together with these schemas, each as often as a validator visits it.
fn applied<'a>(schema: &Schema<'a>, place: &[Node<'a>]) -> Result<Vec<Node<'a>>, Undecided> {
    let mut found = Vec::new();
    let mut active = Vec::new();
    place.iter().try_for_each(|node| collect(schema, *node, &mut active, &mut found))?;
    Ok(found)
}

fn collect<'a>(
    schema: &Schema<'a>,
    node: Node<'a>,
    active: &mut Vec<u32>,
    found: &mut Vec<Node<'a>>,
) -> Result<(), Undecided> {
    if active.contains(&node.index()) {
        return Err(Undecided::Cycle);
    }
    schema.work.spend_on(node)?;
    found.push(node);
    if found.len() > MAX_APPLIED {
        return Err(Undecided::TooManySubschemas);
    }
    active.push(node.index());
    // A validator visits the branches a second time to find out which members they covered.
    let is_counting =
        node.get("unevaluatedProperties").is_some() || node.get("unevaluatedItems").is_some();
    for _ in 0..if is_counting { 2 } else { 1 } {
        for (keyword, value) in node.members() {
            match keyword.as_str().as_deref() {
                Some(keyword) if is_reference(keyword) => {
                    collect(schema, schema.resolve(value)?, active, found)?;
                }
                Some(
                    keyword @ ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else"
                    | "dependentSchemas" | "dependencies"),
                ) => {
                    let parts = parts(keyword, value).into_iter();
                    parts
                        .filter(|part| is_schema(*part))
                        .try_for_each(|part| collect(schema, part, active, found))?;
                }
                _ => {}
            }
        }
    }
    active.pop();
    Ok(())
}

/// The schemas of each place one level deeper in the call.
fn steps<'a>(schema: &Schema<'a>, applied: &[Node<'a>]) -> Result<Vec<Vec<Node<'a>>>, Undecided> {
    let mut named: SortedMap<_, Vec<Node<'a>>> = SortedMap::new();
    let mut further = Vec::new();
    let mut items = Vec::new();
    for node in applied {
        for (name, part) in properties(*node) {
            schema.work.spend(1)?;
            named.get_or_default(name).push(part);
        }
        for (keyword, value) in node.members() {
            match keyword.as_str().as_deref() {
                Some(
                    keyword @ ("additionalProperties"
                    | "unevaluatedProperties"
                    | "patternProperties"
                    | "propertyNames"),
                ) => further.extend(parts(keyword, value)),
                Some(
                    keyword @ ("items" | "prefixItems" | "additionalItems" | "unevaluatedItems"
                    | "contains"),
                ) => items.extend(parts(keyword, value)),
                _ => {}
            }
        }
    }
    schema.work.spend(named.len().saturating_mul(further.len()))?;
    // Schemas for unnamed members may apply to a named one too.
    let mut places: Vec<Vec<Node<'a>>> = named
        .into_values()
        .map(|mut schemas| {
            schemas.extend(&further);
            schemas
        })
        .collect();
    places.extend([further, items].into_iter().filter(|place| !place.is_empty()));
    Ok(places)
}

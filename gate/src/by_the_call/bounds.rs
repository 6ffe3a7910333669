//! The bounds that a schema must keep before it is compiled: how many subschemas apply to one place of a call.
//!
//! A validator visits each of them. Two references in an `allOf`, 28 levels deep, are 2 KB of schema and 270 million
//! visits; a reference that leads back to itself without a step into the call never ends.

use super::Undecided;
use super::schema::{Schema, is_schema, parts, properties};
use contract::json::Node;
use std::collections::{BTreeMap, HashSet};

/// The most subschemas that apply to one place of a call, references and branches followed.
pub const MAX_APPLIED: usize = 1_000;
/// The most subschemas that are looked at to find that out.
const MAX_WORK: usize = 50_000;

/// Checks that no place of a call has more than [`MAX_APPLIED`] subschemas.
pub(super) fn check(schema: &Schema<'_>) -> Result<(), Undecided> {
    let mut known: HashSet<Vec<u32>> = HashSet::new();
    let mut waiting = vec![vec![schema.root]];
    let mut work = 0;
    while let Some(place) = waiting.pop() {
        let mut key: Vec<u32> = place.iter().map(|node| node.index()).collect();
        key.sort_unstable();
        if !known.insert(key) {
            continue;
        }
        let applied = applied(schema, &place)?;
        work += 1 + applied.len();
        if work > MAX_WORK {
            return Err(Undecided::TooManySubschemas);
        }
        waiting.extend(steps(&applied).ok_or(Undecided::TooManySubschemas)?);
    }
    Ok(())
}

/// All subschemas that apply to the place that these schemas apply to, each as often as a validator visits it.
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
    found.push(node);
    if found.len() > MAX_APPLIED {
        return Err(Undecided::TooManySubschemas);
    }
    active.push(node.index());
    // A validator looks through the branches a second time to tell which members they have covered.
    let is_counting =
        node.get("unevaluatedProperties").is_some() || node.get("unevaluatedItems").is_some();
    for _ in 0..if is_counting { 2 } else { 1 } {
        for (keyword, value) in node.members() {
            match keyword.as_str().as_deref() {
                Some("$ref") => collect(schema, schema.resolve(value)?, active, found)?,
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

/// The schemas of each place that is one step further into the call. `None` if they are too many.
fn steps<'a>(applied: &[Node<'a>]) -> Option<Vec<Vec<Node<'a>>>> {
    let mut named: BTreeMap<_, Vec<Node<'a>>> = BTreeMap::new();
    let mut further = Vec::new();
    let mut items = Vec::new();
    for node in applied {
        for (name, schema) in properties(*node) {
            named.entry(name).or_default().push(schema);
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
    if named.len().saturating_mul(further.len()) > MAX_WORK {
        return None;
    }
    // What is said of members without naming them may apply to a named one too.
    let mut places: Vec<Vec<Node<'a>>> = named
        .into_values()
        .map(|mut schemas| {
            schemas.extend(&further);
            schemas
        })
        .collect();
    places.extend([further, items].into_iter().filter(|place| !place.is_empty()));
    Some(places)
}

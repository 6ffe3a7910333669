//! Compares two JSON Schemas, reporting changes in the terms of `docs/what-is-compared.md`.
//!
//! A change is a narrowing if some input that was valid before is refused now. If neither a
//! breaking nor a fail-safe kind is reported, the new schema accepts every instance that the old
//! schema accepts.

mod additions;
mod annotations;
mod applicable;
mod arrays;
mod combinators;
mod compare;
mod document;
mod facts;
mod objects;
mod path;
mod results;
mod scalars;
mod type_set;
mod view;

use crate::canonical::{Position, is_same};
use crate::change::{ChangeKind, Finding};
use crate::diff::Budget;
use crate::json::Node;
use crate::sorted::SortedSet;
pub use additions::{Additions, CallPlace};
use compare::{Comparison, Reading};
use document::{Declared, Dialect, Features, SchemaDocument};
pub(crate) use path::pointer_step;
pub(crate) use results::compare_results_within;
pub use results::{Results, compare_results};
use std::rc::Rc;

/// Schemas are compared down to this many levels; below that they must be byte-equal.
pub const MAX_LEVELS: usize = 16;
/// The most findings of one comparison; anything beyond is reported as undiffable.
pub const MAX_FINDINGS: usize = 1_000;
/// The work allowed for one comparison: this base, plus an allowance per weight of the two schemas.
const WORK_BASE: u64 = 2_000;
const WORK_PER_WEIGHT: u64 = 8;

/// Compares two schemas. `pointer` is their place in the entry.
pub fn compare(old: Node<'_>, new: Node<'_>, pointer: &str) -> Vec<Finding> {
    compare_within(old, new, pointer, &mut Budget::default())
}

/// Compares two schemas with the work left in `budget`. If that is not enough, they are undiffable.
pub(crate) fn compare_within(
    old: Node<'_>,
    new: Node<'_>,
    pointer: &str,
    budget: &mut Budget,
) -> Vec<Finding> {
    compare_as(Reading::Arguments, old, new, pointer, budget)
}

fn compare_as(
    reading: Reading,
    old: Node<'_>,
    new: Node<'_>,
    pointer: &str,
    budget: &mut Budget,
) -> Vec<Finding> {
    if old.raw() == new.raw() {
        return Vec::new();
    }
    if is_same(old, new, Position::Schema) {
        return Vec::new();
    }
    let undiffable = |reason: &str| {
        let path = pointer.to_owned();
        vec![Finding::new(ChangeKind::DeepSchemaUndiffable, path, None, Some(reason))]
    };
    let (old_features, new_features) = (Rc::new(Features::of(old)), Rc::new(Features::of(new)));
    if !old_features.can_follow_references(&new_features) {
        return undiffable("a nested `$id` or a dynamic reference");
    }
    let is_sensitive = old_features.is_dialect_sensitive || new_features.is_dialect_sensitive;
    let declared = (SchemaDocument::declared(old), SchemaDocument::declared(new));
    let Some(dialects) = dialects(declared, is_sensitive) else {
        return undiffable("another `$schema`, with keywords that the two read differently");
    };
    let mut findings = Vec::new();
    for &dialect in dialects {
        let sides = ((old, old_features.clone()), (new, new_features.clone()));
        let comparison = Comparison::new(sides.0, sides.1, dialect, pointer);
        findings.extend(comparison.reading(reading).run(budget));
    }
    if dialects.len() > 1 {
        drop_what_the_other_dialect_explains(&mut findings);
    }
    if old.get("$schema").map(Node::raw) != new.get("$schema").map(Node::raw) {
        let text = |schema: Node<'_>| schema.get("$schema").map(|uri| uri.raw().to_owned());
        let (before, after) = (text(old), text(new));
        let path = format!("{pointer}/$schema");
        let kind = ChangeKind::MetadataChanged;
        findings.push(Finding::new(kind, path, before.as_deref(), after.as_deref()));
    }
    let annotated = annotations::compare(old, new, pointer, &findings);
    findings.extend(annotated);
    if findings.is_empty() {
        return undiffable("the schemas differ in a way that no rule explains");
    }
    findings.sort();
    // Report each change once, even if several branches compared separately found it.
    findings.dedup_by(|left, right| left.path == right.path && left.kind == right.kind);
    findings
}

/// Drops changes of a keyword that only one dialect knows: the comparison in the other dialect
/// already explains them.
fn drop_what_the_other_dialect_explains(findings: &mut Vec<Finding>) {
    let explained: SortedSet<String> = findings
        .iter()
        .filter(|finding| finding.kind != ChangeKind::MetadataChanged)
        .map(|finding| format!("{}/", finding.path))
        .collect();
    findings.retain(|finding| {
        let inside = format!("{}/", finding.path);
        // In a sorted set, paths with the same prefix are adjacent.
        let is_explained =
            explained.first_from(&inside).is_some_and(|path| path.starts_with(&inside));
        finding.kind != ChangeKind::MetadataChanged || !is_explained
    });
}

/// The dialects to compare in. Returns `None` if the two sides use different dialects and the
/// schemas depend on that.
///
/// Without `$schema`, a narrowing in either dialect counts, so both are compared if the schemas
/// depend on the dialect.
fn dialects(declared: (Declared, Declared), is_sensitive: bool) -> Option<&'static [Dialect]> {
    const BOTH: &[Dialect] = &[Dialect::Draft2020, Dialect::Draft7];
    match declared {
        (Declared::Known(Dialect::Draft7), Declared::Known(Dialect::Draft7)) => {
            Some(&[Dialect::Draft7])
        }
        (Declared::Known(Dialect::Draft2019), Declared::Known(Dialect::Draft2019)) => {
            Some(&[Dialect::Draft2019])
        }
        (Declared::Known(Dialect::Draft2020), Declared::Known(Dialect::Draft2020)) => {
            Some(&[Dialect::Draft2020])
        }
        (Declared::Nothing, Declared::Nothing) if is_sensitive => Some(BOTH),
        (Declared::Unknown, _) | (_, Declared::Unknown) => None,
        _ if is_sensitive => None,
        _ => Some(&[Dialect::Draft2020]),
    }
}

/// The parameters that every call must give, wherever the schema requires them, with the pointer to
/// each declaration. At most a fixed number is returned. Returns `None` if finding them takes more
/// work than is left in `budget`.
pub(crate) fn required_parameters(
    schema: Node<'_>,
    pointer: &str,
    most: usize,
    budget: &mut Budget,
) -> Option<Vec<(String, String)>> {
    let side = (schema, Rc::new(Features::of(schema)));
    Comparison::new(side.clone(), side, Dialect::Draft2020, pointer).all_required(most, budget)
}

/// Classifies a changed title. A title that only spells the name differently adds nothing.
pub(crate) fn title_change(
    old: Option<Node<'_>>,
    new: Option<Node<'_>>,
    name: Option<&str>,
) -> ChangeKind {
    let spells_name =
        |title: Option<Node<'_>>| title.is_none_or(|title| compare::is_spelling_of(title, name));
    if spells_name(old) && spells_name(new) {
        ChangeKind::MetadataChanged
    } else {
        ChangeKind::DescriptionOnly
    }
}

/// Whether a title only spells a property's name differently (`User ID` for `user_id`).
pub fn spells_name(title: Node<'_>, name: &str) -> bool {
    compare::is_spelling_of(title, Some(name))
}

/// Whether the schema declares at least one property.
pub(crate) fn has_properties(schema: Node<'_>) -> bool {
    schema.get("properties").is_some_and(|properties| properties.members().next().is_some())
}

#[cfg(test)]
mod tests;

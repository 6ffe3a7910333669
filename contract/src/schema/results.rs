//! What changed between two output schemas. A result comes from the server, so the direction is the other one: the client
//! relies on the old schema, and every result that the new schema allows should be one that the old schema allows.

use super::compare::Reading;
use super::{compare_as, compare_within};
use crate::change::{ChangeClass, Finding, Meaning};
use crate::diff::Budget;
use crate::json::Node;

/// What changed between two output schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// What is said differently and, where both schemas allow the same results, what is written differently.
    pub said: Vec<Finding>,
    /// How the results that the new schema allows relate to those of the old one, unless they are the same.
    pub change: Option<Meaning>,
}

/// Compares two output schemas. `pointer` is where they stand in their entry.
pub fn compare_results(old: Node<'_>, new: Node<'_>, pointer: &str) -> Results {
    compare_results_within(old, new, pointer, &mut Budget::default())
}

/// Compares two output schemas with the work that is left in `budget`. Without enough of it the results count as outside.
pub(crate) fn compare_results_within(
    old: Node<'_>,
    new: Node<'_>,
    pointer: &str,
    budget: &mut Budget,
) -> Results {
    let mut said = compare_within(old, new, pointer, budget);
    let back = compare_as(Reading::Results, new, old, pointer, budget);
    let says_only =
        |finding: &Finding| matches!(finding.class, ChangeClass::Text | ChangeClass::Metadata);
    if said.iter().chain(&back).all(says_only) {
        return Results { said, change: None };
    }
    said.retain(|finding| finding.class == ChangeClass::Text);
    let is_outside = back.iter().any(|finding| Reading::Results.is_broken_by(finding));
    let change = if is_outside { Meaning::ResultsOutside } else { Meaning::ResultsWithin };
    Results { said, change: Some(change) }
}

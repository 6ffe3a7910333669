//! What changed between two output schemas. A result comes from the server, so the direction is the other one: the client
//! relies on the old schema, and every result that the new schema allows should be one that the old schema allows.

use super::compare::Reading;
use super::{compare_as, compare_within};
use crate::change::{ChangeClass, ChangeKind, Finding, Meaning};
use crate::detail::Detail;
use crate::diff::Budget;
use crate::json::Node;

/// What changed between two output schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// What is said differently and, where both schemas allow the same results, what is written differently.
    pub said: Vec<Finding>,
    /// How the results that the new schema allows relate to those of the old one, unless they are the same.
    pub change: Option<Meaning>,
    /// What exactly is allowed differently.
    pub detail: Option<Detail>,
}

/// The most changes of results that are told one by one.
const MOST_PARTS: usize = 8;

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
        return Results { said, change: None, detail: None };
    }
    let is_outside = back.iter().any(|finding| Reading::Results.is_broken_by(finding));
    let change = if is_outside { Meaning::ResultsOutside } else { Meaning::ResultsWithin };
    let mut parts: Vec<Finding> =
        said.iter().filter(|finding| !says_only(finding)).cloned().collect();
    parts.sort_by_key(|part| !allows_more(part));
    let more = parts.len().saturating_sub(MOST_PARTS);
    parts.truncate(MOST_PARTS);
    said.retain(|finding| finding.class == ChangeClass::Text);
    Results { said, change: Some(change), detail: Some(Detail::Results(parts, more)) }
}

/// Whether a change of an output schema may allow results that were not allowed: those matter most.
fn allows_more(finding: &Finding) -> bool {
    let may_be = [ChangeKind::RemovedParam, ChangeKind::TypeChanged, ChangeKind::DefaultChanged];
    matches!(finding.class, ChangeClass::Widening | ChangeClass::FailSafe)
        || may_be.contains(&finding.kind)
}

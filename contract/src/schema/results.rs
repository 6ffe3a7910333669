//! Compares two output schemas. Results come from the server, so the comparison runs in the
//! opposite direction: the client relies on the old schema, so the old schema should allow every
//! result that the new one allows.

use super::compare::Reading;
use super::{compare_as, compare_within};
use crate::change::{ChangeClass, ChangeKind, Finding, Meaning};
use crate::detail::Detail;
use crate::diff::Budget;
use crate::json::Node;

/// What changed between two output schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// Changed texts and, if both schemas allow the same results, differences in how they are
    /// written.
    pub said: Vec<Finding>,
    /// How the results of the new schema relate to those of the old one. `None` if they are the
    /// same.
    pub change: Option<Meaning>,
    /// The exact differences between the allowed results.
    pub detail: Option<Detail>,
}

/// The most changes of results that are listed one by one.
const MOST_PARTS: usize = 8;

/// Compares two output schemas. `pointer` is their place in the entry.
pub fn compare_results(old: Node<'_>, new: Node<'_>, pointer: &str) -> Results {
    compare_results_within(old, new, pointer, &mut Budget::default())
}

/// Compares two output schemas with the work left in `budget`. If that is not enough, the results
/// count as outside.
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

/// Whether a change of an output schema may allow new results. Those changes matter most.
fn allows_more(finding: &Finding) -> bool {
    let may_be = [ChangeKind::RemovedParam, ChangeKind::TypeChanged, ChangeKind::DefaultChanged];
    matches!(finding.class, ChangeClass::Widening | ChangeClass::FailSafe)
        || may_be.contains(&finding.kind)
}

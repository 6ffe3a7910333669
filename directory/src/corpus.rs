//! The rules of the corpus: which verdict is served from the contributions on one definition, and
//! which keys behave unusually.
//!
//! Pure. INVARIANT: `cleared` is only served on the operator's decision, `dangerous` only on that
//! of the operator or of three owners, and nothing while owners contradict each other and the
//! operator has not decided.

pub mod anomaly;

use gate::network::{CorpusVerdict, ReasonClass};
use std::collections::BTreeMap;

/// The number of owners who must call a definition dangerous before that is served without the
/// operator's decision.
pub const OWNERS_NEEDED: usize = 3;
/// The most contributions that are kept.
pub const MAX_CONTRIBUTIONS: u64 = 1_000_000;
/// The most reports of changes that are kept.
pub const MAX_REPORTS: u64 = 1_000_000;

/// One owner's verdict on a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    pub verdict: CorpusVerdict,
    pub reason: ReasonClass,
    /// Whether the operator's decision took this verdict into account.
    pub is_decided: bool,
}

/// The operator's decision on a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjudication {
    Said(CorpusVerdict, ReasonClass),
    /// Nothing is served until the operator decides otherwise.
    Invalidated,
}

/// The state of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Standing {
    Served(CorpusVerdict, ReasonClass),
    /// Only `cleared`, or `dangerous` by fewer than three owners.
    Waiting,
    /// Owners contradict each other, or contradict the operator's `cleared`.
    Conflict,
    Invalidated,
}

impl Standing {
    pub const ALL: [&'static str; 4] = ["served", "waiting", "conflict", "invalidated"];

    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Served(..) => "served",
            Standing::Waiting => "waiting",
            Standing::Conflict => "conflict",
            Standing::Invalidated => "invalidated",
        }
    }

    /// The verdict that is served, if any.
    pub const fn served(self) -> Option<(CorpusVerdict, ReasonClass)> {
        match self {
            Standing::Served(verdict, reason) => Some((verdict, reason)),
            Standing::Waiting | Standing::Conflict | Standing::Invalidated => None,
        }
    }
}

/// Computes the state of one definition. There is one voice per owner.
pub fn standing(voices: &[Voice], adjudication: Option<Adjudication>) -> Standing {
    let says = |verdict: CorpusVerdict| voices.iter().filter(move |it| it.verdict == verdict);
    match adjudication {
        Some(Adjudication::Invalidated) => Standing::Invalidated,
        // The operator saw the `cleared` voices too. Later ones cannot silence a warning.
        Some(Adjudication::Said(CorpusVerdict::Dangerous, reason)) => {
            Standing::Served(CorpusVerdict::Dangerous, reason)
        }
        Some(Adjudication::Said(CorpusVerdict::Cleared, reason)) => {
            match says(CorpusVerdict::Dangerous).any(|voice| !voice.is_decided) {
                true => Standing::Conflict,
                false => Standing::Served(CorpusVerdict::Cleared, reason),
            }
        }
        None => {
            let dangerous: Vec<&Voice> = says(CorpusVerdict::Dangerous).collect();
            let cleared = says(CorpusVerdict::Cleared).count();
            match (dangerous.len(), cleared) {
                (1.., 1..) => Standing::Conflict,
                (OWNERS_NEEDED.., 0) => {
                    Standing::Served(CorpusVerdict::Dangerous, usual_reason(&dangerous))
                }
                _ => Standing::Waiting,
            }
        }
    }
}

/// The most frequent reason; the first in the list if there are several. `Unstated` only counts if
/// no voice gives another reason.
fn usual_reason(voices: &[&Voice]) -> ReasonClass {
    let mut counts: BTreeMap<ReasonClass, usize> = BTreeMap::new();
    for voice in voices.iter().filter(|voice| voice.reason != ReasonClass::Unstated) {
        *counts.entry(voice.reason).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(reason, count)| (**count, std::cmp::Reverse(**reason)));
    most.map_or(ReasonClass::Unstated, |(reason, _)| *reason)
}

#[cfg(test)]
mod tests;

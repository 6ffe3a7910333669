//! The corpus's rules: what is served of the contributions about one definition, and which keys contribute oddly.
//!
//! Pure. INVARIANT: `cleared` is served only after the operator said so, `dangerous` only after the operator or three owners
//! said so, and nothing while owners contradict each other and the operator has not decided.

pub mod anomaly;

use gate::network::{CorpusVerdict, ReasonClass};
use std::collections::BTreeMap;

/// How many owners have to call a definition dangerous before that is served without the operator's word.
pub const OWNERS_NEEDED: usize = 3;
/// The most contributions that are kept.
pub const MAX_CONTRIBUTIONS: u64 = 1_000_000;
/// The most reports of changes that are kept.
pub const MAX_REPORTS: u64 = 1_000_000;

/// What one owner said of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    pub verdict: CorpusVerdict,
    pub reason: ReasonClass,
    /// Whether the operator decided with knowledge of it.
    pub is_decided: bool,
}

/// What the operator said of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjudication {
    Said(CorpusVerdict, ReasonClass),
    /// Nothing is served until the operator says otherwise.
    Invalidated,
}

/// What becomes of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Standing {
    Served(CorpusVerdict, ReasonClass),
    /// `cleared` alone, or `dangerous` of fewer than three owners.
    Waiting,
    /// Owners contradict each other, or the operator's `cleared`.
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

    /// What is served, if anything is.
    pub const fn served(self) -> Option<(CorpusVerdict, ReasonClass)> {
        match self {
            Standing::Served(verdict, reason) => Some((verdict, reason)),
            Standing::Waiting | Standing::Conflict | Standing::Invalidated => None,
        }
    }
}

/// Decides about one definition. There is one voice for each owner.
pub fn standing(voices: &[Voice], adjudication: Option<Adjudication>) -> Standing {
    let says = |verdict: CorpusVerdict| voices.iter().filter(move |it| it.verdict == verdict);
    match adjudication {
        Some(Adjudication::Invalidated) => Standing::Invalidated,
        // The operator saw the voices for `cleared` too. Later ones cannot silence a warning.
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

/// The reason that most voices give; of several the first of the list. The empty one counts only where no other is given.
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

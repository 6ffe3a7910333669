//! A verdict on one entry, bound to the exact definition that was read.

use crate::dimension::{Dimension, DimensionResult, Outcome};
use crate::finding::{Finding, Severity};
use crate::grade::Grade;
use crate::limits::HonestLimit;
use crate::state::{Contract, Coverage, Evidence, Judges, State, Validity};
use crate::word::closed_words;
use contract::hash::{DefinitionHash, EntryHash, SurfaceHash};
use contract::surface::EntryId;
use contract::time::Timestamp;

/// The version of the verdict's format.
pub const VERDICT_CONTRACT_VERSION: &str = "1.0.0";
/// Confidence is not calibrated, which every document states.
pub const CALIBRATED: bool = false;

closed_words! {
    /// How much of a tool was read.
    Granularity ("granularity") {
        Description => "description",
        Definition => "definition",
        Behavior => "behavior",
    }
}

/// The hashes of the entry as it was read. A verdict is only valid for exactly this content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Only for tools: the hash of name, description and input schema.
    pub definition_hash: Option<DefinitionHash>,
    /// The hash of everything significant in the entry, including annotations and output schema.
    pub entry_hash: EntryHash,
}

/// The screen's verdict on one entry: a tool, a prompt, the instructions, the origin, ….
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryVerdict {
    pub entry: EntryId,
    pub binding: Binding,
    pub judges: Judges,
    /// All dimensions, in the order of `Dimension::ALL`.
    pub dimensions: Vec<DimensionResult>,
    pub grade: Grade,
    pub screened_at: Timestamp,
    pub expires_at: Timestamp,
}

impl EntryVerdict {
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.dimensions.iter().flat_map(|result| &result.findings)
    }

    pub fn worst(&self) -> Option<Severity> {
        self.findings().map(|finding| finding.severity).max()
    }

    /// The state at a moment, given the entry's current hash.
    pub fn state(&self, now: Timestamp, current: EntryHash) -> State {
        State::of(self.evidence(now, current))
    }

    pub fn evidence(&self, now: Timestamp, current: EntryHash) -> Evidence {
        let validity = match () {
            () if current != self.binding.entry_hash => Validity::Changed,
            () if now >= self.expires_at => Validity::Expired,
            () => Validity::Current,
        };
        Evidence {
            contract: Contract::Read,
            worst: self.worst(),
            judges: self.judges,
            coverage: coverage(&self.dimensions),
            grade: self.grade,
            validity,
        }
    }

    pub fn granularity(&self) -> Granularity {
        let is_tried = |result: &DimensionResult| {
            result.dimension == Dimension::Conformance && result.outcome != Outcome::NotRun
        };
        match self.dimensions.iter().any(is_tried) {
            true => Granularity::Behavior,
            false => Granularity::Definition,
        }
    }

    pub fn limits(&self) -> Vec<HonestLimit> {
        HonestLimit::of(&self.dimensions)
    }
}

fn coverage(dimensions: &[DimensionResult]) -> Coverage {
    let is_run = |dimension: &Dimension| {
        dimensions
            .iter()
            .any(|result| result.dimension == *dimension && result.outcome != Outcome::NotRun)
    };
    if Dimension::ALL.iter().all(is_run) { Coverage::Whole } else { Coverage::Partial }
}

/// The screen's verdicts on a server, one per entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screening {
    pub surface_hash: SurfaceHash,
    pub grade: Grade,
    pub screened_at: Timestamp,
    pub expires_at: Timestamp,
    /// In the order of the surface's entries.
    pub entries: Vec<EntryVerdict>,
}

impl Screening {
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.entries.iter().flat_map(EntryVerdict::findings)
    }

    pub fn worst(&self) -> Option<Severity> {
        self.findings().map(|finding| finding.severity).max()
    }

    /// Each dimension over all entries: it failed if it failed for any entry, and was run if it was
    /// run for all.
    pub fn dimensions(&self) -> Vec<DimensionResult> {
        let of = |&dimension: &Dimension| {
            let results = || {
                let all = self.entries.iter().flat_map(|entry| &entry.dimensions);
                all.filter(move |result| result.dimension == dimension)
            };
            let findings: Vec<Finding> =
                results().flat_map(|result| result.findings.iter().cloned()).collect();
            match results().find(|result| result.outcome == Outcome::NotRun) {
                Some(missing) if findings.is_empty() => missing.clone(),
                Some(_) | None => DimensionResult::of(dimension, findings),
            }
        };
        Dimension::ALL.iter().map(of).collect()
    }

    /// The state of the whole server at a moment, given its current surface hash. A server without
    /// entries has no contract.
    pub fn state(&self, now: Timestamp, current: SurfaceHash) -> State {
        let validity = match () {
            () if current != self.surface_hash => Validity::Changed,
            () if now >= self.expires_at => Validity::Expired,
            () => Validity::Current,
        };
        let is_disagreed = self.entries.iter().any(|entry| entry.judges == Judges::Disagree);
        State::of(Evidence {
            contract: if self.entries.is_empty() { Contract::Missing } else { Contract::Read },
            worst: self.worst(),
            judges: if is_disagreed { Judges::Disagree } else { Judges::Agree },
            coverage: coverage(&self.dimensions()),
            grade: self.grade,
            validity,
        })
    }
}

#[cfg(test)]
mod tests;

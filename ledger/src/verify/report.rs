//! The result of verification, for people and as JSON.

use crate::folder::{ChainId, SegmentNumber};
use serde::Serialize;
use std::fmt;

/// The most problems, and the most notes, in a report. Further ones are only counted.
pub const MAX_PROBLEMS: usize = 1_000;

/// The result for a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub chains: Vec<ChainReport>,
    /// Everything that does not verify, in the order in which it was found.
    pub problems: Vec<Problem>,
    /// Observations that are worth knowing but prove nothing.
    pub notes: Vec<String>,
    pub left_out: u64,
}

/// The result for one chain, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    pub chain: ChainId,
    pub segments: u64,
    pub lines: u64,
    pub bytes: u64,
    /// The size of the chain's tree, including lines that retention dropped.
    pub size: u64,
    /// The number of lines, from the very first, that a signed checkpoint covers.
    pub covered: u64,
    pub decisions: u64,
    pub outcomes: u64,
    pub events: u64,
    /// Allowed requests without a recorded outcome: their writer was stopped, or they are still in
    /// progress.
    pub without_outcome: u64,
    pub first_ts: Option<String>,
    pub last_ts: Option<String>,
}

/// Something that does not verify, and its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub chain: Option<ChainId>,
    pub segment: Option<SegmentNumber>,
    /// The line of the segment's file, counted from 1.
    pub line: Option<u64>,
    pub what: String,
}

impl Problem {
    pub(crate) fn of_folder(what: impl Into<String>) -> Problem {
        Problem { chain: None, segment: None, line: None, what: what.into() }
    }

    pub(crate) fn of_chain(chain: &ChainId, what: impl Into<String>) -> Problem {
        Problem { chain: Some(chain.clone()), ..Problem::of_folder(what) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(chain) = &self.chain {
            write!(formatter, "chain {chain}")?;
            if let Some(segment) = self.segment {
                write!(formatter, ", segment {segment}")?;
            }
            if let Some(line) = self.line {
                write!(formatter, ", line {line}")?;
            }
            formatter.write_str(": ")?;
        }
        formatter.write_str(&self.what)
    }
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn lines(&self) -> u64 {
        self.chains.iter().map(|chain| chain.lines).sum()
    }

    /// The number of lines that no checkpoint covers yet.
    pub fn uncovered(&self) -> u64 {
        self.chains.iter().map(|chain| chain.size.saturating_sub(chain.covered)).sum()
    }

    pub fn without_outcome(&self) -> u64 {
        self.chains.iter().map(|chain| chain.without_outcome).sum()
    }

    pub(crate) fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        if self.notes.len() < MAX_PROBLEMS {
            self.notes.push(note);
        } else {
            self.left_out += 1;
        }
    }
}

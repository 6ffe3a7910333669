//! Drills of incident mode: a number that every process which follows the store reports back, so that the way of a switch can
//! be measured without stopping anything.

use crate::by::By;
use crate::error::StoreError;

/// The longest place of a process that reports a drill, in bytes.
pub const MAX_DRILL_PLACE_BYTES: usize = 300;
/// The most processes that report one drill.
pub const MAX_DRILL_SIGHTINGS: usize = 1_000;

/// A process that has seen a drill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DrillSighting {
    /// One run of the process.
    pub node: String,
    /// Where it serves, for people.
    pub place: String,
}

pub trait DrillStore {
    /// Begins a drill and forgets earlier ones. Returns its number.
    fn begin_drill(&mut self, by: By<'_>) -> Result<i64, StoreError>;

    /// The number of the last drill; 0 if there was none.
    fn last_drill(&self) -> Result<i64, StoreError>;

    /// A process has seen the drill: what it decides from now on rests on what the store said after the drill began.
    fn note_drill(&mut self, drill: i64, seen_by: &DrillSighting) -> Result<(), StoreError>;

    /// Who has seen a drill.
    fn drill_sightings(&self, drill: i64) -> Result<Vec<DrillSighting>, StoreError>;
}

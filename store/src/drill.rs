//! Drills of incident mode: a number that every process following the store reports back, so that
//! the delay of a switch can be measured without stopping anything.

use crate::by::By;
use crate::error::StoreError;

/// The longest address of a process that reports a drill, in bytes.
pub const MAX_DRILL_PLACE_BYTES: usize = 300;
/// The most processes that can report one drill.
pub const MAX_DRILL_SIGHTINGS: usize = 1_000;

/// A process that has seen a drill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DrillSighting {
    /// Identifies one run of the process.
    pub node: String,
    /// The address it serves on, for display.
    pub place: String,
}

pub trait DrillStore {
    /// Begins a drill and forgets earlier ones. Returns the number of the drill.
    fn begin_drill(&mut self, by: By<'_>) -> Result<i64, StoreError>;

    /// The number of the last drill; 0 if there was none.
    fn last_drill(&self) -> Result<i64, StoreError>;

    /// Records that a process has seen the drill: its decisions now rest on data read after the
    /// drill began.
    fn note_drill(&mut self, drill: i64, seen_by: &DrillSighting) -> Result<(), StoreError>;

    /// The processes that have seen a drill.
    fn drill_sightings(&self, drill: i64) -> Result<Vec<DrillSighting>, StoreError>;
}

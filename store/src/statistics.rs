//! Counters per day, server and name.

use crate::error::StoreError;
use gate::server::ServerId;
use gate::time::Timestamp;

/// The longest name of a counter, in bytes.
pub const MAX_COUNTER_BYTES: usize = 64;
/// The most counters that one write adds to.
pub const MAX_COUNTS_PER_WRITE: usize = 10_000;
/// The most counters that one read returns.
pub const MAX_COUNTS_READ: usize = 1_000_000;

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// A day in UTC, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    pub fn of(moment: Timestamp) -> Day {
        Day(moment.0.div_euclid(MILLISECONDS_PER_DAY))
    }
}

/// How often something happened on a day at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    pub day: Day,
    pub server: ServerId,
    pub name: String,
    pub value: u64,
}

/// Counters, shared by all processes.
pub trait StatisticsStore {
    /// Adds to counters, in one write. A counter saturates at the largest number.
    fn add_counts(&mut self, counts: &[Count]) -> Result<(), StoreError>;

    /// All counters between two days, both included, ordered by day, server and name.
    fn counts(&self, from: Day, to: Day) -> Result<Vec<Count>, StoreError>;
}

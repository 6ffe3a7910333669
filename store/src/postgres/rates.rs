//! How many calls all nodes let through, per principal, tool or server. The database adds up the
//! nodes' reports and returns the sums, using only its own clock: clocks of different machines are
//! never compared.

use super::PostgresStore;
use super::address::Address;
use super::transaction::Rows;
use crate::database::{Transaction, Value};
use crate::error::StoreError;
use crate::home::Home;
use std::ops::ControlFlow;

/// The most buckets in one report.
pub const MAX_REPORTED_BUCKETS: usize = 1_000;

/// Calls that a node let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedCalls {
    /// Identifies the bucket on all nodes.
    pub bucket: [u8; 32],
    pub calls: u64,
    /// The time in which the bucket regains one call.
    pub each_nanoseconds: u64,
}

/// The totals over all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedCalls {
    /// The time until the bucket is full.
    pub full_in_nanoseconds: u64,
    /// The calls of this day (UTC).
    pub used: u64,
    /// The database's time.
    pub unix_seconds: u64,
}

/// The counts of all nodes, over their own connection.
#[derive(Debug)]
pub struct RateCounts {
    store: PostgresStore,
}

const NOW: &str = "(SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000000))::bigint * 1000 AS now) AS clock";

impl RateCounts {
    pub fn open(home: &Home, address: &Address) -> Result<RateCounts, StoreError> {
        Ok(RateCounts { store: PostgresStore::open(home, address)? })
    }

    /// Adds calls, and returns the total of each bucket in the same order. If the response is lost,
    /// calls may be counted twice, which lets fewer calls through, never more.
    pub fn add(&self, reported: &[ReportedCalls]) -> Result<Vec<CountedCalls>, StoreError> {
        // Each report is its own transaction, so that two nodes cannot deadlock on rows.
        let sql = format!(
            "INSERT INTO rates AS known (key, full_at, day, used)
             SELECT $1::bytea, now + $2::bigint * $3::bigint, now / 86400000000000, $2::bigint FROM {NOW}
             ON CONFLICT (key) DO UPDATE SET
                 full_at = greatest(known.full_at + $2::bigint * $3::bigint, excluded.full_at),
                 used = CASE WHEN known.day = excluded.day THEN known.used ELSE 0 END + excluded.used,
                 day = excluded.day
             RETURNING known.full_at, known.used, (SELECT now FROM {NOW})"
        );
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let sets: Vec<Vec<Value<'_>>> = reported
            .iter()
            .map(|calls| {
                let ReportedCalls { bucket, calls, each_nanoseconds } = calls;
                vec![
                    bucket.as_slice().into(),
                    whole(*calls).into(),
                    whole(*each_nanoseconds).into(),
                ]
            })
            .collect();
        let garbled = || StoreError::Garbled { what: "the count of calls" };
        let counted = self.store.with_session(|session| {
            let mut counted = Vec::with_capacity(sets.len());
            Rows { session }.query_each(&sql, &sets, &mut |row| {
                let number = |index| row.cell(index).integer().ok_or_else(garbled);
                let (full_at, used, now) = (number(0)?, number(1)?, number(2)?);
                let positive = |number: i64| u64::try_from(number).unwrap_or(0);
                counted.push(CountedCalls {
                    full_in_nanoseconds: positive(full_at.saturating_sub(now)),
                    used: positive(used),
                    unix_seconds: positive(now / 1_000_000_000),
                });
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(counted)
        })?;
        if counted.len() == reported.len() { Ok(counted) } else { Err(garbled()) }
    }

    /// Removes buckets that are full and whose day is over.
    pub fn forget_idle(&self) -> Result<(), StoreError> {
        let sql = format!(
            "DELETE FROM rates USING {NOW}
             WHERE full_at < clock.now AND day < clock.now / 86400000000000"
        );
        let forget = |rows: &dyn Transaction| rows.execute(&sql, &[]);
        self.store.with_session(|session| forget(&Rows { session })).map(drop)
    }
}

#[cfg(test)]
mod tests;

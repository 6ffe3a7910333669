//! Reports of installs: how many owners met which change. Unconfirmed, and never mixed with the
//! crawler's observations.

use super::corpus::{Contributed, range};
use super::{Database, Result, Writing};
use crate::corpus::MAX_REPORTS;
use contract::time::Timestamp;
use gate::network::{Bucket, DriftReport, Fingerprint, InstallReport};
use rusqlite::params;

pub(super) const TABLES: &str = "
CREATE TABLE reports (
    id INTEGER PRIMARY KEY, fp_before BLOB NOT NULL, fp_after BLOB NOT NULL, owner TEXT NOT NULL,
    day INTEGER NOT NULL, UNIQUE (fp_before, fp_after, owner)) STRICT;
";

const DAY_MS: i64 = 86_400_000;
/// How long a report counts.
const REPORT_DAYS: i64 = 90;

impl Database {
    /// The reports in one bucket of `fp_before`, at most `most`, those with the most owners first.
    pub fn report_bucket(&self, bucket: Bucket, most: usize) -> Result<Vec<InstallReport>> {
        let (first, after) = range(bucket);
        self.rows(
            "SELECT fp_before, fp_after, COUNT(*) AS owners FROM reports WHERE fp_before >= ?1 AND fp_before < ?2 GROUP BY fp_before, fp_after ORDER BY owners DESC, fp_before, fp_after LIMIT ?3",
            params![first, after, i64::try_from(most).unwrap_or(i64::MAX)],
            |row| {
                Ok(InstallReport {
                    fp_before: Fingerprint::from_bytes(row.get(0)?),
                    fp_after: Fingerprint::from_bytes(row.get(1)?),
                    installs: row.get(2)?,
                })
            },
        )
    }
}

impl Writing<'_> {
    /// Stores that an owner met a change. The kinds and the hour in the report are not needed, and
    /// not stored.
    pub fn keep_report(
        &self,
        owner: &str,
        report: &DriftReport,
        now: Timestamp,
    ) -> Result<Contributed> {
        if self.is_full("reports", MAX_REPORTS)? {
            return Ok(Contributed::Full);
        }
        self.execute(
            "INSERT INTO reports (fp_before, fp_after, owner, day) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (fp_before, fp_after, owner) DO UPDATE SET day = excluded.day",
            params![
                report.fp_before.as_bytes(),
                report.fp_after.as_bytes(),
                owner,
                now.0.div_euclid(DAY_MS)
            ],
        )?;
        Ok(Contributed::Kept)
    }

    /// Removes all reports of an owner. Returns how many there were.
    pub fn remove_reports(&self, owner: &str) -> Result<usize> {
        self.execute("DELETE FROM reports WHERE owner = ?1", [owner])
    }

    /// Deletes reports that no longer count.
    pub fn forget_reports(&self, now: Timestamp) -> Result<()> {
        let oldest = now.0.div_euclid(DAY_MS) - REPORT_DAYS;
        self.execute("DELETE FROM reports WHERE day < ?1", [oldest])?;
        Ok(())
    }
}

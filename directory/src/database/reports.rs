//! Reports of installs: which change how many owners met. Unconfirmed, and never mixed with what the crawler saw.

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
    /// The reports of one bucket of `fp_before`, those of most owners first, at most so many.
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
    /// Keeps that an owner met a change. What it says of kinds and of its hour is not needed, and not kept.
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

    /// Removes everything that an owner reported. Returns how many reports it were.
    pub fn remove_reports(&self, owner: &str) -> Result<usize> {
        self.execute("DELETE FROM reports WHERE owner = ?1", [owner])
    }

    /// Forgets reports that count no longer.
    pub fn forget_reports(&self, now: Timestamp) -> Result<()> {
        let oldest = now.0.div_euclid(DAY_MS) - REPORT_DAYS;
        self.execute("DELETE FROM reports WHERE day < ?1", [oldest])?;
        Ok(())
    }
}

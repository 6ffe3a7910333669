//! Tables of the corpus: the contributions of owners, the decisions of the operator, what is
//! served, and the activity of keys.

use super::{Database, DatabaseError, Result, Writing};
use crate::corpus::anomaly::{HourOfKey, Said};
use crate::corpus::{Adjudication, MAX_CONTRIBUTIONS, Standing, Voice, standing};
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use gate::network::{Bucket, CorpusRow, CorpusVerdict, MAX_CONTRIBUTIONS_A_DAY, ReasonClass};
use rusqlite::{Row, params};

/// `corpus` has a row for each definition that was contributed or adjudicated, with the verdict
/// that is served now.
pub(super) const TABLES: &str = "
CREATE TABLE contributions (
    id INTEGER PRIMARY KEY, definition BLOB NOT NULL, owner TEXT NOT NULL, verdict TEXT NOT NULL,
    reason TEXT NOT NULL, day INTEGER NOT NULL, is_decided INTEGER NOT NULL, UNIQUE (definition, owner)) STRICT;
CREATE TABLE corpus (
    definition BLOB PRIMARY KEY, adjudicated TEXT, adjudicated_reason TEXT NOT NULL, standing TEXT NOT NULL,
    served TEXT, served_reason TEXT NOT NULL, was_served INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE activity (
    key TEXT NOT NULL, hour INTEGER NOT NULL, owner TEXT NOT NULL, contributions INTEGER NOT NULL,
    reports INTEGER NOT NULL, refused INTEGER NOT NULL, PRIMARY KEY (key, hour)) STRICT, WITHOUT ROWID;
";

/// The stored form of the operator's withdrawal.
const INVALIDATED: &str = "invalidated";
const HOUR_MS: i64 = 3_600_000;
const HOURS_A_DAY: i64 = 24;
/// How long the activity of keys is kept.
const ACTIVITY_DAYS: i64 = 31;

/// The two kinds of message with a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaMessage {
    Contribution,
    Report,
}

/// What happened to a key's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Contributed {
    Kept,
    /// The key's quota for the day is used up.
    Spent,
    /// The table is full.
    Full,
}

/// The verdict that was served on a definition before an act of the operator, and the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub definition: DefinitionHash,
    /// Whether a verdict was ever served: installs may have acted on it.
    pub was_served: bool,
    pub adjudicated_before: Option<Adjudication>,
    pub before: Option<CorpusVerdict>,
    pub after: Standing,
}

/// A definition of the corpus as shown to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusEntry {
    pub definition: DefinitionHash,
    pub standing: String,
    pub served: Option<CorpusVerdict>,
    pub reason: ReasonClass,
    pub adjudicated: Option<String>,
    pub dangerous: Vec<String>,
    pub cleared: Vec<String>,
}

fn definition(row: &Row<'_>, at: usize) -> rusqlite::Result<DefinitionHash> {
    row.get::<_, [u8; 32]>(at).map(DefinitionHash::from_bytes)
}

/// The first hash of a bucket, and the upper bound after its last one.
pub(super) fn range(bucket: Bucket) -> (Vec<u8>, Vec<u8>) {
    let shift = 32 - u32::from(bucket.bits());
    let start = |index: u64| (index << shift).to_be_bytes();
    let first = start(u64::from(bucket.index()));
    let after = start(u64::from(bucket.index()) + 1);
    let hash_bytes = |bytes: [u8; 8]| bytes.iter().skip(4).copied().collect::<Vec<u8>>();
    // No 32-byte hash is larger than the bound of the last bucket.
    let is_last = u64::from(bucket.index()) + 1 == 1 << bucket.bits();
    (hash_bytes(first), if is_last { vec![0xff; 33] } else { hash_bytes(after) })
}

impl Database {
    /// What is served for one bucket, at most `most` rows, the operator's decisions first.
    pub fn corpus_bucket(&self, bucket: Bucket, most: usize) -> Result<Vec<CorpusRow>> {
        let (first, after) = range(bucket);
        let rows = self.rows(
            "SELECT definition, served, served_reason FROM corpus WHERE served IS NOT NULL AND definition >= ?1 AND definition < ?2 ORDER BY adjudicated IS NULL, definition LIMIT ?3",
            params![first, after, i64::try_from(most).unwrap_or(i64::MAX)],
            |row| Ok((definition(row, 0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)),
        )?;
        let row = |(definition_hash, verdict, reason): (DefinitionHash, String, String)| {
            let verdict = self.sound(CorpusVerdict::of(&verdict), "a row cannot be read")?;
            Ok(CorpusRow {
                definition_hash,
                verdict,
                reason_class: ReasonClass::or_unstated(&reason),
            })
        };
        rows.into_iter().map(row).collect()
    }

    /// The number of definitions with a served verdict.
    pub fn served_rows(&self) -> Result<u64> {
        let sql = "SELECT COUNT(*) FROM corpus WHERE served IS NOT NULL";
        let count = self.rows(sql, [], |row| row.get::<_, i64>(0))?;
        Ok(count.first().copied().unwrap_or(0).unsigned_abs())
    }

    /// Definitions with all verdicts on them; only those with the given state, if any.
    pub fn corpus_entries(&self, wanted: Option<&str>, most: usize) -> Result<Vec<CorpusEntry>> {
        let entries = self.rows(
            "SELECT definition, standing, served, served_reason, adjudicated FROM corpus WHERE ?1 IS NULL OR standing = ?1 ORDER BY definition LIMIT ?2",
            params![wanted, i64::try_from(most).unwrap_or(i64::MAX)],
            |row| {
                let served: Option<String> = row.get(2)?;
                Ok(CorpusEntry {
                    definition: definition(row, 0)?,
                    standing: row.get(1)?,
                    served: served.as_deref().and_then(CorpusVerdict::of),
                    reason: ReasonClass::or_unstated(&row.get::<_, String>(3)?),
                    adjudicated: row.get(4)?,
                    dangerous: Vec::new(),
                    cleared: Vec::new(),
                })
            },
        )?;
        let with_owners = |mut entry: CorpusEntry| -> Result<CorpusEntry> {
            let said = self.rows(
                "SELECT owner, verdict FROM contributions WHERE definition = ?1 ORDER BY owner",
                [entry.definition.as_bytes()],
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
            )?;
            for (owner, verdict) in said {
                match CorpusVerdict::of(&verdict) {
                    Some(CorpusVerdict::Dangerous) => entry.dangerous.push(owner),
                    _ => entry.cleared.push(owner),
                }
            }
            Ok(entry)
        };
        entries.into_iter().map(with_owners).collect()
    }

    /// The activity of keys since a moment.
    pub fn activity_since(&self, since: Timestamp) -> Result<Vec<HourOfKey>> {
        self.rows(
            "SELECT key, owner, hour, contributions, reports, refused FROM activity WHERE hour >= ?1",
            [since.0.div_euclid(HOUR_MS)],
            |row| {
                let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
                Ok(HourOfKey {
                    key: row.get(0)?,
                    owner: row.get(1)?,
                    hour: row.get(2)?,
                    contributions: count(3)?,
                    reports: count(4)?,
                    refused: count(5)?,
                })
            },
        )
    }

    /// All verdicts of owners and the operator, by definition.
    pub fn all_said(&self) -> Result<Vec<Said>> {
        let rows = self.rows(
            "SELECT c.definition, c.owner, c.verdict, o.adjudicated, o.adjudicated_reason FROM contributions c JOIN corpus o USING (definition) ORDER BY c.definition, c.owner",
            [],
            |row| {
                let adjudicated: Option<String> = row.get(3)?;
                let reason: String = row.get(4)?;
                let text = |at: usize| row.get::<_, String>(at);
                Ok((definition(row, 0)?, text(1)?, text(2)?, adjudicated, reason))
            },
        )?;
        let mut all: Vec<(DefinitionHash, Said)> = Vec::new();
        for (definition, owner, verdict, adjudicated, reason) in rows {
            let verdict = self.sound(CorpusVerdict::of(&verdict), "a contribution is unknown")?;
            match all.last_mut().filter(|(last, _)| *last == definition) {
                Some((_, said)) => said.voices.push((owner, verdict)),
                None => {
                    let adjudication = adjudication(adjudicated.as_deref(), &reason);
                    let voices = vec![(owner, verdict)];
                    all.push((definition, Said { voices, adjudication }));
                }
            }
        }
        Ok(all.into_iter().map(|(_, said)| said).collect())
    }
}

fn adjudication(word: Option<&str>, reason: &str) -> Option<Adjudication> {
    match word? {
        INVALIDATED => Some(Adjudication::Invalidated),
        word => {
            Some(Adjudication::Said(CorpusVerdict::of(word)?, ReasonClass::or_unstated(reason)))
        }
    }
}

impl Writing<'_> {
    /// Counts a message of a key, unless the key's quota for this UTC day is used up.
    pub fn count_message(
        &self,
        key: &str,
        owner: &str,
        message: QuotaMessage,
        now: Timestamp,
    ) -> Result<Contributed> {
        let hour = now.0.div_euclid(HOUR_MS);
        let day = hour.div_euclid(HOURS_A_DAY) * HOURS_A_DAY;
        let used = self.row(
            "SELECT COALESCE(SUM(contributions + reports), 0) FROM activity WHERE key = ?1 AND hour >= ?2 AND hour < ?3",
            params![key, day, day + HOURS_A_DAY],
            |row| row.get::<_, i64>(0),
        )?;
        let is_spent = used.unwrap_or(0) >= i64::from(MAX_CONTRIBUTIONS_A_DAY);
        let more = match (is_spent, message) {
            (true, _) => [0, 0, 1],
            (false, QuotaMessage::Contribution) => [1, 0, 0],
            (false, QuotaMessage::Report) => [0, 1, 0],
        };
        let [contributions, reports, refused] = more;
        self.execute(
            "INSERT INTO activity (key, hour, owner, contributions, reports, refused) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (key, hour) DO UPDATE SET contributions = contributions + ?4, reports = reports + ?5, refused = refused + ?6",
            params![key, hour, owner, contributions, reports, refused],
        )?;
        Ok(if is_spent { Contributed::Spent } else { Contributed::Kept })
    }

    /// Stores an owner's verdict on a definition, replacing an earlier one.
    pub fn contribute(&self, owner: &str, row: &CorpusRow, now: Timestamp) -> Result<Contributed> {
        if self.is_full("contributions", MAX_CONTRIBUTIONS)? {
            return Ok(Contributed::Full);
        }
        let day = now.0.div_euclid(HOUR_MS * HOURS_A_DAY);
        let definition = row.definition_hash.as_bytes();
        // Repeating the same verdict is not new to an operator who has already decided.
        self.execute(
            "INSERT INTO contributions (definition, owner, verdict, reason, day, is_decided) VALUES (?1, ?2, ?3, ?4, ?5, 0)
             ON CONFLICT (definition, owner) DO UPDATE SET verdict = excluded.verdict, reason = excluded.reason, day = excluded.day, is_decided = 0
             WHERE verdict <> excluded.verdict OR reason <> excluded.reason",
            params![definition, owner, row.verdict.as_str(), row.reason_class.as_str(), day],
        )?;
        self.settle(row.definition_hash)?;
        Ok(Contributed::Kept)
    }

    /// Whether a table of numbered rows has reached its limit.
    pub(super) fn is_full(&self, table: &'static str, most: u64) -> Result<bool> {
        let sql = format!("SELECT COALESCE(MAX(id) - MIN(id) + 1, 0) FROM {table}");
        let count = self.row(&sql, [], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or(0).unsigned_abs() >= most)
    }

    /// Stores the operator's decision on a definition.
    pub fn adjudicate(&self, definition: DefinitionHash, said: Adjudication) -> Result<Settled> {
        let (word, reason) = match said {
            Adjudication::Said(verdict, reason) => (verdict.as_str(), reason.as_str()),
            Adjudication::Invalidated => (INVALIDATED, ""),
        };
        let hash = definition.as_bytes();
        self.execute("UPDATE contributions SET is_decided = 1 WHERE definition = ?1", [hash])?;
        let before = self.settle(definition)?;
        self.execute(
            "UPDATE corpus SET adjudicated = ?2, adjudicated_reason = ?3 WHERE definition = ?1",
            params![hash, word, reason],
        )?;
        let after = self.settle(definition)?;
        Ok(Settled { after: after.after, was_served: after.was_served, ..before })
    }

    /// Removes all contributions of an owner. Returns the change for each definition.
    pub fn remove_owner(&self, owner: &str) -> Result<Vec<Settled>> {
        let definitions = self.rows(
            "SELECT definition FROM contributions WHERE owner = ?1 ORDER BY definition",
            [owner],
            |row| definition(row, 0),
        )?;
        self.execute("DELETE FROM contributions WHERE owner = ?1", [owner])?;
        definitions.into_iter().map(|definition| self.settle(definition)).collect()
    }

    /// Computes which verdict is served on a definition.
    fn settle(&self, definition: DefinitionHash) -> Result<Settled> {
        let hash = definition.as_bytes();
        let known = self.row(
            "SELECT served, was_served, adjudicated, adjudicated_reason FROM corpus WHERE definition = ?1",
            [hash],
            |row| {
                let served: Option<String> = row.get(0)?;
                let adjudicated: Option<String> = row.get(2)?;
                let reason: String = row.get(3)?;
                Ok((served, row.get::<_, bool>(1)?, adjudicated, reason))
            },
        )?;
        let (served, was_served, word, reason) = known.unwrap_or_default();
        let voices = self.rows(
            "SELECT verdict, reason, is_decided FROM contributions WHERE definition = ?1",
            [hash],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?)),
        )?;
        let damaged = || DatabaseError::Damaged {
            path: self.path.to_owned(),
            problem: "a contribution cannot be read",
        };
        let mut all = Vec::with_capacity(voices.len());
        for (verdict, reason, is_decided) in voices {
            let verdict = CorpusVerdict::of(&verdict).ok_or_else(damaged)?;
            all.push(Voice { verdict, reason: ReasonClass::or_unstated(&reason), is_decided });
        }
        let adjudicated_before = adjudication(word.as_deref(), &reason);
        let after = standing(&all, adjudicated_before);
        let now_served = after.served();
        let was_served = was_served || now_served.is_some();
        self.execute(
            "INSERT INTO corpus (definition, adjudicated, adjudicated_reason, standing, served, served_reason, was_served) VALUES (?1, NULL, '', ?2, ?3, ?4, ?5)
             ON CONFLICT (definition) DO UPDATE SET standing = ?2, served = ?3, served_reason = ?4, was_served = ?5",
            params![
                hash,
                after.as_str(),
                now_served.map(|(verdict, _)| verdict.as_str()),
                now_served.map_or("", |(_, reason)| reason.as_str()),
                was_served,
            ],
        )?;
        let before = served.as_deref().and_then(CorpusVerdict::of);
        Ok(Settled { definition, was_served, adjudicated_before, before, after })
    }

    /// Deletes activity that is too old for any report.
    pub fn forget_activity(&self, now: Timestamp) -> Result<()> {
        let oldest = now.0.div_euclid(HOUR_MS) - ACTIVITY_DAYS * HOURS_A_DAY;
        self.execute("DELETE FROM activity WHERE hour < ?1", [oldest])?;
        Ok(())
    }
}

//! The directory's SQLite file: the entries of the log, the contracts that they name by hash, the
//! crawler's state, and the messages of installs and owners: the corpus, reports of changes,
//! claims.
//!
//! INVARIANT: log entries are only ever added, in the same transaction that marks their sources as
//! recorded.

use crate::crawl::{Manifest, NotListed, Observation, Outcome};
use crate::subject::SubjectId;
use contract::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

mod claims;
mod corpus;
mod reports;
mod waiting;

pub use claims::StoredClaim;
pub use corpus::{Contributed, CorpusEntry, QuotaMessage, Settled};
pub use waiting::{WaitingStatement, Words};

/// The version of the schema.
const VERSION: i64 = 3;
const BUSY: Duration = Duration::from_secs(10);

const TABLES: &str = "
CREATE TABLE leaves (number INTEGER PRIMARY KEY, entry BLOB NOT NULL) STRICT;
CREATE TABLE blobs (hash TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE observations (
    server TEXT NOT NULL, release TEXT NOT NULL, at INTEGER NOT NULL, outcome TEXT NOT NULL,
    capture TEXT, manifest TEXT NOT NULL, launch TEXT NOT NULL, is_recorded INTEGER NOT NULL,
    PRIMARY KEY (server, release)) STRICT;
CREATE TABLE visits (server TEXT PRIMARY KEY, due INTEGER NOT NULL, failures INTEGER NOT NULL) STRICT;
CREATE TABLE cursors (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE anchors (size INTEGER PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL, proof BLOB NOT NULL) STRICT;
";

/// The changes in version 3.
const SINCE_VERSION_3: &str = "ALTER TABLE observations ADD COLUMN cause TEXT;";

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("`{}`: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("`{}` was written by a newer version of Holdpoint", path.display())]
    Newer { path: PathBuf },
    #[error("`{}`: {problem}", path.display())]
    Damaged { path: PathBuf, problem: &'static str },
}

/// When a server is visited again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub at: Timestamp,
    /// The number of consecutive visits without a contract.
    pub failures: u32,
}

/// An anchor of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnchor {
    pub size: u64,
    /// The text of the checkpoint, without signatures.
    pub text: String,
    pub at: Timestamp,
    pub proof: Vec<u8>,
}

/// The open database.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
}

type Result<T, E = DatabaseError> = std::result::Result<T, E>;

impl Database {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> Result<Database> {
        let fault = |source| DatabaseError::Sqlite { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(fault)?;
        connection.busy_timeout(BUSY).map_err(fault)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
            .map_err(fault)?;
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let begun = begun.map_err(fault)?;
        let found: i64 =
            begun.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fault)?;
        match found {
            0 => begun.execute_batch(TABLES).map_err(fault)?,
            1..=VERSION => {}
            _ => return Err(DatabaseError::Newer { path: path.to_owned() }),
        }
        if found < 2 {
            for tables in [corpus::TABLES, reports::TABLES, claims::TABLES, waiting::TABLES] {
                begun.execute_batch(tables).map_err(fault)?;
            }
        }
        if found < VERSION {
            begun.execute_batch(SINCE_VERSION_3).map_err(fault)?;
            begun.pragma_update(None, "user_version", VERSION).map_err(fault)?;
        }
        begun.commit().map_err(fault)?;
        Ok(Database { connection, path: path.to_owned() })
    }

    /// Fails if a column's value is not one that this version writes.
    fn sound<T>(&self, value: Option<T>, problem: &'static str) -> Result<T> {
        value.ok_or_else(|| DatabaseError::Damaged { path: self.path.clone(), problem })
    }

    fn fault(&self) -> impl Fn(rusqlite::Error) -> DatabaseError + Copy + '_ {
        |source| DatabaseError::Sqlite { path: self.path.clone(), source }
    }

    /// All rows of a query.
    fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        all_rows(&self.connection, sql, values, read).map_err(self.fault())
    }

    /// The number of log entries.
    pub fn size(&self) -> Result<u64> {
        let count = self.connection.query_row("SELECT COUNT(*) FROM leaves", [], |row| row.get(0));
        count.map(i64::unsigned_abs).map_err(self.fault())
    }

    /// At most `most` entries, starting from a number.
    pub fn entries(&self, from: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        let first = i64::try_from(from).unwrap_or(i64::MAX);
        let rows = self.rows(
            "SELECT number, entry FROM leaves WHERE number >= ?1 ORDER BY number LIMIT ?2",
            params![first, i64::try_from(most).unwrap_or(i64::MAX)],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)),
        )?;
        let is_whole = (first..).zip(&rows).all(|(expected, (number, _))| expected == *number);
        self.sound(is_whole.then_some(()), "an entry of the log is missing")?;
        Ok(rows.into_iter().map(|(_, entry)| entry).collect())
    }

    /// A contract or document, by its hash.
    pub fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>> {
        let found = self
            .connection
            .query_row("SELECT body FROM blobs WHERE hash = ?1", [hash], |row| row.get(0))
            .optional();
        found.map_err(self.fault())
    }

    /// Runs `writing` atomically.
    pub fn write<T, E: From<DatabaseError>>(
        &mut self,
        writing: impl FnOnce(&Writing<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let path = self.path.clone();
        let fault = |source| E::from(DatabaseError::Sqlite { path: path.clone(), source });
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fault)?;
        let written = writing(&Writing { transaction: &transaction, path: &path })?;
        transaction.commit().map_err(fault)?;
        Ok(written)
    }

    /// Whether a release was already observed.
    pub fn is_observed(&self, server: &SubjectId, release: Option<&str>) -> Result<bool> {
        let found = self
            .connection
            .query_row(
                "SELECT 1 FROM observations WHERE server = ?1 AND release = ?2",
                [server.as_str(), release.unwrap_or_default()],
                |_| Ok(()),
            )
            .optional();
        found.map(|found| found.is_some()).map_err(self.fault())
    }

    /// Observations that are not yet in the log, in the order they were made.
    pub fn unrecorded(&self) -> Result<Vec<Observation>> {
        let observations = self.rows(
            "SELECT server, release, at, outcome, capture, manifest, launch, cause FROM observations WHERE is_recorded = 0 ORDER BY at, rowid",
            [],
            |row| Ok(observation(row)),
        )?;
        let observations = observations.into_iter();
        observations.map(|it| self.sound(it, "an observation cannot be read")).collect()
    }

    /// Whether an earlier observation of the same server is not yet in the log.
    pub fn has_unrecorded_before(&self, seen: &Observation) -> Result<bool> {
        let found = self
            .connection
            .query_row(
                "SELECT 1 FROM observations WHERE server = ?1 AND is_recorded = 0 AND at < ?2 AND release <> ?3",
                params![
                    seen.server.as_str(),
                    seen.at.0,
                    seen.release.as_deref().unwrap_or_default()
                ],
                |_| Ok(()),
            )
            .optional();
        found.map(|found| found.is_some()).map_err(self.fault())
    }

    pub fn due(&self, server: &SubjectId) -> Result<Option<Due>> {
        let found = self
            .connection
            .query_row(
                "SELECT due, failures FROM visits WHERE server = ?1",
                [server.as_str()],
                |row| Ok(Due { at: Timestamp(row.get(0)?), failures: row.get(1)? }),
            )
            .optional();
        found.map_err(self.fault())
    }

    pub fn cursor(&self, name: &str) -> Result<Option<String>> {
        let found = self
            .connection
            .query_row("SELECT value FROM cursors WHERE name = ?1", [name], |row| row.get(0))
            .optional();
        found.map_err(self.fault())
    }

    /// Anchors, newest first.
    pub fn anchors(&self, most: usize) -> Result<Vec<StoredAnchor>> {
        self.rows(
            "SELECT size, text, at, proof FROM anchors ORDER BY size DESC LIMIT ?1",
            [i64::try_from(most).unwrap_or(i64::MAX)],
            |row| {
                Ok(StoredAnchor {
                    size: row.get::<_, i64>(0)?.unsigned_abs(),
                    text: row.get(1)?,
                    at: Timestamp(row.get(2)?),
                    proof: row.get(3)?,
                })
            },
        )
    }
}

/// Returns `None` if a column has a value that this version does not write.
fn observation(row: &rusqlite::Row<'_>) -> Option<Observation> {
    let text = |at: usize| row.get::<_, String>(at).ok();
    let capture: Option<String> = row.get(4).ok()?;
    Some(Observation {
        server: text(0)?.parse().ok()?,
        release: Some(text(1)?).filter(|release| !release.is_empty()),
        at: Timestamp(row.get(2).ok()?),
        outcome: match capture {
            Some(capture) => Outcome::Listed(capture),
            None => Outcome::NotListed(NotListed::from_word(&text(3)?)?),
        },
        cause: match row.get::<_, Option<String>>(7).ok()? {
            Some(cause) => Some(serde_json::from_str(&cause).ok()?),
            None => None,
        },
        manifest: serde_json::from_str::<Manifest>(&text(5)?).ok()?,
        launch: serde_json::from_str(&text(6)?).ok()?,
    })
}

fn all_rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?;
    rows.collect()
}

/// A transaction.
#[derive(Debug)]
pub struct Writing<'t> {
    transaction: &'t Transaction<'t>,
    path: &'t Path,
}

impl Writing<'_> {
    fn fault(&self) -> impl Fn(rusqlite::Error) -> DatabaseError + Copy + '_ {
        |source| DatabaseError::Sqlite { path: self.path.to_owned(), source }
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
        let fault = self.fault();
        self.transaction.prepare_cached(sql).map_err(fault)?.execute(values).map_err(fault)
    }

    /// The first row of a query, if any.
    fn row<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let fault = self.fault();
        let mut statement = self.transaction.prepare_cached(sql).map_err(fault)?;
        statement.query_row(values, read).optional().map_err(fault)
    }

    /// All rows of a query.
    fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        all_rows(self.transaction, sql, values, read).map_err(self.fault())
    }

    /// Adds an entry to the log. Its number must be the next one.
    pub fn add_leaf(&self, number: u64, entry: &[u8]) -> Result<()> {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let added = self.execute(
            "INSERT INTO leaves (number, entry) SELECT ?1, ?2 WHERE ?1 = (SELECT COUNT(*) FROM leaves)",
            params![number, entry],
        )?;
        match added {
            1 => Ok(()),
            _ => Err(DatabaseError::Damaged {
                path: self.path.to_owned(),
                problem: "another process added to the log",
            }),
        }
    }

    pub fn keep_blob(&self, hash: &str, body: &[u8]) -> Result<()> {
        self.execute(
            "INSERT OR IGNORE INTO blobs (hash, body) VALUES (?1, ?2)",
            params![hash, body],
        )?;
        Ok(())
    }

    /// Stores an observation, replacing the last one of the same release.
    pub fn keep_observation(&self, observation: &Observation) -> Result<()> {
        let (outcome, capture) = match &observation.outcome {
            Outcome::Listed(capture) => ("listed", Some(capture.as_str())),
            Outcome::NotListed(reason) => (reason.as_str(), None),
        };
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        self.execute(
            "INSERT OR REPLACE INTO observations (server, release, at, outcome, capture, manifest, launch, cause, is_recorded) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
            params![
                observation.server.as_str(),
                observation.release.as_deref().unwrap_or_default(),
                observation.at.0,
                outcome,
                capture,
                json(serde_json::to_string(&observation.manifest)),
                json(serde_json::to_string(&observation.launch)),
                observation.cause.map(|cause| json(serde_json::to_string(&cause))),
            ],
        )?;
        Ok(())
    }

    /// Marks an observation as recorded. The log's blobs contain the contract from here on.
    pub fn mark_recorded(&self, observation: &Observation) -> Result<()> {
        self.execute(
            "UPDATE observations SET is_recorded = 1 WHERE server = ?1 AND release = ?2",
            params![
                observation.server.as_str(),
                observation.release.as_deref().unwrap_or_default()
            ],
        )?;
        Ok(())
    }

    pub fn set_due(&self, server: &SubjectId, due: Due) -> Result<()> {
        self.execute(
            "INSERT OR REPLACE INTO visits (server, due, failures) VALUES (?1, ?2, ?3)",
            params![server.as_str(), due.at.0, due.failures],
        )?;
        Ok(())
    }

    pub fn set_cursor(&self, name: &str, value: &str) -> Result<()> {
        self.execute(
            "INSERT OR REPLACE INTO cursors (name, value) VALUES (?1, ?2)",
            params![name, value],
        )?;
        Ok(())
    }

    pub fn keep_anchor(&self, anchor: &StoredAnchor) -> Result<()> {
        let size = i64::try_from(anchor.size).unwrap_or(i64::MAX);
        self.execute(
            "INSERT OR REPLACE INTO anchors (size, text, at, proof) VALUES (?1, ?2, ?3, ?4)",
            params![size, anchor.text, anchor.at.0, anchor.proof],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version 1 that contains an entry and a cursor.
    #[test]
    fn an_older_file_gets_the_new_tables_and_keeps_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(TABLES).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
        old.execute("INSERT INTO leaves (number, entry) VALUES (0, x'7b7d')", []).unwrap();
        drop(old);
        for _ in 0..2 {
            let database = Database::open(&path).unwrap();
            assert_eq!(database.entries(0, 9).unwrap(), [b"{}".to_vec()]);
            assert_eq!(database.served_rows().unwrap(), 0);
            assert!(database.claims(None).unwrap().is_empty());
            assert!(database.waiting_statements(9).unwrap().is_empty());
        }
        let newer = Connection::open(&path).unwrap();
        newer.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert!(matches!(Database::open(&path), Err(DatabaseError::Newer { .. })));
    }
}

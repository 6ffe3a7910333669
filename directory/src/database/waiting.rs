//! Statements queued for the writer of the log. Every process of a directory may add one; only the
//! writer adds entries.

use super::{Database, Result, Writing};
use crate::entry::{Statement, Subject};
use rusqlite::params;

pub(super) const TABLES: &str = "
CREATE TABLE waiting (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, statement TEXT NOT NULL, document BLOB) STRICT;
";

/// A statement, with the document that it names by hash.
#[derive(Debug, Clone)]
pub struct Words {
    pub subject: Subject,
    pub statement: Statement,
    pub document: Option<Vec<u8>>,
}

/// A statement with its number in the queue.
#[derive(Debug, Clone)]
pub struct WaitingStatement {
    pub id: i64,
    pub words: Words,
}

impl Database {
    /// The queued statements, oldest first.
    pub fn waiting_statements(&self, most: usize) -> Result<Vec<WaitingStatement>> {
        let rows = self.rows(
            "SELECT id, subject, statement, document FROM waiting ORDER BY id LIMIT ?1",
            [i64::try_from(most).unwrap_or(i64::MAX)],
            |row| {
                let document: Option<Vec<u8>> = row.get(3)?;
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, document))
            },
        )?;
        let read = |(id, subject, statement, document): (i64, String, String, _)| {
            let subject = serde_json::from_str(&subject).ok();
            let statement = serde_json::from_str(&statement).ok();
            let problem = "a statement that waits cannot be read";
            let (subject, statement) = self.sound(subject.zip(statement), problem)?;
            Ok(WaitingStatement { id, words: Words { subject, statement, document } })
        };
        rows.into_iter().map(read).collect()
    }
}

impl Writing<'_> {
    /// Queues a statement for the writer.
    pub fn leave_statement(&self, words: &Words) -> Result<()> {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        self.execute(
            "INSERT INTO waiting (subject, statement, document) VALUES (?1, ?2, ?3)",
            params![
                json(serde_json::to_string(&words.subject)),
                json(serde_json::to_string(&words.statement)),
                words.document,
            ],
        )?;
        Ok(())
    }

    /// Removes a statement that is now in the log.
    pub fn mark_said(&self, id: i64) -> Result<()> {
        self.execute("DELETE FROM waiting WHERE id = ?1", [id])?;
        Ok(())
    }
}

//! Claims of ownership as they are checked. Their public state is in the log.

use super::{Database, Result, Writing};
use crate::claim::{ClaimKey, Method};
use crate::entry::ClaimState;
use crate::subject::SubjectId;
use contract::time::Timestamp;
use rusqlite::{Row, params};

pub(super) const TABLES: &str = "
CREATE TABLE claims (
    server TEXT NOT NULL, key TEXT NOT NULL, method TEXT NOT NULL, domain TEXT NOT NULL, nonce TEXT NOT NULL,
    state TEXT NOT NULL, since INTEGER NOT NULL, counts_from INTEGER, failures INTEGER NOT NULL,
    due INTEGER NOT NULL, PRIMARY KEY (server, key)) STRICT, WITHOUT ROWID;
";

/// A claim that was verified once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClaim {
    pub server: SubjectId,
    pub key: ClaimKey,
    pub method: Method,
    /// The host or package by which it was verified.
    pub domain: String,
    pub nonce: String,
    pub state: ClaimState,
    pub since: Timestamp,
    pub counts_from: Option<Timestamp>,
    /// The number of consecutive checks that did not find it.
    pub failures: u32,
    pub due: Timestamp,
}

const COLUMNS: &str =
    "server, key, method, domain, nonce, state, since, counts_from, failures, due";

/// Reads a row; `None` if a text cannot be parsed.
fn claim(row: &Row<'_>) -> rusqlite::Result<Option<StoredClaim>> {
    let text = |at: usize| row.get::<_, String>(at);
    let (server, key, method, state) = (text(0)?, text(1)?, text(2)?, text(5)?);
    let (domain, nonce, since) = (text(3)?, text(4)?, Timestamp(row.get(6)?));
    let counts_from = row.get::<_, Option<i64>>(7)?.map(Timestamp);
    let (failures, due) = (row.get(8)?, Timestamp(row.get(9)?));
    let read = || {
        let (server, key) = (server.parse().ok()?, key.parse().ok()?);
        let (method, state) = (Method::from_word(&method)?, ClaimState::from_word(&state)?);
        let (domain, nonce) = (domain.clone(), nonce.clone());
        Some(StoredClaim {
            server,
            key,
            method,
            domain,
            nonce,
            state,
            since,
            counts_from,
            failures,
            due,
        })
    };
    Ok(read())
}

impl Database {
    /// The claims to one server, or all claims.
    pub fn claims(&self, server: Option<&SubjectId>) -> Result<Vec<StoredClaim>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM claims WHERE ?1 IS NULL OR server = ?1 ORDER BY server, since, key"
        );
        self.read_claims(&sql, [server.map(SubjectId::as_str)])
    }

    /// Claims that are due for a check, those that have waited longest first.
    pub fn due_claims(&self, now: Timestamp, most: usize) -> Result<Vec<StoredClaim>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM claims WHERE due <= ?1 AND state <> 'suspended' ORDER BY due, server, key LIMIT ?2"
        );
        self.read_claims(&sql, params![now.0, i64::try_from(most).unwrap_or(i64::MAX)])
    }

    fn read_claims(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<StoredClaim>> {
        let rows = self.rows(sql, values, claim)?;
        rows.into_iter().map(|row| self.sound(row, "a claim cannot be read")).collect()
    }

    /// The last address at which the crawler reached a remote server.
    pub fn remote_address(&self, server: &SubjectId) -> Result<Option<String>> {
        let launches = self.rows(
            "SELECT launch FROM observations WHERE server = ?1 AND release = ''",
            [server.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        let words = launches.first().and_then(|it| serde_json::from_str::<Vec<String>>(it).ok());
        Ok(words.and_then(|words| words.into_iter().next()))
    }
}

impl Writing<'_> {
    pub fn keep_claim(&self, claim: &StoredClaim) -> Result<()> {
        let sql = format!(
            "INSERT OR REPLACE INTO claims ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        );
        self.execute(
            &sql,
            params![
                claim.server.as_str(),
                claim.key.to_string(),
                claim.method.as_str(),
                claim.domain,
                claim.nonce,
                claim.state.as_str(),
                claim.since.0,
                claim.counts_from.map(|moment| moment.0),
                claim.failures,
                claim.due.0,
            ],
        )?;
        Ok(())
    }
}

//! A connection that is configured for Holdpoint, and the queries sent over it.

use super::address::Address;
use super::connection::{Connected, reason};
use super::transaction::Rows;
use super::wait::wait;
use crate::BUSY_TIMEOUT_SECONDS;
use crate::database::Transaction;
use crate::error::StoreError;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

/// How long a response may take: longer than the server waits for a lock.
const ANSWER_PATIENCE: Duration = Duration::from_secs(BUSY_TIMEOUT_SECONDS + 5);
/// How long a writer that stalls in a transaction can block the others.
const IDLE_IN_TRANSACTION_SECONDS: u64 = 30;
/// The oldest PostgreSQL version that the schema supports.
const OLDEST_SERVER: i64 = 140_000;
/// The channel on which writers announce changes.
pub(super) const CHANNEL: &str = "holdpoint_changes";

pub(super) struct Session {
    connected: Connected,
    place: String,
    statements: RefCell<HashMap<String, Statement>>,
    is_listening: Cell<bool>,
    /// Set once the connection is no longer usable.
    is_lost: Cell<bool>,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn open(address: &Address) -> Result<Session, StoreError> {
        let session = Session {
            connected: Connected::to(address)?,
            place: address.to_string(),
            statements: RefCell::default(),
            is_listening: Cell::default(),
            is_lost: Cell::default(),
        };
        session.check_server()?;
        // Request durable commits even if the database is configured otherwise: a recorded act must
        // survive.
        session.batch(&format!(
            "SET search_path TO {schema};
             SET lock_timeout TO '{BUSY_TIMEOUT_SECONDS}s';
             SET idle_in_transaction_session_timeout TO '{IDLE_IN_TRANSACTION_SECONDS}s';
             SET statement_timeout TO 0;
             SET client_min_messages TO warning;
             SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off'",
            schema = address.schema,
        ))?;
        Ok(session)
    }

    fn check_server(&self) -> Result<(), StoreError> {
        let unfit = |reason| StoreError::UnfitServer { place: self.place.clone(), reason };
        let query = "SELECT current_setting('server_version_num')::bigint, current_setting('server_encoding')";
        let rows: &dyn Transaction = &Rows { session: self };
        let found = rows.first(query, &[], |row| {
            Ok((row.cell(0).integer().unwrap_or(0), row.cell(1).lossy_text().unwrap_or_default()))
        })?;
        let (number, encoding) = found.unwrap_or_default();
        if number < OLDEST_SERVER {
            return Err(unfit(format!("it is older than PostgreSQL {}", OLDEST_SERVER / 10_000)));
        }
        if encoding != "UTF8" {
            return Err(unfit(format!("its encoding is `{encoding}`, not `UTF8`")));
        }
        Ok(())
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Whether the connection is known to be gone.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.get() || self.connected.heard.is_over()
    }

    /// Sends a request and waits for the response.
    pub(super) fn answer<'a, T, F>(
        &'a self,
        ask: impl FnOnce(&'a Client) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let Some(client) = self.connected.client().filter(|_| !self.is_lost()) else {
            return Err(self.unreachable("the connection was lost".to_owned()));
        };
        match wait(ask(client), ANSWER_PATIENCE) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(self.fault(error)),
            None => {
                let seconds = ANSWER_PATIENCE.as_secs();
                Err(self.unreachable(format!("no answer within {seconds} seconds")))
            }
        }
    }

    /// Runs statements without values, one after the other.
    pub(super) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.answer(|client| client.batch_execute(sql))
    }

    /// The prepared form of a statement, prepared once.
    pub(super) fn statement(&self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.answer(|client| client.prepare(sql))?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn listen(&self) -> Result<(), StoreError> {
        if !self.is_listening.get() {
            self.batch(&format!("LISTEN {CHANNEL}"))?;
            self.is_listening.set(true);
        }
        Ok(())
    }

    pub(super) fn notifications(&self) -> u64 {
        self.connected.heard.notifications()
    }

    pub(super) fn wait_beyond(&self, counted: u64, patience: Duration) {
        self.connected.heard.wait_beyond(counted, patience);
    }

    fn unreachable(&self, reason: String) -> StoreError {
        self.is_lost.set(true);
        StoreError::Unreachable { place: self.place.clone(), reason }
    }

    /// Turns a PostgreSQL error into a message that names the database.
    pub(super) fn fault(&self, error: tokio_postgres::Error) -> StoreError {
        let place = self.place.clone();
        match error.code() {
            None => self.unreachable(reason(&error)),
            Some(&SqlState::DISK_FULL) => StoreError::DiskFull { place },
            Some(code) if is_going_away(code) => self.unreachable(reason(&error)),
            Some(&SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED) => {
                StoreError::Busy { place, seconds: BUSY_TIMEOUT_SECONDS }
            }
            Some(_) => StoreError::Server { place, said: reason(&error), source: error },
        }
    }
}

/// Whether the error means that the connection is gone or about to go.
fn is_going_away(code: &SqlState) -> bool {
    let code = code.code();
    code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") || code == "25P03"
}

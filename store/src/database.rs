//! What the store needs from a database: run SQL that both databases understand, in atomic
//! transactions.
//!
//! Everything else (queries, seals, the effects of an act) is implemented once, on top of these
//! traits.

use crate::error::StoreError;
use crate::key::Keys;
use crate::write::Limits;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

/// A value bound to a placeholder `$1`, `$2`, … of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A value in a row. Another program may have written it, so text may not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// A type that Holdpoint does not write.
    Other,
}

impl<'a> Cell<'a> {
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Cell::Integer(number) => Some(number),
            Cell::Null | Cell::Text(_) | Cell::Bytes(_) | Cell::Other => None,
        }
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Cell::Text(bytes) => std::str::from_utf8(bytes).ok(),
            Cell::Null | Cell::Integer(_) | Cell::Bytes(_) | Cell::Other => None,
        }
    }

    /// A text, with invalid UTF-8 replaced.
    pub(crate) fn lossy_text(self) -> Option<String> {
        match self {
            Cell::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Cell::Null | Cell::Integer(_) | Cell::Bytes(_) | Cell::Other => None,
        }
    }

    pub(crate) fn blob(self) -> Option<&'a [u8]> {
        match self {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Null | Cell::Integer(_) | Cell::Text(_) | Cell::Other => None,
        }
    }

    /// The bytes of a text or blob, valid UTF-8 or not; empty for other types.
    pub(crate) fn raw_bytes(self) -> &'a [u8] {
        match self {
            Cell::Text(bytes) | Cell::Bytes(bytes) => bytes,
            Cell::Null | Cell::Integer(_) | Cell::Other => &[],
        }
    }

    /// Reads a nullable value with `reading`: `Some(None)` for null, `None` if the value cannot be
    /// read.
    pub(crate) fn optional<T>(self, reading: impl FnOnce(Self) -> Option<T>) -> Option<Option<T>> {
        if self == Cell::Null { Some(None) } else { reading(self).map(Some) }
    }
}

pub(crate) trait Row {
    /// The value of a column, counted from 0. A missing column reads as [`Cell::Other`].
    fn cell(&self, index: usize) -> Cell<'_>;
}

/// Called for each row of a query; returns whether to continue.
pub(crate) type Visit<'a> = dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError> + 'a;

/// A transaction in progress. Values are referred to as `$1`, `$2`, … in the statement.
pub(crate) trait Transaction {
    /// Returns how many rows were affected.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;

    /// Runs one statement for many sets of values, without waiting for each result.
    fn execute_each(&self, sql: &str, sets: &[Vec<Value<'_>>]) -> Result<(), StoreError>;

    /// Runs one query for many sets of values, without waiting for each result.
    fn query_each(
        &self,
        sql: &str,
        sets: &[Vec<Value<'_>>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;
}

impl dyn Transaction + '_ {
    /// Reads the first row.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        self.query(sql, values, &mut |row| {
            found = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Reads all rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.query(sql, values, &mut |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The result of a `SELECT count(*)`.
    pub(crate) fn count(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, StoreError> {
        let counted = self.first(sql, values, |row| Ok(row.cell(0).integer()))?;
        Ok(counted.flatten().and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX))
    }

    /// Whether the query finds any row.
    pub(crate) fn any(&self, sql: &str, values: &[Value<'_>]) -> Result<bool, StoreError> {
        Ok(self.first(sql, values, |_| Ok(()))?.is_some())
    }
}

/// A database that can hold the store.
pub(crate) trait Backend: fmt::Debug + Send {
    /// Runs `reading` on one snapshot of the database. It may run again, on a new connection, if
    /// the connection was lost.
    fn read<T>(
        &self,
        reading: impl Fn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Runs `writing` exclusively and atomically. It may run again if nothing of the first run was
    /// committed.
    fn write<T>(
        &mut self,
        writing: impl Fn(&dyn Transaction, &Keys) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// The path of the key that authenticates pins, and which key it must be.
    fn keys(&self) -> Keys;

    fn limits(&self) -> Limits;

    /// The statements that allow, and forbid again, editing history, which is otherwise
    /// append-only.
    fn statements_around_history_edit(&self) -> [String; 2];

    /// Removes data of former rows from the database's files. Returns `false` if other processes
    /// use the database.
    fn drop_old_bytes(&mut self) -> Result<bool, StoreError>;

    /// The highest count of changes to the granted calls that this handle has seen.
    fn grants_seen(&self) -> &std::cell::Cell<i64>;

    fn current_version(&self) -> Result<u64, StoreError>;

    /// Whether other processes still find the database that this handle has open.
    fn is_in_place(&self) -> bool {
        true
    }

    fn wait_beyond_version(&self, since: u64, patience: Duration) -> Result<u64, StoreError>;
}

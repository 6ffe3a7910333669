//! What a database has to do for the store: run SQL that both understand, in transactions that count whole or not at all.
//!
//! Everything else (what is asked, what is sealed, what an act does) exists once, over these traits.

use crate::error::StoreError;
use crate::key::Keys;
use crate::write::Limits;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

/// A value that goes into a statement, in the place of `$1`, `$2`, ….
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

/// A value of a row. Another program may have written it, so text need not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// Of a type that Holdpoint does not write.
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

    /// A text as far as it can be read.
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

    /// A text's or blob's bytes, whether or not they are UTF-8; none for anything else.
    pub(crate) fn raw_bytes(self) -> &'a [u8] {
        match self {
            Cell::Text(bytes) | Cell::Bytes(bytes) => bytes,
            Cell::Null | Cell::Integer(_) | Cell::Other => &[],
        }
    }

    /// What is there, read as `reading` does: `None` where it cannot be, `Some(None)` where nothing is there.
    pub(crate) fn optional<T>(self, reading: impl FnOnce(Self) -> Option<T>) -> Option<Option<T>> {
        if self == Cell::Null { Some(None) } else { reading(self).map(Some) }
    }
}

pub(crate) trait Row {
    /// The value of a column, counted from 0. One that is not there reads as [`Cell::Other`].
    fn cell(&self, index: usize) -> Cell<'_>;
}

/// What is done with each row that a query gives: whether to go on.
pub(crate) type Visit<'a> = dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError> + 'a;

/// A transaction that is under way. Values are named `$1`, `$2`, … in the text.
pub(crate) trait Transaction {
    /// How many rows it touched.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The same statement for many sets of values, without waiting for the answer to each.
    fn execute_each(&self, sql: &str, sets: &[Vec<Value<'_>>]) -> Result<(), StoreError>;

    /// The same query for many sets of values, without waiting for the answer to each.
    fn query_each(
        &self,
        sql: &str,
        sets: &[Vec<Value<'_>>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError>;
}

impl dyn Transaction + '_ {
    /// The first row, read.
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

    /// All rows, read.
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

    /// Whether there is any row.
    pub(crate) fn any(&self, sql: &str, values: &[Value<'_>]) -> Result<bool, StoreError> {
        Ok(self.first(sql, values, |_| Ok(()))?.is_some())
    }
}

/// A database that the store can be kept in.
pub(crate) trait Backend: fmt::Debug + Send {
    /// Runs some reading on one state of the database. It may run again, on a new connection, if the old one was lost.
    fn read<T>(
        &self,
        reading: impl Fn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Runs some writing that no other writing comes between, and keeps all of it, or nothing if it fails. It may run
    /// again where nothing of the first run was kept.
    fn write<T>(
        &mut self,
        writing: impl Fn(&dyn Transaction, &Keys) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Where the key is that pins are authenticated with, and which one it must be.
    fn keys(&self) -> Keys;

    fn limits(&self) -> Limits;

    /// The statements before and after an edit of history, which is otherwise only added to.
    fn statements_around_history_edit(&self) -> [String; 2];

    /// Removes from the database's files what its rows held earlier. Returns `false` if other processes use it just now.
    fn drop_old_bytes(&mut self) -> Result<bool, StoreError>;

    /// The highest count of changes to what is granted that this handle has seen.
    fn grants_seen(&self) -> &std::cell::Cell<i64>;

    fn current_version(&self) -> Result<u64, StoreError>;

    /// Whether other processes still find the database that this one has open.
    fn is_in_place(&self) -> bool {
        true
    }

    fn wait_beyond_version(&self, since: u64, patience: Duration) -> Result<u64, StoreError>;
}

//! Statements, values and rows for SQLite.

use super::FaultAt;
use crate::database::{Cell, Row, Transaction, Value, Visit};
use crate::error::StoreError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

pub(super) struct Rows<'a> {
    pub(super) connection: &'a Connection,
    pub(super) fault: &'a FaultAt,
}

impl Rows<'_> {
    /// Replaces PostgreSQL's `$1` with SQLite's `?1`. SQLite would take `$1` for a named parameter
    /// and number it by first occurrence.
    fn prepared(&self, sql: &str) -> Result<Statement<'_>, StoreError> {
        let sql = sql.replace('$', "?");
        self.connection.prepare(&sql).map_err(|e| self.fault.of(e))
    }
}

impl Transaction for Rows<'_> {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let changed = self.prepared(sql)?.execute(params_from_iter(values));
        changed.map(|rows| rows as u64).map_err(|e| self.fault.of(e))
    }

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut statement = self.prepared(sql)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(|e| self.fault.of(e))?;
        while let Some(row) = rows.next().map_err(|e| self.fault.of(e))? {
            if visit(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn execute_each(&self, sql: &str, sets: &[Vec<Value<'_>>]) -> Result<(), StoreError> {
        let mut statement = self.prepared(sql)?;
        for values in sets {
            statement.execute(params_from_iter(values)).map_err(|e| self.fault.of(e))?;
        }
        Ok(())
    }

    fn query_each(
        &self,
        sql: &str,
        sets: &[Vec<Value<'_>>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut is_enough = false;
        for values in sets {
            self.query(sql, values, &mut |row| {
                let flow = visit(row)?;
                is_enough = flow.is_break();
                Ok(flow)
            })?;
            if is_enough {
                break;
            }
        }
        Ok(())
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Row for rusqlite::Row<'_> {
    fn cell(&self, index: usize) -> Cell<'_> {
        match self.get_ref(index) {
            Ok(ValueRef::Null) => Cell::Null,
            Ok(ValueRef::Integer(number)) => Cell::Integer(number),
            Ok(ValueRef::Text(bytes)) => Cell::Text(bytes),
            Ok(ValueRef::Blob(bytes)) => Cell::Bytes(bytes),
            Ok(ValueRef::Real(_)) | Err(_) => Cell::Other,
        }
    }
}

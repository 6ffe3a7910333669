//! Statements, values and rows for PostgreSQL.

use super::escape::{escaped, unescaped};
use super::session::Session;
use crate::database::{Cell, Row, Transaction, Value, Visit};
use crate::error::StoreError;
use bytes::{BufMut, BytesMut};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, pin_mut};
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Statement};

/// How many statements are sent before waiting for the first response.
const STATEMENTS_AHEAD: usize = 256;
/// How many bytes of values are sent before waiting.
const BYTES_AHEAD: usize = 1024 * 1024;
/// Lower than for statements, because responses to queries are larger.
const QUERIES_AHEAD: usize = 64;

pub(super) struct Rows<'a> {
    pub(super) session: &'a Session,
}

type Parameter<'a> = &'a (dyn ToSql + Sync);

fn parameters<'a>(
    values: &'a [Value<'a>],
) -> impl ExactSizeIterator<Item = Parameter<'a>> + use<'a> {
    values.iter().map(|value| value as Parameter<'a>)
}

impl Transaction for Rows<'_> {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let statement = self.session.statement(sql)?;
        self.session.answer(|client| client.execute_raw(&statement, parameters(values)))
    }

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.session.statement(sql)?;
        let rows =
            self.session.answer(|client| client.query_raw(&statement, parameters(values)))?;
        pin_mut!(rows);
        while let Some(row) = self.session.answer(|_| async { rows.next().await.transpose() })? {
            if visit(&Found::new(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn execute_each(&self, sql: &str, sets: &[Vec<Value<'_>>]) -> Result<(), StoreError> {
        let statement = self.session.statement(sql)?;
        let mut rest = sets;
        while !rest.is_empty() {
            let (ahead, later) = rest.split_at(fitting(rest));
            self.session.answer(|client| {
                try_join_all(ahead.iter().map(|set| execute_one(client, &statement, set)))
            })?;
            rest = later;
        }
        Ok(())
    }

    fn query_each(
        &self,
        sql: &str,
        sets: &[Vec<Value<'_>>],
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.session.statement(sql)?;
        for ahead in sets.chunks(QUERIES_AHEAD) {
            let answers = self.session.answer(|client| {
                try_join_all(ahead.iter().map(|set| query_one(client, &statement, set)))
            })?;
            for row in answers.into_iter().flatten() {
                if visit(&Found::new(row))?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

async fn execute_one(
    client: &Client,
    statement: &Statement,
    values: &[Value<'_>],
) -> Result<u64, tokio_postgres::Error> {
    client.execute_raw(statement, parameters(values)).await
}

async fn query_one(
    client: &Client,
    statement: &Statement,
    values: &[Value<'_>],
) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
    let parameters: Vec<Parameter<'_>> = parameters(values).collect();
    client.query(statement, &parameters).await
}

/// How many of the sets to send at once: at least one.
fn fitting(sets: &[Vec<Value<'_>>]) -> usize {
    let size = |value: &Value<'_>| match value {
        Value::Null | Value::Integer(_) => 8,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    };
    let mut bytes = 0_usize;
    let fits = |set: &&Vec<Value<'_>>| {
        bytes = set.iter().map(size).fold(bytes, usize::saturating_add);
        bytes <= BYTES_AHEAD
    };
    sets.iter().take(STATEMENTS_AHEAD).take_while(fits).count().max(1)
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        wanted: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, wanted) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => out.put_i64(*number),
            (Value::Text(text), &Type::TEXT) => out.put_slice(escaped(text).as_bytes()),
            (Value::Bytes(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (Value::Integer(_) | Value::Text(_) | Value::Bytes(_), other) => {
                return Err(format!("a value does not fit a column of type {other}").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The bytes of a value as received.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A row, with those of its texts that were stored in escaped form.
struct Found {
    row: tokio_postgres::Row,
    unescaped: Vec<(usize, String)>,
}

impl Found {
    fn new(row: tokio_postgres::Row) -> Found {
        let is_text = |index: usize| {
            row.columns().get(index).is_some_and(|column| *column.type_() == Type::TEXT)
        };
        let text = |index: usize| {
            let stored = row.try_get::<_, Option<Raw<'_>>>(index).ok().flatten()?;
            unescaped(stored.0).map(|text| (index, text))
        };
        let unescaped = (0..row.len()).filter(|index| is_text(*index)).filter_map(text).collect();
        Found { row, unescaped }
    }
}

impl Row for Found {
    fn cell(&self, index: usize) -> Cell<'_> {
        let (Some(column), Ok(value)) =
            (self.row.columns().get(index), self.row.try_get::<_, Option<Raw<'_>>>(index))
        else {
            return Cell::Other;
        };
        let Some(Raw(bytes)) = value else { return Cell::Null };
        match *column.type_() {
            Type::TEXT => {
                let other = self.unescaped.iter().find(|(at, _)| *at == index);
                Cell::Text(other.map_or(bytes, |(_, text)| text.as_bytes()))
            }
            Type::BYTEA => Cell::Bytes(bytes),
            Type::INT8 => bytes
                .try_into()
                .map_or(Cell::Other, |bytes| Cell::Integer(i64::from_be_bytes(bytes))),
            Type::INT4 => bytes
                .try_into()
                .map_or(Cell::Other, |bytes| Cell::Integer(i32::from_be_bytes(bytes).into())),
            _ => Cell::Other,
        }
    }
}

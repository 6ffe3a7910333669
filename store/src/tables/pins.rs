//! Pins' rows: read, authenticated, and put into a book.

use super::servers::{ServerRow, any_sealed, feed, has_traces};
use crate::authenticate::{PinFields, Seal};
use crate::database::{Cell, Row, Transaction, Value};
use crate::error::StoreError;
use crate::key::{Key, KeyProblem};
use crate::write::MAX_PINS_PER_SERVER;
use contract::surface::{Entry, EntryId, EntryType, MAX_ENTRY_BYTES};
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use std::ops::ControlFlow;

/// The columns of [`Row`]s that this file reads. An entry's text over its limit was not written by Holdpoint and is not
/// read: the row then does not authenticate.
pub(crate) fn columns() -> String {
    format!(
        "seq, server, entry_type, key, entry_hash, definition_hash,
         CASE WHEN octet_length(raw) <= {MAX_ENTRY_BYTES} THEN raw END,
         basis, at, by, withdrawn_at, withdrawn_by, authentication"
    )
}

/// The values that name an entry of a server, for `server = $1 AND entry_type = $2 AND key = $3`.
pub(crate) fn named<'a>(server: &'a ServerId, entry: &'a EntryId) -> [Value<'a>; 3] {
    [server.as_str().into(), entry.entry_type.as_str().into(), (&entry.key).into()]
}

/// A pin's row, borrowed from the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinRow<'a> {
    pub(crate) fields: PinFields<'a>,
    pub(crate) authentication: &'a [u8],
}

impl<'a> PinRow<'a> {
    /// Nothing, where a column holds what Holdpoint does not write there.
    pub(crate) fn from_row(row: &'a dyn Row) -> Option<PinRow<'a>> {
        let text = |index| row.cell(index).text();
        Some(PinRow {
            fields: PinFields {
                seq: row.cell(0).integer()?,
                server: text(1)?,
                entry_type: text(2)?,
                key: text(3)?,
                entry_hash: text(4)?,
                definition_hash: row.cell(5).optional(Cell::text)?,
                raw: text(6)?,
                basis: text(7)?,
                at: row.cell(8).integer()?,
                by: text(9)?,
                withdrawn_at: row.cell(10).optional(Cell::integer)?,
                withdrawn_by: row.cell(11).optional(Cell::text)?,
            },
            authentication: row.cell(12).blob()?,
        })
    }

    /// The pin, where the row authenticates. Hashes are made anew from the entry's text.
    pub(crate) fn authentic(&self, key: &Key) -> Option<Pin> {
        let fields = &self.fields;
        if !fields.matches(key, self.authentication) {
            return None;
        }
        let id = EntryId::new(fields.entry_type.parse().ok()?, fields.key);
        let entry = Entry::from_raw(id.clone(), fields.raw).ok()?;
        let is_gone = entry.is_gone() && fields.definition_hash.is_none();
        Some(Pin {
            entry: if is_gone { Entry::gone(id) } else { entry },
            basis: basis_named(fields.basis)?,
            at: Timestamp(fields.at),
            by: fields.by.to_owned(),
        })
    }
}

pub(crate) fn basis_named(text: &str) -> Option<Basis> {
    Basis::ALL.into_iter().find(|basis| basis.as_str() == text)
}

/// All pins of a server that count, and what is wrong with the others.
pub(crate) fn book(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
) -> Result<PinBook, StoreError> {
    let lost = |reason: String| {
        let mut book = PinBook::default();
        book.lost = Some(reason);
        book
    };
    let Some(server) = ServerRow::read(rows, id)? else {
        return Ok(match key {
            Err(problem) if any_sealed(rows)? => lost(problem.to_string()),
            _ if has_traces(rows, id)? => lost(format!(
                "the record of `{id}` was removed by something else than holdpoint: review and approve it again"
            )),
            _ => PinBook::default(),
        });
    };
    let key = match key {
        Ok(key) => key,
        Err(problem) => return Ok(lost(problem.to_string())),
    };
    authenticated(rows, key, &server, MAX_PINS_PER_SERVER)
}

fn authenticated(
    rows: &dyn Transaction,
    key: &Key,
    server: &ServerRow,
    limit: usize,
) -> Result<PinBook, StoreError> {
    let query = format!("SELECT {} FROM pins WHERE server = $1 ORDER BY seq", columns());
    let mut book = PinBook::default();
    let mut seal = Seal::new(key, &server.id);
    let mut count = 0_usize;
    rows.query(&query, &[(&server.id).into()], &mut |row| {
        count += 1;
        if count > limit {
            return Ok(ControlFlow::Break(()));
        }
        feed(&mut seal, row, [0, 2, 3, 10, 12]);
        take(row, key, &mut book);
        Ok(ControlFlow::Continue(()))
    })?;
    if count > limit {
        book.lost = Some(format!("`{}` has more pins than holdpoint writes", server.id));
        return Ok(book);
    }
    let wrong_seal = server.wrong_seal(seal);
    book.lost = wrong_seal.or(book.lost);
    Ok(book)
}

/// Puts one row into the book.
fn take(row: &dyn Row, key: &Key, book: &mut PinBook) {
    let pin = PinRow::from_row(row);
    match pin.and_then(|pin| Some((pin.authentic(key)?, pin.fields.withdrawn_at))) {
        Some((pin, None)) => book.push(pin),
        Some((_, Some(_))) => {}
        None => match entry_id(row) {
            Some(id) => {
                let sentence = format!(
                    "a pin of `{id}` was changed by something else than holdpoint: review and approve it again"
                );
                book.tampered.insert(id, sentence);
            }
            None => {
                book.lost = Some("a pin is of an entry that holdpoint does not know".to_owned());
            }
        },
    }
}

/// The entry that is held if the rest of its row is wrong.
fn entry_id(row: &dyn Row) -> Option<EntryId> {
    let entry_type: EntryType = row.cell(2).text()?.parse().ok()?;
    Some(EntryId::new(entry_type, row.cell(3).text()?))
}

//! Pins' rows: read, authenticated, and put into a book.

use super::ReadFault;
use super::servers::{ServerRow, any_sealed, feed};
use super::write::MAX_PINS_PER_SERVER;
use crate::authenticate::{PinFields, Seal};
use crate::key::{Key, KeyProblem};
use contract::surface::{Entry, EntryId, EntryType, MAX_ENTRY_BYTES};
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use rusqlite::{Connection, Row};

/// The columns of [`Row`]s that this file reads. An entry's text over its limit was not written by Holdpoint and is not
/// read: the row then does not authenticate.
pub(super) fn columns() -> String {
    format!(
        "seq, server, entry_type, key, entry_hash, definition_hash,
         CASE WHEN octet_length(raw) <= {MAX_ENTRY_BYTES} THEN raw END,
         basis, at, by, withdrawn_at, withdrawn_by, authentication"
    )
}

/// A pin's row, borrowed from the database.
#[derive(Debug, Clone, Copy)]
pub(super) struct PinRow<'a> {
    pub(super) fields: PinFields<'a>,
    pub(super) authentication: &'a [u8],
}

impl<'a> PinRow<'a> {
    /// Nothing, where a column holds what Holdpoint does not write there.
    pub(super) fn from_row(row: &'a Row<'_>) -> Option<PinRow<'a>> {
        let text = |index| row.get_ref(index).ok().and_then(|value| value.as_str().ok());
        let optional =
            |index| row.get_ref(index).ok().and_then(|value| value.as_str_or_null().ok());
        Some(PinRow {
            fields: PinFields {
                seq: row.get(0).ok()?,
                server: text(1)?,
                entry_type: text(2)?,
                key: text(3)?,
                entry_hash: text(4)?,
                definition_hash: optional(5)?,
                raw: text(6)?,
                basis: text(7)?,
                at: row.get(8).ok()?,
                by: text(9)?,
                withdrawn_at: row.get(10).ok()?,
                withdrawn_by: optional(11)?,
            },
            authentication: row.get_ref(12).ok()?.as_blob().ok()?,
        })
    }

    /// The pin, where the row authenticates. Hashes are made anew from the entry's text.
    pub(super) fn authentic(&self, key: &Key) -> Option<Pin> {
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

pub(super) fn basis_named(text: &str) -> Option<Basis> {
    Basis::ALL.into_iter().find(|basis| basis.as_str() == text)
}

/// All pins of a server that count, and what is wrong with the others.
pub(super) fn book(
    connection: &Connection,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
) -> Result<PinBook, ReadFault> {
    let lost = |reason: String| {
        let mut book = PinBook::default();
        book.lost = Some(reason);
        book
    };
    let Some(server) = ServerRow::read(connection, id)? else {
        return Ok(match key {
            Err(problem) if any_sealed(connection)? => lost(problem.to_string()),
            _ if has_traces(connection, id)? => lost(format!(
                "the record of `{id}` was removed by something else than holdpoint: review and approve it again"
            )),
            _ => PinBook::default(),
        });
    };
    let key = match key {
        Ok(key) => key,
        Err(problem) => return Ok(lost(problem.to_string())),
    };
    authenticated(connection, key, &server, MAX_PINS_PER_SERVER)
}

fn authenticated(
    connection: &Connection,
    key: &Key,
    server: &ServerRow,
    limit: usize,
) -> Result<PinBook, ReadFault> {
    let query = format!("SELECT {} FROM pins WHERE server = ?1 ORDER BY seq", columns());
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([&server.id])?;
    let mut book = PinBook::default();
    let mut seal = Seal::new(key, &server.id);
    let mut count = 0_usize;
    while let Some(row) = rows.next()? {
        count += 1;
        if count > limit {
            book.lost = Some(format!("`{}` has more pins than holdpoint writes", server.id));
            return Ok(book);
        }
        feed(&mut seal, row, [0, 2, 3, 10, 12])?;
        take(row, key, &mut book);
    }
    let wrong_seal = server.wrong_seal(seal);
    book.lost = wrong_seal.or(book.lost);
    Ok(book)
}

/// Puts one row into the book.
fn take(row: &Row<'_>, key: &Key, book: &mut PinBook) {
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
fn entry_id(row: &Row<'_>) -> Option<EntryId> {
    let entry_type: EntryType = row.get_ref(2).ok()?.as_str().ok()?.parse().ok()?;
    Some(EntryId::new(entry_type, row.get_ref(3).ok()?.as_str().ok()?))
}

/// Whether something is left of a server that has no row of its own.
pub(super) fn has_traces(connection: &Connection, id: &ServerId) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM pins WHERE server = ?1)
                     OR EXISTS (SELECT 1 FROM history WHERE server = ?1)";
    connection.query_row(query, [id.as_str()], |row| row.get(0))
}

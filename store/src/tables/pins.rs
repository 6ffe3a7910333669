//! Rows of pins: reads and authenticates them, and builds the book.

use super::servers::{ServerRow, any_sealed, feed, has_traces};
use crate::authenticate::{PinFields, Seal};
use crate::database::{Cell, Row, Transaction, Value};
use crate::error::StoreError;
use crate::key::{Key, KeyProblem};
use crate::record::{PastPin, ServerRecord, Wanted};
use crate::write::MAX_PINS_PER_SERVER;
use contract::surface::{Entry, EntryId, EntryType, MAX_ENTRY_BYTES};
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use std::ops::ControlFlow;

/// The columns of [`PinRow`]. The text of an entry above its limit was not written by Holdpoint and
/// is not read: the row then does not authenticate.
pub(crate) fn columns() -> String {
    format!(
        "seq, server, entry_type, key, entry_hash, definition_hash,
         CASE WHEN octet_length(raw) <= {MAX_ENTRY_BYTES} THEN raw END,
         basis, at, by, withdrawn_at, withdrawn_by, authentication"
    )
}

/// The values that identify an entry of a server, for `server = $1 AND entry_type = $2 AND key =
/// $3`.
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
    /// Returns `None` if a column holds a value that Holdpoint does not write there.
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

    /// The pin, if the row authenticates. Hashes are recomputed from the entry's text, unless the
    /// text equals a known entry's.
    pub(crate) fn authentic(&self, key: &Key, wanted: Wanted<'_>) -> Option<Pin> {
        let fields = &self.fields;
        if !fields.matches(key, self.authentication) {
            return None;
        }
        let id = EntryId::new(fields.entry_type.parse().ok()?, fields.key);
        let entry = match wanted.same(&id, fields.raw) {
            Some(known) => known.clone(),
            None => Entry::from_raw(id.clone(), fields.raw).ok()?,
        };
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

/// The valid pins of a server, and what is wrong with the others.
pub(crate) fn book(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
) -> Result<PinBook, StoreError> {
    Ok(read(rows, key, id, Wanted::Of(|_| true))?.book)
}

/// The authentic pins of one entry, including withdrawn ones. Empty without a key.
pub(crate) fn ever(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
    entry: &EntryId,
) -> Result<Vec<PastPin>, StoreError> {
    let Ok(key) = key else { return Ok(Vec::new()) };
    let query = format!(
        "SELECT {} FROM pins WHERE server = $1 AND entry_type = $2 AND key = $3 ORDER BY seq",
        columns()
    );
    let found = rows.all(&query, &named(id, entry), |row| {
        let Some(row) = PinRow::from_row(row) else { return Ok(None) };
        let is_withdrawn = row.fields.withdrawn_at.is_some();
        let pin = row.authentic(key, Wanted::Of(|_| true));
        Ok(pin.map(|pin| PastPin { pin, is_withdrawn }))
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// A server and its pins.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) server: Option<ServerRecord>,
    pub(crate) book: PinBook,
    /// Whether any pin is valid, including those of types that were not asked for.
    pub(crate) has_pins: bool,
}

/// A server with its wanted pins. All pins are authenticated, but only the wanted ones are kept.
pub(crate) fn read(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
    wanted: Wanted<'_>,
) -> Result<Read, StoreError> {
    let mut read = Read::default();
    let Some(server) = ServerRow::read(rows, id)? else {
        read.book.lost = match key {
            Err(problem) if any_sealed(rows)? => Some(problem.to_string()),
            _ if has_traces(rows, id)? => Some(format!(
                "the record of `{id}` was removed by a program other than Holdpoint: review and approve it again"
            )),
            _ => None,
        };
        return Ok(read);
    };
    let wrong = match key {
        Ok(key) => read.authenticate(rows, key, &server, wanted)?,
        Err(problem) => Some(problem.to_string()),
    };
    read.book.lost = wrong.clone().or(read.book.lost);
    read.server = Some(server.into_record(id.clone(), wrong));
    Ok(read)
}

impl Read {
    /// Reads all pins. Returns what is wrong with the record as a whole.
    fn authenticate(
        &mut self,
        rows: &dyn Transaction,
        key: &Key,
        server: &ServerRow,
        wanted: Wanted<'_>,
    ) -> Result<Option<String>, StoreError> {
        let query = format!("SELECT {} FROM pins WHERE server = $1 ORDER BY seq", columns());
        let mut seal = Seal::new(key, &server.id);
        let mut count = 0_usize;
        rows.query(&query, &[(&server.id).into()], &mut |row| {
            count += 1;
            if count > MAX_PINS_PER_SERVER {
                return Ok(ControlFlow::Break(()));
            }
            feed(&mut seal, row, [0, 2, 3, 10, 12]);
            self.take(row, key, wanted);
            Ok(ControlFlow::Continue(()))
        })?;
        if count > MAX_PINS_PER_SERVER {
            return Ok(Some(format!("`{}` has more pins than holdpoint writes", server.id)));
        }
        Ok(server.wrong_seal(seal))
    }

    fn take(&mut self, row: &dyn Row, key: &Key, wanted: Wanted<'_>) {
        let Some(pin) = PinRow::from_row(row) else { return distrust(row, &mut self.book) };
        let is_withdrawn = pin.fields.withdrawn_at.is_some();
        // The content of an unwanted pin is not read, but a change by another program is still
        // reported.
        if pin.fields.entry_type.parse().is_ok_and(|entry_type| !wanted.is_of(entry_type)) {
            if !pin.fields.matches(key, pin.authentication) {
                return distrust(row, &mut self.book);
            }
            self.has_pins |= !is_withdrawn;
            return;
        }
        match pin.authentic(key, wanted) {
            Some(_) if is_withdrawn => {}
            Some(pin) => {
                self.has_pins = true;
                self.book.push(pin);
            }
            None => distrust(row, &mut self.book),
        }
    }
}

/// Records that a row does not authenticate.
fn distrust(row: &dyn Row, book: &mut PinBook) {
    match entry_id(row) {
        Some(id) => {
            let sentence = format!(
                "a pin of `{id}` was changed by a program other than Holdpoint: review and approve it again"
            );
            book.tampered.insert(id, sentence);
        }
        None => {
            book.lost = Some("a pin is of an entry that holdpoint does not know".to_owned());
        }
    }
}

/// The entry to hold if the rest of its row is wrong.
fn entry_id(row: &dyn Row) -> Option<EntryId> {
    let entry_type: EntryType = row.cell(2).text()?.parse().ok()?;
    Some(EntryId::new(entry_type, row.cell(3).text()?))
}

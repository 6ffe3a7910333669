//! What an act does to a server's pins, and the new seal over them.

use super::{Limits, PinFields, PinRow, Standing, columns, next_seq};
use crate::act::{Act, within};
use crate::error::StoreError;
use crate::key::Key;
use crate::sqlite::ReadFault;
use crate::sqlite::history::{self, EntryEvent};
use crate::sqlite::servers::{ServerRow, sealed_pins};
use contract::surface::{Entry, EntryId};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;

pub(super) struct Change<'a> {
    pub(super) connection: &'a Connection,
    pub(super) act: &'a Act<'a>,
    pub(super) act_seq: i64,
    pub(super) limits: Limits,
}

impl Change<'_> {
    pub(super) fn make(&self, standing: Standing, row: ServerRow) -> Result<(), ReadFault> {
        let key = match standing {
            Standing::StaysBroken => return Ok(()),
            Standing::Sound { key, discard } => {
                for seq in discard {
                    self.discard(seq, "the row did not authenticate")?;
                }
                key
            }
            Standing::Mended { key, reason } => {
                for seq in self.all_rows()? {
                    self.discard(seq, &reason)?;
                }
                key
            }
        };
        let withdrawn: BTreeSet<&EntryId> = self.act.withdraw.iter().collect();
        for entry in withdrawn {
            self.withdraw(&key, entry)?;
        }
        self.add_all(&key)?;
        self.seal(&key, row)
    }

    fn all_rows(&self) -> rusqlite::Result<Vec<i64>> {
        let mut statement =
            self.connection.prepare("SELECT seq FROM pins WHERE server = ?1 ORDER BY seq")?;
        let rows = statement.query_map([self.act.server.as_str()], |row| row.get(0))?;
        rows.collect()
    }

    /// Moves a row to history, whatever is in it.
    fn discard(&self, seq: i64, reason: &str) -> rusqlite::Result<()> {
        history::write_discarded(self.connection, self.act, self.act_seq, seq, reason)?;
        self.connection.execute("DELETE FROM pins WHERE seq = ?1", [seq])?;
        Ok(())
    }

    fn withdraw(&self, key: &Key, entry: &EntryId) -> Result<(), ReadFault> {
        let nothing = || StoreError::NothingToWithdraw {
            server: self.act.server.clone(),
            entry: entry.clone(),
        };
        let query = format!(
            "SELECT {} FROM pins WHERE server = ?1 AND entry_type = ?2 AND key = ?3 AND withdrawn_at IS NULL
             ORDER BY seq DESC LIMIT 1",
            columns()
        );
        let mut statement = self.connection.prepare(&query)?;
        let mut rows = statement.query([
            self.act.server.as_str(),
            entry.entry_type.as_str(),
            entry.key.as_str(),
        ])?;
        let row = rows.next()?.ok_or_else(nothing)?;
        let fields = PinRow::from_row(row).ok_or_else(nothing)?.fields;
        let withdrawn = PinFields {
            withdrawn_at: Some(self.act.at.0),
            withdrawn_by: Some(self.act.by),
            ..fields
        };
        let authentication = withdrawn.authentication(key);
        let (seq, before) = (fields.seq, fields.entry_hash.to_owned());
        drop(rows);
        self.connection.execute(
            "UPDATE pins SET withdrawn_at = ?2, withdrawn_by = ?3, authentication = ?4 WHERE seq = ?1",
            params![seq, self.act.at.0, self.act.by, authentication],
        )?;
        let event = EntryEvent {
            action: "pin.withdrawn",
            entry,
            before: Some(before),
            after: self.newest_hash(entry)?,
            basis: None,
        };
        history::write_entry(self.connection, self.act, self.act_seq, &event)?;
        Ok(())
    }

    fn newest_hash(&self, entry: &EntryId) -> rusqlite::Result<Option<String>> {
        let query = "SELECT entry_hash FROM pins
                     WHERE server = ?1 AND entry_type = ?2 AND key = ?3 AND withdrawn_at IS NULL
                     ORDER BY seq DESC LIMIT 1";
        let entry = [self.act.server.as_str(), entry.entry_type.as_str(), entry.key.as_str()];
        self.connection.query_row(query, entry, |row| row.get(0)).optional()
    }

    fn add_all(&self, key: &Key) -> Result<(), ReadFault> {
        for (seq, pin) in (next_seq(self.connection, "pins")?..).zip(&self.act.pins) {
            let event = EntryEvent {
                action: "pin.added",
                entry: pin.entry.id(),
                before: self.newest_hash(pin.entry.id())?,
                after: Some(pin.entry.entry_hash().to_string()),
                basis: Some(pin.basis),
            };
            self.add(key, seq, &pin.entry, pin.basis.as_str())?;
            history::write_entry(self.connection, self.act, self.act_seq, &event)?;
        }
        Ok(())
    }

    fn add(&self, key: &Key, seq: i64, entry: &Entry, basis: &str) -> rusqlite::Result<()> {
        let entry_hash = entry.entry_hash().to_string();
        let definition_hash = entry.definition_hash().map(|hash| hash.to_string());
        let fields = PinFields {
            server: self.act.server.as_str(),
            seq,
            entry_type: entry.entry_type().as_str(),
            key: entry.key(),
            entry_hash: &entry_hash,
            definition_hash: definition_hash.as_deref(),
            raw: entry.raw(),
            basis,
            at: self.act.at.0,
            by: self.act.by,
            withdrawn_at: None,
            withdrawn_by: None,
        };
        self.connection.execute(
            "INSERT INTO pins (seq, server, entry_type, key, entry_hash, definition_hash, raw, basis, at, by,
                               authentication)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                fields.seq,
                fields.server,
                fields.entry_type,
                fields.key,
                fields.entry_hash,
                fields.definition_hash,
                fields.raw,
                fields.basis,
                fields.at,
                fields.by,
                fields.authentication(key),
            ],
        )?;
        Ok(())
    }

    fn seal(&self, key: &Key, mut row: ServerRow) -> Result<(), ReadFault> {
        let sealed = sealed_pins(self.connection, key, &row.id)?;
        within("the number of pins of a server", sealed.count, self.limits.pins)?;
        within("the size of all pins of a server", sealed.bytes, self.limits.bytes)?;
        row.seal_count = row.seal_count.saturating_add(1);
        row.seal = Some(sealed.seal.finish(row.sealed_fields()).to_vec());
        row.write(self.connection)?;
        Ok(())
    }
}

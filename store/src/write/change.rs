//! The changes an act makes to a server's pins, and the new seal over them.

use super::{Limits, Standing, entries_of};
use crate::act::{Act, within};
use crate::authenticate::PinFields;
use crate::database::{Row, Transaction, Value};
use crate::error::StoreError;
use crate::key::Key;
use crate::tables::history::{Line, Lines};
use crate::tables::numbers::Numbered;
use crate::tables::pins::{PinRow, columns, named};
use crate::tables::servers::{ServerRow, sealed_pins};
use contract::surface::{Entry, EntryId, MAX_ENTRY_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// How many characters are kept of a name that Holdpoint did not write.
const KEPT_NAME_CHARACTERS: usize = 256;

pub(super) struct Change<'a> {
    pub(super) rows: &'a dyn Transaction,
    pub(super) act: &'a Act<'a>,
    pub(super) limits: Limits,
}

/// A pin to be written.
struct Fresh<'a> {
    seq: i64,
    entry: &'a Entry,
    entry_hash: String,
    definition_hash: Option<String>,
    basis: &'static str,
    authentication: [u8; 32],
}

impl Change<'_> {
    pub(super) fn make(
        &self,
        standing: Standing,
        row: &mut ServerRow,
        lines: &mut Lines<'_>,
    ) -> Result<(), StoreError> {
        let key = match standing {
            Standing::StaysBroken => return Ok(()),
            Standing::Sound { key, discard } => {
                for seq in discard {
                    self.discard(seq, "the row did not authenticate", lines)?;
                }
                key
            }
            Standing::Repaired { key, reason } => {
                for seq in self.all_rows()? {
                    self.discard(seq, &reason, lines)?;
                }
                key
            }
        };
        let withdrawn: BTreeSet<&EntryId> = self.act.withdraw.iter().collect();
        for entry in withdrawn {
            self.withdraw(&key, entry, lines)?;
        }
        if !self.act.pins.is_empty() {
            self.add_all(&key, lines)?;
        }
        self.seal(&key, row)
    }

    fn all_rows(&self) -> Result<Vec<i64>, StoreError> {
        let query = "SELECT seq FROM pins WHERE server = $1 ORDER BY seq";
        let found = self
            .rows
            .all(query, &[self.act.server.as_str().into()], |row| Ok(row.cell(0).integer()))?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Moves a row to history as stored. Values larger than Holdpoint writes are left out.
    fn discard(&self, seq: i64, reason: &str, lines: &mut Lines<'_>) -> Result<(), StoreError> {
        let query = format!(
            "SELECT entry_type, CASE WHEN octet_length(key) <= {MAX_ENTRY_BYTES} THEN key END,
                    entry_hash, basis, at, by, CASE WHEN octet_length(raw) <= {MAX_ENTRY_BYTES} THEN raw END
             FROM pins WHERE seq = $1"
        );
        let line =
            self.rows.first(&query, &[seq.into()], |row| Ok(discarded_line(row, seq, reason)))?;
        if let Some(line) = line {
            lines.push(line)?;
        }
        self.rows.execute("DELETE FROM pins WHERE seq = $1", &[seq.into()])?;
        Ok(())
    }

    fn withdraw(
        &self,
        key: &Key,
        entry: &EntryId,
        lines: &mut Lines<'_>,
    ) -> Result<(), StoreError> {
        let nothing = || StoreError::NothingToWithdraw {
            server: self.act.server.clone(),
            entry: entry.clone(),
        };
        let query = format!(
            "SELECT {} FROM pins WHERE server = $1 AND entry_type = $2 AND key = $3 AND withdrawn_at IS NULL
             ORDER BY seq DESC LIMIT 1",
            columns()
        );
        let newest = self.rows.first(&query, &named(self.act.server, entry), |row| {
            let fields = PinRow::from_row(row).ok_or_else(nothing)?.fields;
            let withdrawn = PinFields {
                withdrawn_at: Some(self.act.at.0),
                withdrawn_by: Some(self.act.by),
                ..fields
            };
            Ok((fields.seq, fields.entry_hash.to_owned(), withdrawn.authentication(key)))
        })?;
        let (seq, before, authentication) = newest.ok_or_else(nothing)?;
        self.rows.execute(
            "UPDATE pins SET withdrawn_at = $2, withdrawn_by = $3, authentication = $4 WHERE seq = $1",
            &[
                seq.into(),
                self.act.at.0.into(),
                self.act.by.into(),
                authentication.as_slice().into(),
            ],
        )?;
        let after = self.newest_hashes(&[named(self.act.server, entry).to_vec()])?;
        lines.push(Line {
            action: "pin.withdrawn",
            entry_hash_before: Some(before),
            entry_hash_after: after.into_values().next(),
            ..of_entry(entry)
        })
    }

    /// The hash of the newest pin of each of these entries that has one.
    fn newest_hashes(
        &self,
        entries: &[Vec<Value<'_>>],
    ) -> Result<BTreeMap<(String, String), String>, StoreError> {
        let query = "SELECT entry_type, key, entry_hash FROM pins
                     WHERE server = $1 AND entry_type = $2 AND key = $3 AND withdrawn_at IS NULL
                     ORDER BY seq DESC LIMIT 1";
        let mut hashes = BTreeMap::new();
        self.rows.query_each(query, entries, &mut |row| {
            let text = |index| row.cell(index).lossy_text().unwrap_or_default();
            hashes.insert((text(0), text(1)), text(2));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(hashes)
    }

    fn add_all(&self, key: &Key, lines: &mut Lines<'_>) -> Result<(), StoreError> {
        let mut newest = self.newest_hashes(&entries_of(self.act))?;
        let first = Numbered::Pins.next(self.rows)?;
        let mut fresh = Vec::with_capacity(self.act.pins.len());
        for (seq, pin) in (first..).zip(&self.act.pins) {
            let pinned = self.fresh(key, seq, &pin.entry, pin.basis.as_str());
            let id = pin.entry.id();
            let name = (id.entry_type.as_str().to_owned(), id.key.clone());
            lines.push(Line {
                action: "pin.added",
                entry_hash_before: newest.insert(name, pinned.entry_hash.clone()),
                entry_hash_after: Some(pinned.entry_hash.clone()),
                basis: Some(pinned.basis.to_owned()),
                ..of_entry(id)
            })?;
            fresh.push(pinned);
        }
        let sets: Vec<_> = fresh.iter().map(|pin| self.values(pin)).collect();
        self.rows.execute_each(
            "INSERT INTO pins (seq, server, entry_type, key, entry_hash, definition_hash, raw, basis, at, by,
                               authentication)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &sets,
        )?;
        Numbered::Pins.used(self.rows, fresh.last().map_or(first, |pin| pin.seq))
    }

    fn fresh<'b>(&self, key: &Key, seq: i64, entry: &'b Entry, basis: &'static str) -> Fresh<'b> {
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
        let authentication = fields.authentication(key);
        Fresh { seq, entry, entry_hash, definition_hash, basis, authentication }
    }

    fn values<'b>(&'b self, pin: &'b Fresh<'_>) -> Vec<Value<'b>> {
        vec![
            pin.seq.into(),
            self.act.server.as_str().into(),
            pin.entry.entry_type().as_str().into(),
            pin.entry.key().into(),
            (&pin.entry_hash).into(),
            pin.definition_hash.as_ref().into(),
            pin.entry.raw().into(),
            pin.basis.into(),
            self.act.at.0.into(),
            self.act.by.into(),
            pin.authentication.as_slice().into(),
        ]
    }

    fn seal(&self, key: &Key, row: &mut ServerRow) -> Result<(), StoreError> {
        let sealed = sealed_pins(self.rows, key, &row.id)?;
        within("the number of pins of a server", sealed.count, self.limits.pins)?;
        within("the size of all pins of a server", sealed.bytes, self.limits.bytes)?;
        row.seal_count = row.seal_count.max(self.act.seals_seen).saturating_add(1);
        row.seal = Some(sealed.seal.finish(row.sealed_fields()).to_vec());
        row.write(self.rows)
    }
}

fn of_entry(entry: &EntryId) -> Line {
    Line {
        entry_type: Some(entry.entry_type.as_str().to_owned()),
        key: Some(entry.key.clone()),
        ..Line::default()
    }
}

fn discarded_line(row: &dyn Row, seq: i64, reason: &str) -> Line {
    let text = |index| row.cell(index).lossy_text();
    let by: String = text(5).unwrap_or_default().chars().take(KEPT_NAME_CHARACTERS).collect();
    let at = row.cell(4).integer().unwrap_or_default();
    Line {
        action: "pin.discarded",
        entry_type: text(0),
        key: text(1),
        entry_hash_before: text(2),
        basis: text(3),
        detail: Some(format!("{reason}; row {seq} said: pinned at {at} ms by {by}")),
        raw: text(6),
        ..Line::default()
    }
}

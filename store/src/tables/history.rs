//! History: one line per act, and one for each pin that it added, withdrew or discarded.
//! Append-only.

use super::numbers::Numbered;
use super::pins::basis_named;
use super::servers::status_named;
use crate::act::Act;
use crate::database::{Row, Transaction, Value};
use crate::error::StoreError;
use crate::record::HistoryEvent;
use gate::pins::Basis;
use gate::server::ServerId;
use gate::time::Timestamp;
use std::str::FromStr;

/// The most events that are returned of one server's history: the newest.
pub const MAX_HISTORY_EVENTS: usize = 100_000;

/// The fields of a line that differ within an act. Time, actor and server are the act's.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) action: &'static str,
    pub(crate) entry_type: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) entry_hash_before: Option<String>,
    pub(crate) entry_hash_after: Option<String>,
    pub(crate) surface_hash_before: Option<String>,
    pub(crate) surface_hash_after: Option<String>,
    pub(crate) status_before: Option<String>,
    pub(crate) status_after: Option<String>,
    pub(crate) basis: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) raw: Option<String>,
}

/// The servers that have a line with this detail.
pub(crate) fn servers_with_detail(
    rows: &dyn Transaction,
    detail: &str,
) -> Result<Vec<ServerId>, StoreError> {
    let query = "SELECT DISTINCT server FROM history WHERE detail = $1 ORDER BY server";
    let found = rows.all(query, &[detail.into()], |row| {
        Ok(row.cell(0).text().and_then(|id| id.parse().ok()))
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// How many bytes of lines are collected before they are written.
const GATHERED_BYTES: usize = 1024 * 1024;

impl Line {
    fn bytes(&self) -> usize {
        let texts = [&self.key, &self.detail, &self.raw];
        texts.into_iter().flatten().map(String::len).sum::<usize>() + size_of::<Line>()
    }
}

/// The lines of one act, in order, starting with its own.
pub(crate) struct Lines<'a> {
    rows: &'a dyn Transaction,
    act: &'a Act<'a>,
    act_seq: i64,
    /// The number of the first line that is collected but not yet written.
    next: i64,
    gathered: Vec<Line>,
    gathered_bytes: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(
        rows: &'a dyn Transaction,
        act: &'a Act<'a>,
        own: Line,
    ) -> Result<Lines<'a>, StoreError> {
        let act_seq = Numbered::History.next(rows)?;
        let mut lines =
            Lines { rows, act, act_seq, next: act_seq, gathered: Vec::new(), gathered_bytes: 0 };
        lines.push(own)?;
        Ok(lines)
    }

    pub(crate) fn push(&mut self, line: Line) -> Result<(), StoreError> {
        self.gathered_bytes += line.bytes();
        self.gathered.push(line);
        if self.gathered_bytes < GATHERED_BYTES { Ok(()) } else { self.flush() }
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        Numbered::History.used(self.rows, self.next - 1)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let numbered = (self.next..).zip(&self.gathered);
        let sets: Vec<_> = numbered.map(|(seq, line)| self.values(seq, line)).collect();
        self.rows.execute_each(
            "INSERT INTO history (seq, act, at, by, server, action, entry_type, key, entry_hash_before, entry_hash_after,
                                  surface_hash_before, surface_hash_after, status_before, status_after, basis, detail, raw)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
            &sets,
        )?;
        self.next = self.next.saturating_add_unsigned(self.gathered.len() as u64);
        self.gathered.clear();
        self.gathered_bytes = 0;
        Ok(())
    }

    fn values<'b>(&'b self, seq: i64, line: &'b Line) -> Vec<Value<'b>> {
        vec![
            seq.into(),
            self.act_seq.into(),
            self.act.at.0.into(),
            self.act.by.into(),
            self.act.server.as_str().into(),
            line.action.into(),
            line.entry_type.as_ref().into(),
            line.key.as_ref().into(),
            line.entry_hash_before.as_ref().into(),
            line.entry_hash_after.as_ref().into(),
            line.surface_hash_before.as_ref().into(),
            line.surface_hash_after.as_ref().into(),
            line.status_before.as_ref().into(),
            line.status_after.as_ref().into(),
            line.basis.as_ref().into(),
            line.detail.as_ref().into(),
            line.raw.as_ref().into(),
        ]
    }
}

/// The newest events of a server, oldest first.
pub(crate) fn read(
    rows: &dyn Transaction,
    id: &ServerId,
    limit: usize,
) -> Result<Vec<HistoryEvent>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = "SELECT * FROM (
             SELECT seq, act, at, by, action, entry_type, key, entry_hash_before, entry_hash_after,
                    surface_hash_before, surface_hash_after, status_before, status_after, basis, detail, raw
             FROM history WHERE server = $1 ORDER BY seq DESC LIMIT $2) AS newest
         ORDER BY seq";
    rows.all(query, &[id.as_str().into(), limit.into()], |row| Ok(event(row, id)))
}

/// How many lines since a moment have this basis.
pub(crate) fn count(
    rows: &dyn Transaction,
    id: &ServerId,
    basis: Basis,
    since: Timestamp,
) -> Result<usize, StoreError> {
    let query = "SELECT count(*) FROM history WHERE server = $1 AND basis = $2 AND at >= $3";
    rows.count(query, &[id.as_str().into(), basis.as_str().into(), since.0.into()])
}

/// A line as far as it can be read: a discarded row may have contained anything.
fn event(row: &dyn Row, id: &ServerId) -> HistoryEvent {
    let number = |index| row.cell(index).integer().unwrap_or_default();
    let text = |index| row.cell(index).lossy_text();
    let status = |index| text(index).and_then(|text| status_named(&text));
    HistoryEvent {
        seq: number(0),
        act: number(1),
        at: Timestamp(number(2)),
        by: text(3).unwrap_or_default(),
        server: id.clone(),
        action: text(4).unwrap_or_default(),
        entry_type: parsed(row, 5),
        key: text(6),
        entry_hash_before: parsed(row, 7),
        entry_hash_after: parsed(row, 8),
        surface_hash_before: parsed(row, 9),
        surface_hash_after: parsed(row, 10),
        status_before: status(11),
        status_after: status(12),
        basis: text(13).and_then(|text| basis_named(&text)),
        detail: text(14),
        raw: text(15),
    }
}

fn parsed<T: FromStr>(row: &dyn Row, index: usize) -> Option<T> {
    row.cell(index).text()?.parse().ok()
}

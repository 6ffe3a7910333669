//! Rows of events, one for each action by a person that concerns no server's pins. Append-only.

use super::numbers::Numbered;
use crate::by::{By, StoreEvent};
use crate::database::Transaction;
use crate::error::StoreError;
use gate::time::Timestamp;

/// An event to record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) action: &'static str,
    pub(crate) subject: Option<&'a str>,
    pub(crate) detail: Option<&'a str>,
}

impl Event<'_> {
    pub(crate) fn write(self, rows: &dyn Transaction, by: By<'_>) -> Result<(), StoreError> {
        let seq = Numbered::Events.next(rows)?;
        rows.execute(
            "INSERT INTO events (seq, at, by, action, subject, detail) VALUES ($1, $2, $3, $4, $5, $6)",
            &[
                seq.into(),
                by.at.0.into(),
                by.name.into(),
                self.action.into(),
                self.subject.into(),
                self.detail.into(),
            ],
        )?;
        Numbered::Events.used(rows, seq)
    }
}

/// The newest events, oldest first, as far as they can be read.
pub(crate) fn read(rows: &dyn Transaction, limit: usize) -> Result<Vec<StoreEvent>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let query = "SELECT * FROM (
             SELECT seq, at, by, action, subject, detail FROM events ORDER BY seq DESC LIMIT $1) AS newest
         ORDER BY seq";
    rows.all(query, &[limit.into()], |row| {
        let number = |index| row.cell(index).integer().unwrap_or_default();
        let text = |index| row.cell(index).lossy_text();
        Ok(StoreEvent {
            seq: number(0),
            at: Timestamp(number(1)),
            by: text(2).unwrap_or_default(),
            action: text(3).unwrap_or_default(),
            subject: text(4),
            detail: text(5),
        })
    })
}

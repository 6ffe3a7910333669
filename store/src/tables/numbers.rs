//! Row numbers. They are never reused: a discarded pin leaves a gap.
//!
//! They are counted here and not by the database, so that both databases assign the same numbers,
//! and a copy continues where the original stopped.

use crate::database::Transaction;
use crate::error::StoreError;

/// A table whose rows are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    Pins,
    History,
    Events,
}

impl Numbered {
    const fn table(self) -> &'static str {
        match self {
            Numbered::Pins => "pins",
            Numbered::History => "history",
            Numbered::Events => "events",
        }
    }

    const fn largest(self) -> &'static str {
        match self {
            Numbered::Pins => "SELECT max(seq) FROM pins",
            Numbered::History => "SELECT max(seq) FROM history",
            Numbered::Events => "SELECT max(seq) FROM events",
        }
    }

    /// The next number. Rows added by another program count as well.
    pub(crate) fn next(self, rows: &dyn Transaction) -> Result<i64, StoreError> {
        let number = |sql, values: &[_]| -> Result<i64, StoreError> {
            let found = rows.first(sql, values, |row| Ok(row.cell(0).integer()))?;
            Ok(found.flatten().unwrap_or_default())
        };
        let counted = number("SELECT value FROM counters WHERE name = $1", &[self.table().into()])?;
        Ok(counted.max(number(self.largest(), &[])?).saturating_add(1))
    }

    /// Records that numbers up to this one are used.
    pub(crate) fn used(self, rows: &dyn Transaction, last: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO counters (name, value) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET value = $2";
        rows.execute(sql, &[self.table().into(), last.into()])?;
        Ok(())
    }
}

//! The seal over the set of granted calls. Restoring a used grant, or removing one, breaks it. If
//! an older seal is restored as well, its count is lower than processes have seen.
//!
//! INVARIANT: a change is only sealed on top of a state whose seal holds. If it does not hold,
//! every grant is dropped first, and callers have to ask again.

use super::switch_seal::key_for;
use crate::authenticate::StateSeal;
use crate::database::Transaction;
use crate::error::StoreError;
use crate::key::{Key, Keys};
use std::ops::ControlFlow;

const GRANTED: &str =
    "SELECT id, expires_at FROM call_approvals WHERE state = 'granted' ORDER BY id";

/// How often the granted calls have changed.
pub(super) fn count(rows: &dyn Transaction) -> Result<i64, StoreError> {
    Ok(found(rows)?.map_or(0, |(count, _)| count))
}

/// The result of changing the granted calls.
pub(super) struct Changed<T> {
    pub(super) done: T,
    /// How often they have changed by now.
    pub(super) count: i64,
    /// Whether the seal held before. If not, all earlier grants were dropped.
    pub(super) was_sound: bool,
}

/// Changes the granted calls. `seen` is the highest known count.
pub(super) fn change<T>(
    rows: &dyn Transaction,
    keys: &Keys,
    seen: i64,
    doing: impl FnOnce() -> Result<T, StoreError>,
) -> Result<Changed<T>, StoreError> {
    let key = key_for(rows, keys, false)?;
    let before = found(rows)?;
    let is_sound = match &before {
        Some((count, seal)) => *count >= seen && fed(rows, &key)?.matches(*count, seal),
        // Nothing was ever granted.
        None => seen == 0 && !rows.any(GRANTED, &[])?,
    };
    if !is_sound {
        let sql = "UPDATE call_approvals SET state = 'expired' WHERE state = 'granted'";
        rows.execute(sql, &[])?;
    }
    let done = doing()?;
    let count = before.map_or(0, |(count, _)| count).max(seen).saturating_add(1);
    let seal = fed(rows, &key)?.finish(count);
    rows.execute(
        "INSERT INTO switch_seal (name, seal_count, seal) VALUES ('grants', $1, $2)
         ON CONFLICT (name) DO UPDATE SET seal_count = $1, seal = $2",
        &[count.into(), seal.as_slice().into()],
    )?;
    Ok(Changed { done, count, was_sound: is_sound })
}

fn found(rows: &dyn Transaction) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
    let query = "SELECT seal_count, seal FROM switch_seal WHERE name = 'grants'";
    rows.first(query, &[], |row| {
        Ok((row.cell(0).integer().unwrap_or_default(), row.cell(1).raw_bytes().to_vec()))
    })
}

fn fed(rows: &dyn Transaction, key: &Key) -> Result<StateSeal, StoreError> {
    let mut seal = StateSeal::new(key, "holdpoint grants 1");
    rows.query(GRANTED, &[], &mut |row| {
        seal.row((0..2).map(|index| row.cell(index)));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(seal)
}

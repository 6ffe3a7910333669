//! The seal over the switches, the revocations and the API keys: it breaks if another program
//! changes, adds or removes a row. Readers treat a broken seal as an incident in progress.
//!
//! INVARIANT: a change is sealed only if the seal held before it. A state in doubt is only sealed
//! by a person's decision.

use super::servers::any_sealed;
use crate::authenticate::StateSeal;
use crate::database::{Backend, Transaction};
use crate::error::StoreError;
use crate::incident::IncidentSeal;
use crate::key::{Key, KeyProblem, Keys};
use std::ops::ControlFlow;

/// The sealed data, in this order. The last use of a key is excluded: it changes every day, and
/// nothing depends on it.
const SEALED: [(&str, usize); 6] = [
    ("SELECT name, level, scope, reason, at, by FROM switches ORDER BY name", 6),
    ("SELECT kind, value, at, by FROM revocations ORDER BY kind, value", 4),
    (
        "SELECT id, hash, sub, actor_type, org, group_names, created_at, created_by, expires_at, revoked_at, revoked_by
         FROM api_keys ORDER BY id",
        11,
    ),
    // Included so that older rows do not match even if they are restored together with their seal.
    ("SELECT max(seq) FROM events WHERE action LIKE 'incident.%' OR action LIKE 'key.%'", 1),
    // Left out if they have no rows: a seal from before these columns existed stays valid.
    (KEY_POWERS, 3),
    (QUARANTINES, 5),
];

const KEY_POWERS: &str = "SELECT id, admin, clearance FROM api_keys WHERE admin <> 0 OR clearance IS NOT NULL ORDER BY id";
const QUARANTINES: &str = "SELECT id, principal, session, rule, at FROM quarantines ORDER BY id";

const CHANGED: &str = "the switches, revocations or API keys in the database were changed by a program other than Holdpoint";
const REMOVED: &str = "the seal over the switches, revocations and API keys was removed from the database by a program other than Holdpoint";

/// The status of the seal.
pub(super) fn read(rows: &dyn Transaction, keys: &Keys) -> Result<IncidentSeal, StoreError> {
    let query = "SELECT seal_count, seal FROM switch_seal WHERE name = 'switches'";
    let found = rows.first(query, &[], |row| {
        Ok((row.cell(0).integer().unwrap_or_default(), row.cell(1).raw_bytes().to_vec()))
    })?;
    let Some((count, seal)) = found else {
        let doubt = has_anything(rows)?.then(|| REMOVED.to_owned());
        return Ok(IncidentSeal { count: 0, doubt });
    };
    let doubt = match keys.read()? {
        Err(problem) => Some(problem.to_string()),
        Ok(key) => {
            let holds = fed(rows, &key)?.matches(count, &seal);
            (!holds).then(|| CHANGED.to_owned())
        }
    };
    Ok(IncidentSeal { count, doubt })
}

/// Changes the sealed data. If the seal did not hold before, the change is made and the seal stays
/// broken.
pub(super) fn change(
    backend: &mut impl Backend,
    doing: impl Fn(&dyn Transaction) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    backend.write(|rows, keys| {
        let before = read(rows, keys)?;
        doing(rows)?;
        match before.doubt {
            None => write_if_possible(rows, keys, before.count.saturating_add(1)),
            Some(_) => Ok(()),
        }
    })
}

/// Seals the current state with a count above what the ledger has seen: a person decided that it is
/// right.
pub(super) fn accept(rows: &dyn Transaction, keys: &Keys, seen: i64) -> Result<(), StoreError> {
    let count = read(rows, keys)?.count.max(seen).saturating_add(1);
    write(rows, &key_for(rows, keys, true)?, count)
}

/// Seals what a database held before seals existed. Without a key nothing is sealed, and a person
/// has to decide.
pub(crate) fn seal_older(rows: &dyn Transaction, keys: &Keys) -> Result<(), StoreError> {
    if !has_anything(rows)? {
        return Ok(());
    }
    let newest = rows.first("SELECT max(seq) FROM events", &[], |row| Ok(row.cell(0).integer()))?;
    write_if_possible(rows, keys, newest.flatten().unwrap_or_default().saturating_add(1))
}

/// Without a usable key, nothing is sealed: that must not make a switch fail, and an unsealed state
/// counts as in doubt.
fn write_if_possible(rows: &dyn Transaction, keys: &Keys, count: i64) -> Result<(), StoreError> {
    match key_for(rows, keys, false) {
        Ok(key) => write(rows, &key, count),
        Err(StoreError::NoKey { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The key. Created if nothing was sealed with one yet, or if a person may replace a missing key.
pub(super) fn key_for(
    rows: &dyn Transaction,
    keys: &Keys,
    may_replace: bool,
) -> Result<Key, StoreError> {
    match keys.read()? {
        Ok(key) => Ok(key),
        Err(KeyProblem::Missing(_)) if may_replace || !any_sealed(rows)? => keys.create(),
        Err(problem) => Err(StoreError::NoKey { problem: problem.to_string() }),
    }
}

fn has_anything(rows: &dyn Transaction) -> Result<bool, StoreError> {
    for (query, columns) in SEALED {
        // The query for the last event always returns a row, which is null if there is no event.
        let has_row = rows.first(query, &[], |row| {
            Ok((0..columns).any(|index| row.cell(index) != crate::database::Cell::Null))
        })?;
        if has_row == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fed(rows: &dyn Transaction, key: &Key) -> Result<StateSeal, StoreError> {
    let mut seal = StateSeal::new(key, "holdpoint switches 1");
    for (query, columns) in SEALED {
        if [KEY_POWERS, QUARANTINES].contains(&query) && !rows.any(query, &[])? {
            continue;
        }
        seal.table(query);
        rows.query(query, &[], &mut |row| {
            seal.row((0..columns).map(|index| row.cell(index)));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(seal)
}

fn write(rows: &dyn Transaction, key: &Key, count: i64) -> Result<(), StoreError> {
    let seal = fed(rows, key)?.finish(count);
    rows.execute(
        "INSERT INTO switch_seal (name, seal_count, seal) VALUES ('switches', $1, $2)
         ON CONFLICT (name) DO UPDATE SET seal_count = $1, seal = $2",
        &[count.into(), seal.as_slice().into()],
    )?;
    Ok(())
}

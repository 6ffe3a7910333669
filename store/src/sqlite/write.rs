//! Acts, written in one transaction each.
//!
//! INVARIANT: a seal is made anew only over what was sealed before and this act's own changes. Where the old one does
//! not hold, only a person's approval gets past it, and then nothing older stays pinned.

use super::observation;
use super::pins::{PinRow, columns, has_traces};
use super::servers::{ServerRow, any_sealed, sealed_pins};
use super::{ReadFault, history};
use crate::act::{Act, MAX_LAUNCH_BYTES, within};
use crate::authenticate::PinFields;
use crate::error::StoreError;
use crate::home::Home;
use crate::key::{Key, KeyProblem, create_key, read_key};
use crate::record::Observation;
use contract::surface::EntryId;
use gate::pins::Basis;
use gate::server::ServerStatus;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

mod change;

/// The most pins that are kept of one server, all that were ever made and not discarded.
pub const MAX_PINS_PER_SERVER: usize = 100_000;
/// The most bytes of pinned entries that are kept of one server.
pub const MAX_PIN_BYTES_PER_SERVER: usize = 256 * 1024 * 1024;

/// The limits of a server's pins. Tests have smaller ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) pins: usize,
    pub(super) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { pins: MAX_PINS_PER_SERVER, bytes: MAX_PIN_BYTES_PER_SERVER }
    }
}

/// Writes an act. The caller commits, or drops everything.
pub(super) fn record(
    connection: &Connection,
    home: &Home,
    limits: Limits,
    act: &Act<'_>,
) -> Result<(), ReadFault> {
    let before = ServerRow::read(connection, act.server)?;
    let revision = before.as_ref().map_or(0, |row| row.revision);
    if act.expect.is_some_and(|expected| expected.0 != revision) {
        return Err(StoreError::Changed { server: act.server.clone() }.into());
    }
    let seen = previous_observation(connection, act)?;
    let mut row = before.clone().unwrap_or_else(|| new_row(act));
    apply_fields(&mut row, act)?;
    let is_sealed_anew = act.reseal
        || !act.pins.is_empty()
        || !act.withdraw.is_empty()
        || before.as_ref().is_none_or(|old| old.status != row.status || old.launch != row.launch);
    if let (false, None, Some(now), Some(seen)) =
        (is_sealed_anew, &act.detail, act.observation, &seen)
        && seen.shows_the_same(now)
    {
        return seen_again(connection, act, seen, now);
    }
    let standing = if is_sealed_anew {
        Some(Standing::of(connection, home, act, before.as_ref())?)
    } else {
        None
    };
    row.revision = revision.saturating_add(1);
    row.write(connection)?;
    let act_seq = history::write_act(connection, act, before.as_ref(), &row, seen.as_ref())?;
    if let Some(observation) = act.observation {
        observation::write(connection, act.server, observation)?;
    }
    if let Some(standing) = standing {
        let change = change::Change { connection, act, act_seq, limits };
        change.make(standing, row)?;
    }
    Ok(())
}

/// One that cannot be read is as good as none: it is replaced.
fn previous_observation(
    connection: &Connection,
    act: &Act<'_>,
) -> Result<Option<Observation>, ReadFault> {
    match observation::read(connection, act.server) {
        Err(ReadFault::Store(_)) => Ok(None),
        other => other,
    }
}

/// The same surface as before is no event: a gate sees it again every few seconds.
fn seen_again(
    connection: &Connection,
    act: &Act<'_>,
    seen: &Observation,
    now: &Observation,
) -> Result<(), ReadFault> {
    if seen.capture == now.capture && seen.origin == now.origin {
        observation::seen_again(connection, act.server, now.observed_at)?;
    } else {
        observation::write(connection, act.server, now)?;
    }
    connection.execute(
        "UPDATE servers SET last_seen = ?2 WHERE id = ?1",
        params![act.server.as_str(), act.at.0],
    )?;
    Ok(())
}

fn new_row(act: &Act<'_>) -> ServerRow {
    ServerRow {
        id: act.server.as_str().to_owned(),
        status: ServerStatus::Unbaselined.as_str().to_owned(),
        launch: None,
        first_seen: act.at.0,
        last_seen: act.at.0,
        revision: 0,
        seal_count: 0,
        seal: None,
    }
}

fn apply_fields(row: &mut ServerRow, act: &Act<'_>) -> Result<(), StoreError> {
    if let Some(status) = act.status {
        row.status = status.as_str().to_owned();
    }
    if let Some(launch) = act.launch {
        let json = serde_json::json!(launch).to_string();
        within("a launch", json.len(), MAX_LAUNCH_BYTES)?;
        row.launch = Some(json);
    }
    if act.observation.is_some() {
        row.last_seen = act.at.0;
    }
    Ok(())
}

impl ServerRow {
    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(
            "INSERT INTO servers (id, status, launch, first_seen, last_seen, revision, seal_count, seal)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (id) DO UPDATE SET status = ?2, launch = ?3, first_seen = ?4, last_seen = ?5, revision = ?6,
                                            seal_count = ?7, seal = ?8",
            params![
                self.id,
                self.status,
                self.launch,
                self.first_seen,
                self.last_seen,
                self.revision,
                self.seal_count,
                self.seal
            ],
        )?;
        Ok(())
    }
}

/// How a server's record stands before an act that seals it.
enum Standing {
    /// It is as it was sealed, or new.
    Sound { key: Key, discard: BTreeSet<i64> },
    /// It is not, and a person approves: all older pins go.
    Mended { key: Key, reason: String },
    /// It is not, and the act touches no pin: the act is written, and the seal stays broken.
    StaysBroken,
}

impl Standing {
    fn of(
        connection: &Connection,
        home: &Home,
        act: &Act<'_>,
        before: Option<&ServerRow>,
    ) -> Result<Standing, ReadFault> {
        let is_approval = act.reseal
            && !act.pins.is_empty()
            && act.pins.iter().all(|pin| pin.basis == Basis::Person);
        let untrusted = |reason| StoreError::Untrusted { server: act.server.clone(), reason };
        let broken = |key: Option<Key>, reason: String| match key {
            Some(key) if is_approval => Ok(Standing::Mended { key, reason }),
            _ if act.pins.is_empty() && act.withdraw.is_empty() => Ok(Standing::StaysBroken),
            _ => Err(untrusted(reason).into()),
        };
        let path = home.pins_key_path();
        let is_first = !any_sealed(connection)?;
        let (key, was_missing) = match read_key(&path) {
            Ok(key) => (key, None),
            Err(KeyProblem::Missing(_)) if is_first => {
                (create_key(&path).map_err(StoreError::from)?, None)
            }
            Err(problem @ KeyProblem::Missing(_)) if is_approval => {
                (create_key(&path).map_err(StoreError::from)?, Some(problem.to_string()))
            }
            Err(problem) => return broken(None, problem.to_string()),
        };
        let wrong = match (was_missing, before) {
            (Some(reason), _) => Some(reason),
            (None, Some(row)) => row.wrong_seal(sealed_pins(connection, &key, &row.id)?.seal),
            (None, None) if has_traces(connection, act.server)? => {
                Some("the record was removed by something else than holdpoint".to_owned())
            }
            (None, None) => None,
        };
        if let Some(reason) = wrong {
            return broken(Some(key), reason);
        }
        let discard =
            if before.is_some() { bad_rows(connection, &key, act)? } else { BTreeSet::new() };
        if discard.is_empty() || is_approval {
            Ok(Standing::Sound { key, discard })
        } else {
            Err(untrusted(
                "a pin of the entry was changed by something else than holdpoint".to_owned(),
            )
            .into())
        }
    }
}

/// The rows of the act's entries that do not authenticate.
fn bad_rows(connection: &Connection, key: &Key, act: &Act<'_>) -> Result<BTreeSet<i64>, ReadFault> {
    let entries: BTreeSet<&EntryId> =
        act.pins.iter().map(|pin| pin.entry.id()).chain(&act.withdraw).collect();
    let query = format!(
        "SELECT {} FROM pins WHERE server = ?1 AND entry_type = ?2 AND key = ?3",
        columns()
    );
    let mut statement = connection.prepare(&query)?;
    let mut bad = BTreeSet::new();
    for entry in entries {
        let mut rows = statement.query([
            act.server.as_str(),
            entry.entry_type.as_str(),
            entry.key.as_str(),
        ])?;
        while let Some(row) = rows.next()? {
            if PinRow::from_row(row).and_then(|pin| pin.authentic(key)).is_none() {
                bad.insert(row.get(0)?);
            }
        }
    }
    Ok(bad)
}

/// The next number of a table whose numbers are never used twice.
fn next_seq(connection: &Connection, table: &'static str) -> rusqlite::Result<i64> {
    let query = format!(
        "SELECT 1 + max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0),
                        coalesce((SELECT max(seq) FROM {table}), 0))"
    );
    connection.query_row(&query, [table], |row| row.get(0))
}

pub(super) fn next_history_seq(connection: &Connection) -> rusqlite::Result<i64> {
    next_seq(connection, "history")
}

//! Writes each act in one transaction.
//!
//! INVARIANT: a new seal covers only what was sealed before and this act's own changes. If the old
//! seal does not hold, only a person's approval can replace it, and then no older pin remains.

use crate::act::{Act, MAX_LAUNCH_BYTES, within};
use crate::database::{Transaction, Value};
use crate::error::StoreError;
use crate::key::{Key, KeyProblem, Keys};
use crate::record::{Observation, Recorded, Revision, Wanted};
use crate::redaction;
use crate::tables::history::{Line, Lines, MAX_HISTORY_EVENTS};
use crate::tables::observation;
use crate::tables::pins::{PinRow, columns, named};
use crate::tables::servers::{self, ServerRow, any_sealed, has_traces, sealed_pins};
use contract::surface::EntryId;
use gate::pins::Basis;
use gate::server::ServerStatus;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

mod change;

/// The most pins that are kept per server, including withdrawn ones.
pub const MAX_PINS_PER_SERVER: usize = 100_000;
/// The most bytes of pinned entries that are kept per server.
pub const MAX_PIN_BYTES_PER_SERVER: usize = 256 * 1024 * 1024;

/// The limits on what is stored and returned per server. Tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) pins: usize,
    pub(crate) bytes: usize,
    pub(crate) events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pins: MAX_PINS_PER_SERVER,
            bytes: MAX_PIN_BYTES_PER_SERVER,
            events: MAX_HISTORY_EVENTS,
        }
    }
}

/// What is wrong with a record that the ledger has seen in a newer state.
pub(crate) const OLDER_COPY: &str = "the ledger has seen a newer state of this server: the database was deleted, or put back from an older copy";

/// The name of an act that only observed.
pub(crate) const OBSERVE: &str = "server.observe";

/// Writes an act. The caller commits or rolls back.
pub(crate) fn record(
    rows: &dyn Transaction,
    keys: &Keys,
    limits: Limits,
    act: &Act<'_>,
) -> Result<Recorded, StoreError> {
    let before = ServerRow::read(rows, act.server)?;
    let revision = before.as_ref().map_or(0, |row| row.revision);
    if act.expect.is_some_and(|expected| expected.0 != revision) {
        return Err(StoreError::Changed { server: act.server.clone() });
    }
    let seen = previous_observation(rows, act)?;
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
        seen_again(rows, act, seen, now)?;
        return Ok(recorded(&row));
    }
    let standing =
        if is_sealed_anew { Some(Standing::of(rows, keys, act, before.as_ref())?) } else { None };
    row.revision = revision.saturating_add(1);
    if before.is_none() {
        redaction::begin(rows)?;
    }
    redaction::count_revision(rows)?;
    row.write(rows)?;
    if let Some(observation) = act.observation {
        observation::write(rows, act.server, observation)?;
    }
    let own = own_line(act, before.as_ref(), &row, seen.as_ref());
    let mut lines = Lines::new(rows, act, own)?;
    let stays_broken = matches!(standing, Some(Standing::StaysBroken));
    if let Some(standing) = standing {
        change::Change { rows, act, limits }.make(standing, &mut row, &mut lines)?;
    }
    lines.finish()?;
    let found = ServerRow::read(rows, act.server)?;
    if found.is_none_or(|found| found.status != row.status || found.seal != row.seal) {
        return Err(StoreError::NotTaken { what: "the act" });
    }
    let mut recorded = recorded(&row);
    if stays_broken && act.name != OBSERVE {
        recorded.seal_count = row.seal_count.max(act.seals_seen).saturating_add(1);
    }
    Ok(recorded)
}

fn recorded(row: &ServerRow) -> Recorded {
    Recorded { revision: Revision(row.revision), seal_count: row.seal_count }
}

/// The history line of the act itself.
fn own_line(
    act: &Act<'_>,
    before: Option<&ServerRow>,
    after: &ServerRow,
    seen: Option<&Observation>,
) -> Line {
    let status_before = before.map(|row| row.status.clone());
    let has_new_status = status_before.as_ref() != Some(&after.status);
    let observed = act.observation.map(|now| now.surface_hash.to_string());
    Line {
        action: act.name,
        surface_hash_before: seen
            .filter(|_| observed.is_some())
            .map(|seen| seen.surface_hash.to_string()),
        surface_hash_after: observed,
        status_before: status_before.filter(|_| has_new_status),
        status_after: has_new_status.then(|| after.status.clone()),
        detail: said(act),
        ..Line::default()
    }
}

/// The detail of an act, with the server that it was decided for.
fn said(act: &Act<'_>) -> Option<String> {
    let for_another = act
        .decided_for
        .map(|other| format!("decided for `{other}`, which is launched the same way"));
    match (act.detail.clone(), for_another) {
        (Some(detail), Some(for_another)) => Some(format!("{detail}; {for_another}")),
        (detail, for_another) => detail.or(for_another),
    }
}

/// The previous observation. One that cannot be read counts as missing, and is replaced.
fn previous_observation(
    rows: &dyn Transaction,
    act: &Act<'_>,
) -> Result<Option<Observation>, StoreError> {
    match observation::read(rows, act.server) {
        Err(StoreError::Unreadable { .. }) => Ok(None),
        other => other,
    }
}

/// Whether the surface is the same as before, which is no event: a gate sees it every few seconds.
fn seen_again(
    rows: &dyn Transaction,
    act: &Act<'_>,
    seen: &Observation,
    now: &Observation,
) -> Result<(), StoreError> {
    if seen.capture == now.capture && seen.origin == now.origin {
        observation::seen_again(rows, act.server, now.observed_at)?;
    } else {
        observation::write(rows, act.server, now)?;
    }
    servers::seen(rows, act.server, act.at)
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
        // Exclude what the client says about itself: it must not make a launch too large to record.
        let bare = serde_json::json!(launch.clone().for_client(None)).to_string();
        within("a launch", bare.len(), MAX_LAUNCH_BYTES)?;
        row.launch = Some(serde_json::json!(launch).to_string());
    }
    if act.observation.is_some() {
        row.last_seen = act.at.0;
    }
    Ok(())
}

/// The state of a server's record before an act that seals it.
enum Standing {
    /// The record is new, or its seal holds.
    Sound { key: Key, discard: BTreeSet<i64> },
    /// The seal does not hold, and a person approves: all older pins are discarded.
    Repaired { key: Key, reason: String },
    /// The seal does not hold, and the act touches no pin: the act is written, and the seal stays
    /// broken.
    StaysBroken,
}

impl Standing {
    fn of(
        rows: &dyn Transaction,
        keys: &Keys,
        act: &Act<'_>,
        before: Option<&ServerRow>,
    ) -> Result<Standing, StoreError> {
        let is_approval = act.reseal
            && !act.pins.is_empty()
            && act.pins.iter().all(|pin| pin.basis == Basis::Person);
        let untrusted = |reason| StoreError::Untrusted { server: act.server.clone(), reason };
        let broken = |key: Option<Key>, reason: String| match key {
            Some(key) if is_approval => Ok(Standing::Repaired { key, reason }),
            _ if act.pins.is_empty() && act.withdraw.is_empty() => Ok(Standing::StaysBroken),
            _ => Err(untrusted(reason)),
        };
        let is_first = !any_sealed(rows)?;
        let (key, was_missing) = match keys.read()? {
            Ok(key) => (key, None),
            Err(KeyProblem::Missing(_)) if is_first => (keys.create()?, None),
            Err(problem @ KeyProblem::Missing(_)) if is_approval => {
                (keys.create()?, Some(problem.to_string()))
            }
            Err(problem) => return broken(None, problem.to_string()),
        };
        let wrong = match (was_missing, before) {
            (Some(reason), _) => Some(reason),
            (None, before) if before.map_or(0, |row| row.seal_count) < act.seals_seen => {
                Some(OLDER_COPY.to_owned())
            }
            (None, Some(row)) => row.wrong_seal(sealed_pins(rows, &key, &row.id)?.seal),
            (None, None) if has_traces(rows, act.server)? => {
                Some("the record was removed by a program other than Holdpoint".to_owned())
            }
            (None, None) => None,
        };
        if let Some(reason) = wrong {
            return broken(Some(key), reason);
        }
        let discard = if before.is_some() { bad_rows(rows, &key, act)? } else { BTreeSet::new() };
        if discard.is_empty() || is_approval {
            Ok(Standing::Sound { key, discard })
        } else {
            Err(untrusted(
                "a pin of the entry was changed by a program other than Holdpoint".to_owned(),
            ))
        }
    }
}

/// The rows of the act's entries that do not authenticate.
fn bad_rows(rows: &dyn Transaction, key: &Key, act: &Act<'_>) -> Result<BTreeSet<i64>, StoreError> {
    let query = format!(
        "SELECT {} FROM pins WHERE server = $1 AND entry_type = $2 AND key = $3",
        columns()
    );
    let mut bad = BTreeSet::new();
    rows.query_each(&query, &entries_of(act), &mut |row| {
        if PinRow::from_row(row).and_then(|pin| pin.authentic(key, Wanted::Of(|_| true))).is_none()
        {
            bad.extend(row.cell(0).integer());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(bad)
}

/// Each entry that an act adds to or withdraws from, without duplicates.
fn entries_of<'a>(act: &'a Act<'_>) -> Vec<Vec<Value<'a>>> {
    let entries: BTreeSet<&EntryId> =
        act.pins.iter().map(|pin| pin.entry.id()).chain(&act.withdraw).collect();
    entries.into_iter().map(|entry| named(act.server, entry).to_vec()).collect()
}

//! History: one line for each act, and one for each pin that it added, withdrew or discarded. It is only added to.

use super::ReadFault;
use super::pins::basis_named;
use super::servers::{ServerRow, status_named};
use super::write::next_history_seq;
use crate::act::Act;
use crate::record::{HistoryEvent, Observation};
use contract::surface::{EntryId, MAX_ENTRY_BYTES};
use gate::pins::Basis;
use gate::server::ServerId;
use gate::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use std::str::FromStr;

/// The most events that are handed out of one server's history: the newest.
pub const MAX_HISTORY_EVENTS: usize = 100_000;

/// Something that happened to one entry.
pub(super) struct EntryEvent<'a> {
    pub(super) action: &'static str,
    pub(super) entry: &'a EntryId,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) basis: Option<Basis>,
}

/// Writes the line of the act itself, and answers its number.
pub(super) fn write_act(
    connection: &Connection,
    act: &Act<'_>,
    before: Option<&ServerRow>,
    after: &ServerRow,
    seen: Option<&Observation>,
) -> rusqlite::Result<i64> {
    let seq = next_history_seq(connection)?;
    let status_before = before.map(|row| row.status.as_str());
    let has_new_status = status_before != Some(after.status.as_str());
    let observed = act.observation.map(|now| now.surface_hash.to_string());
    let seen = seen.filter(|_| observed.is_some()).map(|seen| seen.surface_hash.to_string());
    connection.execute(
        "INSERT INTO history (seq, act, at, by, server, action, surface_hash_before, surface_hash_after,
                              status_before, status_after, detail)
         VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            seq,
            act.at.0,
            act.by,
            act.server.as_str(),
            act.name,
            seen,
            observed,
            status_before.filter(|_| has_new_status),
            has_new_status.then_some(after.status.as_str()),
            act.detail,
        ],
    )?;
    Ok(seq)
}

pub(super) fn write_entry(
    connection: &Connection,
    act: &Act<'_>,
    act_seq: i64,
    event: &EntryEvent<'_>,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO history (act, at, by, server, action, entry_type, key, entry_hash_before, entry_hash_after, basis)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            act_seq,
            act.at.0,
            act.by,
            act.server.as_str(),
            event.action,
            event.entry.entry_type.as_str(),
            event.entry.key,
            event.before,
            event.after,
            event.basis.map(Basis::as_str),
        ],
    )?;
    Ok(())
}

/// Keeps a pin's row that is about to go, as it stands. What is larger than Holdpoint writes is left out.
pub(super) fn write_discarded(
    connection: &Connection,
    act: &Act<'_>,
    act_seq: i64,
    pin_seq: i64,
    reason: &str,
) -> rusqlite::Result<()> {
    let query = format!(
        "INSERT INTO history (act, at, by, server, action, entry_type, key, entry_hash_before, basis, detail, raw)
         SELECT ?1, ?2, ?3, ?4, 'pin.discarded', entry_type,
                CASE WHEN octet_length(key) <= {MAX_ENTRY_BYTES} THEN key END,
                entry_hash, basis,
                printf('%s; row %d said: pinned at %d ms by %.256s', ?5, seq, at, by),
                CASE WHEN octet_length(raw) <= {MAX_ENTRY_BYTES} THEN raw END
         FROM pins WHERE seq = ?6"
    );
    let values = params![act_seq, act.at.0, act.by, act.server.as_str(), reason, pin_seq];
    connection.execute(&query, values)?;
    Ok(())
}

/// The newest events of a server, oldest first.
pub(super) fn read(
    connection: &Connection,
    id: &ServerId,
    limit: usize,
) -> Result<Vec<HistoryEvent>, ReadFault> {
    let mut statement = connection.prepare(
        "SELECT * FROM (
             SELECT seq, act, at, by, action, entry_type, key, entry_hash_before, entry_hash_after,
                    surface_hash_before, surface_hash_after, status_before, status_after, basis, detail, raw
             FROM history WHERE server = ?1 ORDER BY seq DESC LIMIT ?2)
         ORDER BY seq",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![id.as_str(), limit], |row| event(row, id))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A line as far as it can be read: a discarded row may have held anything.
fn event(row: &Row<'_>, id: &ServerId) -> rusqlite::Result<HistoryEvent> {
    Ok(HistoryEvent {
        seq: row.get(0)?,
        act: row.get(1)?,
        at: Timestamp(row.get(2)?),
        by: text(row, 3)?.unwrap_or_default(),
        server: id.clone(),
        action: text(row, 4)?.unwrap_or_default(),
        entry_type: parsed(row, 5)?,
        key: text(row, 6)?,
        entry_hash_before: parsed(row, 7)?,
        entry_hash_after: parsed(row, 8)?,
        surface_hash_before: parsed(row, 9)?,
        surface_hash_after: parsed(row, 10)?,
        status_before: text(row, 11)?.and_then(|text| status_named(&text)),
        status_after: text(row, 12)?.and_then(|text| status_named(&text)),
        basis: text(row, 13)?.and_then(|text| basis_named(&text)),
        detail: text(row, 14)?,
        raw: text(row, 15)?,
    })
}

fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

fn parsed<T: FromStr>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    Ok(text(row, index)?.and_then(|text| text.parse().ok()))
}

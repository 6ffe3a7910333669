//! The last observed surface of each server: one row, replaced. Nothing is trusted for being in it.

use super::ReadFault;
use crate::error::StoreError;
use crate::record::Observation;
use contract::surface::ListKind;
use gate::server::ServerId;
use gate::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;

pub(super) fn read(
    connection: &Connection,
    id: &ServerId,
) -> Result<Option<Observation>, ReadFault> {
    let found = connection
        .query_row(
            "SELECT observed_at, surface_hash, protocol_version, server_version, unreadable, notes, origin, capture
             FROM observations WHERE server = ?1",
            [id.as_str()],
            |row| {
                let hash: String = row.get(1)?;
                let (unreadable, notes): (String, String) = (row.get(4)?, row.get(5)?);
                Ok((
                    hash,
                    unreadable,
                    notes,
                    Timestamp(row.get(0)?),
                    row.get(2)?,
                    row.get(3)?,
                    row.get(6)?,
                    row.get(7)?,
                ))
            },
        )
        .optional()?;
    let Some((
        hash,
        unreadable,
        notes,
        observed_at,
        protocol_version,
        server_version,
        origin,
        capture,
    )) = found
    else {
        return Ok(None);
    };
    let bad = || StoreError::Unreadable { server: id.clone(), what: "the last observation" };
    Ok(Some(Observation {
        surface_hash: hash.parse().map_err(|_| bad())?,
        unreadable: lists_from_json(&unreadable).ok_or_else(bad)?,
        notes: serde_json::from_str(&notes).map_err(|_| bad())?,
        observed_at,
        protocol_version,
        server_version,
        origin,
        capture,
    }))
}

pub(super) fn write(
    connection: &Connection,
    id: &ServerId,
    observation: &Observation,
) -> rusqlite::Result<()> {
    let named: BTreeMap<&str, &str> = observation
        .unreadable
        .iter()
        .map(|(list, reason)| (list.member(), reason.as_str()))
        .collect();
    connection.execute(
        "INSERT OR REPLACE INTO observations (server, observed_at, surface_hash, protocol_version, server_version,
                                              unreadable, notes, origin, capture)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            id.as_str(),
            observation.observed_at.0,
            observation.surface_hash.to_string(),
            observation.protocol_version,
            observation.server_version,
            serde_json::json!(named).to_string(),
            serde_json::json!(observation.notes).to_string(),
            observation.origin,
            observation.capture,
        ],
    )?;
    Ok(())
}

/// Notes when the same was seen again.
pub(super) fn seen_again(
    connection: &Connection,
    id: &ServerId,
    observed_at: Timestamp,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE observations SET observed_at = ?2 WHERE server = ?1",
        params![id.as_str(), observed_at.0],
    )?;
    Ok(())
}

fn lists_from_json(text: &str) -> Option<BTreeMap<ListKind, String>> {
    let named: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    let list = |name: &str| ListKind::ALL.into_iter().find(|list| list.member() == name);
    named.into_iter().map(|(name, reason)| Some((list(&name)?, reason))).collect()
}

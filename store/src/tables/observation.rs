//! Rows of the last observed surface of each server, replaced each time. Being stored here gives
//! them no trust.

use crate::database::{Cell, Row, Transaction};
use crate::error::StoreError;
use crate::record::{Observation, Sighting};
use contract::surface::ListKind;
use gate::server::ServerId;
use gate::time::Timestamp;
use std::collections::BTreeMap;

pub(crate) fn read(
    rows: &dyn Transaction,
    id: &ServerId,
) -> Result<Option<Observation>, StoreError> {
    let query = "SELECT observed_at, surface_hash, protocol_version, server_version, unreadable, notes, origin, capture
                 FROM observations WHERE server = $1";
    let bad = || StoreError::Unreadable { server: id.clone(), what: "the last observation" };
    rows.first(query, &[id.as_str().into()], |row| from_row(row).ok_or_else(bad))
}

/// The last observation, without its texts.
pub(crate) fn sighting(
    rows: &dyn Transaction,
    id: &ServerId,
) -> Result<Option<Sighting>, StoreError> {
    let query = "SELECT surface_hash, protocol_version, server_version, unreadable, notes
                 FROM observations WHERE server = $1";
    let bad = || StoreError::Unreadable { server: id.clone(), what: "the last observation" };
    rows.first(query, &[id.as_str().into()], |row| sighting_from_row(row).ok_or_else(bad))
}

fn sighting_from_row(row: &dyn Row) -> Option<Sighting> {
    let text = |index| row.cell(index).text();
    let optional =
        |index| row.cell(index).optional(|cell: Cell<'_>| cell.text().map(str::to_owned));
    Some(Sighting {
        surface_hash: text(0)?.parse().ok()?,
        protocol_version: optional(1)?,
        server_version: optional(2)?,
        unreadable: lists_from_json(text(3)?)?,
        notes: serde_json::from_str(text(4)?).ok()?,
    })
}

fn from_row(row: &dyn Row) -> Option<Observation> {
    let text = |index| row.cell(index).text();
    let optional =
        |index| row.cell(index).optional(|cell: Cell<'_>| cell.text().map(str::to_owned));
    Some(Observation {
        observed_at: Timestamp(row.cell(0).integer()?),
        surface_hash: text(1)?.parse().ok()?,
        protocol_version: optional(2)?,
        server_version: optional(3)?,
        unreadable: lists_from_json(text(4)?)?,
        notes: serde_json::from_str(text(5)?).ok()?,
        origin: optional(6)?,
        capture: text(7)?.to_owned(),
    })
}

pub(crate) fn write(
    rows: &dyn Transaction,
    id: &ServerId,
    observation: &Observation,
) -> Result<(), StoreError> {
    let named: BTreeMap<&str, &str> = observation
        .unreadable
        .iter()
        .map(|(list, reason)| (list.member(), reason.as_str()))
        .collect();
    rows.execute(
        "INSERT INTO observations (server, observed_at, surface_hash, protocol_version, server_version,
                                   unreadable, notes, origin, capture)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (server) DO UPDATE SET observed_at = $2, surface_hash = $3, protocol_version = $4,
             server_version = $5, unreadable = $6, notes = $7, origin = $8, capture = $9",
        &[
            id.as_str().into(),
            observation.observed_at.0.into(),
            (&observation.surface_hash.to_string()).into(),
            observation.protocol_version.as_ref().into(),
            observation.server_version.as_ref().into(),
            (&serde_json::json!(named).to_string()).into(),
            (&serde_json::json!(observation.notes).to_string()).into(),
            observation.origin.as_ref().into(),
            (&observation.capture).into(),
        ],
    )?;
    Ok(())
}

pub(crate) fn remove(rows: &dyn Transaction, id: &ServerId) -> Result<(), StoreError> {
    rows.execute("DELETE FROM observations WHERE server = $1", &[id.as_str().into()])?;
    Ok(())
}

/// Records that the same surface was seen again.
pub(crate) fn seen_again(
    rows: &dyn Transaction,
    id: &ServerId,
    observed_at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE observations SET observed_at = $2 WHERE server = $1";
    rows.execute(sql, &[id.as_str().into(), observed_at.0.into()])?;
    Ok(())
}

fn lists_from_json(text: &str) -> Option<BTreeMap<ListKind, String>> {
    let named: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    let list = |name: &str| ListKind::ALL.into_iter().find(|list| list.member() == name);
    named.into_iter().map(|(name, reason)| Some((list(&name)?, reason))).collect()
}

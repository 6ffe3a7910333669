//! Servers' rows, and whether their seals hold.

use super::ReadFault;
use crate::authenticate::{Seal, SealedFields};
use crate::key::{Key, KeyProblem};
use crate::record::{Revision, ServerRecord};
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

/// A server's row as it stands in the file.
#[derive(Debug, Clone)]
pub(super) struct ServerRow {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) launch: Option<String>,
    pub(super) first_seen: i64,
    pub(super) last_seen: i64,
    pub(super) revision: i64,
    pub(super) seal_count: i64,
    pub(super) seal: Option<Vec<u8>>,
}

const COLUMNS: &str = "id, status, launch, first_seen, last_seen, revision, seal_count, seal";

impl ServerRow {
    /// What Holdpoint did not write comes out as something that the seal does not fit, not as an error: a person can
    /// then still look at it and approve.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<ServerRow> {
        let text = |value| String::from_utf8_lossy(bytes(value)).into_owned();
        let number = |value: ValueRef<'_>| value.as_i64().unwrap_or_default();
        let some = |value| (value != ValueRef::Null).then_some(value);
        Ok(ServerRow {
            id: text(row.get_ref(0)?),
            status: text(row.get_ref(1)?),
            launch: some(row.get_ref(2)?).map(text),
            first_seen: number(row.get_ref(3)?),
            last_seen: number(row.get_ref(4)?),
            revision: number(row.get_ref(5)?),
            seal_count: number(row.get_ref(6)?),
            seal: some(row.get_ref(7)?).map(|value| bytes(value).to_vec()),
        })
    }

    pub(super) fn read(
        connection: &Connection,
        id: &ServerId,
    ) -> rusqlite::Result<Option<ServerRow>> {
        let query = format!("SELECT {COLUMNS} FROM servers WHERE id = ?1");
        connection.query_row(&query, [id.as_str()], ServerRow::from_row).optional()
    }

    pub(super) fn sealed_fields(&self) -> SealedFields<'_> {
        SealedFields {
            status: &self.status,
            launch: self.launch.as_deref(),
            first_seen: self.first_seen,
            seal_count: self.seal_count,
        }
    }

    /// What is wrong with the seal, given one that was fed with the server's pins.
    pub(super) fn wrong_seal(&self, fed: Seal) -> Option<String> {
        let holds = self.seal.as_ref().is_some_and(|seal| fed.matches(self.sealed_fields(), seal));
        (!holds).then(|| {
            format!(
                "the record of `{}` was changed by something else than holdpoint (pins added, removed or put back, \
                 its status or its launch): review and approve it again",
                self.id
            )
        })
    }

    fn into_record(self, id: ServerId, lost: Option<String>) -> ServerRecord {
        let known_status = status_named(&self.status);
        let launch = self.launch.as_deref().map(serde_json::from_str).transpose();
        let unreadable =
            || format!("the record of `{id}` has values that holdpoint does not write");
        let is_readable = known_status.is_some() && launch.is_ok();
        let lost = lost.or_else(|| (!is_readable).then(unreadable));
        ServerRecord {
            status: known_status.unwrap_or(ServerStatus::Quarantined),
            launch: launch.unwrap_or_default(),
            first_seen: Timestamp(self.first_seen),
            last_seen: Timestamp(self.last_seen),
            revision: Revision(self.revision),
            id,
            lost,
        }
    }
}

pub(super) fn status_named(text: &str) -> Option<ServerStatus> {
    ServerStatus::ALL.into_iter().find(|status| status.as_str() == text)
}

/// All servers. A row whose id Holdpoint could not have written is no server of ours, and is left out.
pub(super) fn all(
    connection: &Connection,
    key: &Result<Key, KeyProblem>,
) -> Result<Vec<ServerRecord>, ReadFault> {
    let query = format!("SELECT {COLUMNS} FROM servers ORDER BY id");
    let mut statement = connection.prepare(&query)?;
    let rows = statement.query_map([], ServerRow::from_row)?;
    let mut records = Vec::new();
    for row in rows {
        let row = row?;
        if let Ok(id) = row.id.parse() {
            let lost = lost(connection, key, &row)?;
            records.push(row.into_record(id, lost));
        }
    }
    Ok(records)
}

pub(super) fn one(
    connection: &Connection,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
) -> Result<Option<ServerRecord>, ReadFault> {
    let Some(row) = ServerRow::read(connection, id)? else { return Ok(None) };
    let lost = lost(connection, key, &row)?;
    Ok(Some(row.into_record(id.clone(), lost)))
}

/// Whether anything was ever sealed in this home, so that a key must be there.
pub(super) fn any_sealed(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM servers) OR EXISTS (SELECT 1 FROM pins)";
    connection.query_row(query, [], |row| row.get(0))
}

fn lost(
    connection: &Connection,
    key: &Result<Key, KeyProblem>,
    row: &ServerRow,
) -> rusqlite::Result<Option<String>> {
    match key {
        Err(problem) => Ok(Some(problem.to_string())),
        Ok(key) => Ok(row.wrong_seal(sealed_pins(connection, key, &row.id)?.seal)),
    }
}

/// A seal that was fed with all pins of a server, as they stand in the file.
pub(super) struct SealedPins {
    pub(super) seal: Seal,
    pub(super) count: usize,
    pub(super) bytes: usize,
}

pub(super) fn sealed_pins(
    connection: &Connection,
    key: &Key,
    server: &str,
) -> rusqlite::Result<SealedPins> {
    let mut statement = connection.prepare(
        "SELECT seq, entry_type, key, withdrawn_at, authentication, octet_length(raw)
         FROM pins WHERE server = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([server])?;
    let mut sealed = SealedPins { seal: Seal::new(key, server), count: 0, bytes: 0 };
    while let Some(row) = rows.next()? {
        feed(&mut sealed.seal, row, [0, 1, 2, 3, 4])?;
        sealed.count += 1;
        let raw_bytes = usize::try_from(row.get::<_, i64>(5)?).unwrap_or(usize::MAX);
        sealed.bytes = sealed.bytes.saturating_add(raw_bytes);
    }
    Ok(sealed)
}

/// Feeds a pin's row to the seal, given where `seq`, `entry_type`, `key`, `withdrawn_at` and `authentication` are.
pub(super) fn feed(seal: &mut Seal, row: &Row<'_>, columns: [usize; 5]) -> rusqlite::Result<()> {
    let [seq, entry_type, key, withdrawn_at, authentication] = columns;
    seal.pin(
        row.get(seq)?,
        bytes(row.get_ref(entry_type)?),
        bytes(row.get_ref(key)?),
        row.get_ref(withdrawn_at)? != ValueRef::Null,
        bytes(row.get_ref(authentication)?),
    );
    Ok(())
}

/// A text's or blob's bytes, whether or not they are UTF-8; none for anything else.
fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

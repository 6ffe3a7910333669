//! Rows of servers, and whether their seals hold.

use crate::authenticate::{Seal, SealedFields};
use crate::database::{Cell, Row, Transaction};
use crate::error::StoreError;
use crate::key::{Key, KeyProblem};
use crate::launch_identity::LaunchHash;
use crate::record::{Revision, ServerRecord};
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use std::ops::ControlFlow;

/// A server's row as stored.
#[derive(Debug, Clone)]
pub(crate) struct ServerRow {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) launch: Option<String>,
    pub(crate) first_seen: i64,
    pub(crate) last_seen: i64,
    pub(crate) revision: i64,
    pub(crate) seal_count: i64,
    pub(crate) seal: Option<Vec<u8>>,
}

const COLUMNS: &str = "id, status, launch, first_seen, last_seen, revision, seal_count, seal";

impl ServerRow {
    /// Values that Holdpoint does not write are read as something that breaks the seal, not as an
    /// error: a person can then still review and approve the server.
    fn from_row(row: &dyn Row) -> ServerRow {
        let text = |cell: Cell<'_>| String::from_utf8_lossy(cell.raw_bytes()).into_owned();
        let number = |index| row.cell(index).integer().unwrap_or_default();
        let some = |index| Some(row.cell(index)).filter(|cell| *cell != Cell::Null);
        ServerRow {
            id: text(row.cell(0)),
            status: text(row.cell(1)),
            launch: some(2).map(text),
            first_seen: number(3),
            last_seen: number(4),
            revision: number(5),
            seal_count: number(6),
            seal: some(7).map(|cell| cell.raw_bytes().to_vec()),
        }
    }

    pub(crate) fn read(
        rows: &dyn Transaction,
        id: &ServerId,
    ) -> Result<Option<ServerRow>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM servers WHERE id = $1");
        rows.first(&query, &[id.as_str().into()], |row| Ok(ServerRow::from_row(row)))
    }

    pub(crate) fn write(&self, rows: &dyn Transaction) -> Result<(), StoreError> {
        rows.execute(
            "INSERT INTO servers (id, status, launch, first_seen, last_seen, revision, seal_count, seal)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (id) DO UPDATE SET status = $2, launch = $3, first_seen = $4, last_seen = $5, revision = $6,
                                            seal_count = $7, seal = $8",
            &[
                (&self.id).into(),
                (&self.status).into(),
                self.launch.as_ref().into(),
                self.first_seen.into(),
                self.last_seen.into(),
                self.revision.into(),
                self.seal_count.into(),
                self.seal.as_deref().into(),
            ],
        )?;
        Ok(())
    }

    pub(crate) fn sealed_fields(&self) -> SealedFields<'_> {
        SealedFields {
            status: &self.status,
            launch: self.launch.as_deref(),
            first_seen: self.first_seen,
            seal_count: self.seal_count,
        }
    }

    /// What is wrong with the seal, given a seal that was fed with the server's pins.
    pub(crate) fn wrong_seal(&self, fed: Seal) -> Option<String> {
        let holds = self.seal.as_ref().is_some_and(|seal| fed.matches(self.sealed_fields(), seal));
        (!holds).then(|| {
            format!(
                "the record of `{}` was changed by a program other than Holdpoint (pins added, removed or put back, \
                 its status or its launch): review and approve it again",
                self.id
            )
        })
    }

    pub(crate) fn into_record(self, id: ServerId, lost: Option<String>) -> ServerRecord {
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
            seal_count: self.seal_count,
            id,
            lost,
        }
    }
}

pub(crate) fn status_named(text: &str) -> Option<ServerStatus> {
    ServerStatus::ALL.into_iter().find(|status| status.as_str() == text)
}

/// All servers. A row whose id Holdpoint could not have written is left out.
pub(crate) fn all(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
) -> Result<Vec<ServerRecord>, StoreError> {
    let mut records = Vec::new();
    for row in self::rows(rows)? {
        if let Ok(id) = row.id.parse() {
            let lost = lost(rows, key, &row)?;
            records.push(row.into_record(id, lost));
        }
    }
    Ok(records)
}

pub(crate) fn one(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
) -> Result<Option<ServerRecord>, StoreError> {
    let Some(row) = ServerRow::read(rows, id)? else { return Ok(None) };
    let lost = lost(rows, key, &row)?;
    Ok(Some(row.into_record(id.clone(), lost)))
}

/// The other servers with this launch hash whose records authenticate. Only their seals are
/// computed.
pub(crate) fn launched_alike(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    id: &ServerId,
    hash: &LaunchHash,
) -> Result<Vec<ServerRecord>, StoreError> {
    let mut alike = Vec::new();
    for row in self::rows(rows)? {
        let Ok(other) = row.id.parse::<ServerId>() else { continue };
        let may_be = row.launch.as_ref().is_some_and(|launch| launch.contains(hash.as_str()));
        if other == *id || !may_be {
            continue;
        }
        let lost = lost(rows, key, &row)?;
        let record = row.into_record(other, lost);
        if record.identity().is_some_and(|identity| identity.hash == *hash) {
            alike.push(record);
        }
    }
    Ok(alike)
}

/// Records when a server was last seen. No decision depends on it.
pub(crate) fn seen(
    rows: &dyn Transaction,
    id: &ServerId,
    last_seen: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE servers SET last_seen = $2 WHERE id = $1";
    rows.execute(sql, &[id.as_str().into(), last_seen.0.into()])?;
    Ok(())
}

/// All rows as stored.
pub(crate) fn rows(rows: &dyn Transaction) -> Result<Vec<ServerRow>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM servers ORDER BY id");
    rows.all(&query, &[], |row| Ok(ServerRow::from_row(row)))
}

/// Whether there is any server.
pub(crate) fn any(rows: &dyn Transaction) -> Result<bool, StoreError> {
    rows.any("SELECT id FROM servers LIMIT 1", &[])
}

/// Whether anything was ever sealed in this database, so that a key must exist.
pub(crate) fn any_sealed(rows: &dyn Transaction) -> Result<bool, StoreError> {
    Ok(any(rows)?
        || rows.any("SELECT seq FROM pins LIMIT 1", &[])?
        || rows.any("SELECT name FROM switch_seal LIMIT 1", &[])?)
}

/// Whether a server without a row has left rows in other tables.
pub(crate) fn has_traces(rows: &dyn Transaction, id: &ServerId) -> Result<bool, StoreError> {
    let id = [id.as_str().into()];
    Ok(rows.any("SELECT seq FROM pins WHERE server = $1 LIMIT 1", &id)?
        || rows.any("SELECT seq FROM history WHERE server = $1 LIMIT 1", &id)?)
}

fn lost(
    rows: &dyn Transaction,
    key: &Result<Key, KeyProblem>,
    row: &ServerRow,
) -> Result<Option<String>, StoreError> {
    match key {
        Err(problem) => Ok(Some(problem.to_string())),
        Ok(key) => Ok(row.wrong_seal(sealed_pins(rows, key, &row.id)?.seal)),
    }
}

/// A seal fed with all pins of a server as stored.
pub(crate) struct SealedPins {
    pub(crate) seal: Seal,
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

pub(crate) fn sealed_pins(
    rows: &dyn Transaction,
    key: &Key,
    server: &str,
) -> Result<SealedPins, StoreError> {
    let query = "SELECT seq, entry_type, key, withdrawn_at, authentication, octet_length(raw)
                 FROM pins WHERE server = $1 ORDER BY seq";
    let mut sealed = SealedPins { seal: Seal::new(key, server), count: 0, bytes: 0 };
    rows.query(query, &[server.into()], &mut |row| {
        feed(&mut sealed.seal, row, [0, 1, 2, 3, 4]);
        sealed.count += 1;
        let raw_bytes = row.cell(5).integer().unwrap_or_default();
        sealed.bytes = sealed.bytes.saturating_add(usize::try_from(raw_bytes).unwrap_or_default());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(sealed)
}

/// Feeds a pin's row to the seal, given the indexes of `seq`, `entry_type`, `key`, `withdrawn_at`
/// and `authentication`.
pub(crate) fn feed(seal: &mut Seal, row: &dyn Row, columns: [usize; 5]) {
    let [seq, entry_type, key, withdrawn_at, authentication] = columns;
    seal.pin(
        row.cell(seq).integer().unwrap_or_default(),
        row.cell(entry_type).raw_bytes(),
        row.cell(key).raw_bytes(),
        row.cell(withdrawn_at) != Cell::Null,
        row.cell(authentication).raw_bytes(),
    );
}

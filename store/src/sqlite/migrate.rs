//! Creates and migrates the database: forward only, one version after the other.

use super::Fault;
use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};

/// Marks the file as Holdpoint's in its header ("Hold").
const APPLICATION_ID: i64 = 0x486f_6c64;

/// The changes from each version to the next. Only ever appended to: `PRAGMA user_version` counts
/// them.
///
/// In `pins`, the long columns come last, so that sealing does not read the texts of entries.
pub(super) const MIGRATIONS: &[&str] = &[
    PINS_AND_HISTORY,
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
];

/// The first version with sealed switches.
const SEALED_SWITCHES: i64 = 3;

/// Whether a file that had this version has switches that were never sealed.
pub(super) fn needs_switch_seal(found: i64, migrations: &[&str]) -> bool {
    (1..SEALED_SWITCHES).contains(&found) && newest(migrations) >= SEALED_SWITCHES
}

const PINS_AND_HISTORY: &str = "
CREATE TABLE servers (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    launch TEXT,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    seal_count INTEGER NOT NULL,
    seal BLOB
) STRICT;

CREATE TABLE pins (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    server TEXT NOT NULL REFERENCES servers (id),
    authentication BLOB NOT NULL,
    basis TEXT NOT NULL,
    at INTEGER NOT NULL,
    entry_hash TEXT NOT NULL,
    definition_hash TEXT,
    withdrawn_at INTEGER,
    by TEXT NOT NULL,
    withdrawn_by TEXT,
    entry_type TEXT NOT NULL,
    key TEXT NOT NULL,
    raw TEXT NOT NULL
) STRICT;
CREATE INDEX pins_by_server ON pins (server);
CREATE INDEX pins_by_entry ON pins (server, entry_type, key);

CREATE TABLE observations (
    server TEXT PRIMARY KEY REFERENCES servers (id),
    observed_at INTEGER NOT NULL,
    surface_hash TEXT NOT NULL,
    protocol_version TEXT,
    server_version TEXT,
    unreadable TEXT NOT NULL,
    notes TEXT NOT NULL,
    origin TEXT,
    capture TEXT NOT NULL
) STRICT;

CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    act INTEGER NOT NULL,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    server TEXT NOT NULL,
    action TEXT NOT NULL,
    entry_type TEXT,
    key TEXT,
    entry_hash_before TEXT,
    entry_hash_after TEXT,
    surface_hash_before TEXT,
    surface_hash_after TEXT,
    status_before TEXT,
    status_after TEXT,
    basis TEXT,
    detail TEXT,
    raw TEXT
) STRICT;
CREATE INDEX history_by_server ON history (server);
CREATE TRIGGER history_is_not_edited BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is only added to'); END;
CREATE TRIGGER history_is_not_removed BEFORE DELETE ON history
    BEGIN SELECT RAISE(ABORT, 'history is only added to'); END;
";

/// The trigger of the first migration, to restore it after it was dropped.
pub(super) const HISTORY_IS_NOT_EDITED: &str =
    "CREATE TRIGGER history_is_not_edited BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is only added to'); END";

/// How many characters of the name of a foreign trigger or view are shown.
const TOLD_CHARACTERS: usize = 64;

/// Refuses a file with a trigger or view that no migration creates: it could undo writes, or shadow
/// a table. SQLite stores such statements verbatim.
pub(super) fn check_schema(
    connection: &Connection,
    migrations: &[&str],
    fault: Fault<'_>,
) -> Result<(), StoreError> {
    let query = "SELECT type = 'view', CAST(name AS TEXT), CAST(sql AS TEXT) FROM sqlite_schema
                 WHERE type NOT IN ('table', 'index')";
    let mut statement = connection.prepare_cached(query).map_err(|e| fault.of(e))?;
    let mut rows = statement.query([]).map_err(|e| fault.of(e))?;
    while let Some(row) = rows.next().map_err(|e| fault.of(e))? {
        let text = |index| -> rusqlite::Result<String> {
            Ok(String::from_utf8_lossy(row.get_ref(index)?.as_bytes_or_null()?.unwrap_or_default())
                .into_owned())
        };
        let sql = text(2).map_err(|e| fault.of(e))?;
        if !migrations.iter().any(|migration| makes(migration, &sql)) {
            let is_view: bool = row.get(0).map_err(|e| fault.of(e))?;
            let name = text(1).map_err(|e| fault.of(e))?.chars().take(TOLD_CHARACTERS).collect();
            let kind = if is_view { "view" } else { "trigger" };
            return Err(StoreError::Rigged { path: fault.path.to_owned(), kind, name });
        }
    }
    Ok(())
}

/// Whether a migration contains this statement.
fn makes(migration: &str, sql: &str) -> bool {
    let mut after = migration.match_indices(sql).map(|(start, found)| start + found.len());
    !sql.is_empty()
        && after.any(|end| migration.get(end..).is_some_and(|rest| rest.starts_with(';')))
}

/// The version after the last migration.
fn newest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// The file's version, if this program knows it. An empty file has version 0.
pub(super) fn check_version(
    connection: &Connection,
    migrations: &[&str],
    fault: Fault<'_>,
) -> Result<i64, StoreError> {
    // Read one consistent state: another process may be creating the file right now.
    let transaction = connection.unchecked_transaction().map_err(|e| fault.of(e))?;
    version_within(&transaction, migrations, fault)
}

/// Like [`check_version`], inside a transaction.
fn version_within(
    connection: &Connection,
    migrations: &[&str],
    fault: Fault<'_>,
) -> Result<i64, StoreError> {
    let number = |pragma| -> Result<i64, StoreError> {
        connection.pragma_query_value(None, pragma, |row| row.get(0)).map_err(|e| fault.of(e))
    };
    let foreign = || StoreError::Foreign { path: fault.path.to_owned() };
    let (found, application) = (number("user_version")?, number("application_id")?);
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|e| fault.of(e))?;
    if application != APPLICATION_ID {
        let is_new = application == 0 && found == 0 && objects == 0;
        return if is_new { Ok(0) } else { Err(foreign()) };
    }
    let known = newest(migrations);
    if found > known {
        return Err(StoreError::Newer { path: fault.path.to_owned(), found, known });
    }
    if found < 1 { Err(foreign()) } else { Ok(found) }
}

/// Migrates the file to the newest version, in one transaction. Returns the version before.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
    fault: Fault<'_>,
) -> Result<i64, StoreError> {
    let found = check_version(connection, migrations, fault)?;
    if found == newest(migrations) {
        return Ok(found);
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| fault.of(e))?;
    // Check again under the lock: another process may have migrated meanwhile.
    let found = version_within(&transaction, migrations, fault)?;
    let apply = || -> rusqlite::Result<()> {
        for migration in migrations.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", newest(migrations))
    };
    apply().map_err(|e| fault.of(e))?;
    transaction.commit().map_err(|e| fault.of(e))?;
    Ok(found)
}

#[cfg(test)]
mod tests;

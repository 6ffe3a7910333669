//! Creates and migrates the schema: forward only, one version after the other, by one process at a
//! time.

use super::address::Address;
use super::session::{CHANNEL, Session};
use super::transaction::Rows;
use crate::database::Transaction;
use crate::error::StoreError;

/// The number of the advisory lock for migrations ("Hold").
const LOCK: i32 = 0x486f_6c64;

/// The changes from each version to the next. Only ever appended to: `holdpoint_format` records
/// which were applied.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
];

/// The first version with sealed switches.
pub(super) const SEALED_SWITCHES: i64 = 2;

/// The tables whose changes are announced to other processes.
const WATCHED: [&str; 15] = [
    "servers",
    "pins",
    "observations",
    "history",
    "switches",
    "revocations",
    "api_keys",
    "switch_seal",
    "quarantines",
    "drills",
    "drill_sightings",
    "call_approvals",
    "sign_ins",
    "statistics",
    "events",
];

/// Append-only tables.
const ONLY_ADDED_TO: [&str; 2] = ["history", "events"];

/// Recreated after every migration. The triggers increment the version for every change by any
/// program, and make tables append-only.
///
/// Through the column `transaction`, each transaction counts once, not once per statement.
fn triggers() -> String {
    let mut sql = format!(
        "CREATE OR REPLACE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
         BEGIN
             UPDATE shared SET version = version + 1, transaction = txid_current()
             WHERE transaction <> txid_current();
             IF FOUND THEN PERFORM pg_notify('{CHANNEL}', ''); END IF;
             RETURN NULL;
         END $$;
         CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION '% is only added to', TG_TABLE_NAME; END $$;"
    );
    for table in WATCHED {
        // `ENABLE ALWAYS`: also fires in sessions that disable ordinary triggers, such as a restore
        // or a replica.
        sql += &format!(
            "CREATE OR REPLACE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
                 FOR EACH STATEMENT EXECUTE FUNCTION note_change();
             ALTER TABLE {table} ENABLE ALWAYS TRIGGER note_change;"
        );
    }
    for table in ONLY_ADDED_TO {
        sql += &format!(
            "CREATE OR REPLACE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
                 FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();"
        );
    }
    sql
}

/// The schema's version, if this program knows it. A missing or empty schema has version 0.
fn version(session: &Session, address: &Address, known: i64) -> Result<i64, StoreError> {
    let rows: &dyn Transaction = &Rows { session };
    let schema = &[(&address.schema).into()];
    let tables = rows.all(
        "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        schema,
        |row| Ok(row.cell(0).lossy_text()),
    )?;
    if tables.is_empty() {
        return Ok(0);
    }
    let foreign = || StoreError::ForeignSchema { place: address.to_string() };
    if !tables.contains(&Some("holdpoint_format".to_owned())) {
        return Err(foreign());
    }
    let query = format!("SELECT max(version) FROM {}.holdpoint_format", address.schema);
    let found = rows.first(&query, &[], |row| Ok(row.cell(0).integer()))?;
    match found.flatten() {
        Some(found) if found > known => {
            Err(StoreError::NewerSchema { place: address.to_string(), found, known })
        }
        Some(found) if found > 0 => Ok(found),
        _ => Err(foreign()),
    }
}

/// Migrates the schema to the newest version, in one transaction. Returns the version before.
pub(super) fn migrate(
    session: &Session,
    address: &Address,
    migrations: &[&str],
) -> Result<i64, StoreError> {
    let newest = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let found = version(session, address, newest)?;
    if found == newest {
        return Ok(found);
    }
    session.batch("BEGIN")?;
    let migrated = migrate_within(session, address, migrations, newest);
    session.batch(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" }).and(migrated)
}

fn migrate_within(
    session: &Session,
    address: &Address,
    migrations: &[&str],
    newest: i64,
) -> Result<i64, StoreError> {
    let schema = &address.schema;
    session.batch(&format!("SELECT pg_advisory_xact_lock({LOCK}, hashtext('{schema}'))"))?;
    // Check again under the lock: another process may have migrated meanwhile.
    let found = version(session, address, newest)?;
    if found == newest {
        return Ok(found);
    }
    let rows: &dyn Transaction = &Rows { session };
    // Check first: `IF NOT EXISTS` needs the right to create schemas even if the schema exists.
    if !rows.any("SELECT oid FROM pg_namespace WHERE nspname = $1::text", &[schema.into()])? {
        session.batch(&format!("CREATE SCHEMA {schema}"))?;
    }
    if found == 0 {
        session.batch("CREATE TABLE holdpoint_format (version BIGINT PRIMARY KEY, made TIMESTAMPTZ DEFAULT now())")?;
    }
    for (number, migration) in (1_i64..).zip(migrations).filter(|(number, _)| *number > found) {
        session.batch(migration)?;
        rows.execute("INSERT INTO holdpoint_format (version) VALUES ($1)", &[number.into()])?;
    }
    session.batch(&triggers())?;
    Ok(found)
}

#[cfg(test)]
mod tests;

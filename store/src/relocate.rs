//! Moves the data of a store to another database, and compares both before committing.

use crate::database::{Backend, Cell, Row, Transaction, Value};
use crate::error::{Refusal, StoreError};
use crate::home::Home;
use crate::key::{KeyProblem, Keys, put_key, read_key};
use crate::location::Location;
use crate::postgres::PostgresStore;
use crate::sqlite::SqliteStore;
use crate::tables::servers;
use crate::write::Limits;
use gate::server::ServerId;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

/// A table with all its portable columns.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
}

/// In dependency order: a row is written after the rows that it refers to.
const TABLES: [Table; 16] = [
    Table {
        name: "servers",
        columns: &[
            "id",
            "status",
            "launch",
            "first_seen",
            "last_seen",
            "revision",
            "seal_count",
            "seal",
        ],
    },
    Table {
        name: "pins",
        columns: &[
            "seq",
            "server",
            "authentication",
            "basis",
            "at",
            "entry_hash",
            "definition_hash",
            "withdrawn_at",
            "by",
            "withdrawn_by",
            "entry_type",
            "key",
            "raw",
        ],
    },
    Table {
        name: "observations",
        columns: &[
            "server",
            "observed_at",
            "surface_hash",
            "protocol_version",
            "server_version",
            "unreadable",
            "notes",
            "origin",
            "capture",
        ],
    },
    Table {
        name: "history",
        columns: &[
            "seq",
            "act",
            "at",
            "by",
            "server",
            "action",
            "entry_type",
            "key",
            "entry_hash_before",
            "entry_hash_after",
            "surface_hash_before",
            "surface_hash_after",
            "status_before",
            "status_after",
            "basis",
            "detail",
            "raw",
        ],
    },
    Table { name: "switches", columns: &["name", "level", "scope", "reason", "at", "by"] },
    Table { name: "revocations", columns: &["kind", "value", "at", "by"] },
    Table {
        name: "api_keys",
        columns: &[
            "id",
            "hash",
            "sub",
            "actor_type",
            "org",
            "group_names",
            "created_at",
            "created_by",
            "expires_at",
            "revoked_at",
            "revoked_by",
            "last_used_day",
            "admin",
            "clearance",
        ],
    },
    Table { name: "quarantines", columns: &["id", "principal", "session", "rule", "at"] },
    Table { name: "drills", columns: &["number", "at"] },
    Table { name: "drill_sightings", columns: &["number", "node", "place"] },
    Table { name: "switch_seal", columns: &["name", "seal_count", "seal"] },
    Table {
        name: "call_approvals",
        columns: &[
            "id",
            "principal",
            "server",
            "tool",
            "contract_hash",
            "args_hash",
            "state",
            "parked_at",
            "expires_at",
            "decided_at",
            "decided_by",
            "used_at",
            "authentication",
            "step_up",
        ],
    },
    Table {
        name: "sign_ins",
        columns: &["kind", "id", "owner", "at", "expires_at", "claim", "claimed_until", "sealed"],
    },
    Table { name: "statistics", columns: &["day", "server", "name", "value"] },
    Table { name: "events", columns: &["seq", "at", "by", "action", "subject", "detail"] },
    Table { name: "counters", columns: &["name", "value"] },
];

/// The most rows, and bytes of rows, that are held in memory at a time.
const ROWS_AHEAD: usize = 200;
const BYTES_AHEAD: usize = 4 * 1024 * 1024;

/// The result of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocated {
    /// The number of rows per table.
    pub rows: Vec<(&'static str, u64)>,
    /// Whether the target already had all the data.
    pub was_there: bool,
}

/// Copies a store. Both databases are locked meanwhile, so other processes write before or after
/// it.
///
/// A target that holds any other data is refused, and a failure leaves it unchanged. Pins stay
/// authentic: a target in another home gets the same key.
pub fn relocate(home: &Home, from: &Location, to: &Location) -> Result<Relocated, StoreError> {
    let (source_home, target_home) = (home_of(home, from)?, home_of(home, to)?);
    if from.is_same_database(&source_home, to, &target_home) {
        return Err(Refusal::SamePlace { place: from.to_string() }.into());
    }
    let mut source = Either::open(&source_home, from)?;
    share_key(&source_home, &target_home, to)?;
    let mut target = Either::open(&target_home, to)?;
    copy(&mut source, &mut target, &to.to_string())
}

/// The home whose key belongs to a location.
fn home_of(home: &Home, location: &Location) -> Result<Home, StoreError> {
    match location {
        Location::SqliteIn(directory) => Ok(Home::open(directory)?),
        Location::Sqlite | Location::Postgres(_) => Ok(home.clone()),
    }
}

/// Gives the target's home the key that the source's pins were made with.
fn share_key(source: &Home, target: &Home, to: &Location) -> Result<(), StoreError> {
    let (from_path, to_path) = (source.pins_key_path(), target.pins_key_path());
    let key = match read_key(&from_path) {
        Ok(key) => key,
        // Either nothing was ever sealed, or the copy is as unreadable as the original.
        Err(KeyProblem::Missing(_)) => return Ok(()),
        Err(problem) => return Err(StoreError::NoKey { problem: problem.to_string() }),
    };
    match read_key(&to_path) {
        Ok(own) if own.as_bytes() == key.as_bytes() => Ok(()),
        Ok(_) => Err(Refusal::OtherKey { path: to_path, place: to.to_string() }.into()),
        Err(KeyProblem::Missing(_)) => Ok(put_key(&to_path, &key)?),
        Err(problem) => Err(StoreError::NoKey { problem: problem.to_string() }),
    }
}

fn copy(source: &mut Either, target: &mut Either, place: &str) -> Result<Relocated, StoreError> {
    let target = RefCell::new(target);
    source.write(|from, source_keys| {
        target.borrow_mut().write(|to, target_keys| {
            let was_there = !is_empty(to)?;
            if !was_there {
                TABLES.iter().try_for_each(|table| table.copy(from, to))?;
            }
            let mut rows = Vec::new();
            for table in &TABLES {
                let (originals, copies) = (table.digests(from)?, table.digests(to)?);
                if originals != copies {
                    return Err(if was_there {
                        Refusal::NotEmpty { place: place.to_owned() }.into()
                    } else {
                        Refusal::Differs { table: table.name }.into()
                    });
                }
                rows.push((table.name, copies.len() as u64));
            }
            if standing(from, source_keys)? != standing(to, target_keys)? {
                return Err(Refusal::Differs { table: "servers" }.into());
            }
            Ok(Relocated { rows, was_there })
        })
    })
}

/// Which servers authenticate: a seal holds in the copy exactly if it holds in the original.
fn standing(rows: &dyn Transaction, keys: &Keys) -> Result<Vec<(ServerId, bool)>, StoreError> {
    let records = servers::all(rows, &keys.read()?)?;
    Ok(records.into_iter().map(|record| (record.id, record.lost.is_none())).collect())
}

fn is_empty(rows: &dyn Transaction) -> Result<bool, StoreError> {
    for table in &TABLES {
        if rows.any(&format!("SELECT 1 FROM {} LIMIT 1", table.name), &[])? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Table {
    fn query(&self) -> String {
        format!("SELECT {} FROM {}", self.columns.join(", "), self.name)
    }

    fn copy(&self, from: &dyn Transaction, to: &dyn Transaction) -> Result<(), StoreError> {
        let places: Vec<_> = (1..=self.columns.len()).map(|place| format!("${place}")).collect();
        let (columns, places) = (self.columns.join(", "), places.join(", "));
        let insert = format!("INSERT INTO {} ({columns}) VALUES ({places})", self.name);
        let mut batch = Batch::default();
        from.query(&self.query(), &[], &mut |row| {
            batch.add(self, row)?;
            if batch.is_full() {
                batch.write(to, &insert)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        batch.write(to, &insert)
    }

    /// One hash per row, sorted by hash: the two databases sort texts with control characters
    /// differently.
    fn digests(&self, rows: &dyn Transaction) -> Result<Vec<[u8; 32]>, StoreError> {
        let mut digests = rows.all(&self.query(), &[], |row| Ok(self.digest(row)))?;
        digests.sort_unstable();
        Ok(digests)
    }

    fn digest(&self, row: &dyn Row) -> [u8; 32] {
        let mut state = Sha256::new();
        for index in 0..self.columns.len() {
            let (kind, bytes): (u8, &[u8]) = match row.cell(index) {
                Cell::Null => (0, &[]),
                Cell::Integer(number) => {
                    state.update([1]);
                    state.update(number.to_le_bytes());
                    continue;
                }
                Cell::Text(bytes) => (2, bytes),
                Cell::Bytes(bytes) => (3, bytes),
                Cell::Other => (4, &[]),
            };
            state.update([kind]);
            state.update((bytes.len() as u64).to_le_bytes());
            state.update(bytes);
        }
        state.finalize().into()
    }
}

/// A value between the two databases.
enum Owned {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Owned {
    fn of(cell: Cell<'_>) -> Option<Owned> {
        Some(match cell {
            Cell::Null => Owned::Null,
            Cell::Integer(number) => Owned::Integer(number),
            Cell::Text(bytes) => Owned::Text(std::str::from_utf8(bytes).ok()?.to_owned()),
            Cell::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
            Cell::Other => return None,
        })
    }

    fn value(&self) -> Value<'_> {
        match self {
            Owned::Null => Value::Null,
            Owned::Integer(number) => Value::Integer(*number),
            Owned::Text(text) => Value::Text(text),
            Owned::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// Rows that were read but not yet written.
#[derive(Default)]
struct Batch {
    rows: Vec<Vec<Owned>>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, table: &Table, row: &dyn Row) -> Result<(), StoreError> {
        let garbled = || Refusal::NotCopyable { table: table.name };
        let mut owned = Vec::with_capacity(table.columns.len());
        for index in 0..table.columns.len() {
            let cell = row.cell(index);
            self.bytes = self.bytes.saturating_add(cell.raw_bytes().len());
            owned.push(Owned::of(cell).ok_or_else(garbled)?);
        }
        self.rows.push(owned);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_AHEAD || self.bytes >= BYTES_AHEAD
    }

    fn write(&mut self, to: &dyn Transaction, insert: &str) -> Result<(), StoreError> {
        let sets: Vec<Vec<Value<'_>>> =
            self.rows.iter().map(|row| row.iter().map(Owned::value).collect()).collect();
        to.execute_each(insert, &sets)?;
        *self = Batch::default();
        Ok(())
    }
}

/// The database that a location names.
#[derive(Debug)]
enum Either {
    Sqlite(SqliteStore),
    Postgres(Box<PostgresStore>),
}

impl Either {
    fn open(home: &Home, location: &Location) -> Result<Either, StoreError> {
        Ok(match location {
            Location::Sqlite | Location::SqliteIn(_) => Either::Sqlite(SqliteStore::open(home)?),
            Location::Postgres(address) => {
                Either::Postgres(Box::new(PostgresStore::open(home, address)?))
            }
        })
    }
}

impl Backend for Either {
    fn read<T>(
        &self,
        reading: impl Fn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Either::Sqlite(store) => store.read(reading),
            Either::Postgres(store) => store.read(reading),
        }
    }

    fn write<T>(
        &mut self,
        writing: impl Fn(&dyn Transaction, &Keys) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Either::Sqlite(store) => store.write(writing),
            Either::Postgres(store) => store.write(writing),
        }
    }

    fn keys(&self) -> Keys {
        match self {
            Either::Sqlite(store) => store.keys(),
            Either::Postgres(store) => store.keys(),
        }
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn grants_seen(&self) -> &std::cell::Cell<i64> {
        match self {
            Either::Sqlite(store) => store.grants_seen(),
            Either::Postgres(store) => store.grants_seen(),
        }
    }

    fn statements_around_history_edit(&self) -> [String; 2] {
        match self {
            Either::Sqlite(store) => store.statements_around_history_edit(),
            Either::Postgres(store) => store.statements_around_history_edit(),
        }
    }

    fn drop_old_bytes(&mut self) -> Result<bool, StoreError> {
        match self {
            Either::Sqlite(store) => store.drop_old_bytes(),
            Either::Postgres(store) => store.drop_old_bytes(),
        }
    }

    fn current_version(&self) -> Result<u64, StoreError> {
        match self {
            Either::Sqlite(store) => store.current_version(),
            Either::Postgres(store) => store.current_version(),
        }
    }

    fn wait_beyond_version(&self, since: u64, patience: Duration) -> Result<u64, StoreError> {
        match self {
            Either::Sqlite(store) => store.wait_beyond_version(since, patience),
            Either::Postgres(store) => store.wait_beyond_version(since, patience),
        }
    }
}

#[cfg(test)]
mod tests;

//! The store in one SQLite file, shared by several processes.
//!
//! Opening looks before it writes: a file of a newer version, of another program or a damaged one is left as it is.

use crate::act::Act;
use crate::error::StoreError;
use crate::home::{Home, failed, private_file};
use crate::key::{Key, KeyProblem, read_key};
use crate::record::{HistoryEvent, Observation, ServerRecord, Snapshot};
use gate::pins::PinBook;
use gate::server::ServerId;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod history;
mod migrate;
mod observation;
mod pins;
mod servers;
mod write;

pub use history::MAX_HISTORY_EVENTS;
pub use write::{MAX_PIN_BYTES_PER_SERVER, MAX_PINS_PER_SERVER};

/// How long one process waits for another's write.
pub const BUSY_TIMEOUT_SECONDS: u64 = 10;

/// The largest value that is read from the file, whoever wrote it. The largest that is written is a capture.
const MAX_VALUE_BYTES: i32 = 96 * 1024 * 1024;

/// SQLite's smallest page: no database that has anything in it is smaller.
const SMALLEST_DATABASE_BYTES: u64 = 512;

/// How long to wait between two tries where SQLite itself does not wait.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// A home's `state.db`.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    home: Home,
    limits: write::Limits,
    seen: Cell<Seen>,
}

/// What [`crate::Store::version`] compares with.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    data_version: i64,
    version: u64,
}

impl SqliteStore {
    /// Opens the home's database, making or migrating it where need be.
    pub fn open(home: &Home) -> Result<SqliteStore, StoreError> {
        Self::open_with(home, migrate::MIGRATIONS)
    }

    fn open_with(home: &Home, migrations: &[&str]) -> Result<SqliteStore, StoreError> {
        let path = home.state_path();
        private_file(&path)?;
        let fault = Fault { path: &path };
        look(&path, migrations, fault)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).map_err(|e| fault.of(e))?;
        configure(&connection, fault)?;
        migrate::migrate(&mut connection, migrations, fault)?;
        Ok(SqliteStore {
            connection,
            home: home.clone(),
            limits: write::Limits::default(),
            seen: Cell::new(Seen::default()),
        })
    }

    fn fault(&self) -> FaultAt {
        FaultAt(self.home.state_path())
    }

    /// Read each time it is needed: a key that vanished while the process runs is noticed.
    fn key(&self) -> Result<Key, KeyProblem> {
        read_key(&self.home.pins_key_path())
    }

    /// Runs some reading on one state of the database.
    fn read<T>(
        &self,
        reading: impl FnOnce(&Connection) -> Result<T, ReadFault>,
    ) -> Result<T, StoreError> {
        let fault = self.fault();
        let transaction = self.connection.unchecked_transaction().map_err(|e| fault.of(e))?;
        reading(&transaction).map_err(|error| match error {
            ReadFault::Sqlite(error) => fault.of(error),
            ReadFault::Store(error) => *error,
        })
    }
}

impl crate::Store for SqliteStore {
    fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        self.read(|connection| servers::all(connection, &self.key()))
    }

    fn server(&self, id: &ServerId) -> Result<Option<ServerRecord>, StoreError> {
        self.read(|connection| servers::one(connection, &self.key(), id))
    }

    fn pins(&self, id: &ServerId) -> Result<PinBook, StoreError> {
        self.read(|connection| pins::book(connection, &self.key(), id))
    }

    fn observation(&self, id: &ServerId) -> Result<Option<Observation>, StoreError> {
        self.read(|connection| observation::read(connection, id))
    }

    fn snapshot(&self, id: &ServerId) -> Result<Snapshot, StoreError> {
        self.read(|connection| {
            let key = self.key();
            Ok(Snapshot {
                server: servers::one(connection, &key, id)?,
                pins: pins::book(connection, &key, id)?,
                observation: observation::read(connection, id)?,
            })
        })
    }

    fn record(&mut self, act: Act<'_>) -> Result<(), StoreError> {
        act.check_limits()?;
        let fault = self.fault();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| fault.of(e))?;
        let written = write::record(&transaction, &self.home, self.limits, &act);
        written.map_err(|error| match error {
            ReadFault::Sqlite(error) => fault.of(error),
            ReadFault::Store(error) => *error,
        })?;
        transaction.commit().map_err(|e| fault.of(e))?;
        let seen = self.seen.get_mut();
        seen.version = seen.version.wrapping_add(1);
        Ok(())
    }

    fn history(&self, id: &ServerId) -> Result<Vec<HistoryEvent>, StoreError> {
        self.read(|connection| history::read(connection, id, MAX_HISTORY_EVENTS))
    }

    /// SQLite's `data_version` moves with commits of other connections only; own ones are counted in `record`.
    fn version(&self) -> Result<u64, StoreError> {
        let data_version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|e| self.fault().of(e))?;
        let mut seen = self.seen.get();
        if seen.data_version != data_version {
            seen = Seen { data_version, version: seen.version.wrapping_add(1) };
            self.seen.set(seen);
        }
        Ok(seen.version)
    }
}

/// What ends a reading or a writing half-way.
#[derive(Debug)]
enum ReadFault {
    Sqlite(rusqlite::Error),
    Store(Box<StoreError>),
}

impl From<rusqlite::Error> for ReadFault {
    fn from(error: rusqlite::Error) -> Self {
        ReadFault::Sqlite(error)
    }
}

impl From<StoreError> for ReadFault {
    fn from(error: StoreError) -> Self {
        ReadFault::Store(Box::new(error))
    }
}

/// Turns SQLite's errors into sentences about a file.
#[derive(Debug, Clone, Copy)]
struct Fault<'a> {
    path: &'a Path,
}

struct FaultAt(PathBuf);

impl FaultAt {
    fn of(&self, error: rusqlite::Error) -> StoreError {
        Fault { path: &self.0 }.of(error)
    }
}

impl Fault<'_> {
    fn of(self, source: rusqlite::Error) -> StoreError {
        let path = self.path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged { path, source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Busy { path, seconds: BUSY_TIMEOUT_SECONDS }
            }
            _ => StoreError::Database { path, source },
        }
    }
}

/// Looks at a file that is already there, without the right to write to it.
fn look(path: &Path, migrations: &[&str], fault: Fault<'_>) -> Result<(), StoreError> {
    let size = std::fs::metadata(path).map_err(failed("look at", path))?.len();
    // SQLite takes a file of one byte for a new one.
    if (1..SMALLEST_DATABASE_BYTES).contains(&size) {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB);
        return Err(fault.of(rusqlite::Error::SqliteFailure(code, None)));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| fault.of(e))?;
    connection.busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS)).map_err(|e| fault.of(e))?;
    migrate::check_version(&connection, migrations, fault).map(drop)
}

fn configure(connection: &Connection, fault: Fault<'_>) -> Result<(), StoreError> {
    let set = || -> rusqlite::Result<()> {
        connection.busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS))?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // A quarantine or a rollback that the user saw succeed must survive the machine too; writes are rare and none
        // is on the path of a call.
        connection.pragma_update(None, "synchronous", "FULL")
    };
    share(connection, fault)?;
    set().map_err(|e| fault.of(e))
}

/// Puts the file into WAL mode. For that step SQLite answers busy at once instead of waiting.
fn share(connection: &Connection, fault: Fault<'_>) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS)).map_err(|e| fault.of(e))?;
    let deadline = Instant::now() + Duration::from_secs(BUSY_TIMEOUT_SECONDS);
    loop {
        let answer: rusqlite::Result<String> =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        match answer {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => return Err(StoreError::NotShareable { path: fault.path.to_owned() }),
            Err(error) => match fault.of(error) {
                StoreError::Busy { .. } if Instant::now() < deadline => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                other => return Err(other),
            },
        }
    }
}

#[cfg(test)]
mod tests;

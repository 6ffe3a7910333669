//! The store in one SQLite file, shared by several processes.
//!
//! Opening inspects the file before writing: a file of a newer version or another program, or a
//! damaged one, is left unchanged.

use crate::database::{Backend, Transaction};
use crate::error::StoreError;
use crate::home::{Home, failed, private_file};
use crate::key::Keys;
use crate::tables::switch_seal;
use crate::write::Limits;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod migrate;
mod transaction;

use transaction::Rows;

/// How long one process waits for another's write.
pub const BUSY_TIMEOUT_SECONDS: u64 = 10;

/// The largest value that is read from the file, in case another program wrote it. The largest
/// value that Holdpoint writes is a capture.
const MAX_VALUE_BYTES: i32 = 96 * 1024 * 1024;

/// SQLite's smallest page size: every non-empty database is at least this large.
const SMALLEST_DATABASE_BYTES: u64 = 512;

/// The pause between two attempts if SQLite itself does not wait.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The polling interval for changes: nothing notifies a process when another one writes to the
/// file.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A home's `state.db`.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    home: Home,
    pub(crate) limits: Limits,
    seen: Cell<Seen>,
    grants_seen: Cell<i64>,
    /// Identifies the file that was opened.
    file: Option<FileId>,
}

/// Distinguishes files that had the same name.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// On other systems, a file in use cannot be removed or replaced.
#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<FileId> {
    None
}

/// The state that [`crate::Store::version`] compares with.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    data_version: i64,
    version: u64,
}

impl SqliteStore {
    /// Opens the home's database; creates or migrates it if needed.
    pub fn open(home: &Home) -> Result<SqliteStore, StoreError> {
        let mut store = Self::open_with(home, migrate::MIGRATIONS)?;
        crate::redaction::redact(&mut store)?;
        Ok(store)
    }

    fn open_with(home: &Home, migrations: &[&str]) -> Result<SqliteStore, StoreError> {
        let path = home.state_path();
        private_file(&path)?;
        let fault = Fault { path: &path };
        // Keep this connection open until the other one is: otherwise SQLite would delete and
        // rebuild the index of the write-ahead log in between.
        let looking = inspect(&path, migrations, fault)?;
        // Read before the file is opened, so that a file put in its place in between is refused.
        let file = file_id(&path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).map_err(|e| fault.of(e))?;
        configure(&connection, fault)?;
        drop(looking);
        let found = migrate::migrate(&mut connection, migrations, fault)?;
        let mut store = SqliteStore {
            connection,
            home: home.clone(),
            limits: Limits::default(),
            seen: Cell::new(Seen::default()),
            grants_seen: Cell::default(),
            file,
        };
        if migrate::needs_switch_seal(found, migrations) {
            store.write(switch_seal::seal_older)?;
        }
        Ok(store)
    }

    fn fault(&self) -> FaultAt {
        FaultAt(self.home.state_path())
    }
}

impl Backend for SqliteStore {
    fn read<T>(
        &self,
        reading: impl Fn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let fault = self.fault();
        let transaction = self.connection.unchecked_transaction().map_err(|e| fault.of(e))?;
        reading(&Rows { connection: &transaction, fault: &fault })
    }

    fn write<T>(
        &mut self,
        writing: impl Fn(&dyn Transaction, &Keys) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (fault, keys) = (self.fault(), self.keys());
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| fault.of(e))?;
        // A write to a replaced file would be lost, although the ledger has recorded it.
        if file_id(&fault.0) != self.file {
            return Err(StoreError::Replaced { path: fault.0 });
        }
        // Check under the lock, so that nothing can be added in between.
        migrate::check_schema(&transaction, migrate::MIGRATIONS, Fault { path: &fault.0 })?;
        let written = writing(&Rows { connection: &transaction, fault: &fault }, &keys)?;
        transaction.commit().map_err(|e| fault.of(e))?;
        let seen = self.seen.get_mut();
        seen.version = seen.version.wrapping_add(1);
        Ok(written)
    }

    fn keys(&self) -> Keys {
        Keys::at(self.home.pins_key_path())
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn grants_seen(&self) -> &Cell<i64> {
        &self.grants_seen
    }

    fn statements_around_history_edit(&self) -> [String; 2] {
        ["DROP TRIGGER history_is_not_edited".to_owned(), migrate::HISTORY_IS_NOT_EDITED.to_owned()]
    }

    fn drop_old_bytes(&mut self) -> Result<bool, StoreError> {
        let fault = self.fault();
        let emptied = || -> rusqlite::Result<bool> {
            self.connection.execute_batch("VACUUM")?;
            let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
            let is_busy: i64 = self.connection.query_row(truncate, [], |row| row.get(0))?;
            Ok(is_busy == 0)
        };
        match emptied().map_err(|error| fault.of(error)) {
            Err(StoreError::Busy { .. }) => Ok(false),
            other => other,
        }
    }

    /// SQLite's `data_version` only changes with commits of other connections; this handle's own
    /// are counted in `write`.
    fn current_version(&self) -> Result<u64, StoreError> {
        // Prepared once: a gate reads the version before each call.
        let asked = self.connection.prepare_cached("PRAGMA data_version");
        let data_version = asked
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|e| self.fault().of(e))?;
        let mut seen = self.seen.get();
        if seen.data_version != data_version {
            seen = Seen { data_version, version: seen.version.wrapping_add(1) };
            self.seen.set(seen);
        }
        Ok(seen.version)
    }

    fn is_in_place(&self) -> bool {
        file_id(&self.home.state_path()) == self.file
    }

    fn wait_beyond_version(&self, since: u64, patience: Duration) -> Result<u64, StoreError> {
        let deadline = Instant::now() + patience;
        loop {
            let version = self.current_version()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if version != since || left.is_zero() {
                return Ok(version);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

/// Turns SQLite's errors into messages that name the file.
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
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
                place: path.display().to_string(),
                seconds: BUSY_TIMEOUT_SECONDS,
            },
            Some(ErrorCode::DiskFull) => StoreError::DiskFull { place: path.display().to_string() },
            // The shared memory of the write-ahead log is a file. SQLite has a separate error for
            // failing to grow it.
            _ if has_extended_code(&source, rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => {
                StoreError::DiskFull { place: path.display().to_string() }
            }
            _ => StoreError::Database { path, source },
        }
    }
}

fn has_extended_code(error: &rusqlite::Error, code: std::ffi::c_int) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == code)
}

/// Inspects an existing file without write access.
fn inspect(path: &Path, migrations: &[&str], fault: Fault<'_>) -> Result<Connection, StoreError> {
    let size = std::fs::metadata(path).map_err(failed("look at", path))?.len();
    // SQLite would take a file of one byte for a new database.
    if (1..SMALLEST_DATABASE_BYTES).contains(&size) {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB);
        return Err(fault.of(rusqlite::Error::SqliteFailure(code, None)));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| fault.of(e))?;
    connection.busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS)).map_err(|e| fault.of(e))?;
    migrate::check_version(&connection, migrations, fault)?;
    migrate::check_schema(&connection, migrations, fault)?;
    Ok(connection)
}

/// The memory limit of a connection's page cache.
const CACHE_KIBIBYTES: i64 = 64;

/// Checkpoint the log at this many pages: the first process that opens the database reads the whole
/// log.
const LOG_PAGES: i64 = 64;

fn configure(connection: &Connection, fault: Fault<'_>) -> Result<(), StoreError> {
    let set = || -> rusqlite::Result<()> {
        connection.busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS))?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // Data is rarely read twice: even a gate that runs all day needs no larger cache.
        connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES)?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        // A quarantine or rollback that the user saw succeed must survive a power failure. Writes
        // are rare, and none is on the path of a call.
        connection.pragma_update(None, "synchronous", "FULL")
    };
    share(connection, fault)?;
    set().map_err(|e| fault.of(e))
}

/// Switches the file to WAL mode. For this step, SQLite returns `SQLITE_BUSY` at once instead of
/// waiting.
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

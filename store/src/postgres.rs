//! The store in a PostgreSQL schema, shared by several nodes.
//!
//! A handle has one connection, and reconnects if it is lost. Writers are serialized: each first
//! locks the only row of `shared`, and increments its version.

use crate::authenticate::key_check;
use crate::database::{Backend, Transaction};
use crate::error::StoreError;
use crate::home::Home;
use crate::key::{KeyProblem, Keys, Required, create_key, read_key};
use crate::tables::switch_seal;
use crate::write::Limits;
use std::cell::{Cell, Ref, RefCell};
use std::io;
use std::time::{Duration, Instant};

mod address;
mod connection;
mod escape;
mod migrate;
mod nodes;
mod rates;
mod session;
mod tls;
mod transaction;
mod wait;

pub(crate) use address::MAX_ADDRESS_BYTES;
pub use address::{Address, AddressError};
pub use nodes::{InstanceKey, KnownNode, MAX_NODE_ADDRESS_BYTES, MAX_NODES, NodeId, NodeRegistry};
pub use rates::{CountedCalls, MAX_REPORTED_BUCKETS, RateCounts, ReportedCalls};
use session::{CHANNEL, Session};
use transaction::Rows;

/// The default for [`PostgresStore::resolve_patience`].
const RESOLVE_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How many changes are remembered together with their writer.
const REMEMBERED_COMMITS: i64 = 100_000;
/// How many changes lie between two removals of older ones.
const TIDY_EVERY: i64 = 1_000;

/// A database shared by several nodes.
#[derive(Debug)]
pub struct PostgresStore {
    address: Address,
    home: Home,
    session: RefCell<Option<Session>>,
    /// The check value of the nodes' key. Empty only while the store is being opened.
    check: Vec<u8>,
    /// Distinguishes this handle's changes from those of others.
    writer: [u8; 16],
    pub(crate) limits: Limits,
    /// How long to try to find out whether a commit with a lost response took effect.
    resolve_patience: Duration,
    seen: Cell<Seen>,
    grants_seen: Cell<i64>,
}

/// The state that [`crate::Store::version`] compares with.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Set for a new connection: the database behind it may be a different copy.
    is_stale: bool,
    shared: i64,
    version: u64,
}

impl PostgresStore {
    /// Connects, creates or migrates the schema if needed, and checks that this home has the nodes'
    /// key. The first node creates the key.
    pub fn open(home: &Home, address: &Address) -> Result<PostgresStore, StoreError> {
        let mut writer = [0; 16];
        getrandom::fill(&mut writer).map_err(|error| {
            let place = home.path();
            crate::home::failed("find randomness for", place)(io::Error::other(error))
        })?;
        let session = Session::open(address)?;
        let found = migrate::migrate(&session, address, migrate::MIGRATIONS)?;
        let mut store = PostgresStore {
            address: address.clone(),
            home: home.clone(),
            session: RefCell::new(Some(session)),
            check: Vec::new(),
            writer,
            limits: Limits::default(),
            resolve_patience: RESOLVE_PATIENCE,
            seen: Cell::default(),
            grants_seen: Cell::default(),
        };
        store.check = store.shared_check()?;
        store.keys().read()?.ok();
        if (1..migrate::SEALED_SWITCHES).contains(&found) {
            store.write(switch_seal::seal_older)?;
        }
        crate::redaction::redact(&mut store)?;
        Ok(store)
    }

    /// The check value of the nodes' key. Creates the key if no node has one yet.
    fn shared_check(&mut self) -> Result<Vec<u8>, StoreError> {
        let found = |rows: &dyn Transaction| {
            let check = rows.first("SELECT key_check FROM shared", &[], |row| {
                Ok(row.cell(0).blob().map(<[u8]>::to_vec))
            });
            Ok::<_, StoreError>(check?.flatten())
        };
        if let Some(check) = self.read(found)? {
            return Ok(check);
        }
        let path = self.home.pins_key_path();
        // INVARIANT: runs under the writers' lock, so that of two nodes that start at once only one
        // creates a key.
        self.write(|rows, _| {
            if let Some(check) = found(rows)? {
                return Ok(check);
            }
            let key = match read_key(&path) {
                Ok(key) => key,
                Err(KeyProblem::Missing(_)) => create_key(&path)?,
                Err(problem) => return Err(StoreError::NoKey { problem: problem.to_string() }),
            };
            let check = key_check(&key).to_vec();
            rows.execute("UPDATE shared SET key_check = $1", &[check.as_slice().into()])?;
            Ok(check)
        })
    }

    /// The connection. Reconnects if it was lost.
    fn session(&self) -> Result<Ref<'_, Session>, StoreError> {
        let is_usable = self.session.borrow().as_ref().is_some_and(|session| !session.is_lost());
        if !is_usable {
            // Drop the old session first: it may hold a lock that the new one would wait for.
            self.session.replace(None);
            let session = Session::open(&self.address)?;
            self.session.replace(Some(session));
            self.seen.set(Seen { is_stale: true, ..self.seen.get() });
        }
        let gone = || StoreError::Unreachable {
            place: self.address.to_string(),
            reason: "the connection was lost".to_owned(),
        };
        Ref::filter_map(self.session.borrow(), Option::as_ref).map_err(|_| gone())
    }

    /// Runs `doing`, and runs it again if the connection turns out to have been lost since its last
    /// use. `doing` must be idempotent.
    fn with_session<T>(
        &self,
        mut doing: impl FnMut(&Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let was_idle = self.session.borrow().is_some();
        // In a statement of its own, so that the borrow ends before the connection may be replaced.
        let done = doing(&*self.session()?);
        match done {
            Err(StoreError::Unreachable { .. }) if was_idle => doing(&*self.session()?),
            done => done,
        }
    }

    /// Whether the change with this version was committed by this handle. Waits for the lock: the
    /// transaction may still be in progress on the server.
    fn was_committed(&self, session: &Session, version: i64) -> Result<bool, StoreError> {
        session.batch("BEGIN; SELECT version FROM shared FOR UPDATE")?;
        let rows: &dyn Transaction = &Rows { session };
        let query = "SELECT version FROM commits WHERE version = $1 AND writer = $2";
        let found = rows.any(query, &[version.into(), self.writer.as_slice().into()])?;
        session.batch("ROLLBACK")?;
        Ok(found)
    }

    /// Finds out whether a commit with a lost response took effect.
    fn resolve(&self, version: i64) -> Result<bool, StoreError> {
        let deadline = Instant::now() + self.resolve_patience;
        loop {
            match self.session().and_then(|session| self.was_committed(&session, version)) {
                Err(StoreError::Unreachable { .. } | StoreError::Busy { .. })
                    if Instant::now() < deadline =>
                {
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(_) => return Err(StoreError::Unresolved { place: self.address.to_string() }),
                Ok(was_committed) => return Ok(was_committed),
            }
        }
    }
}

/// The outcome of a write.
enum Written<T> {
    Kept(T),
    /// The response to the commit of this version was lost.
    Unknown(T, i64),
}

/// Takes the writers' lock. Returns the version that this change will have.
fn begin_writing(session: &Session, writer: &[u8]) -> Result<i64, StoreError> {
    session.batch("BEGIN")?;
    let rows: &dyn Transaction = &Rows { session };
    let sql = format!(
        "WITH moved AS (UPDATE shared SET version = version + 1, transaction = txid_current() RETURNING version)
         INSERT INTO commits (version, writer) SELECT version, $1 FROM moved
         RETURNING version, pg_notify('{CHANNEL}', '')::text"
    );
    let version = rows.first(&sql, &[writer.into()], |row| Ok(row.cell(0).integer()))?;
    let version = version.flatten().ok_or_else(|| StoreError::UnfitServer {
        place: session.place().to_owned(),
        reason: "the row that counts changes is gone".to_owned(),
    })?;
    if version % TIDY_EVERY == 0 {
        let oldest = version.saturating_sub(REMEMBERED_COMMITS);
        rows.execute("DELETE FROM commits WHERE version < $1", &[oldest.into()])?;
    }
    Ok(version)
}

fn write_once<T>(
    session: &Session,
    writer: &[u8],
    writing: impl FnOnce(&dyn Transaction) -> Result<T, StoreError>,
) -> Result<Written<T>, StoreError> {
    let written = begin_writing(session, writer)
        .and_then(|version| Ok((version, writing(&Rows { session })?)));
    let (version, written) = match written {
        Ok(written) => written,
        Err(error) => {
            // If the rollback fails too, the connection is lost, and the transaction with it.
            let _ = session.batch("ROLLBACK");
            return Err(error);
        }
    };
    match session.batch("COMMIT") {
        Ok(()) => Ok(Written::Kept(written)),
        Err(StoreError::Unreachable { .. }) => Ok(Written::Unknown(written, version)),
        Err(error) => Err(error),
    }
}

impl Backend for PostgresStore {
    fn read<T>(
        &self,
        reading: impl Fn(&dyn Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with_session(|session| {
            session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            let read = reading(&Rows { session });
            let ended = session.batch("ROLLBACK");
            read.and_then(|read| ended.map(|()| read))
        })
    }

    fn write<T>(
        &mut self,
        writing: impl Fn(&dyn Transaction, &Keys) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let keys = self.keys();
        let write =
            |session: &Session| write_once(session, &self.writer, |rows| writing(rows, &keys));
        match self.with_session(write)? {
            Written::Kept(written) => Ok(written),
            Written::Unknown(written, version) if self.resolve(version)? => Ok(written),
            Written::Unknown(..) => Err(StoreError::Unreachable {
                place: self.address.to_string(),
                reason: "the connection was lost before anything was written".to_owned(),
            }),
        }
    }

    fn keys(&self) -> Keys {
        let path = self.home.pins_key_path();
        if self.check.is_empty() {
            return Keys::at(path);
        }
        let required = Required { check: self.check.clone(), place: self.address.to_string() };
        Keys::required(path, required)
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn grants_seen(&self) -> &Cell<i64> {
        &self.grants_seen
    }

    fn statements_around_history_edit(&self) -> [String; 2] {
        let edit = |act: &str| format!("ALTER TABLE history {act} TRIGGER refuse_change");
        [edit("DISABLE"), edit("ENABLE")]
    }

    /// Requires the owner of the tables. For other users, the server's own vacuum does it
    /// eventually.
    fn drop_old_bytes(&mut self) -> Result<bool, StoreError> {
        for table in ["servers", "pins", "observations", "history"] {
            let vacuum = format!("VACUUM FULL {table}");
            match self.with_session(|session| session.batch(&vacuum)) {
                Ok(()) => {}
                Err(error @ StoreError::Unreachable { .. }) => return Err(error),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Takes one round trip. Every write through Holdpoint increments the number, and so does any
    /// other transaction that touches the tables.
    fn current_version(&self) -> Result<u64, StoreError> {
        let shared = self.with_session(|session| {
            let rows: &dyn Transaction = &Rows { session };
            let query = "SELECT version FROM shared";
            Ok(rows.first(query, &[], |row| Ok(row.cell(0).integer()))?.flatten())
        })?;
        let shared = shared.unwrap_or_default();
        let mut seen = self.seen.get();
        if seen.is_stale || seen.shared != shared {
            seen = Seen { is_stale: false, shared, version: seen.version.wrapping_add(1) };
            self.seen.set(seen);
        }
        Ok(seen.version)
    }

    fn wait_beyond_version(&self, since: u64, patience: Duration) -> Result<u64, StoreError> {
        let deadline = Instant::now() + patience;
        loop {
            // Read the count before the version, so that a change in between wakes the wait.
            let counted = self.with_session(|session| {
                session.listen()?;
                Ok(session.notifications())
            })?;
            let version = self.current_version()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if version != since || left.is_zero() {
                return Ok(version);
            }
            self.session()?.wait_beyond(counted, left);
        }
    }
}

#[cfg(test)]
mod tests;

//! Errors of the home directory and the store. Each message says what to do about it.

use crate::approval::{ApprovalId, ApprovalState};
use crate::postgres::AddressError;
use contract::surface::EntryId;
use gate::server::ServerId;
use gate::shell;
use std::io;
use std::path::PathBuf;
use tokio_postgres::error::SqlState;

/// Why a directory cannot be Holdpoint's home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("`{}` is not a directory: name another home with `--home`", path.display())]
    NotADirectory { path: PathBuf },
    #[error("`{}` is a link that leads nowhere: remove it, or name another home with `--home`", path.display())]
    DanglingLink { path: PathBuf },
    #[error("`{}` belongs to another user: name another home with `--home`", path.display())]
    NotOurs { path: PathBuf },
    #[error("others can write to `{}`: type `chmod {mode} {}`", path.display(), shell::path(path))]
    OthersCanWrite { path: PathBuf, mode: &'static str },
    #[error("`{}` is shared with other users: name another home with `--home`", path.display())]
    Shared { path: PathBuf },
    #[error("others can replace what is in `{}`: type `chmod o-w {}`, or name another home with `--home`", path.display(), shell::path(path))]
    ReplaceableByOthers { path: PathBuf },
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl HomeError {
    /// Whether the disk is full or the user's quota is used up.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, HomeError::Io { source, .. } if is_disk_full(source))
    }
}

/// Whether a write failed because the disk is full or the user's quota is used up.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Why the store could not be read or written. A failed write leaves nothing behind.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Ledger(#[from] crate::receipts::ReceiptsError),
    /// No decision may rest on data that may have changed since it was read.
    #[error("the database that nodes share has not answered for a second")]
    LeaseOver,
    #[error("no thread to follow the database that nodes share: {source}")]
    NotFollowed { source: std::io::Error },
    #[error(
        "{reason}: look at `holdpoint incident status`, then end it with `holdpoint incident off --reason TEXT`"
    )]
    OlderStore { reason: String },
    /// The change was made, and it holds.
    #[error("it was done, but the ledger did not record who did it: {source}")]
    Unwitnessed { source: Box<crate::receipts::ReceiptsError> },
    #[error(
        "`{}` was written by a newer holdpoint (format {found}, this one knows {known}): update holdpoint, or name another home with `--home`",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("`{}` is not holdpoint's: move it away, or name another home with `--home`", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "`{}` is damaged and was left as it is: put a copy of it back, or move it away and approve your servers again",
        path.display()
    )]
    Damaged { path: PathBuf, source: rusqlite::Error },
    /// Code inside the database, such as a trigger, could undo a write.
    #[error(
        "`{}` has a {kind} that holdpoint did not make, {name:?}, which could change what is written: remove it, or move the file away and approve your servers again",
        path.display()
    )]
    Rigged { path: PathBuf, kind: &'static str, name: String },
    /// Nothing was written.
    #[error(
        "`{}` was removed or replaced while it was in use, so nothing was written: restart holdpoint",
        path.display()
    )]
    Replaced { path: PathBuf },
    /// Nothing of the write was kept.
    #[error(
        "{what} did not read back as written, so it was not kept: another program changed the database during the write"
    )]
    NotTaken { what: &'static str },
    #[error("another process kept `{place}` locked for {seconds} seconds: try again")]
    Busy { place: String, seconds: u64 },
    #[error(
        "the file system of `{}` cannot share a database between processes: name another home with `--home`",
        path.display()
    )]
    NotShareable { path: PathBuf },
    /// Nothing was written.
    #[error("no room left on the disk of `{place}`: make room there, then try again")]
    DiskFull { place: String },
    #[error("`{}`: {source}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Nothing was written.
    #[error("cannot reach `{place}`: {reason}")]
    Unreachable { place: String, reason: String },
    /// The connection was lost during a commit, and the database did not come back in time to say
    /// whether the commit succeeded.
    #[error(
        "the connection to `{place}` was lost during a write, and whether the write succeeded is unknown: check, then decide"
    )]
    Unresolved { place: String },
    #[error("`{place}`: {said}")]
    Server { place: String, said: String, source: tokio_postgres::Error },
    #[error("`{place}` cannot hold holdpoint's data: {reason}")]
    UnfitServer { place: String, reason: String },
    #[error(
        "`{place}` was written by a newer holdpoint (format {found}, this one knows {known}): update holdpoint"
    )]
    NewerSchema { place: String, found: i64, known: i64 },
    #[error(
        "the schema in `{place}` has tables that are not holdpoint's: add `?schema=NAME` with a name that is free"
    )]
    ForeignSchema { place: String },
    #[error(
        "`{}` is not the key that the pins in `{place}` are authenticated with: copy `keys/pins.key` from the home of a node that uses this database, and keep it private (`chmod 600`)",
        path.display()
    )]
    OtherKey { path: PathBuf, place: String },
    /// The key cannot be read, so whether it is the right one is unknown.
    #[error("{problem}")]
    NoKey { problem: String },
    /// Another write came between the read that a decision rests on and the decision.
    #[error("server `{server}` changed in the meantime: review it again, then decide")]
    Changed { server: ServerId },
    /// The stored data does not authenticate, and the act was not a person's approval.
    #[error("nothing is added to pins that cannot be trusted: {reason}")]
    Untrusted { server: ServerId, reason: String },
    #[error("server `{server}` has no pin of `{entry}` that could be withdrawn")]
    NothingToWithdraw { server: ServerId, entry: EntryId },
    #[error("{what} exceeds the limit of {limit}")]
    OverLimit { what: &'static str, limit: usize },
    #[error("an act without the name of who acts is not recorded")]
    Nameless,
    /// Rows that carry no authentication tag hold values that Holdpoint does not write.
    #[error("{what} of server `{server}` cannot be read: observe the server again")]
    Unreadable { server: ServerId, what: &'static str },
    /// Like `Unreadable`, but no later write repairs it: until a person looks, it is an error and
    /// does not count as absent.
    #[error(
        "{what} in the store has values that holdpoint does not write: put a copy of the database back"
    )]
    Garbled { what: &'static str },
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl StoreError {
    /// Whether the database could not be reached. Data read before is then as good as it was; after
    /// any other error, another program may have changed it.
    pub fn is_unreachable(&self) -> bool {
        match self {
            StoreError::Unreachable { .. }
            | StoreError::Unresolved { .. }
            | StoreError::Busy { .. }
            | StoreError::LeaseOver => true,
            StoreError::Server { source, .. } => {
                let ends = [
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::CANNOT_CONNECT_NOW,
                ];
                source.is_closed() || source.code().is_some_and(|code| ends.contains(code))
            }
            _ => false,
        }
    }

    /// Whether the disk that holds the database or the receipts is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            StoreError::DiskFull { .. } => true,
            StoreError::Home(error) => error.is_disk_full(),
            StoreError::Ledger(error) => error.is_disk_full(),
            StoreError::Unwitnessed { source } => source.is_disk_full(),
            _ => false,
        }
    }
}

/// Why the store refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no {what} `{name}`")]
    Unknown { what: &'static str, name: String },
    #[error("there is {what} `{name}` already")]
    Taken { what: &'static str, name: String },
    #[error("approval `{id}` is {state} already")]
    Decided { id: ApprovalId, state: ApprovalState },
    #[error("`{name}` cannot decide on their own call: ask another person")]
    OwnCall { name: String },
    #[error("`{place}` cannot be moved to itself")]
    SamePlace { place: String },
    #[error("`{place}` is not empty, and holds other data: name an empty database")]
    NotEmpty { place: String },
    #[error(
        "the home of `{place}` has a key of its own (`{}`), which the pins would not fit: move it away, or name another home",
        path.display()
    )]
    OtherKey { path: PathBuf, place: String },
    #[error(
        "table `{table}` has values that holdpoint does not write, and that the other database cannot hold"
    )]
    NotCopyable { table: &'static str },
    #[error("table `{table}` does not read back as it was written: nothing was moved")]
    Differs { table: &'static str },
}

//! What can go wrong with receipts, in sentences that say what to do.

use crate::error::{HomeError, is_disk_full};
use ledger::chain::WriteError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a receipt could not be written. The call that it belongs to is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptsError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("`{}` {what}: put the right one back; or move the folder `receipts` and this file away together, to start over", path.display())]
    Key { path: PathBuf, what: String },
    #[error("`{}`, the key that hashes of arguments are made with, {what}", path.display())]
    ArgsKey { path: PathBuf, what: String },
    #[error("the index of the receipts does not verify ({problem}): look with `holdpoint receipts verify`; to start over, move the folder `{}` and `keys/receipts.key` and `keys/receipts.pub` away together and keep them as evidence", path.display())]
    Index { path: PathBuf, problem: String },
    #[error(
        "another process kept the index of the receipts locked for {seconds} seconds: try again"
    )]
    Busy { seconds: u64 },
    #[error("no room for receipts in `{}`: make room there, or set `receipts.on_full = \"drop-oldest\"`", path.display())]
    Full { path: PathBuf },
    #[error("receipts are no longer written until this process is restarted: {0}")]
    Stopped(String),
    #[error("the ticket is not one of this ledger")]
    ForeignTicket,
    #[error("the ticket was settled before")]
    Answered,
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl ReceiptsError {
    /// Names what was tried with a file.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReceiptsError {
        let path = path.to_owned();
        move |source| {
            if is_disk_full(&source) {
                ReceiptsError::Full { path }
            } else {
                ReceiptsError::Home(HomeError::Io { doing, path, source })
            }
        }
    }

    /// Tells a full disk from other faults of a write.
    pub(super) fn of_write(error: WriteError, folder: &Path) -> ReceiptsError {
        match error {
            WriteError::Io(source) if is_disk_full(&source) => {
                ReceiptsError::Full { path: folder.to_owned() }
            }
            other => ReceiptsError::Write(other),
        }
    }

    /// Whether the disk or the user's quota has no room left.
    pub fn is_disk_full(&self) -> bool {
        match self {
            ReceiptsError::Full { .. } => true,
            ReceiptsError::Home(error) => error.is_disk_full(),
            _ => false,
        }
    }
}

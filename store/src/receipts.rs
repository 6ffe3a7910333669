//! The home's receipts on disk: the folder, its keys, the journal of the home and the chain of this process.
//!
//! What is written, and when it verifies, is decided in `ledger`; here are the files, the locks and the waiting.

mod disk;
mod error;
mod journal;
mod keys;
mod opening;
mod retention;
mod settings;
mod signer;
mod writer;

pub use disk::DiskFolder;
pub use error::ReceiptsError;
pub use journal::{Journal, LOCK_PATIENCE_SECONDS, LockedJournal};
pub use keys::{ArgsKey, check_args_key, public_keys};
pub use retention::Keep;
pub use settings::{Fsync, OnFull, Settings};
pub(crate) use writer::now;
pub use writer::{Batch, MAX_WAITING_OUTCOMES, Receipts, SYNC_INTERVAL_MILLISECONDS};

//! The home's receipts on disk: the folder, its keys, the journal of the home and the chain of this process.
//!
//! What is written, and when it verifies, is decided in `ledger`; here are the files, the locks and the waiting.

mod chain;
mod disk;
mod error;
mod journal;
mod keys;
mod opening;
mod progress;
mod retention;
mod room;
mod settings;
mod signer;
mod ticket;
mod worker;
mod writer;

pub use chain::MAX_WAITING_OUTCOMES;
pub use disk::DiskFolder;
pub use error::ReceiptsError;
pub use journal::{Journal, LOCK_PATIENCE_SECONDS, LockedJournal};
pub use keys::{ArgsKey, check_args_key, public_keys};
pub use retention::Keep;
pub use settings::{Fsync, OnFull, Settings};
pub use ticket::{Settled, Settling, Ticket};
pub use worker::SYNC_INTERVAL_MILLISECONDS;
pub(crate) use writer::now;
pub use writer::{MAX_QUEUED_RECORDS, Receipts};

//! The home's own chain, the index: chains that were opened, what retention dropped, what people did.
//!
//! Any process may write to it, one at a time and for a moment only; each line is signed and on disk when it returns.

use super::disk::{DiskChain, DiskFolder, UNFINISHED, lock_file};
use super::error::ReceiptsError;
use super::keys::{has_signed, note_signed, read_signing_key, signing_key};
use crate::home::{Home, check_directory, create_directory, failed};
use contract::time::Timestamp;
use ledger::chain::{ChainWriter, Head, Rotation, Written, head, read_signed_tail};
use ledger::folder::{ChainId, Folder, Listing};
use ledger::index::{CHAIN_RESTARTED, Index};
use ledger::note::{Keyring, SigningKey};
use ledger::record::{Event, Record};
use ledger::verify::read_index;
use std::fs::{self, File, TryLockError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one process waits for another that writes to the index.
pub const LOCK_PATIENCE_SECONDS: u64 = 10;

const RETRY_PAUSE: Duration = Duration::from_millis(2);

/// The index of a home.
#[derive(Debug, Clone)]
pub struct Journal {
    home: Home,
    folder: DiskFolder,
}

/// The index while this process alone may write to it.
#[derive(Debug)]
pub struct LockedJournal {
    /// Held until this is dropped.
    _lock: File,
    pub(super) folder: DiskFolder,
    pub(super) key: Arc<SigningKey>,
    pub(super) keys: Keyring,
    writer: ChainWriter<DiskChain>,
    index: Index,
}

impl Journal {
    pub fn new(home: &Home) -> Journal {
        Journal { home: home.clone(), folder: DiskFolder::new(&home.receipts_path()) }
    }

    pub fn folder(&self) -> &DiskFolder {
        &self.folder
    }

    /// What the index says now; nothing where there is none yet.
    pub fn read(&self) -> Result<Index, ReceiptsError> {
        // Asked before the folder is looked at: another process may be making the first index just now.
        let has_signed = has_signed(&self.home);
        match fs::symlink_metadata(self.folder.path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.without_index(&Listing::default(), has_signed);
            }
            _ => {}
        }
        let listing = self.listing()?;
        if !listing.chains.contains_key(&ChainId::index()) {
            return self.without_index(&listing, has_signed);
        }
        let key = read_signing_key(&self.home)?;
        self.sound_index(&Keyring::from(key.verifying_key().clone()))
    }

    /// There is no index before the first act, which makes the key and the index together.
    fn without_index(&self, listing: &Listing, has_signed: bool) -> Result<Index, ReceiptsError> {
        if listing.chains.is_empty() && !has_signed {
            Ok(Index::default())
        } else {
            Err(self.damaged("it is gone".to_owned()))
        }
    }

    /// Writes one event.
    pub fn append(&self, event: &Event<'_>) -> Result<Written, ReceiptsError> {
        self.lock(event.ts)?.append(event)
    }

    /// Waits until no other process writes to the index. Makes the index where there is none.
    pub fn lock(&self, now: Timestamp) -> Result<LockedJournal, ReceiptsError> {
        let path = self.folder.path();
        create_directory(path)?;
        check_directory(path)?;
        let lock = wait_for_lock(path)?;
        let listing = self.listing()?;
        let index = ChainId::index();
        let has_signed = has_signed(&self.home);
        let key = Arc::new(signing_key(&self.home, listing.chains.is_empty())?);
        let keys = Keyring::from(key.verifying_key().clone());
        remove_unfinished(path);
        let (writer, index) = if let Some(files) = listing.chains.get(&index) {
            let found = self.sound_index(&keys)?;
            // An attacker could have written a line that is not signed.
            let tail = read_signed_tail(&self.folder, &index, files, &keys)
                .map_err(|error| self.damaged(error.to_string()))?;
            let mut chain = wait_for_chain(&self.folder.chain_path(&index))?.careful();
            chain
                .continue_segment(tail.segment, tail.segment_bytes)
                .map_err(ReceiptsError::io("open", path))?;
            let resumed = ChainWriter::resume(chain, key.clone(), tail, Rotation::NEVER, &[], now);
            let full = |error| ReceiptsError::of_write(error, path);
            let mut writer = resumed.map_err(full)?;
            // Others may name the line that closes a torn end as soon as it is there.
            writer.checkpoint().map_err(full)?;
            (writer, found)
        } else if listing.chains.is_empty() {
            let created = self.create(&key, has_signed, now)?;
            let restarted_at = has_signed.then(|| now.precise().to_string());
            (created, Index { restarted_at, ..Index::default() })
        } else {
            return Err(self.damaged("it is gone, and chains are there".to_owned()));
        };
        note_signed(&self.home)?;
        Ok(LockedJournal { _lock: lock, folder: self.folder.clone(), key, keys, writer, index })
    }

    /// An index in the place of one that is gone says so: the key is the same, and the receipts before are not there.
    fn create(
        &self,
        key: &Arc<SigningKey>,
        has_signed: bool,
        now: Timestamp,
    ) -> Result<ChainWriter<DiskChain>, ReceiptsError> {
        let path = self.folder.path();
        let index = ChainId::index();
        let unfinished = path.join(format!("{UNFINISHED}{index}"));
        let chain = DiskChain::unfinished(&unfinished, true)?.careful();
        let created =
            ChainWriter::create(chain, key.clone(), index.clone(), Rotation::NEVER, &[], now);
        let full = |error| ReceiptsError::of_write(error, path);
        let mut writer = created.map_err(full)?;
        if has_signed {
            let restarted =
                Event { ts: now, name: CHAIN_RESTARTED, by: None, server_id: None, data: None };
            writer.append(&Record::Event(&restarted)).map_err(full)?;
            writer.checkpoint().map_err(full)?;
        }
        writer.files().finish(&self.folder.chain_path(&index), true)?;
        Ok(writer)
    }

    fn listing(&self) -> Result<Listing, ReceiptsError> {
        self.folder.listing().map_err(ReceiptsError::io("look at", self.folder.path()))
    }

    fn sound_index(&self, keys: &Keyring) -> Result<Index, ReceiptsError> {
        let read = read_index(&self.folder, keys);
        let (index, report) = read.map_err(ReceiptsError::io("read", self.folder.path()))?;
        match report.problems.first() {
            Some(problem) => Err(self.damaged(problem.to_string())),
            None => Ok(index),
        }
    }

    fn damaged(&self, problem: String) -> ReceiptsError {
        ReceiptsError::Index { path: self.folder.path().to_owned(), problem }
    }
}

impl LockedJournal {
    /// What the index said when it was locked.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Writes one event: signed and on disk when this returns.
    pub fn append(&mut self, event: &Event<'_>) -> Result<Written, ReceiptsError> {
        let path = self.folder.path().to_owned();
        let full = |error| ReceiptsError::of_write(error, &path);
        let written = self.writer.append(&Record::Event(event)).map_err(full)?;
        let unsynced = self.writer.files().take_unsynced();
        unsynced.sync().map_err(ReceiptsError::io("write", &path))?;
        self.writer.checkpoint().map_err(full)?;
        Ok(written)
    }

    /// The newest line of every chain but one, the index with them.
    pub(super) fn heads(&self, listing: &Listing, but: Option<&ChainId>) -> Vec<Head> {
        let is_other = |chain: &ChainId| !chain.is_index() && but != Some(chain);
        let others = listing.chains.iter().filter(|(chain, _)| is_other(chain));
        let heads =
            others.filter_map(|(chain, files)| head(&self.folder, chain, files, &self.keys));
        std::iter::once(self.writer.head()).chain(heads).collect()
    }
}

fn wait_for_lock(path: &std::path::Path) -> Result<File, ReceiptsError> {
    let lock = lock_file(path).map_err(ReceiptsError::io("open", path))?;
    let deadline = Instant::now() + Duration::from_secs(LOCK_PATIENCE_SECONDS);
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(RETRY_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(ReceiptsError::Busy { seconds: LOCK_PATIENCE_SECONDS });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", path)(error).into()),
        }
    }
}

/// Locks the index. A process that has just given up the folder's lock may still have it for a moment.
fn wait_for_chain(path: &std::path::Path) -> Result<DiskChain, ReceiptsError> {
    let deadline = Instant::now() + Duration::from_secs(LOCK_PATIENCE_SECONDS);
    loop {
        if let Some(chain) = DiskChain::try_lock(path, true)? {
            return Ok(chain);
        }
        if Instant::now() >= deadline {
            return Err(ReceiptsError::Busy { seconds: LOCK_PATIENCE_SECONDS });
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Chains are made under the lock, so one that is still unfinished has no writer.
fn remove_unfinished(path: &std::path::Path) {
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

//! What is remembered of each file that was wired: what it was, what was made of it, and what each entry said before.
//!
//! It lies in Holdpoint's home, for its user alone: hosts' files have secrets in them.

use crate::config::{ReadError, read_bytes};
use crate::replace::{sweep_folder, write_private};
use crate::rewrite::Wiring;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VERSION: u32 = 1;
/// How long another process may have a file in hand.
const MAX_WAIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// The largest record that is read back.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal at `{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the record at `{}` cannot be read: {what}", path.display())]
    Record { path: PathBuf, what: String },
    #[error("another process has `{}` in hand", path.display())]
    Busy { path: PathBuf },
    #[error("the path `{}` is not text", path.display())]
    NotText { path: PathBuf },
}

/// What is remembered of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    pub(crate) path: String,
    pub(crate) host: String,
    /// The hash of what we wrote.
    pub(crate) wrote: String,
    /// The hash of what is kept beside the record.
    pub(crate) original: String,
    pub(crate) wirings: Vec<Wiring>,
}

/// The folder of all records.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    folder: PathBuf,
}

/// While it lives, nobody else changes the file that it is for.
#[derive(Debug)]
pub(crate) struct Lock(
    #[allow(dead_code, reason = "the lock lasts as long as the file is open")] File,
);

impl Journal {
    pub(crate) fn new(folder: &Path) -> Journal {
        Journal { folder: folder.to_owned() }
    }

    fn failed(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |source| JournalError::File { path, source }
    }

    /// Makes the folder, for its user alone.
    fn prepare(&self) -> Result<(), JournalError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder).map_err(Journal::failed(&self.folder))
    }

    fn file(&self, path: &Path, ending: &str) -> PathBuf {
        let digits = hash(path.as_os_str().as_encoded_bytes());
        let short: String = digits.chars().take(32).collect();
        self.folder.join(format!("{short}.{ending}"))
    }

    pub(crate) fn lock(&self, path: &Path) -> Result<Lock, JournalError> {
        self.lock_within(MAX_WAIT, path)
    }

    fn lock_within(&self, patience: Duration, path: &Path) -> Result<Lock, JournalError> {
        self.prepare()?;
        let name = self.file(path, "lock");
        let mut options = fs::OpenOptions::new();
        options.create(true).write(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&name).map_err(Journal::failed(&name))?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(fs::TryLockError::WouldBlock) if since.elapsed() < patience => {
                    std::thread::sleep(PAUSE);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(JournalError::Busy { path: path.to_owned() });
                }
                Err(fs::TryLockError::Error(error)) => return Err(Journal::failed(&name)(error)),
            }
        }
    }

    pub(crate) fn record(&self, path: &Path) -> Result<Option<Record>, JournalError> {
        self.read(&self.file(path, "json"))
    }

    fn read(&self, name: &Path) -> Result<Option<Record>, JournalError> {
        let wrong = |what: String| JournalError::Record { path: name.to_owned(), what };
        let metadata = match fs::metadata(name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Journal::failed(name)(error)),
        };
        if metadata.len() > MAX_RECORD_BYTES {
            return Err(wrong("it is too large".to_owned()));
        }
        let bytes = fs::read(name).map_err(Journal::failed(name))?;
        let record: Record =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if record.version != VERSION {
            return Err(wrong(format!("version {} is not known here", record.version)));
        }
        Ok(Some(record))
    }

    /// What a file was, byte for byte.
    pub(crate) fn original(
        &self,
        path: &Path,
        record: &Record,
    ) -> Result<Option<Vec<u8>>, JournalError> {
        let name = self.file(path, "original");
        match read_bytes(&name) {
            Ok(bytes) => Ok((hash(&bytes) == record.original).then_some(bytes)),
            Err(ReadError::File(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(ReadError::File(error)) => Err(Journal::failed(&name)(error)),
            // Not what we kept: no file that is larger was ever wired.
            Err(_) => Ok(None),
        }
    }

    /// Remembers a file. The original comes first: a record without it is worth less than none.
    pub(crate) fn write(
        &self,
        path: &Path,
        host: &str,
        original: &[u8],
        wrote: &[u8],
        wirings: Vec<Wiring>,
    ) -> Result<(), JournalError> {
        let text = path.to_str().ok_or_else(|| JournalError::NotText { path: path.to_owned() })?;
        let record = Record {
            version: VERSION,
            path: text.to_owned(),
            host: host.to_owned(),
            wrote: hash(wrote),
            original: hash(original),
            wirings,
        };
        self.prepare()?;
        let name = self.file(path, "original");
        write_private(&name, original).map_err(Journal::failed(&name))?;
        let name = self.file(path, "json");
        let bytes = serde_json::to_vec(&record).map_err(|error| JournalError::Record {
            path: name.clone(),
            what: error.to_string(),
        })?;
        write_private(&name, &bytes).map_err(Journal::failed(&name))
    }

    /// Forgets a file that has nothing of ours in it any more.
    pub(crate) fn forget(&self, path: &Path) -> Result<(), JournalError> {
        for ending in ["json", "original"] {
            let name = self.file(path, ending);
            match fs::remove_file(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Journal::failed(&name)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes away what interrupted processes left.
    pub(crate) fn sweep(&self) {
        sweep_folder(&self.folder);
    }

    /// Every file that is remembered, and the host it was wired for. One that is gone is forgotten; a record that cannot be
    /// read is passed over.
    pub(crate) fn files(&self) -> Result<Vec<(PathBuf, String)>, JournalError> {
        let names = match fs::read_dir(&self.folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Journal::failed(&self.folder)(error)),
        };
        let mut found = Vec::new();
        for name in names {
            let name = name.map_err(Journal::failed(&self.folder))?.path();
            let is_record = name.extension().is_some_and(|ending| ending == "json");
            let Some(record) =
                Some(&name).filter(|_| is_record).and_then(|name| self.read(name).ok().flatten())
            else {
                continue;
            };
            let path = PathBuf::from(record.path);
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.forget(&path)?,
                _ => found.push((path, record.host)),
            }
        }
        found.sort();
        Ok(found)
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;

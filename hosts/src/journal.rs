//! Records what was done to each wired file: how to undo it, and how each entry was spelled before.
//!
//! Hosts' files contain secrets, and the journal stores none of them: see [`Inverse`].

use crate::config::read_bytes;
use crate::inverse::Inverse;
use crate::replace::{sweep_folder, write_private};
use crate::rewrite::Wiring;
use crate::wire::Around;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VERSION: u32 = 2;
/// The version that stored a full copy of the file next to the record.
const VERSION_WITH_COPY: u64 = 1;
const COPY: &str = "original";
/// How long to wait for another process that is using a file.
const MAX_WAIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// The largest record that is read.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal at `{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the record at `{}` cannot be read: {what}", path.display())]
    Record { path: PathBuf, what: String },
    #[error("another process is editing `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("the path `{}` is not text", path.display())]
    NotText { path: PathBuf },
    #[error(
        "`{}` could not be restored later without keeping a part of it that may be a secret, such as a comment inside an entry: nothing was changed",
        path.display()
    )]
    NotReversible { path: PathBuf },
}

/// The record of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    pub(crate) path: String,
    pub(crate) host: String,
    /// The hash of the content that we wrote.
    pub(crate) wrote: String,
    /// The hash of the file's original content.
    pub(crate) original: String,
    /// How to restore the original from what we wrote. A record from an older version may lack it.
    inverse: Option<Inverse>,
    pub(crate) wirings: Vec<Wiring>,
}

/// The folder of all records.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    folder: PathBuf,
}

/// While this exists, no other Holdpoint process changes the file.
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

    /// Creates the folder, accessible only to its user.
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

    /// Writes the record of a file.
    pub(crate) fn write(
        &self,
        path: &Path,
        host: &str,
        original: &str,
        wrote: &str,
        wirings: Vec<Wiring>,
    ) -> Result<(), JournalError> {
        let text = path.to_str().ok_or_else(|| JournalError::NotText { path: path.to_owned() })?;
        let Some(inverse) = Inverse::of(original, wrote) else {
            return Err(JournalError::NotReversible { path: path.to_owned() });
        };
        let record = Record {
            version: VERSION,
            path: text.to_owned(),
            host: host.to_owned(),
            wrote: hash(wrote.as_bytes()),
            original: hash(original.as_bytes()),
            inverse: Some(inverse),
            wirings,
        }
        .cleaned();
        self.put(&self.file(path, "json"), &record)
    }

    fn put(&self, name: &Path, record: &Record) -> Result<(), JournalError> {
        self.prepare()?;
        let bytes = serde_json::to_vec(record).map_err(|error| JournalError::Record {
            path: name.to_owned(),
            what: error.to_string(),
        })?;
        write_private(name, &bytes).map_err(Journal::failed(name))
    }

    /// Converts records of older versions, and removes their copies of files.
    fn redact(&self) -> Result<(), JournalError> {
        let Ok(names) = fs::read_dir(&self.folder) else { return Ok(()) };
        let names: Vec<PathBuf> = names.filter_map(|name| Some(name.ok()?.path())).collect();
        let ending = |end: &'static str| {
            names.iter().filter(move |name| name.extension().is_some_and(|ending| ending == end))
        };
        for copy in ending(COPY) {
            self.renew(&copy.with_extension("json"), copy)?;
            fs::remove_file(copy).map_err(Journal::failed(copy))?;
        }
        // A record may have lost its copy, or be current but contain more than is stored today.
        for name in ending("json") {
            match self.read(name) {
                Ok(Some(record)) => {
                    let cleaned = record.clone().cleaned();
                    if cleaned != record {
                        let _lock = self.lock(Path::new(&record.path))?;
                        self.put(name, &cleaned)?;
                    }
                }
                Ok(None) => {}
                Err(_) if is_of_old_version(name) => {
                    self.renew(name, &name.with_extension(COPY))?;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Converts the record of an older version.
    fn renew(&self, record: &Path, copy: &Path) -> Result<(), JournalError> {
        let path = fs::read(record).ok().and_then(|bytes| old_path(&bytes));
        let _lock = path.as_deref().map(|path| self.lock(path)).transpose()?;
        match path.and_then(|path| renewed(&path, record, copy)) {
            Some(renewed) => self.put(record, &renewed)?,
            // Without a readable record, the entries themselves contain enough information to
            // unwire them.
            None if self.read(record).is_err() => drop(fs::remove_file(record)),
            None => {}
        }
        Ok(())
    }

    /// Removes the record of a file in which nothing of ours is left.
    pub(crate) fn forget(&self, path: &Path) -> Result<(), JournalError> {
        let name = self.file(path, "json");
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Journal::failed(&name)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes leftovers of interrupted processes.
    pub(crate) fn sweep(&self) {
        sweep_folder(&self.folder);
    }

    /// The file, with its host, in which a server with this id was wired, if there is exactly one.
    pub(crate) fn file_with(&self, id: &str) -> Option<(PathBuf, String)> {
        let names = fs::read_dir(&self.folder).ok()?.filter_map(|name| Some(name.ok()?.path()));
        let records = names.filter(|name| name.extension().is_some_and(|ending| ending == "json"));
        let mut found = records
            .filter_map(|name| self.read(&name).ok().flatten())
            .filter(|record| record.wirings.iter().any(|wiring| wiring.id == id));
        match (found.next(), found.next()) {
            (Some(record), None) => Some((PathBuf::from(record.path), record.host)),
            _ => None,
        }
    }

    /// Every recorded file, with the host it was wired for. Records of files that no longer exist
    /// are removed; unreadable records are skipped.
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

impl Record {
    fn cleaned(mut self) -> Record {
        for wiring in &mut self.wirings {
            wiring.kept = std::mem::take(&mut wiring.kept).cleaned();
        }
        self
    }

    /// The original text, if the file still contains exactly what we wrote.
    pub(crate) fn original_of(&self, text: &str) -> Option<String> {
        let is_untouched = self.wrote == hash(text.as_bytes());
        let original = self.inverse.as_ref().filter(|_| is_untouched)?.apply(text)?;
        (self.original == hash(original.as_bytes())).then_some(original)
    }
}

/// Converts what an older version stored in a journal's folder, and removes its copies of hosts'
/// files.
pub fn redact_journal(folder: &Path) -> Result<(), JournalError> {
    Journal::new(folder).redact()
}

/// Whether a record is of an older version, or no longer readable.
fn is_of_old_version(record: &Path) -> bool {
    let Ok(bytes) = read_bytes(record) else { return false };
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(record) => {
            record.get("version").and_then(serde_json::Value::as_u64) == Some(VERSION_WITH_COPY)
        }
        Err(_) => true,
    }
}

fn old_path(record: &[u8]) -> Option<PathBuf> {
    let record: serde_json::Value = serde_json::from_slice(record).ok()?;
    Some(PathBuf::from(record.get("path")?.as_str()?))
}

/// The record of an older version, converted to the current format.
fn renewed(path: &Path, record: &Path, copy: &Path) -> Option<Record> {
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(record).ok()?).ok()?;
    if old.get("version")?.as_u64()? != VERSION_WITH_COPY {
        return None;
    }
    for wiring in old.get_mut("wirings")?.as_array_mut()? {
        let kept = wiring.get_mut("kept")?.as_object_mut()?;
        if let Some(address) = kept.remove("address") {
            let around = Around::of_member(address.get("text")?.as_str()?);
            kept.insert("address".to_owned(), serde_json::to_value(around).ok()?);
        }
    }
    let fields = old.as_object_mut()?;
    fields.insert("version".to_owned(), VERSION.into());
    fields.insert("inverse".to_owned(), serde_json::Value::Null);
    let mut renewed: Record = serde_json::from_value(old).ok()?;
    let text = |path: &Path| String::from_utf8(read_bytes(path).ok()?).ok();
    if let (Some(original), Some(wired)) = (text(copy), text(path))
        && renewed.wrote == hash(wired.as_bytes())
    {
        renewed.inverse = Inverse::of(&original, &wired);
    }
    Some(renewed.cleaned())
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;

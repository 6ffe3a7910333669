//! The key that authenticates pins: 32 random bytes in its own file.

use crate::authenticate;
use crate::error::{HomeError, StoreError};
use crate::home::failed;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub(crate) const KEY_BYTES: usize = 32;

pub(crate) struct Key([u8; KEY_BYTES]);

impl Key {
    pub(crate) fn from_bytes(bytes: [u8; KEY_BYTES]) -> Key {
        Key(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// The path of a store's key, and which key it has to be.
#[derive(Debug)]
pub(crate) struct Keys {
    path: PathBuf,
    required: Option<Required>,
}

/// The key that the nodes of a shared database must have.
#[derive(Debug, Clone)]
pub(crate) struct Required {
    pub(crate) check: Vec<u8>,
    /// The database, for error messages.
    pub(crate) place: String,
}

impl Keys {
    pub(crate) fn at(path: PathBuf) -> Keys {
        Keys { path, required: None }
    }

    pub(crate) fn required(path: PathBuf, required: Required) -> Keys {
        Keys { path, required: Some(required) }
    }

    /// Reads the file each time, so that a key that disappears while the process runs is noticed.
    /// If the database is shared, a different or missing key is an error of this node and says
    /// nothing about the pins.
    pub(crate) fn read(&self) -> Result<Result<Key, KeyProblem>, StoreError> {
        let key = read_key(&self.path);
        let Some(required) = &self.required else { return Ok(key) };
        let is_other = match &key {
            Ok(key) => !authenticate::matches_check(key, &required.check),
            Err(KeyProblem::Missing(_)) => true,
            Err(KeyProblem::Malformed(_) | KeyProblem::Exposed(_) | KeyProblem::Unreadable(..)) => {
                false
            }
        };
        if is_other {
            let place = required.place.clone();
            return Err(StoreError::OtherKey { path: self.path.clone(), place });
        }
        Ok(key)
    }

    pub(crate) fn create(&self) -> Result<Key, StoreError> {
        Ok(create_key(&self.path)?)
    }
}

/// Why there is no key to check pins with. Displayed as a sentence in the review of a held call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyProblem {
    #[error("the key that pins are checked with is gone (`{}`): put it back, or review and approve each server again", .0.display())]
    Missing(PathBuf),
    #[error("`{}` is not a key of {KEY_BYTES} bytes: put the right one back, or move it away and approve each server again", .0.display())]
    Malformed(PathBuf),
    #[error("others can read `{}`, so pins prove nothing: make it private with `chmod 600`, then review each server", .0.display())]
    Exposed(PathBuf),
    #[error("cannot read `{}`: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
}

pub(crate) fn read_key(path: &Path) -> Result<Key, KeyProblem> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeyProblem::Missing(path.to_owned()));
        }
        Err(error) => return Err(KeyProblem::Unreadable(path.to_owned(), error)),
    };
    let unreadable = |error| KeyProblem::Unreadable(path.to_owned(), error);
    #[cfg(unix)]
    {
        let found = file.metadata().map_err(unreadable)?;
        if std::os::unix::fs::MetadataExt::mode(&found) & 0o077 != 0 {
            return Err(KeyProblem::Exposed(path.to_owned()));
        }
    }
    let mut bytes = Vec::with_capacity(KEY_BYTES + 1);
    // Read one byte more than a key has, so that a longer file is noticed without reading all of
    // it.
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let bytes = bytes.try_into().map_err(|_| KeyProblem::Malformed(path.to_owned()))?;
    Ok(Key(bytes))
}

/// Creates a new key.
///
/// INVARIANT: the caller holds the database's write lock, so no other process creates one at the
/// same time.
pub(crate) fn create_key(path: &Path) -> Result<Key, HomeError> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| failed("find randomness for", path)(io::Error::other(error)))?;
    let key = Key(bytes);
    put_key(path, &key)?;
    Ok(key)
}

/// Writes a key atomically, and never over an existing one.
pub(crate) fn put_key(path: &Path, key: &Key) -> Result<(), HomeError> {
    if path.exists() {
        return Err(failed("make", path)(io::ErrorKind::AlreadyExists.into()));
    }
    create_file(path, key.as_bytes())
}

/// Creates a private file atomically.
pub(crate) fn create_file(path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
    create_file_with_mode(path, bytes, 0o600)
}

/// Creates a file that others may read, atomically.
pub(crate) fn create_public_file(path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
    create_file_with_mode(path, bytes, 0o644)
}

fn create_file_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), HomeError> {
    // Remove the unfinished file of a process that was killed here: nothing was made with its
    // content.
    let unfinished = path.with_added_extension("new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("replace", &unfinished)(error));
        }
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&unfinished).map_err(failed("make", &unfinished))?;
    file.write_all(bytes).map_err(failed("write", &unfinished))?;
    file.sync_all().map_err(failed("write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(failed("make", path))?;
    // The file must be durable before anything that was made with the key.
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        fs::File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("write", directory))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

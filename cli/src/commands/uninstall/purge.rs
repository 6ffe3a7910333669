//! Removes Holdpoint's own files from a home, by name, and nothing else: naming the wrong folder by
//! mistake destroys nothing.

use crate::failure::Failure;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Files in the home that only Holdpoint creates.
const FILES: [&str; 11] = [
    "state.db",
    "state.db-wal",
    "state.db-shm",
    "digests.json",
    "errors.jsonl",
    "errors.jsonl.1",
    "errors.jsonl.2",
    "receipts-export.json",
    "receipts-export.lock",
    "watch.json",
    "watch.lock",
];
/// Settings, written by the user for Holdpoint.
const SETTINGS: &str = "holdpoint.toml";
const KEYS: [&str; 5] =
    ["pins.key", "receipts.key", "receipts.key.unused", "receipts.pub", "args.key"];
/// Folders that belong to Holdpoint entirely.
const FOLDERS: [&str; 3] = ["receipts", "wiring", "network"];

/// A home that may be emptied.
#[derive(Debug)]
pub(super) struct Purge {
    pub(super) home: PathBuf,
}

impl Purge {
    /// Returns `None` if there is no home. Refuses a folder that is not Holdpoint's, or that
    /// contains more than its home.
    pub(super) fn of(home: &Path, user_home: &Path) -> Result<Option<Purge>, Failure> {
        if std::fs::symlink_metadata(home).is_err() {
            return Ok(None);
        }
        let named = |error: Error| Failure::usage(format!("`{}`: {error}", home.display()));
        let real = home.canonicalize().map_err(named)?;
        let user_home = user_home.canonicalize().unwrap_or_else(|_| user_home.to_owned());
        if user_home.starts_with(&real) || !is_ours(&real) {
            return Err(Failure::usage(format!(
                "`{}` is not a folder of Holdpoint alone: nothing was removed; take out of it by hand what is to go",
                home.display()
            )));
        }
        Ok(Some(Purge { home: real }))
    }

    /// Returns what is left in the home because it is not Holdpoint's.
    pub(super) fn carry_out(&self) -> Result<Vec<PathBuf>, Failure> {
        let keys = self.home.join("keys");
        let files = FILES.iter().chain([&SETTINGS]).map(|name| self.home.join(name));
        for file in files.chain(KEYS.iter().map(|name| keys.join(name))) {
            missing_is_fine(std::fs::remove_file(&file), &file)?;
        }
        for name in FOLDERS {
            let folder = self.home.join(name);
            missing_is_fine(std::fs::remove_dir_all(&folder), &folder)?;
        }
        // These fail, on purpose, if a folder still holds other files.
        let _ = std::fs::remove_dir(&keys);
        let _ = std::fs::remove_dir(&self.home);
        let left = std::fs::read_dir(&self.home).into_iter().flatten();
        Ok(left.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
    }
}

/// Whether a folder has one of Holdpoint's keys or its database.
fn is_ours(home: &Path) -> bool {
    let keys = home.join("keys");
    let marks = KEYS.iter().map(|name| keys.join(name));
    marks.chain(["state.db", "watch.json"].map(|name| home.join(name))).any(|mark| mark.is_file())
}

fn missing_is_fine(done: std::io::Result<()>, path: &Path) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::internal(format!("`{}`: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! What the watcher knows: every server that it has seen. Only what is added later is new, so that a server which
//! somebody left unguarded, or unwired again, stays as they wanted it.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file in Holdpoint's home.
const FILE: &str = "watch.json";
const VERSION: u32 = 1;
/// More servers than anybody has; past it the rest count as known, so that the file cannot grow without end.
pub(crate) const MAX_KNOWN: usize = 10_000;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// One server of one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub(crate) path: PathBuf,
    pub(crate) project: Option<String>,
    pub(crate) name: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    known: BTreeSet<Known>,
}

#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
    known: BTreeSet<Known>,
    /// Nothing was remembered yet: what is there now is what the watcher begins with.
    is_first: bool,
    is_changed: bool,
}

impl Memory {
    /// A file that cannot be read is begun anew: at worst a server that is there already is not told of again.
    pub(crate) fn read(home: &Path) -> Memory {
        let path = home.join(FILE);
        let known = read_document(&path);
        let is_first = known.is_none();
        Memory { path, known: known.unwrap_or_default(), is_first, is_changed: is_first }
    }

    /// Takes in the servers of a file that could be read, and answers those that are new.
    pub(crate) fn take(&mut self, path: &Path, servers: BTreeSet<Known>) -> BTreeSet<Known> {
        let gone: Vec<Known> = self
            .known
            .iter()
            .filter(|known| known.path == path && !servers.contains(*known))
            .cloned()
            .collect();
        for known in &gone {
            self.known.remove(known);
        }
        let mut new = BTreeSet::new();
        for server in servers {
            if !self.known.contains(&server) && self.known.len() < MAX_KNOWN {
                self.known.insert(server.clone());
                new.insert(server);
            }
        }
        self.is_changed |= !gone.is_empty() || !new.is_empty();
        if self.is_first { BTreeSet::new() } else { new }
    }

    /// Forgets a server that was new and could not be wired, so that it is tried again.
    pub(crate) fn forget(&mut self, server: &Known) {
        self.is_changed |= self.known.remove(server);
    }

    /// After all files were looked at.
    pub(crate) fn keep(&mut self) -> Result<(), Failure> {
        self.is_first = false;
        if !self.is_changed {
            return Ok(());
        }
        let text = serde_json::to_vec(&Document { version: VERSION, known: self.known.clone() })?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let named = |error: std::io::Error| {
            Failure::internal(format!("`{}`: {error}", self.path.display()))
        };
        // Private from the start, and whole or not there at all.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(named)?;
        file.write_all(&text).map_err(named)?;
        file.persist(&self.path).map_err(|error| named(error.error))?;
        self.is_changed = false;
        Ok(())
    }
}

fn read_document(path: &Path) -> Option<BTreeSet<Known>> {
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let document: Document = serde_json::from_slice(&text).ok()?;
    (document.version == VERSION && document.known.len() <= MAX_KNOWN).then_some(document.known)
}

#[cfg(test)]
mod tests;

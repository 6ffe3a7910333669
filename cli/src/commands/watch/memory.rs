//! The servers that the watcher has seen. Only servers added later are new, so that a server that
//! the user left unguarded, or unwired again, stays that way.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file name in Holdpoint's home.
const FILE: &str = "watch.json";
const VERSION: u32 = 1;
/// A generous limit. Servers beyond it count as known, so that the file cannot grow without bound.
pub(crate) const MAX_KNOWN: usize = 10_000;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A server in a file.
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
    /// Files that could not be read when the watcher first ran.
    #[serde(default)]
    unread: BTreeSet<PathBuf>,
    /// Servers that are no longer wired although Holdpoint did not unwire them.
    #[serde(default)]
    returned: BTreeSet<Known>,
}

#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
    document: Document,
    /// Whether nothing was remembered yet: the current servers are then the starting point.
    is_first: bool,
    is_changed: bool,
}

impl Memory {
    /// Starts empty if the file cannot be read: at worst, a server that exists already is not
    /// reported.
    pub(crate) fn read(home: &Path) -> Memory {
        let path = home.join(FILE);
        let document = read_document(&path);
        let is_first = document.is_none();
        let document = document.unwrap_or_else(|| Document {
            version: VERSION,
            known: BTreeSet::new(),
            unread: BTreeSet::new(),
            returned: BTreeSet::new(),
        });
        Memory { path, document, is_first, is_changed: is_first }
    }

    /// Notes a file that cannot be read. Its servers may have been there all along, so once it can
    /// be read, they are not new.
    pub(crate) fn could_not_read(&mut self, path: &Path) {
        let is_known = self.document.known.iter().any(|known| known.path == path);
        if self.is_first && !is_known && self.document.unread.len() < MAX_KNOWN {
            self.is_changed |= self.document.unread.insert(path.to_owned());
        }
    }

    /// Adds the servers of a file that could be read. Returns the new ones.
    pub(crate) fn take(&mut self, path: &Path, servers: BTreeSet<Known>) -> BTreeSet<Known> {
        let was_unread = self.document.unread.remove(path);
        let is_gone = |known: &Known| known.path == path && !servers.contains(known);
        let count = self.document.known.len();
        self.document.known.retain(|known| !is_gone(known));
        self.document.returned.retain(|known| !is_gone(known));
        let has_gone = self.document.known.len() < count;
        let mut new = BTreeSet::new();
        for server in servers {
            if !self.document.known.contains(&server) && self.document.known.len() < MAX_KNOWN {
                self.document.known.insert(server.clone());
                new.insert(server);
            }
        }
        self.is_changed |= was_unread || has_gone || !new.is_empty();
        if self.is_first || was_unread { BTreeSet::new() } else { new }
    }

    /// Records a server that is no longer wired although Holdpoint did not unwire it. Returns
    /// whether this is news.
    pub(crate) fn returned(&mut self, server: &Known) -> bool {
        let is_news = self.document.returned.insert(server.clone());
        self.is_changed |= is_news;
        is_news
    }

    /// Records that a server is wired.
    pub(crate) fn is_wired(&mut self, server: &Known) {
        self.is_changed |= self.document.returned.remove(server);
    }

    /// Forgets a new server that could not be wired, so that it is tried again.
    pub(crate) fn forget(&mut self, server: &Known) {
        self.is_changed |= self.document.known.remove(server);
        self.is_changed |= self.document.returned.remove(server);
    }

    /// Writes the file. Called after all files were checked.
    pub(crate) fn keep(&mut self) -> Result<(), Failure> {
        self.is_first = false;
        if !self.is_changed {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.document)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let named = |error: std::io::Error| {
            Failure::internal(format!("`{}`: {error}", self.path.display()))
        };
        // Created with private permissions, and replaced atomically.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(named)?;
        file.write_all(&text).map_err(named)?;
        file.persist(&self.path).map_err(|error| named(error.error))?;
        self.is_changed = false;
        Ok(())
    }
}

fn read_document(path: &Path) -> Option<Document> {
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let document: Document = serde_json::from_slice(&text).ok()?;
    (document.version == VERSION && document.known.len() <= MAX_KNOWN).then_some(document)
}

#[cfg(test)]
mod tests;

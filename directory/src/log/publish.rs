//! Writes the log as files that any web server can serve: first the tiles, then the signed
//! checkpoint that covers them.
//!
//! The last checkpoint is also stored with the keys. INVARIANT: a checkpoint is only signed for a
//! tree that extends the tree of the last one, so a restored backup or a forked history is refused
//! instead of published.

use super::proof;
use super::signer::{Signer, SignerError};
use super::tile::{Nodes, TILE_WIDTH, Tile, TileLevel, write_bundle};
use crate::database::{Database, DatabaseError};
use ledger::checkpoint::{Checkpoint, CheckpointError};
use ledger::note::{Keyring, split};
use ledger::tree::leaf_of_entry;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file of the last checkpoint, in the folder of keys and in that of the log.
pub const CHECKPOINT_FILE: &str = "checkpoint";
/// How many entries are read from the database at a time.
const BATCH: usize = 1_024;

/// Why the log could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Signer(#[from] SignerError),
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the last checkpoint, `{}`: {source}", path.display())]
    Checkpoint { path: PathBuf, source: CheckpointError },
    #[error(
        "the log has {found} entries, and {signed} were signed for: this is an older copy of the database. Restore the newest one; nothing is published from this one"
    )]
    Shorter { found: u64, signed: u64 },
    #[error(
        "the first {signed} entries of the log are not those that were signed for: the history differs, and it is not published"
    )]
    Forked { signed: u64 },
    #[error("entry {0} is longer than a log takes")]
    TooLong(u64),
}

/// Publishes a log.
#[derive(Debug)]
pub struct Publisher {
    folder: PathBuf,
    keys: PathBuf,
    signer: Box<dyn Signer>,
    nodes: Nodes,
    /// The size of the tree in the folder's last checkpoint.
    published: u64,
    note: Option<String>,
}

impl Publisher {
    /// Reads the whole log, and compares it with the last signed checkpoint.
    pub fn open(
        database: &Database,
        folder: &Path,
        keys: &Path,
        signer: Box<dyn Signer>,
    ) -> Result<Publisher, PublishError> {
        let mut publisher = Publisher {
            folder: folder.to_owned(),
            keys: keys.to_owned(),
            signer,
            nodes: Nodes::default(),
            published: 0,
            note: None,
        };
        publisher.read_new(database)?;
        let path = keys.join(CHECKPOINT_FILE);
        if let Some(note) = read_text(&path).map_err(in_file(&path))? {
            let keyring = Keyring::from(publisher.signer.public_key().clone());
            let signed = Checkpoint::open_log(&note, &keyring)
                .map_err(|source| PublishError::Checkpoint { path, source })?;
            let found = publisher.nodes.size();
            if found < signed.size {
                return Err(PublishError::Shorter { found, signed: signed.size });
            }
            if proof::root(&mut &publisher.nodes, signed.size) != Ok(signed.root) {
                return Err(PublishError::Forked { signed: signed.size });
            }
            // If the folder does not have the same checkpoint, its tiles may be missing too: write
            // all of them again.
            let path = folder.join(CHECKPOINT_FILE);
            let shown = read_text(&path).map_err(in_file(&path))?;
            let is_same =
                |shown: &str| split(shown).map(|(text, _)| text) == Some(signed.text().as_str());
            if shown.as_deref().is_some_and(is_same) {
                publisher.published = signed.size;
                publisher.note = shown;
            }
        }
        Ok(publisher)
    }

    /// The last published checkpoint, as a signed note.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub fn published_size(&self) -> u64 {
        self.published
    }

    pub fn public_key(&self) -> String {
        self.signer.public_key().to_string()
    }

    fn read_new(&mut self, database: &Database) -> Result<(), PublishError> {
        loop {
            let entries = database.entries(self.nodes.size(), BATCH)?;
            if entries.is_empty() {
                return Ok(());
            }
            entries.iter().for_each(|entry| self.nodes.push(leaf_of_entry(entry)));
        }
    }

    /// Publishes new entries, if there are any. Returns the new checkpoint.
    pub fn publish(&mut self, database: &Database) -> Result<Option<Checkpoint>, PublishError> {
        self.read_new(database)?;
        let size = self.nodes.size();
        if self.note.is_some() && size == self.published {
            return Ok(None);
        }
        write_tiles(&self.folder, database, &self.nodes, self.published)?;
        let origin = self.signer.public_key().name().to_owned();
        let root = proof::root(&mut &self.nodes, size)
            .map_err(|_| PublishError::Forked { signed: self.published })?;
        let checkpoint = Checkpoint { origin, size, root };
        let note = self.signer.sign(&checkpoint.text())?;
        for folder in [&self.keys, &self.folder] {
            let path = folder.join(CHECKPOINT_FILE);
            write_durably(&path, note.as_bytes()).map_err(in_file(&path))?;
        }
        (self.published, self.note) = (size, Some(note));
        Ok(Some(checkpoint))
    }

    /// Adds witnesses' cosignatures to the published checkpoint.
    pub fn add_cosignatures(&mut self, lines: &str) -> Result<(), PublishError> {
        let Some(note) = &self.note else { return Ok(()) };
        let note = format!("{note}{lines}");
        let path = self.folder.join(CHECKPOINT_FILE);
        write_durably(&path, note.as_bytes()).map_err(in_file(&path))?;
        self.note = Some(note);
        Ok(())
    }
}

/// Writes the tiles of a tree, except full ones that a smaller, already published tree had.
pub fn write_tiles(
    folder: &Path,
    database: &Database,
    nodes: &Nodes,
    written: u64,
) -> Result<(), PublishError> {
    for tile in Tile::new_tiles(written, nodes.size()) {
        let first = tile.index * TILE_WIDTH;
        let bytes = match tile.level {
            TileLevel::Entries => {
                let entries = database.entries(first, usize::from(tile.width))?;
                write_bundle(&entries).ok_or(PublishError::TooLong(first))?
            }
            TileLevel::Hashes(level) => nodes
                .tile(level, tile.index, tile.width)
                .ok_or(PublishError::Forked { signed: written })?,
        };
        let path = folder.join(tile.to_string());
        write_durably(&path, &bytes).map_err(in_file(&path))?;
        if tile.is_whole() {
            // The tile is full, so its partial versions are no longer needed.
            let mut partial = path.into_os_string();
            partial.push(".p");
            let _ = fs::remove_dir_all(PathBuf::from(partial));
        }
    }
    Ok(())
}

fn in_file(path: &Path) -> impl FnOnce(io::Error) -> PublishError + use<> {
    let path = path.to_owned();
    move |source| PublishError::File { path, source }
}

/// The text of a file; `None` if it does not exist.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically and durably.
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_as(path, bytes, false)
}

/// The same for a file that only its user may read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_as(path, bytes, true)
}

fn write_as(path: &Path, bytes: &[u8], is_private: bool) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    fs::create_dir_all(folder)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, path)?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// Creates a folder that only its user may use.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests;

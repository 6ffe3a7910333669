//! A mirror: copies another directory's log and the documents named in it, and verifies everything.
//!
//! Its data equals that of the original directory, so it serves the same answers under the same
//! checkpoint.

use crate::database::{Database, DatabaseError};
use crate::entry::{Entry, Statement};
use crate::log::lease::{Lease, LeaseError};
use crate::log::proof;
use crate::log::publish::{CHECKPOINT_FILE, PublishError, read_text, write_durably, write_tiles};
use crate::log::reader::{LogFault, LogFiles, LogReader};
use crate::log::tile::{Nodes, TILE_WIDTH};
use crate::model::{Misfit, Model};
use crate::writer::{Folders, WriteError, read_model};
use contract::hash::sha256_hex;
use contract::surface::read_capture;
use ledger::checkpoint::Checkpoint;
use ledger::note::Keyring;
use ledger::tree::leaf_of_entry;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Why the mirror cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Log(#[from] LogFault),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Own(#[from] WriteError),
    #[error("entry {number} does not hold: {source}")]
    Misfit { number: u64, source: Misfit },
    #[error("the document {0} is not the one that the log names")]
    WrongDocument(String),
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

/// A copied directory.
#[derive(Debug)]
pub struct Mirror {
    _lease: Lease,
    folders: Folders,
    database: Database,
    model: Model,
    nodes: Nodes,
    keys: Keyring,
}

impl Mirror {
    /// Takes the lease of the data folder, and reads the existing copy.
    pub fn open(folders: &Folders, keys: Keyring) -> Result<Mirror, MirrorError> {
        let path = folders.data.clone();
        crate::log::publish::create_private_folder(&path)
            .map_err(|source| MirrorError::File { path, source })?;
        let lease = Lease::take(&folders.data)?;
        let database = Database::open(&folders.database())?;
        let model = read_model(&database)?;
        let mut nodes = Nodes::default();
        while nodes.size() < model.size {
            for entry in database.entries(nodes.size(), 1_024)? {
                nodes.push(leaf_of_entry(&entry));
            }
        }
        Ok(Mirror { _lease: lease, folders: folders.clone(), database, model, nodes, keys })
    }

    pub fn size(&self) -> u64 {
        self.model.size
    }

    /// Copies what is new. If anything does not verify, keeps none of it.
    pub fn sync(
        &mut self,
        log: &mut dyn LogFiles,
        documents: &mut dyn FnMut(&str) -> Result<Vec<u8>, LogFault>,
    ) -> Result<u64, MirrorError> {
        let mut reader = LogReader::new(log, self.keys.clone());
        let (checkpoint, note) = reader.checkpoint()?;
        let path = self.folders.log().join(CHECKPOINT_FILE);
        let in_file = |source| MirrorError::File { path: path.clone(), source };
        let shown = read_text(&path).map_err(in_file)?;
        if let Some(shown) = &shown {
            let kept = Checkpoint::open_log(shown, &self.keys).map_err(LogFault::from)?;
            if kept.size > checkpoint.size {
                return Err(LogFault::Shrunk { size: checkpoint.size, kept: kept.size }.into());
            }
        }
        let (mut model, mut nodes) = (self.model.clone(), self.nodes.clone());
        let mut added = Vec::new();
        while nodes.size() < checkpoint.size {
            let first = nodes.size();
            let bundle = reader.bundle(first / TILE_WIDTH, checkpoint.size)?;
            let skipped = usize::try_from(first % TILE_WIDTH).unwrap_or(0);
            for entry in bundle.into_iter().skip(skipped) {
                let number = nodes.size();
                nodes.push(leaf_of_entry(&entry));
                model.apply(&entry).map_err(|source| MirrorError::Misfit { number, source })?;
                added.push(entry);
            }
        }
        // INVARIANT: the existing and the copied entries together are those that the checkpoint
        // covers.
        if proof::root(&mut &nodes, checkpoint.size) != Ok(checkpoint.root) {
            return Err(LogFault::Rewritten { kept: self.nodes.size() }.into());
        }
        let blobs = self.documents_of(&added, documents)?;
        let first = self.model.size;
        self.database.write::<_, DatabaseError>(|writing| {
            for (entry, number) in added.iter().zip(first..) {
                writing.add_leaf(number, entry)?;
            }
            blobs.iter().try_for_each(|(hash, body)| writing.keep_blob(hash, body))
        })?;
        let written = if shown.is_some() { first } else { 0 };
        (self.model, self.nodes) = (model, nodes);
        write_tiles(&self.folders.log(), &self.database, &self.nodes, written)?;
        write_durably(&path, note.as_bytes()).map_err(in_file)?;
        let key_path = self.folders.log().join("key");
        let key: String = self.keys.keys().iter().map(|key| format!("{key}\n")).collect();
        write_durably(&key_path, key.as_bytes())
            .map_err(|source| MirrorError::File { path: key_path, source })?;
        Ok(self.model.size - first)
    }

    /// The documents that entries name and that are not copied yet, each verified by its hash.
    fn documents_of(
        &self,
        entries: &[Vec<u8>],
        fetch: &mut dyn FnMut(&str) -> Result<Vec<u8>, LogFault>,
    ) -> Result<Vec<(String, Vec<u8>)>, MirrorError> {
        let (mut named, mut surfaces) = (BTreeSet::new(), BTreeSet::new());
        for entry in entries.iter().filter_map(|bytes| Entry::read(bytes).ok()) {
            match entry.statement {
                Statement::Verdict(verdict) => {
                    named.insert(verdict.hashes.manifest);
                    surfaces.extend(verdict.hashes.surface);
                }
                Statement::Methodology(said) => {
                    named.insert(said.hashes.methodology);
                }
                Statement::Advisory(advisory) => {
                    named.insert(advisory.hashes.text);
                }
                Statement::Drift(_) | Statement::Claim(_) => {}
            }
        }
        let mut found = Vec::new();
        let all =
            named.iter().map(|hash| (hash, false)).chain(surfaces.iter().map(|it| (it, true)));
        for (hash, is_surface) in all {
            if self.database.blob(hash)?.is_some() {
                continue;
            }
            let body = fetch(hash)?;
            let own = match is_surface {
                true => read_capture(&body).ok().map(|surface| surface.surface_hash().to_string()),
                false => Some(sha256_hex(&body)),
            };
            if own.as_deref() != Some(hash.as_str()) {
                return Err(MirrorError::WrongDocument(hash.clone()));
            }
            found.push((hash.clone(), body));
        }
        Ok(found)
    }
}

//! The single writer of a directory: adds observations to the log, and publishes the log.

use crate::crawl::Observation;
use crate::database::{Database, DatabaseError, WaitingStatement, Words, Writing};
use crate::entry::{
    BadEntry, ENTRY_VERSION, Entry, MethodologyHashes, MethodologyStatement, Moment, Statement,
    Subject,
};
use crate::log::lease::{Lease, LeaseError};
use crate::log::publish::{PublishError, Publisher, write_durably};
use crate::log::signer;
use crate::model::{Misfit, Model};
use crate::record::{RecordError, Recording, record};
use contract::hash::sha256_hex;
use contract::surface::{Surface, read_capture};
use contract::time::Timestamp;
use std::path::{Path, PathBuf};

/// How verdicts are made: the page `/methodology`, whose hash every verdict names.
pub const METHODOLOGY: &str = include_str!("methodology.md");
/// The version of the methodology.
pub const METHODOLOGY_VERSION: &str = "1";
/// How many entries are read at a time.
const BATCH: usize = 1_024;
/// The most queued statements that are published at a time.
const MAX_SAID: usize = 1_000;

/// The folders of a directory.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The database, the log and the crawler's files.
    pub data: PathBuf,
    /// The log's key and its last checkpoint. Separate from the data, so that restoring a backup of
    /// one does not restore the other.
    pub keys: PathBuf,
}

impl Folders {
    pub fn database(&self) -> PathBuf {
        self.data.join("directory.db")
    }

    /// The counts of demand. Losing the file loses no history.
    pub fn demand(&self) -> PathBuf {
        self.data.join("demand.db")
    }

    /// The files served below `/log/`.
    pub fn log(&self) -> PathBuf {
        self.data.join("log")
    }
}

/// Why nothing can be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("entry {number} of the log does not hold: {source}")]
    Log { number: u64, source: Misfit },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Entry(#[from] BadEntry),
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

impl From<signer::SignerError> for WriteError {
    fn from(error: signer::SignerError) -> WriteError {
        WriteError::Publish(error.into())
    }
}

/// Reads the whole log from a database.
pub fn read_model(database: &Database) -> Result<Model, WriteError> {
    let mut model = Model::default();
    extend_model(database, &mut model, u64::MAX)?;
    Ok(model)
}

/// Reads entries added to the log since, up to a size.
pub fn extend_model(database: &Database, model: &mut Model, size: u64) -> Result<(), WriteError> {
    loop {
        let left = usize::try_from(size.saturating_sub(model.size)).unwrap_or(usize::MAX);
        let entries = database.entries(model.size, left.min(BATCH))?;
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            let number = model.size;
            model.apply(&entry).map_err(|source| WriteError::Log { number, source })?;
        }
    }
}

/// The recorded contract with a surface hash.
pub fn surface_of(database: &Database, hash: &str) -> Result<Option<Surface>, DatabaseError> {
    let capture = database.blob(hash)?;
    Ok(capture.and_then(|capture| read_capture(&capture).ok()))
}

/// Holds the lease of a data folder.
#[derive(Debug)]
pub struct LogWriter {
    _lease: Lease,
    database: Database,
    model: Model,
    publisher: Publisher,
}

impl LogWriter {
    /// Takes the lease, reads the log and compares it with the last signed checkpoint. A new log
    /// starts with the methodology.
    pub fn open(
        folders: &Folders,
        public_url: &str,
        signer_name: Option<&str>,
        now: Timestamp,
    ) -> Result<LogWriter, WriteError> {
        let in_file = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError::File { path, source }
        };
        for folder in [&folders.data, &folders.keys] {
            crate::log::publish::create_private_folder(folder).map_err(in_file(folder))?;
        }
        let lease = Lease::take(&folders.data)?;
        let database = Database::open(&folders.database())?;
        let model = read_model(&database)?;
        let signer = signer::open(signer_name, &folders.keys, &crate::log::origin(public_url))?;
        let publisher = Publisher::open(&database, &folders.log(), &folders.keys, signer)?;
        let mut writer = LogWriter { _lease: lease, database, model, publisher };
        writer.ensure_methodology(now)?;
        writer.publisher.publish(&writer.database)?;
        let path = folders.log().join("key");
        let key = format!("{}\n", writer.publisher.public_key());
        write_durably(&path, key.as_bytes()).map_err(in_file(&path))?;
        Ok(writer)
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    pub fn database_mut(&mut self) -> &mut Database {
        &mut self.database
    }

    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// Signs and publishes new entries.
    pub fn publish(&mut self) -> Result<bool, WriteError> {
        Ok(self.publisher.publish(&self.database)?.is_some())
    }

    /// Adds a changed methodology first: a verdict can only name one that is in the log.
    fn ensure_methodology(&mut self, now: Timestamp) -> Result<(), WriteError> {
        let hash = sha256_hex(METHODOLOGY.as_bytes());
        if self.model.methodology() == Some(hash.as_str()) {
            return Ok(());
        }
        let statement = Statement::Methodology(MethodologyStatement {
            hashes: MethodologyHashes { methodology: hash.clone() },
            version: METHODOLOGY_VERSION.to_owned(),
        });
        let subject = Subject::Document("methodology".to_owned());
        let blobs = vec![(hash, METHODOLOGY.as_bytes().to_vec())];
        self.say(subject, statement, blobs, now)
    }

    /// Adds one statement about a subject.
    pub fn say(
        &mut self,
        subject: Subject,
        statement: Statement,
        blobs: Vec<(String, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let at = self.moment(now);
        let prev = self.model.head(&subject);
        let entry = Entry { v: ENTRY_VERSION, at, subject, prev, statement };
        self.add(&Recording { entries: vec![entry.write()?], blobs }, |_| Ok(()))
    }

    /// Adds the statements that other processes of the directory queued. Returns the number of
    /// entries.
    pub fn say_waiting(&mut self, now: Timestamp) -> Result<usize, WriteError> {
        let mut count = 0;
        for WaitingStatement { id, words } in self.database.waiting_statements(MAX_SAID)? {
            let Words { subject, statement, document } = words;
            let now = self.moment(now);
            let prev = self.model.head(&subject);
            let entry = Entry { v: ENTRY_VERSION, at: now, subject, prev, statement };
            let blobs = document.map(|body| (sha256_hex(&body), body)).into_iter().collect();
            let recording = Recording { entries: vec![entry.write()?], blobs };
            match self.add(&recording, |writing| writing.mark_said(id)) {
                Ok(()) => count += 1,
                // Stays queued for another day.
                Err(WriteError::Log { source: Misfit::TooMany, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// The time of the next entry, in whole seconds and never before the last entry.
    fn moment(&self, now: Timestamp) -> Moment {
        let now = self.model.last_at().map_or(now, |last| last.0.max(now));
        Moment(Timestamp(now.0.div_euclid(1_000) * 1_000))
    }

    /// Adds an observation to the log. Returns the number of entries. Visits to a server are
    /// recorded in order: the log does not go back, so a visit that is overtaken would be lost.
    pub fn record(&mut self, seen: &Observation, now: Timestamp) -> Result<usize, WriteError> {
        if self.database.has_unrecorded_before(seen)? {
            return Err(RecordError::EarlierWaits.into());
        }
        let last = self.model.servers.get(&seen.server).and_then(|known| known.last_surface());
        let before = match last.and_then(|visit| visit.surface.as_deref()) {
            Some(hash) => surface_of(&self.database, hash)?,
            None => None,
        };
        let recording = record(&self.model, seen, before.as_ref(), now)?;
        let count = recording.entries.len();
        self.add(&recording, |writing| writing.mark_recorded(seen))?;
        Ok(count)
    }

    /// Records observations that an earlier run did not record. Returns the number of entries.
    pub fn record_waiting(&mut self, now: Timestamp) -> Result<usize, WriteError> {
        let mut count = 0;
        for seen in self.database.unrecorded()? {
            match self.record(&seen, now) {
                Ok(more) => count += more,
                // Stays queued for another day.
                Err(WriteError::Record(error)) if error.is_for_another_day() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Atomically adds entries, the documents they name, and the marks that their sources are
    /// recorded.
    fn add(
        &mut self,
        recording: &Recording,
        mark: impl FnOnce(&Writing<'_>) -> Result<(), DatabaseError>,
    ) -> Result<(), WriteError> {
        let first = self.model.size;
        for (entry, number) in recording.entries.iter().zip(first..) {
            if let Err(source) = self.model.apply(entry) {
                self.model = read_model(&self.database)?;
                return Err(WriteError::Log { number, source });
            }
        }
        let written = self.database.write::<_, DatabaseError>(|writing| {
            for (entry, number) in recording.entries.iter().zip(first..) {
                writing.add_leaf(number, entry)?;
            }
            for (hash, body) in &recording.blobs {
                writing.keep_blob(hash, body)?;
            }
            mark(writing)
        });
        if let Err(error) = written {
            // Restore the model from the database.
            self.model = read_model(&self.database)?;
            return Err(error.into());
        }
        Ok(())
    }
}

//! The folder `receipts` as files.

use super::error::ReceiptsError;
use super::journal::LOCK_PATIENCE_SECONDS;
use crate::home::{create_directory, failed};
use ledger::folder::{
    ChainFiles, ChainId, ChainListing, Folder, Listing, MAX_CHECKPOINT_BYTES, SegmentNumber,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locked by the one writer of a chain, and by who changes what is in the folder, where directories cannot be.
const LOCK: &str = "lock";
/// Given up to be able to write on a full disk.
pub(super) const RESERVE: &str = "reserve";
/// A chain that is being made.
pub(super) const UNFINISHED: &str = ".new-";
const UNFINISHED_CHECKPOINT: &str = "checkpoint.new";
/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;
/// How often a checkpoint is read until two readings agree.
const READINGS: usize = 5;
/// So many full segments may wait to be synced while calls go on.
const MAX_FULL_SEGMENTS: usize = 32;

/// A folder of receipts. It is only ever read through this.
#[derive(Debug, Clone)]
pub struct DiskFolder {
    path: PathBuf,
}

impl DiskFolder {
    pub fn new(path: &Path) -> DiskFolder {
        DiskFolder { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn chain_path(&self, chain: &ChainId) -> PathBuf {
        self.path.join(chain.as_str())
    }

    /// The files of one chain. Names that are not Holdpoint's are added to `foreign`.
    pub(super) fn list_chain(
        &self,
        chain: &ChainId,
        foreign: &mut Vec<String>,
    ) -> io::Result<ChainListing> {
        let mut found = ChainListing::default();
        for entry in fs::read_dir(self.chain_path(chain))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_file = entry.file_type()?.is_file();
            let number = name
                .split_once('.')
                .and_then(|(stem, extension)| Some((SegmentNumber::from_stem(stem)?, extension)));
            match number {
                Some((number, "jsonl")) if is_file => {
                    found.segments.insert(number, entry.metadata()?.len());
                }
                Some((number, "checkpoint")) if is_file => found.checkpoints.push(number),
                Some((_, UNFINISHED_CHECKPOINT)) if is_file => {}
                None if name == LOCK && is_file => {}
                _ => foreign.push(format!("{chain}/{name}")),
            }
        }
        found.checkpoints.sort();
        Ok(found)
    }
}

impl Folder for DiskFolder {
    fn listing(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if matches!(&*name, LOCK | RESERVE) || name.starts_with(UNFINISHED) {
                continue;
            }
            let chain = name.parse::<ChainId>().ok().filter(|_| {
                // A link would lead out of the folder.
                entry.file_type().is_ok_and(|kind| kind.is_dir())
            });
            match chain {
                Some(chain) => {
                    let found = self.list_chain(&chain, &mut listing.foreign);
                    let found = found.unwrap_or_else(|error| {
                        let what = format!("chain {chain} cannot be inspected: {error}");
                        listing.unreadable.push(what);
                        ChainListing::default()
                    });
                    listing.chains.insert(chain, found);
                }
                None => listing.foreign.push(name.into_owned()),
            }
        }
        listing.foreign.sort();
        Ok(listing)
    }

    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> io::Result<Box<dyn Read + Send>> {
        let mut file = plain_file(
            OpenOptions::new().read(true),
            &self.chain_path(chain).join(number.file_name()),
        )?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        Ok(Box::new(file))
    }

    fn checkpoint(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Option<String>> {
        let path = self.chain_path(chain).join(number.checkpoint_name());
        let mut before = read_checkpoint(&path)?;
        for _ in 1..READINGS {
            let again = read_checkpoint(&path)?;
            if again == before {
                break;
            }
            before = again;
        }
        Ok(before.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn read_checkpoint(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match plain_file(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_CHECKPOINT_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Opens a plain file: a link could lead anywhere, and a pipe would be waited for without end.
fn plain_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"))
    }
}

/// A new file in the place of whatever has the name: what a link there leads to is not touched.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    let mut options = private_options();
    options.write(true).create_new(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        other => other,
    }
}

/// What a directory is locked with: itself, which cannot be removed from under its writer, where a system can do that.
pub(super) fn lock_file(directory: &Path) -> io::Result<File> {
    #[cfg(unix)]
    return File::open(directory);
    #[cfg(not(unix))]
    return private_options().create(true).append(true).open(directory.join(LOCK));
}

/// A chain that this process alone writes to, for as long as this lives.
#[derive(Debug)]
pub(super) struct DiskChain {
    directory: PathBuf,
    /// Its lock is what keeps others out.
    _lock: File,
    segment: Option<Arc<File>>,
    length: u64,
    /// A write that failed left bytes behind that could not be cut off yet.
    is_ragged: bool,
    /// Segments that are full, and were not given to be synced yet.
    full: Vec<Arc<File>>,
    /// Whether full segments are kept in mind until they are on disk.
    is_synced: bool,
    /// Whether a checkpoint is brought to the disk before it takes its place.
    is_careful: bool,
    /// A sync failed.
    is_broken: bool,
}

/// What is written and perhaps not on disk, in the order in which it was written.
pub(super) struct Unsynced {
    files: Vec<Arc<File>>,
    /// The directory, where a segment has a name in it that may not be on disk.
    directory: Option<PathBuf>,
}

impl Unsynced {
    pub(super) fn sync(self) -> io::Result<()> {
        for file in &self.files {
            file.sync_data()?;
        }
        if let Some(directory) = self.directory {
            sync_directory(&directory);
        }
        Ok(())
    }
}

impl DiskChain {
    /// Takes the lock of a chain's directory; none where another process has it.
    pub(super) fn try_lock(
        directory: &Path,
        is_synced: bool,
    ) -> Result<Option<DiskChain>, ReceiptsError> {
        let lock = lock_file(directory).map_err(failed("open", directory))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => {
                return Err(failed("lock", directory)(error).into());
            }
        }
        Ok(Some(DiskChain {
            directory: directory.to_owned(),
            _lock: lock,
            segment: None,
            length: 0,
            is_ragged: false,
            full: Vec::new(),
            is_synced,
            is_careful: false,
            is_broken: false,
        }))
    }

    /// A new chain, in a directory that gets its name when its first line is signed.
    pub(super) fn unfinished(
        directory: &Path,
        is_synced: bool,
    ) -> Result<DiskChain, ReceiptsError> {
        create_directory(directory)?;
        let busy = || ReceiptsError::Busy { seconds: LOCK_PATIENCE_SECONDS };
        Ok(DiskChain::try_lock(directory, is_synced)?.ok_or_else(busy)?.careful())
    }

    /// For a chain with few lines, none of which may be lost.
    pub(super) fn careful(self) -> DiskChain {
        DiskChain { is_careful: true, ..self }
    }

    /// Gives the directory its name.
    pub(super) fn finish(
        &mut self,
        directory: &Path,
        is_careful: bool,
    ) -> Result<(), ReceiptsError> {
        if let Some(segment) = &self.segment {
            segment.sync_all().map_err(ReceiptsError::io("write", directory))?;
        }
        self.is_careful = is_careful;
        fs::rename(&self.directory, directory).map_err(ReceiptsError::io("make", directory))?;
        self.directory = directory.to_owned();
        sync_directory(directory);
        if let Some(parent) = directory.parent() {
            sync_directory(parent);
        }
        Ok(())
    }

    /// Goes on with a segment, cut to its good part.
    pub(super) fn continue_segment(
        &mut self,
        number: SegmentNumber,
        length: u64,
    ) -> io::Result<()> {
        let path = self.directory.join(number.file_name());
        let file = plain_file(private_options().write(true), &path)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        (self.segment, self.length, self.is_ragged) = (Some(Arc::new(file)), length, false);
        Ok(())
    }

    /// Where checkpoints go, for who puts them there while others append.
    pub(super) fn checkpoints(&self) -> Checkpoints {
        Checkpoints { directory: self.directory.clone(), is_careful: self.is_careful }
    }

    /// What is to be synced while others append.
    pub(super) fn take_unsynced(&mut self) -> Unsynced {
        let mut files = std::mem::take(&mut self.full);
        let directory = (!files.is_empty()).then(|| self.directory.clone());
        files.extend(self.segment.clone());
        Unsynced { files, directory }
    }
}

/// Where a chain's checkpoints go.
#[derive(Debug)]
pub(super) struct Checkpoints {
    directory: PathBuf,
    is_careful: bool,
}

impl Checkpoints {
    /// Puts one over an older one of the same length with a single write: a rename makes some file systems write to
    /// the disk at once, which costs as much as a hundred lines. A reader reads until two readings agree.
    pub(super) fn put(&self, number: SegmentNumber, text: &str) -> io::Result<()> {
        let path = self.directory.join(number.checkpoint_name());
        if self.is_careful || text.len() > SECTOR_BYTES {
            return self.put_new(number, text);
        }
        match plain_file(OpenOptions::new().write(true), &path) {
            Ok(file) if file.metadata()?.len() == text.len() as u64 => {
                write_all_at(&file, text.as_bytes(), 0)
            }
            _ => self.put_new(number, text),
        }
    }

    fn put_new(&self, number: SegmentNumber, text: &str) -> io::Result<()> {
        let unfinished = self.directory.join(format!("{number}.{UNFINISHED_CHECKPOINT}"));
        let mut file = new_file(&unfinished)?;
        file.write_all(text.as_bytes())?;
        if self.is_careful {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(&unfinished, self.directory.join(number.checkpoint_name()))
    }
}

impl ChainFiles for DiskChain {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("the disk did not take what was written before"));
        }
        let file = self.segment.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if self.is_ragged {
            file.set_len(self.length)?;
            self.is_ragged = false;
        }
        let written = write_all_at(file, bytes, self.length);
        if written.is_ok() {
            self.length += bytes.len() as u64;
        } else {
            self.is_ragged = file.set_len(self.length).is_err();
        }
        written
    }

    fn begin_segment(&mut self, number: SegmentNumber) -> io::Result<()> {
        let path = self.directory.join(number.file_name());
        if self.full.len() >= MAX_FULL_SEGMENTS {
            // The disk is slower than the calls: they wait for it.
            if let Err(error) = self.take_unsynced().sync() {
                // What it holds is unknown from now on, and a second try would not tell.
                self.is_broken = true;
                return Err(error);
            }
        }
        // One that is there already is what a failed try left: it has no line.
        let found = fs::symlink_metadata(&path);
        if found.is_ok_and(|found| found.is_file() && found.len() > 0) {
            let what = format!("`{}` is there already, and has lines", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        let file = new_file(&path)?;
        let before = self.segment.replace(Arc::new(file));
        self.full.extend(before.filter(|_| self.is_synced));
        (self.length, self.is_ragged) = (0, false);
        Ok(())
    }

    fn put_checkpoint(&mut self, number: SegmentNumber, text: &str) -> io::Result<()> {
        self.checkpoints().put(number, text)
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Only this process writes to the chain, so its end is known, and the system need not keep it.
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(not(unix))]
    {
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }
}

/// Names survive the machine too. Where a directory cannot be synced, nothing is lost but that.
pub(super) fn sync_directory(path: &Path) {
    #[cfg(unix)]
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

//! Verifies a log, read from its URL or from a copy in a folder, with nothing but its public key.

use super::proof;
use super::tile::{
    NodeSource, Nodes, TILE_WIDTH, Tile, TileCache, TileLevel, node_in_tile, read_bundle, tile_of,
};
use ledger::checkpoint::{Checkpoint, CheckpointError};
use ledger::note::Keyring;
use ledger::proof::{ConsistencyProof, InclusionProof, Proven};
use ledger::tree::{NodeHash, leaf_of_entry};
use std::io;
use std::path::PathBuf;
use wire::dialer::{DialError, Dialer};

/// The most tiles that are cached.
const MAX_TILES: usize = 4_096;

/// Why a log does not verify.
#[derive(Debug, thiserror::Error)]
pub enum LogFault {
    #[error("`{path}`: {source}")]
    File { path: String, source: io::Error },
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("a connection could not be prepared: {0}")]
    NoRuntime(io::Error),
    #[error("the checkpoint does not hold: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("the checkpoint is not text")]
    NotText,
    #[error("`{0}` is missing or has another size than the tree says")]
    Tile(String),
    #[error("`{0}` does not hold the hashes of the entries below it")]
    WrongTile(String),
    #[error(
        "the entries do not have the root that was signed: an entry was changed, added or left out"
    )]
    WrongRoot,
    #[error("the log is about {size} entries now, and {kept} were signed for before: it was cut")]
    Shrunk { size: u64, kept: u64 },
    #[error(
        "the log does not begin with the {kept} entries that were signed for before: it was rewritten, or shows two histories"
    )]
    Rewritten { kept: u64 },
    #[error("the checkpoint kept from before is about `{kept}`, and this log is `{origin}`")]
    OtherLog { kept: String, origin: String },
    #[error("entry {number}: {problem}")]
    Entry { number: u64, problem: String },
    #[error("there is no entry {0} in the log")]
    NoEntry(u64),
    #[error("the proof from the log's tiles does not verify against the signed root")]
    WrongProof,
}

/// The source of a log's files.
pub trait LogFiles {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, LogFault>;
}

impl<T: LogFiles + ?Sized> LogFiles for &mut T {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, LogFault> {
        (**self).file(path)
    }
}

impl<T: LogFiles + ?Sized> LogFiles for Box<T> {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, LogFault> {
        (**self).file(path)
    }
}

/// A log behind a URL.
#[derive(Debug)]
pub struct LogUrl {
    /// The URL of the log, without a trailing slash.
    base: String,
    dialer: Dialer,
    runtime: tokio::runtime::Runtime,
}

impl LogUrl {
    pub fn new(base: &str, dialer: Dialer) -> Result<LogUrl, LogFault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LogFault::NoRuntime)?;
        Ok(LogUrl { base: base.trim_end_matches('/').to_owned(), dialer, runtime })
    }
}

impl LogFiles for LogUrl {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, LogFault> {
        let url = format!("{}/{path}", self.base);
        Ok(self.runtime.block_on(self.dialer.get(&url, "*/*"))?)
    }
}

/// A copy of a log in a folder.
#[derive(Debug)]
pub struct LogFolder(pub PathBuf);

impl LogFiles for LogFolder {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, LogFault> {
        let file = self.0.join(path);
        std::fs::read(&file)
            .map_err(|source| LogFault::File { path: file.display().to_string(), source })
    }
}

/// Receives each entry with its number; an error ends the verification.
pub type HearEntry<'h> = dyn FnMut(u64, &[u8]) -> Result<(), String> + 'h;

/// A log being verified.
#[derive(Debug)]
pub struct LogReader<F> {
    files: F,
    keys: Keyring,
}

impl<F: LogFiles> LogReader<F> {
    pub fn new(files: F, keys: Keyring) -> LogReader<F> {
        LogReader { files, keys }
    }

    /// The current checkpoint, with its signed note.
    pub fn checkpoint(&mut self) -> Result<(Checkpoint, String), LogFault> {
        let note =
            String::from_utf8(self.files.file("checkpoint")?).map_err(|_| LogFault::NotText)?;
        Ok((Checkpoint::open_log(&note, &self.keys)?, note))
    }

    /// The entries of a bundle.
    pub fn bundle(&mut self, index: u64, size: u64) -> Result<Vec<Vec<u8>>, LogFault> {
        let width = (size - index * TILE_WIDTH).min(TILE_WIDTH) as u16;
        let tile = Tile { level: TileLevel::Entries, index, width };
        let bytes = self.files.file(&tile.to_string())?;
        read_bundle(&bytes, width).ok_or_else(|| LogFault::Tile(tile.to_string()))
    }

    /// Reads every entry and tile, and compares them with the signed root. Passes the entries on in
    /// order.
    pub fn verify(
        &mut self,
        checkpoint: &Checkpoint,
        heard: &mut HearEntry<'_>,
    ) -> Result<Nodes, LogFault> {
        let size = checkpoint.size;
        let mut nodes = Nodes::default();
        for index in 0..size.div_ceil(TILE_WIDTH) {
            for entry in self.bundle(index, size)? {
                let number = nodes.size();
                nodes.push(leaf_of_entry(&entry));
                heard(number, &entry).map_err(|problem| LogFault::Entry { number, problem })?;
            }
        }
        if proof::root(&mut &nodes, size) != Ok(checkpoint.root) {
            return Err(LogFault::WrongRoot);
        }
        for tile in Tile::new_tiles(0, size) {
            let TileLevel::Hashes(level) = tile.level else { continue };
            let expected = nodes.tile(level, tile.index, tile.width);
            let found = self.files.file(&tile.to_string())?;
            if Some(found) != expected {
                return Err(LogFault::WrongTile(tile.to_string()));
            }
        }
        Ok(nodes)
    }

    /// Checks that the log extends a checkpoint that was kept.
    pub fn extends(
        &mut self,
        kept: &Checkpoint,
        now: &Checkpoint,
    ) -> Result<ConsistencyProof, LogFault> {
        if kept.origin != now.origin {
            let (kept, origin) = (kept.origin.clone(), now.origin.clone());
            return Err(LogFault::OtherLog { kept, origin });
        }
        if kept.size > now.size {
            return Err(LogFault::Shrunk { size: now.size, kept: kept.size });
        }
        let proof = proof::consistency(&mut self.tiles(now.size), kept.size, now.size)?;
        match proof.verify(kept.root, now.root) {
            Proven::Yes => Ok(proof),
            Proven::No => Err(LogFault::Rewritten { kept: kept.size }),
        }
    }

    /// One entry, with a proof of its inclusion.
    pub fn prove(
        &mut self,
        number: u64,
        checkpoint: &Checkpoint,
    ) -> Result<(Vec<u8>, InclusionProof), LogFault> {
        if number >= checkpoint.size {
            return Err(LogFault::NoEntry(number));
        }
        let bundle = self.bundle(number / TILE_WIDTH, checkpoint.size)?;
        let place = usize::try_from(number % TILE_WIDTH).unwrap_or(usize::MAX);
        let entry = bundle.into_iter().nth(place).ok_or(LogFault::NoEntry(number))?;
        let proof = proof::inclusion(&mut self.tiles(checkpoint.size), number, checkpoint.size)?;
        match proof.verify(leaf_of_entry(&entry), checkpoint.root) {
            Proven::Yes => Ok((entry, proof)),
            Proven::No => Err(LogFault::WrongProof),
        }
    }

    fn tiles(&mut self, size: u64) -> Tiles<'_, F> {
        Tiles { files: &mut self.files, size, known: TileCache::new() }
    }
}

/// The nodes of a tree, read from its tiles.
struct Tiles<'f, F> {
    files: &'f mut F,
    size: u64,
    known: TileCache,
}

impl<F: LogFiles> NodeSource for Tiles<'_, F> {
    type Error = LogFault;

    fn node(&mut self, level: u32, place: u64) -> Result<NodeHash, LogFault> {
        let (tile, span) = tile_of(level, place, self.size);
        if !self.known.contains_key(&tile) {
            if self.known.len() == MAX_TILES {
                self.known.clear();
            }
            let bytes = self.files.file(&tile.to_string())?;
            self.known.insert(tile, bytes);
        }
        let bytes = self.known.get(&tile).map_or(&[][..], Vec::as_slice);
        node_in_tile(bytes, span).ok_or_else(|| LogFault::Tile(tile.to_string()))
    }
}

//! A folder in memory, for tests of this crate and others; it can simulate a full disk and a killed
//! writer.

use crate::folder::{ChainFiles, ChainId, ChainListing, Folder, Listing, SegmentNumber};
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A folder; clones refer to the same one.
#[derive(Debug, Clone, Default)]
pub struct MemoryFolder {
    shared: Arc<Mutex<Contents>>,
}

#[derive(Debug, Default)]
pub struct Contents {
    pub segments: BTreeMap<(ChainId, SegmentNumber), Vec<u8>>,
    pub checkpoints: BTreeMap<(ChainId, SegmentNumber), String>,
    /// The number of steps (appends, checkpoints, new segments) that still succeed; `None` for all.
    pub steps_left: Option<u64>,
    /// How many bytes of the failing append are left behind, as by a killed writer; never all.
    pub torn_bytes: usize,
}

impl MemoryFolder {
    /// The content, for tests to inspect or corrupt.
    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's side of a chain.
    pub fn chain(&self, chain: &ChainId) -> MemoryChain {
        let last =
            self.contents().segments.keys().filter(|(id, _)| id == chain).map(|key| key.1).max();
        MemoryChain {
            folder: self.clone(),
            chain: chain.clone(),
            segment: last.unwrap_or(SegmentNumber::FIRST),
        }
    }
}

impl Folder for MemoryFolder {
    fn listing(&self) -> io::Result<Listing> {
        let contents = self.contents();
        let mut listing = Listing::default();
        for ((chain, number), bytes) in &contents.segments {
            let files = listing.chains.entry(chain.clone()).or_default();
            files.segments.insert(*number, bytes.len() as u64);
        }
        for (chain, number) in contents.checkpoints.keys() {
            let files: &mut ChainListing = listing.chains.entry(chain.clone()).or_default();
            files.checkpoints.push(*number);
        }
        Ok(listing)
    }

    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> io::Result<Box<dyn Read + Send>> {
        let contents = self.contents();
        let bytes =
            contents.segments.get(&(chain.clone(), number)).ok_or(io::ErrorKind::NotFound)?;
        let mut cursor = Cursor::new(bytes.clone());
        cursor.set_position(offset);
        Ok(Box::new(cursor))
    }

    fn checkpoint(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Option<String>> {
        Ok(self.contents().checkpoints.get(&(chain.clone(), number)).cloned())
    }
}

/// A chain's files in a [`MemoryFolder`].
#[derive(Debug)]
pub struct MemoryChain {
    folder: MemoryFolder,
    chain: ChainId,
    segment: SegmentNumber,
}

impl MemoryChain {
    fn step(&self, contents: &mut Contents) -> io::Result<()> {
        match &mut contents.steps_left {
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Truncates the last segment to its valid part, as the next writer does.
    pub fn cut(&mut self, length: u64) {
        let mut contents = self.folder.contents();
        if let Some(bytes) = contents.segments.get_mut(&(self.chain.clone(), self.segment)) {
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
    }
}

impl ChainFiles for MemoryChain {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut contents = self.folder.contents();
        let outcome = self.step(&mut contents);
        let kept = if outcome.is_ok() {
            bytes.len()
        } else {
            contents.torn_bytes.min(bytes.len().saturating_sub(1))
        };
        let segment = contents.segments.entry((self.chain.clone(), self.segment)).or_default();
        segment.extend_from_slice(bytes.get(..kept).unwrap_or_default());
        outcome
    }

    fn begin_segment(&mut self, number: SegmentNumber) -> io::Result<()> {
        let mut contents = self.folder.contents();
        self.step(&mut contents)?;
        self.segment = number;
        contents.segments.insert((self.chain.clone(), number), Vec::new());
        Ok(())
    }

    fn put_checkpoint(&mut self, number: SegmentNumber, text: &str) -> io::Result<()> {
        let mut contents = self.folder.contents();
        self.step(&mut contents)?;
        contents.checkpoints.insert((self.chain.clone(), number), text.to_owned());
        Ok(())
    }
}

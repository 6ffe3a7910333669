//! The folder of receipts as an interface for reading and appending. Implemented by files, memory
//! and failing disks.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// The longest line in bytes, including its newline.
pub const MAX_LINE_BYTES: usize = 256 * 1024;

/// The largest checkpoint that is read, in bytes.
pub const MAX_CHECKPOINT_BYTES: usize = 16 * 1024;

/// The name of a chain: 16 hexadecimal digits, or `index` for the home's index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(String);

/// The text cannot name a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a chain is named by 16 hexadecimal digits, or `index`")]
pub struct BadChainId;

impl ChainId {
    const INDEX: &'static str = "index";

    /// The chain that lists all other chains.
    pub fn index() -> ChainId {
        ChainId(Self::INDEX.to_owned())
    }

    pub fn from_random(bytes: [u8; 8]) -> ChainId {
        ChainId(hex::encode(bytes))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_index(&self) -> bool {
        self.0 == Self::INDEX
    }
}

impl FromStr for ChainId {
    type Err = BadChainId;

    fn from_str(text: &str) -> Result<Self, BadChainId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_random = text.len() == 16 && text.bytes().all(is_digit);
        (is_random || text == Self::INDEX).then(|| ChainId(text.to_owned())).ok_or(BadChainId)
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl serde::Serialize for ChainId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The number of a segment, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct SegmentNumber(pub u32);

impl SegmentNumber {
    pub const FIRST: SegmentNumber = SegmentNumber(1);

    pub fn next(self) -> SegmentNumber {
        SegmentNumber(self.0.saturating_add(1))
    }

    pub fn file_name(self) -> String {
        format!("{self}.jsonl")
    }

    pub fn checkpoint_name(self) -> String {
        format!("{self}.checkpoint")
    }

    /// Parses the stem of a file name, which must be in the form that [`fmt::Display`] writes.
    pub fn from_stem(stem: &str) -> Option<SegmentNumber> {
        let number = SegmentNumber(stem.parse().ok()?);
        (number.0 > 0 && number.to_string() == stem).then_some(number)
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:06}", self.0)
    }
}

/// The content of a folder, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub chains: BTreeMap<ChainId, ChainListing>,
    /// Names that do not belong to Holdpoint, and errors for what could not be read, one sentence
    /// each.
    pub foreign: Vec<String>,
    pub unreadable: Vec<String>,
}

/// The files of one chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainListing {
    /// The segments with their sizes in bytes.
    pub segments: BTreeMap<SegmentNumber, u64>,
    /// Sorted.
    pub checkpoints: Vec<SegmentNumber>,
}

/// A folder that can be read.
pub trait Folder {
    fn listing(&self) -> io::Result<Listing>;

    /// The bytes of a segment from an offset on; empty past its end.
    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> io::Result<Box<dyn Read + Send>>;

    fn segment(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Box<dyn Read + Send>> {
        self.segment_from(chain, number, 0)
    }

    /// The text of a checkpoint, at most [`MAX_CHECKPOINT_BYTES`]; `None` if there is no such file.
    fn checkpoint(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Option<String>>;
}

/// The files of one chain, held exclusively by one writer.
pub trait ChainFiles {
    /// Appends to the last segment, completely or, on failure, not at all.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Starts a new segment, to which later appends go.
    fn begin_segment(&mut self, number: SegmentNumber) -> io::Result<()>;

    /// Replaces the checkpoint atomically.
    fn put_checkpoint(&mut self, number: SegmentNumber, text: &str) -> io::Result<()>;
}

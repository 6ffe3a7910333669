//! The end of a chain, as its next writer finds it.

use super::{CHECKPOINT_LINES, Head};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::folder::{ChainId, ChainListing, Folder, MAX_LINE_BYTES, SegmentNumber};
use crate::line::{BadLine, Line, LineHash, is_torn, scan};
use crate::lines::{LineReader, Piece};
use crate::note::Keyring;
use crate::tree::{Frontier, NodeHash, leaf};
use contract::time::Timestamp;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Where a chain ends.
#[derive(Debug, Clone)]
pub struct Tail {
    pub chain: ChainId,
    pub segment: SegmentNumber,
    /// The length of the last segment without a torn end, to which the file has to be truncated.
    pub segment_bytes: u64,
    pub torn: Option<Torn>,
    pub(crate) last: LineHash,
    pub(crate) tree: Frontier,
    pub(crate) segment_begun: Option<Timestamp>,
    pub(crate) covered: u64,
}

impl Tail {
    /// The number of lines that no checkpoint covers.
    pub fn unsigned_lines(&self) -> u64 {
        self.tree.size().saturating_sub(self.covered)
    }

    pub fn head(&self) -> Head {
        Head { chain: self.chain.clone(), hash: self.last, seq: self.tree.size().saturating_sub(1) }
    }
}

/// Bytes after the last newline, from a write that a crash interrupted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Torn {
    pub bytes: u64,
    pub sha256: String,
}

/// Why a chain cannot be continued. It is left as it is, for `receipts verify` to report.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    #[error("chain {chain} cannot be read: {source}")]
    Io { chain: ChainId, source: io::Error },
    #[error("chain {chain} has no lines")]
    Empty { chain: ChainId },
    #[error("chain {chain}, {segment}.jsonl, line {line}: {source}")]
    Line { chain: ChainId, segment: SegmentNumber, line: u64, source: BadLine },
    #[error("chain {chain}, {segment}.jsonl, line {line}: {what}")]
    Order { chain: ChainId, segment: SegmentNumber, line: u64, what: &'static str },
    #[error("chain {chain}, {segment}.checkpoint: {source}")]
    Checkpoint { chain: ChainId, segment: SegmentNumber, source: CheckpointError },
    #[error("chain {chain}: {lines} lines that are not signed, more than a writer leaves")]
    Unsigned { chain: ChainId, lines: u64 },
    #[error("chain {chain}, {segment}.checkpoint: it does not fit the lines")]
    OtherLines { chain: ChainId, segment: SegmentNumber },
}

/// Reads and checks the last segment that has lines.
///
/// The next writer continues after unsigned lines, and signs them: at most [`CHECKPOINT_LINES`]
/// lines after an existing checkpoint. No writer leaves more than that.
pub fn read_tail(
    folder: &dyn Folder,
    chain: &ChainId,
    listing: &ChainListing,
    keys: &Keyring,
) -> Result<Tail, TailError> {
    let empty = || TailError::Empty { chain: chain.clone() };
    let newest = *listing.segments.last_key_value().ok_or_else(empty)?.0;
    let before = listing.segments.range(..newest).next_back().map(|(number, _)| *number);
    let end = SegmentEnd::read(folder, chain, newest, keys)?;
    let tail = if let Some(walk) = end.walk {
        if end.signed.is_none() {
            check_before(folder, chain, newest, before, &walk, keys)?;
        }
        let begun = Some(walk.begun);
        walk.tail(chain, newest, end.good_bytes, end.torn, begun, end.covered)
    } else {
        // The writer was stopped after it created the file and before it wrote the first line.
        let before = before.filter(|before| before.next() == newest).ok_or_else(empty)?;
        let last = SegmentEnd::read(folder, chain, before, keys)?;
        let walk = last.walk.ok_or_else(empty)?;
        walk.tail(chain, newest, 0, end.torn, None, last.covered)
    };
    if tail.unsigned_lines() > CHECKPOINT_LINES {
        return Err(TailError::Unsigned { chain: chain.clone(), lines: tail.unsigned_lines() });
    }
    Ok(tail)
}

/// The end of a chain that is signed after every line: everything after its checkpoint is cut off,
/// even complete lines.
pub fn read_signed_tail(
    folder: &dyn Folder,
    chain: &ChainId,
    listing: &ChainListing,
    keys: &Keyring,
) -> Result<Tail, TailError> {
    let empty = || TailError::Empty { chain: chain.clone() };
    let segment = *listing.segments.last_key_value().ok_or_else(empty)?.0;
    let end = SegmentEnd::read(folder, chain, segment, keys)?;
    let other_lines = || TailError::OtherLines { chain: chain.clone(), segment };
    let (walk, bytes) = end.signed.ok_or_else(other_lines)?;
    let failed = |source| TailError::Io { chain: chain.clone(), source };
    let mut rest = Vec::new();
    let source = folder.segment_from(chain, segment, bytes).map_err(failed)?;
    source.take(2 * MAX_LINE_BYTES as u64).read_to_end(&mut rest).map_err(failed)?;
    let torn = (!rest.is_empty()).then(|| Torn::of(&rest));
    let begun = Some(walk.begun);
    let size = walk.tree.size();
    Ok(walk.tail(chain, segment, bytes, torn, begun, size))
}

/// Checks that a segment without a checkpoint continues where the previous one was signed.
fn check_before(
    folder: &dyn Folder,
    chain: &ChainId,
    segment: SegmentNumber,
    before: Option<SegmentNumber>,
    walk: &Walk,
    keys: &Keyring,
) -> Result<(), TailError> {
    let unsigned = || TailError::Unsigned { chain: chain.clone(), lines: walk.tree.size() };
    let closed = signed(folder, chain, before.ok_or_else(unsigned)?, keys)?.ok_or_else(unsigned)?;
    if closed.size == walk.first_seq && closed.root == walk.root_before {
        Ok(())
    } else {
        Err(TailError::OtherLines { chain: chain.clone(), segment })
    }
}

/// A complete segment that is signed to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedSegment {
    pub first_seq: u64,
    /// The size and root of the chain's tree up to the segment's last line.
    pub size: u64,
    pub root: NodeHash,
    pub last_ts: Timestamp,
}

/// Verifies a whole segment by itself.
pub fn closed_segment(
    folder: &dyn Folder,
    chain: &ChainId,
    segment: SegmentNumber,
    keys: &Keyring,
) -> Result<ClosedSegment, TailError> {
    let end = SegmentEnd::read(folder, chain, segment, keys)?;
    let other_lines = || TailError::OtherLines { chain: chain.clone(), segment };
    let (walk, bytes) = end.signed.ok_or_else(other_lines)?;
    if bytes != end.good_bytes || end.torn.is_some() {
        return Err(other_lines());
    }
    let last_ts = Timestamp::parse(&end.last_ts).ok_or_else(other_lines)?;
    Ok(ClosedSegment {
        first_seq: walk.first_seq,
        size: walk.tree.size(),
        root: walk.tree.root(),
        last_ts,
    })
}

/// The newest signed line of a chain. Unsigned lines may be lost, so nothing refers to them.
pub fn head(
    folder: &dyn Folder,
    chain: &ChainId,
    listing: &ChainListing,
    keys: &Keyring,
) -> Option<Head> {
    let segment =
        listing.checkpoints.iter().rfind(|number| listing.segments.contains_key(number))?;
    let covered = signed(folder, chain, *segment, keys).ok()??.size;
    let size = *listing.segments.get(segment)?;
    // Leaves room for all lines that a writer usually leaves unsigned.
    let offset = size.saturating_sub(4 * MAX_LINE_BYTES as u64);
    let mut reader = LineReader::new(folder.segment_from(chain, *segment, offset).ok()?);
    while let Ok(Some(piece)) = reader.next_piece() {
        let Piece::Line(bytes) = piece else { continue };
        let Ok(line) = scan(bytes) else { continue };
        if line.seq.saturating_add(1) == covered {
            return Some(Head { chain: chain.clone(), hash: line.hash, seq: line.seq });
        }
    }
    None
}

/// The result of reading one segment.
#[derive(Default)]
struct SegmentEnd {
    /// `None` if it has no complete line.
    walk: Option<Walk>,
    torn: Option<Torn>,
    good_bytes: u64,
    covered: u64,
    /// The lines that the segment's checkpoint covers, and where they end.
    signed: Option<(Walk, u64)>,
    last_ts: String,
}

impl SegmentEnd {
    fn read(
        folder: &dyn Folder,
        chain: &ChainId,
        segment: SegmentNumber,
        keys: &Keyring,
    ) -> Result<SegmentEnd, TailError> {
        let failed = |source| TailError::Io { chain: chain.clone(), source };
        let other_lines = || TailError::OtherLines { chain: chain.clone(), segment };
        let checkpoint = signed(folder, chain, segment, keys)?;
        let mut reader = LineReader::new(folder.segment(chain, segment).map_err(failed)?);
        let mut end = SegmentEnd::default();
        for line in 1.. {
            let order = |what| TailError::Order { chain: chain.clone(), segment, line, what };
            let Some(piece) = reader.next_piece().map_err(failed)? else { break };
            let bytes = match piece {
                Piece::Line(bytes) => bytes,
                Piece::Tail(bytes) if is_torn(bytes) => {
                    end.torn = Some(Torn::of(bytes));
                    break;
                }
                Piece::Tail(_) => {
                    return Err(order("it is neither a line nor the beginning of one"));
                }
                Piece::TooLong => return Err(order("it is longer than any line may be")),
            };
            let bad = |source| TailError::Line { chain: chain.clone(), segment, line, source };
            let walk = end.step(&scan(bytes).map_err(bad)?).map_err(order)?;
            let is_signed = checkpoint.as_ref().is_some_and(|at| at.size == walk.tree.size());
            if is_signed {
                let walk = walk.clone();
                if checkpoint.as_ref().is_some_and(|at| at.root != walk.tree.root()) {
                    return Err(other_lines());
                }
                end.signed = Some((walk, reader.position()));
            }
            end.good_bytes = reader.position();
        }
        let lines = end.walk.as_ref().map_or(0..=0, |walk| walk.first_seq..=walk.tree.size());
        end.covered = checkpoint.map_or(*lines.start(), |checkpoint| checkpoint.size);
        if lines.contains(&end.covered) { Ok(end) } else { Err(other_lines()) }
    }

    fn step(&mut self, line: &Line<'_>) -> Result<&Walk, &'static str> {
        self.last_ts.clear();
        self.last_ts.push_str(line.ts);
        let walk = match self.walk.take() {
            None => Walk::begin(line)?,
            Some(mut walk) => {
                walk.step(line)?;
                walk
            }
        };
        Ok(self.walk.insert(walk))
    }
}

impl Torn {
    fn of(bytes: &[u8]) -> Torn {
        Torn { bytes: bytes.len() as u64, sha256: hex::encode(Sha256::digest(bytes)) }
    }
}

fn signed(
    folder: &dyn Folder,
    chain: &ChainId,
    segment: SegmentNumber,
    keys: &Keyring,
) -> Result<Option<Checkpoint>, TailError> {
    let text = folder
        .checkpoint(chain, segment)
        .map_err(|source| TailError::Io { chain: chain.clone(), source })?;
    let Some(text) = text else { return Ok(None) };
    let checkpoint = Checkpoint::open(&text, keys).map_err(|source| TailError::Checkpoint {
        chain: chain.clone(),
        segment,
        source,
    })?;
    if checkpoint.chain().as_ref() == Some(chain) {
        Ok(Some(checkpoint))
    } else {
        Err(TailError::OtherLines { chain: chain.clone(), segment })
    }
}

/// The lines of a segment read so far.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pub(crate) tree: Frontier,
    pub(crate) last: LineHash,
    pub(crate) first_seq: u64,
    /// The root of all lines before the segment.
    root_before: NodeHash,
    begun: Timestamp,
}

impl Walk {
    fn tail(
        self,
        chain: &ChainId,
        segment: SegmentNumber,
        segment_bytes: u64,
        torn: Option<Torn>,
        segment_begun: Option<Timestamp>,
        covered: u64,
    ) -> Tail {
        Tail {
            chain: chain.clone(),
            segment,
            segment_bytes,
            torn,
            last: self.last,
            tree: self.tree,
            segment_begun,
            covered,
        }
    }

    /// The tree before a segment, from the statement in its first line.
    pub(crate) fn before(line: &Line<'_>) -> Result<Frontier, &'static str> {
        let tree = stated_tree(line).ok_or("it begins a segment and does not state its place")?;
        if tree.size() == line.seq {
            Ok(tree)
        } else {
            Err("its `seq` is not the number of lines before it")
        }
    }

    /// Starts from a segment's first line.
    pub(crate) fn begin(line: &Line<'_>) -> Result<Walk, &'static str> {
        let mut tree = Walk::before(line)?;
        if line.seq == 0 && line.prev != LineHash::NONE {
            return Err("the first line of a chain names one before it");
        }
        let root_before = tree.root();
        tree.push(leaf(&line.hash.0));
        let begun = Timestamp::parse(line.ts).ok_or("its `ts` is not a timestamp")?;
        Ok(Walk { tree, last: line.hash, first_seq: line.seq, root_before, begun })
    }

    pub(crate) fn step(&mut self, line: &Line<'_>) -> Result<(), &'static str> {
        if line.seq != self.tree.size() {
            return Err("its `seq` is not the one that follows");
        }
        if line.prev != self.last {
            return Err("its `prev` is not the hash of the line before");
        }
        self.tree.push(leaf(&line.hash.0));
        self.last = line.hash;
        Ok(())
    }
}

/// The tree stated in an opening line: `data.tree`.
fn stated_tree(line: &Line<'_>) -> Option<Frontier> {
    if !matches!(line.name, Some("chain.opened" | "chain.segment")) {
        return None;
    }
    let line: serde_json::Value = serde_json::from_slice(line.bytes).ok()?;
    let tree = line.pointer("/data/tree")?;
    let roots: Option<Vec<NodeHash>> =
        tree.get("frontier")?.as_array()?.iter().map(|root| root.as_str()?.parse().ok()).collect();
    Frontier::from_parts(tree.get("size")?.as_u64()?, &roots?)
}

//! Merges the lines of all chains into one order, starting at any position, and continues when
//! there are more.
//!
//! Lines are ordered by time across chains, and as written within a chain; if a chain's clock went
//! back, its lines count as having the latest time before. Lines without a newline are not read
//! yet.

use super::read::{Entry, Note, Spot, read_line};
use crate::folder::{ChainId, ChainListing, Folder, Listing, MAX_LINE_BYTES, SegmentNumber};
use crate::lines::{LineReader, Piece};
use contract::time::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::io::{self, Read};

/// The start of a line: its segment, and the bytes and lines before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub segment: SegmentNumber,
    pub offset: u64,
    pub lines: u64,
}

impl Position {
    pub fn start_of(segment: SegmentNumber) -> Position {
        Position { segment, offset: 0, lines: 0 }
    }
}

/// The most chains whose segments are kept open between two lines. With more, each line opens its
/// segment again, since a process can only have so many open files.
pub(super) const MAX_OPEN_SEGMENTS: usize = 128;

/// A reading of a folder. The iterator ends at the last line; after [`Reading::refresh`] it can
/// continue.
pub struct Reading<F> {
    folder: F,
    listing: Listing,
    chains: BTreeMap<ChainId, ChainTail>,
    heads: BinaryHeap<Reverse<Head>>,
    notes: VecDeque<Note>,
    /// The errors already reported, so that each is reported once.
    told: BTreeSet<String>,
}

impl<F> std::fmt::Debug for Reading<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reading").field("chains", &self.chains).finish_non_exhaustive()
    }
}

/// The next line of a chain, waiting for its turn.
#[derive(Debug)]
struct Head {
    turn: (Timestamp, ChainId),
    spot: Spot,
    entry: Entry,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl<F: Folder> Reading<F> {
    /// Starts each chain at the position in `starts`, or else at its oldest line.
    pub fn begin(folder: F, starts: &BTreeMap<ChainId, Position>) -> io::Result<Self> {
        let mut reading = Reading {
            folder,
            listing: Listing::default(),
            chains: BTreeMap::new(),
            heads: BinaryHeap::new(),
            notes: VecDeque::new(),
            told: BTreeSet::new(),
        };
        for (chain, position) in starts {
            reading.chains.insert(chain.clone(), ChainTail::at(chain.clone(), *position));
        }
        reading.refresh()?;
        Ok(reading)
    }

    /// Lists the folder again: new lines, segments and chains are read next.
    pub fn refresh(&mut self) -> io::Result<()> {
        self.listing = self.folder.listing()?;
        for say in &self.listing.unreadable {
            if self.told.insert(say.clone()) {
                let say = say.clone();
                self.notes.push_back(Note { chain: None, segment: None, line: None, say });
            }
        }
        for (chain, files) in &self.listing.chains {
            let Some(first) = files.segments.keys().next() else { continue };
            self.chains
                .entry(chain.clone())
                .or_insert_with(|| ChainTail::at(chain.clone(), Position::start_of(*first)));
        }
        let resting: Vec<ChainId> =
            self.chains.values().filter(|tail| tail.rests).map(|tail| tail.chain.clone()).collect();
        for chain in resting {
            self.advance(&chain);
        }
        Ok(())
    }

    /// Queues the next line of a chain. If there is none, the chain rests until there is more.
    fn advance(&mut self, chain: &ChainId) {
        let has_few_chains = self.chains.len() <= MAX_OPEN_SEGMENTS;
        let Some(tail) = self.chains.get_mut(chain) else { return };
        let nothing = ChainListing::default();
        let files = self.listing.chains.get(chain).unwrap_or(&nothing);
        tail.rests = true;
        if let Some((spot, entry)) = tail.next(&self.folder, files, &mut self.notes) {
            tail.rests = false;
            tail.latest = tail.latest.max(entry.ts());
            let turn = (tail.latest, chain.clone());
            self.heads.push(Reverse(Head { turn, spot, entry }));
            if !has_few_chains {
                tail.open = None;
            }
        }
    }

    /// The notes since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.notes.drain(..).collect()
    }
}

impl<F: Folder> Iterator for Reading<F> {
    type Item = (Spot, Entry);

    fn next(&mut self) -> Option<(Spot, Entry)> {
        let Reverse(Head { turn: (_, chain), spot, entry }) = self.heads.pop()?;
        self.advance(&chain);
        Some((spot, entry))
    }
}

/// A chain, and how far it was read.
struct ChainTail {
    chain: ChainId,
    position: Position,
    open: Option<OpenSegment>,
    latest: Timestamp,
    /// Whether none of its lines is queued.
    rests: bool,
    /// A failure was reported, and is not reported again before a successful read.
    has_failed: bool,
}

struct OpenSegment {
    lines: LineReader<Box<dyn Read + Send>>,
    /// The offset in the segment at which the reader started.
    base: u64,
}

impl std::fmt::Debug for ChainTail {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = formatter.debug_struct("ChainTail");
        out.field("chain", &self.chain).field("position", &self.position).finish_non_exhaustive()
    }
}

/// The result of reading from the open segment.
enum Step {
    Entry(Box<(Spot, Entry)>),
    Bad(&'static str),
    /// The end, with the number of bytes after the last newline.
    End(usize),
    Failed(io::Error),
}

impl ChainTail {
    fn at(chain: ChainId, position: Position) -> ChainTail {
        let latest = Timestamp(i64::MIN);
        ChainTail { chain, position, open: None, latest, rests: true, has_failed: false }
    }

    fn next(
        &mut self,
        folder: &impl Folder,
        files: &ChainListing,
        notes: &mut VecDeque<Note>,
    ) -> Option<(Spot, Entry)> {
        loop {
            let size = files.segments.get(&self.position.segment).copied();
            let is_more = size.is_some_and(|size| size > self.position.offset);
            let later = self.later_segment(files);
            if self.open.is_none() && !is_more {
                self.position = Position::start_of(later?);
                continue;
            }
            let step = self.step(folder);
            match step {
                Step::Entry(found) => {
                    self.has_failed = false;
                    return Some(*found);
                }
                Step::Bad(say) => notes.push_back(self.note(Some(self.position.lines), say)),
                Step::Failed(error) => {
                    if !self.has_failed {
                        notes.push_back(self.note(None, &format!("cannot be read: {error}")));
                    }
                    self.has_failed = true;
                    self.open = None;
                    // The rest of this segment cannot be read, but later segments can.
                    self.position = Position::start_of(later?);
                }
                Step::End(rest) => {
                    self.open = None;
                    // If this is the last segment, a writer may still be writing that line.
                    let later = later?;
                    if rest > 0 {
                        let line = Some(self.position.lines + 1);
                        notes.push_back(self.note(line, "the segment ends within it"));
                    }
                    self.position = Position::start_of(later);
                }
            }
        }
    }

    fn later_segment(&self, files: &ChainListing) -> Option<SegmentNumber> {
        let after = self.position.segment.next();
        files.segments.range(after..).next().map(|(number, _)| *number)
    }

    fn step(&mut self, folder: &impl Folder) -> Step {
        let Position { segment, offset, .. } = self.position;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match folder.segment_from(&self.chain, segment, offset) {
                Ok(bytes) => OpenSegment { lines: LineReader::new(bytes), base: offset },
                Err(error) => return Step::Failed(error),
            },
        };
        let step = match open.lines.next_piece() {
            Err(error) => return Step::Failed(error),
            Ok(None) => return Step::End(0),
            Ok(Some(Piece::Tail(bytes))) => return Step::End(bytes.len()),
            Ok(Some(Piece::TooLong)) => Err(TOO_LONG),
            Ok(Some(Piece::Line(bytes))) => read_line(bytes, &self.chain),
        };
        let start = self.position;
        self.position.offset = open.base + open.lines.position();
        self.position.lines += 1;
        self.open = Some(open);
        match step {
            Err(say) => Step::Bad(say),
            Ok(entry) => {
                let (chain, line) = (self.chain.clone(), self.position.lines);
                let spot = Spot { chain, segment, line, start, next: self.position };
                Step::Entry(Box::new((spot, entry)))
            }
        }
    }

    fn note(&self, line: Option<u64>, say: &str) -> Note {
        let (chain, segment) = (Some(self.chain.clone()), Some(self.position.segment));
        Note { chain, segment, line, say: say.to_owned() }
    }
}

const TOO_LONG: &str = "longer than any line may be (256 KiB)";
const _: () = assert!(MAX_LINE_BYTES == 256 * 1024, "the sentence above says so");

/// The line that starts at a position, if it can be parsed.
pub fn line_at<F: Folder>(
    folder: &F,
    chain: &ChainId,
    position: Position,
) -> io::Result<Option<(Spot, Entry)>> {
    match ChainTail::at(chain.clone(), position).step(folder) {
        Step::Entry(found) => Ok(Some(*found)),
        Step::Bad(_) | Step::End(_) => Ok(None),
        Step::Failed(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Step::Failed(error) => Err(error),
    }
}

/// For each chain, the segment to start from to read what was written since a time: the last one
/// that began before it.
pub fn segments_since<F: Folder>(
    folder: &F,
    since: Timestamp,
) -> io::Result<BTreeMap<ChainId, Position>> {
    let mut starts = BTreeMap::new();
    for (chain, files) in &folder.listing()?.chains {
        for segment in files.segments.keys().rev() {
            starts.insert(chain.clone(), Position::start_of(*segment));
            if first_moment(folder, chain, *segment).is_some_and(|first| first < since) {
                break;
            }
        }
    }
    Ok(starts)
}

/// When a segment was started, if its first line can be parsed.
pub(super) fn first_moment<F: Folder>(
    folder: &F,
    chain: &ChainId,
    segment: SegmentNumber,
) -> Option<Timestamp> {
    let bytes = folder.segment(chain, segment).ok()?;
    match LineReader::new(bytes).next_piece() {
        Ok(Some(Piece::Line(line))) => read_line(line, chain).ok().map(|entry| entry.ts()),
        _ => None,
    }
}

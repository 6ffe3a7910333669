//! Writing a chain: one line after the other, each naming the one before, with signed checkpoints over all of them.
//!
//! Lines can be written one by one, or several with one write. What a chain is after a write that failed is what it was
//! after the last one that did not: nothing is counted that was not written.

use crate::checkpoint::{Checkpoint, origin};
use crate::folder::{ChainFiles, ChainId, SegmentNumber};
use crate::line::{Draft, EncodeError, Encoder, LineHash, Place};
use crate::note::SigningKey;
use crate::record::{Event, Record};
use crate::tree::{Frontier, leaf};
use contract::time::Timestamp;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;

mod tail;

pub(crate) use tail::Walk;
pub use tail::{
    ClosedSegment, Tail, TailError, Torn, closed_segment, head, read_signed_tail, read_tail,
};

/// At most this many lines are without a checkpoint when the next one is written. Part of the format: readers count on it.
pub const CHECKPOINT_LINES: u64 = 256;

/// A line is without a checkpoint for at most this long, if [`ChainWriter::unsigned_if_due`] is called.
pub const CHECKPOINT_MILLISECONDS: i64 = 10_000;

/// The most other chains whose heads an opening names.
pub const MAX_NAMED_HEADS: usize = 1_000;

/// The newest line of a chain.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Head {
    pub chain: ChainId,
    pub hash: LineHash,
    pub seq: u64,
}

/// A line that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub seq: u64,
    pub hash: LineHash,
}

/// A checkpoint that is not signed yet.
#[derive(Debug, Clone)]
pub struct Unsigned {
    segment: SegmentNumber,
    origin: String,
    tree: GrowingTree,
    key: Arc<SigningKey>,
}

impl Unsigned {
    pub fn sign(self) -> Signed {
        let tree = self.tree.grown();
        let checkpoint = Checkpoint { origin: self.origin, size: tree.size(), root: tree.root() };
        Signed { segment: self.segment, text: checkpoint.sign(&self.key), tree }
    }
}

/// A checkpoint that is not in its place yet.
#[derive(Debug, Clone)]
pub struct Signed {
    pub segment: SegmentNumber,
    pub text: String,
    tree: Frontier,
}

/// The tree over a chain. The newest lines are taken into it when a checkpoint needs them, by the thread that signs: that is
/// a third of the hashing, and no call has to wait for it.
#[derive(Debug, Clone)]
struct GrowingTree {
    tree: Frontier,
    newest: Vec<LineHash>,
}

impl GrowingTree {
    fn new(tree: Frontier) -> GrowingTree {
        GrowingTree { tree, newest: Vec::new() }
    }

    fn size(&self) -> u64 {
        self.tree.size() + self.newest.len() as u64
    }

    fn grown(&self) -> Frontier {
        let mut tree = self.tree.clone();
        for hash in &self.newest {
            tree.push(leaf(&hash.0));
        }
        tree
    }

    /// Forgets the newest lines.
    fn cut(&mut self, size: u64) {
        let kept = size.saturating_sub(self.tree.size());
        self.newest.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Takes over the tree that another thread has made of a part of the same lines.
    fn take_over(&mut self, tree: &Frontier) {
        let known = tree.size().saturating_sub(self.tree.size());
        if known > 0 {
            self.newest
                .drain(..usize::try_from(known).map_or(0, |known| known.min(self.newest.len())));
            self.tree = tree.clone();
        }
    }
}

/// When a segment is closed and the next one begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    pub bytes: u64,
    pub age_milliseconds: i64,
}

impl Rotation {
    /// For a chain that stays in one segment.
    pub const NEVER: Rotation = Rotation { bytes: u64::MAX, age_milliseconds: i64::MAX };
}

/// A segment of this length is not continued by the next writer: a writer that resumes a chain reads its last segment
/// before anything else can be done, and the process after that one would read all of it again.
pub const MAX_RESUMED_BYTES: u64 = 512 * 1024;

/// Why a record was not written. The call that it belongs to must not be made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the receipt could not be written: {0}")]
    Io(#[from] io::Error),
}

/// The one writer of a chain.
#[derive(Debug)]
pub struct ChainWriter<F> {
    files: F,
    key: Arc<SigningKey>,
    chain: ChainId,
    rotation: Rotation,
    /// The hash of the last line.
    last: LineHash,
    tree: GrowingTree,
    segment: SegmentNumber,
    /// None where the segment has no line yet.
    segment_begun: Option<Timestamp>,
    segment_bytes: u64,
    /// The segment is that of a writer before this one, and long enough.
    is_segment_full: bool,
    /// How many lines the newest checkpoint covers.
    covered: u64,
    /// When the oldest line was written that it does not cover.
    uncovered_since: Option<Timestamp>,
    encoder: Encoder,
    /// Lines that are not written yet.
    buffer: Vec<u8>,
    /// How the chain was before them.
    written: Mark,
}

/// How a chain stands after its last write.
#[derive(Debug, Clone, Copy)]
struct Mark {
    last: LineHash,
    size: u64,
    segment_begun: Option<Timestamp>,
    segment_bytes: u64,
    uncovered_since: Option<Timestamp>,
}

impl Mark {
    const NONE: Mark = Mark {
        last: LineHash::NONE,
        size: 0,
        segment_begun: None,
        segment_bytes: 0,
        uncovered_since: None,
    };
}

impl<F: ChainFiles> ChainWriter<F> {
    /// Begins a chain: its first line names the home, this program and the heads of the other chains.
    pub fn create(
        mut files: F,
        key: Arc<SigningKey>,
        chain: ChainId,
        rotation: Rotation,
        others: &[Head],
        ts: Timestamp,
    ) -> Result<Self, WriteError> {
        files.begin_segment(SegmentNumber::FIRST)?;
        let mut writer = ChainWriter {
            files,
            key,
            chain,
            rotation,
            last: LineHash::NONE,
            tree: GrowingTree::new(Frontier::new()),
            segment: SegmentNumber::FIRST,
            segment_begun: None,
            segment_bytes: 0,
            is_segment_full: false,
            covered: 0,
            uncovered_since: None,
            encoder: Encoder::default(),
            buffer: Vec::new(),
            written: Mark::NONE,
        };
        let data = json!({
            "chain": writer.chain,
            "holdpoint": env!("CARGO_PKG_VERSION"),
            "key": writer.key.name(),
            "others": named(others),
            "tree": tree_data(&writer.tree.grown()),
        });
        writer.put_event(&event(ts, "chain.opened", &data))?;
        writer.checkpoint()?;
        Ok(writer)
    }

    /// Goes on with a chain where `tail` ends. The caller has cut off what is torn; the first line says so, and names
    /// the other heads where there are any to name.
    pub fn resume(
        files: F,
        key: Arc<SigningKey>,
        tail: Tail,
        rotation: Rotation,
        others: &[Head],
        ts: Timestamp,
    ) -> Result<Self, WriteError> {
        let unsigned = tail.unsigned_lines();
        let torn = tail.torn;
        let mut writer = ChainWriter {
            files,
            key,
            chain: tail.chain,
            rotation,
            last: tail.last,
            tree: GrowingTree::new(tail.tree),
            segment: tail.segment,
            segment_begun: tail.segment_begun,
            segment_bytes: tail.segment_bytes,
            is_segment_full: rotation != Rotation::NEVER && tail.segment_bytes >= MAX_RESUMED_BYTES,
            covered: tail.covered,
            uncovered_since: None,
            encoder: Encoder::default(),
            buffer: Vec::new(),
            written: Mark::NONE,
        };
        if writer.uncovered_lines() > 0 {
            writer.uncovered_since = Some(ts);
        }
        writer.written = writer.mark();
        if torn.is_none() && others.is_empty() {
            return Ok(writer);
        }
        let data = json!({
            "holdpoint": env!("CARGO_PKG_VERSION"),
            "others": named(others),
            "torn": torn,
            "unsigned": unsigned,
        });
        writer.append(&Record::Event(&event(ts, "chain.resumed", &data)))?;
        Ok(writer)
    }

    /// Writes one record, and all that were taken before. When this returns, their bytes are with the operating system;
    /// when it fails, none of them is a part of the chain.
    pub fn append(&mut self, record: &Record<'_>) -> Result<Written, WriteError> {
        let mut encoder = std::mem::take(&mut self.encoder);
        let written = encoder
            .draft(record)
            .map_err(WriteError::from)
            .and_then(|draft| self.take(draft))
            .and_then(|written| self.flush().map(|()| written));
        self.encoder = encoder;
        written
    }

    /// Takes one record that is written with the next [`ChainWriter::flush`]. Writes and signs first what was taken
    /// before, where [`ChainWriter::needs_checkpoint`] says so.
    pub fn take(&mut self, draft: Draft<'_>) -> Result<Written, WriteError> {
        let ts = draft.ts();
        if self.uncovered_lines() >= CHECKPOINT_LINES {
            self.checkpoint()?;
        }
        if self.is_rotation_due(ts) {
            self.checkpoint()?;
            self.files.begin_segment(self.segment.next())?;
            self.segment = self.segment.next();
            self.segment_begun = None;
            self.segment_bytes = 0;
            self.is_segment_full = false;
            self.written = self.mark();
        }
        if self.segment_begun.is_none() {
            let data = json!({"segment": self.segment, "tree": tree_data(&self.tree.grown())});
            self.put_event(&event(ts, "chain.segment", &data))?;
        }
        Ok(self.put(draft))
    }

    /// Whether a checkpoint has to be in its place before the next line is taken.
    pub fn needs_checkpoint(&self, ts: Timestamp) -> bool {
        self.uncovered_lines() >= CHECKPOINT_LINES || self.is_rotation_due(ts)
    }

    /// Writes what is not written yet, as one: all of it, or on a failure none.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.files.append(&self.buffer);
        self.buffer.clear();
        match written {
            Ok(()) => self.written = self.mark(),
            Err(error) => {
                self.go_back();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// How many lines the chain has on disk or with the operating system.
    pub fn written_lines(&self) -> u64 {
        self.written.size
    }

    /// Whether there are lines that are not written yet.
    pub fn has_unwritten(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn mark(&self) -> Mark {
        Mark {
            last: self.last,
            size: self.tree.size(),
            segment_begun: self.segment_begun,
            segment_bytes: self.segment_bytes,
            uncovered_since: self.uncovered_since,
        }
    }

    fn go_back(&mut self) {
        let Mark { last, size, segment_begun, segment_bytes, uncovered_since } = self.written;
        self.tree.cut(size);
        self.last = last;
        self.segment_begun = segment_begun;
        self.segment_bytes = segment_bytes;
        self.uncovered_since = uncovered_since;
    }

    /// Whether the next append begins a segment.
    pub fn is_rotation_due(&self, now: Timestamp) -> bool {
        let age = |begun: Timestamp| now.0.saturating_sub(begun.0);
        self.segment_begun.is_some_and(|begun| {
            self.is_segment_full
                || self.segment_bytes >= self.rotation.bytes
                || age(begun) >= self.rotation.age_milliseconds
        })
    }

    fn put_event(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        let mut encoder = std::mem::take(&mut self.encoder);
        let put = encoder.draft(&Record::Event(event)).map(|draft| self.put(draft));
        self.encoder = encoder;
        Ok(put.map(drop)?)
    }

    /// Gives a line its place.
    fn put(&mut self, draft: Draft<'_>) -> Written {
        let before = self.buffer.len();
        let place = Place { seq: self.tree.size(), prev: self.last };
        let hash = draft.place(place, &mut self.buffer);
        self.tree.newest.push(hash);
        self.last = hash;
        self.segment_bytes += (self.buffer.len() - before) as u64;
        self.segment_begun.get_or_insert(draft.ts());
        self.uncovered_since.get_or_insert(draft.ts());
        Written { seq: place.seq, hash }
    }

    /// Signs all lines that are written, where the newest checkpoint does not cover them yet.
    pub fn checkpoint(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let Some(unsigned) = self.unsigned() else { return Ok(()) };
        let signed = unsigned.sign();
        self.files.put_checkpoint(signed.segment, &signed.text)?;
        self.note_put(&signed);
        Ok(())
    }

    /// A checkpoint of all lines that are written, where one is due. It is put in its place when they are on disk.
    ///
    /// A clock that went back counts as a long wait.
    pub fn unsigned_if_due(&self, now: Timestamp) -> Option<Unsigned> {
        let since = self.uncovered_since?;
        let is_due = now < since || now.0.saturating_sub(since.0) >= CHECKPOINT_MILLISECONDS;
        is_due.then(|| self.unsigned()).flatten()
    }

    /// A checkpoint of all lines that are written, to be signed elsewhere: that takes longer than a line. None while
    /// there are lines that are not.
    pub fn unsigned(&self) -> Option<Unsigned> {
        if self.uncovered_lines() == 0 || self.has_unwritten() {
            return None;
        }
        Some(Unsigned {
            segment: self.segment,
            origin: origin(self.key.name(), &self.chain),
            tree: self.tree.clone(),
            key: self.key.clone(),
        })
    }

    /// Whether a checkpoint covers more than the newest that is in its place.
    pub fn is_newer(&self, unsigned: &Unsigned) -> bool {
        unsigned.tree.size() > self.covered
    }

    /// Takes note of a checkpoint that another thread wrote.
    ///
    /// INVARIANT: two checkpoints are never written at the same time: an older one could stay.
    pub fn note_put(&mut self, signed: &Signed) {
        self.covered = self.covered.max(signed.tree.size());
        self.tree.take_over(&signed.tree);
        if self.uncovered_lines() == 0 {
            self.uncovered_since = None;
        }
    }

    pub fn uncovered_lines(&self) -> u64 {
        self.tree.size().saturating_sub(self.covered)
    }

    pub fn chain(&self) -> &ChainId {
        &self.chain
    }

    pub fn head(&self) -> Head {
        Head { chain: self.chain.clone(), hash: self.last, seq: self.tree.size().saturating_sub(1) }
    }

    pub fn segment(&self) -> SegmentNumber {
        self.segment
    }

    pub fn files(&mut self) -> &mut F {
        &mut self.files
    }
}

fn event<'a>(ts: Timestamp, name: &'a str, data: &'a Value) -> Event<'a> {
    Event { ts, name, by: None, server_id: None, data: Some(data) }
}

/// What the first line of a segment says of all lines before it.
fn tree_data(tree: &Frontier) -> Value {
    json!({"frontier": tree.roots(), "size": tree.size()})
}

fn named(others: &[Head]) -> &[Head] {
    others.get(..others.len().min(MAX_NAMED_HEADS)).unwrap_or_default()
}

#[cfg(test)]
mod tests;

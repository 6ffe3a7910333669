//! Verifies one chain: every line, every segment's statement of its position, every checkpoint.

use super::Heads;
use super::claims::Claims;
use super::current_index::CurrentIndex;
use super::report::{ChainReport, Problem, Report};
use crate::chain::{CHECKPOINT_LINES, Walk};
use crate::checkpoint::{Checkpoint, origin};
use crate::folder::{ChainId, ChainListing, Folder, SegmentNumber};
use crate::index::Index;
use crate::line::{Line, LineKind, is_torn, scan};
use crate::lines::{LineReader, Piece};
use crate::note::Keyring;
use crate::record::ReceiptId;
use crate::tree::{Frontier, NodeHash};
use std::collections::HashSet;
use std::io;

/// The most open calls that are tracked. Further ones are only counted.
pub const MAX_OPEN_CALLS: usize = 100_000;

/// A line of the index is signed at once, together with a line that closes a torn end, if any.
const MAX_UNSIGNED_INDEX_LINES: u64 = 2;

/// Receives each valid line, and whether a checkpoint covers it.
pub(super) type TakeLine<'t> = &'t mut dyn FnMut(&Line<'_>, bool) -> Result<(), &'static str>;

/// The inputs for verifying a chain.
pub(super) struct ChainCheck<'a> {
    pub(super) folder: &'a dyn Folder,
    pub(super) chain: &'a ChainId,
    pub(super) files: &'a ChainListing,
    pub(super) keys: &'a Keyring,
    /// Checkpoints of any chain that were kept elsewhere.
    pub(super) heads: &'a Heads<'a>,
    pub(super) index: &'a Index,
    /// The name of the key that signed the index: the home that the chains belong to.
    pub(super) home: Option<&'a str>,
    /// The current index. `None` when verifying the index itself.
    pub(super) current: Option<&'a CurrentIndex<'a>>,
    pub(super) progress: &'a dyn Fn(u64),
}

/// The progress of verifying a chain.
struct ChainProgress {
    /// `None` before the first line, and after a bad one until the next segment states its
    /// position.
    walk: Option<Walk>,
    found: ChainReport,
    open_calls: HashSet<ReceiptId>,
    /// The number of open calls that are not tracked.
    open_uncounted: u64,
    last_ts: String,
    clock_went_back: u64,
    /// The number of lines signed by a later writer than the one that wrote them.
    adopted: u64,
    /// The checkpoints to compare when the tree reaches their size, largest first.
    wanted: Vec<Wanted>,
}

#[derive(Debug, Clone)]
struct Wanted {
    size: u64,
    root: NodeHash,
    is_from_elsewhere: bool,
    segment: Option<SegmentNumber>,
}

impl ChainCheck<'_> {
    pub(super) fn run(
        &self,
        claims: &mut Claims,
        take: TakeLine<'_>,
        report: &mut Report,
    ) -> ChainReport {
        let mut state = ChainProgress::new(self.chain);
        let heads = self.heads.get(self.chain).into_iter().flatten();
        let own_heads = heads.filter(|head| self.is_own(head));
        state.want(own_heads.map(|head| Wanted {
            size: head.size,
            root: head.root,
            is_from_elsewhere: true,
            segment: None,
        }));
        let mut expected = self.first_segment(report);
        for (number, bytes) in &self.files.segments {
            if expected < *number {
                let last = SegmentNumber(number.0.saturating_sub(1));
                let what = match last == expected {
                    true => "the segment is gone".to_owned(),
                    false => format!("the segments from here to {last} are gone"),
                };
                report.problem(self.at(expected, None, &what));
                state.walk = None;
            }
            self.segment(*number, *bytes, &mut state, claims, take, report);
            expected = number.next();
        }
        self.stray_checkpoints(report);
        self.finish(state, report)
    }

    /// The first segment that must exist: the one after those that retention dropped.
    fn first_segment(&self, report: &mut Report) -> SegmentNumber {
        let Some(first) = self.files.segments.keys().next() else {
            report.problem(Problem::of_chain(self.chain, "it has no segments"));
            return SegmentNumber::FIRST;
        };
        let before = SegmentNumber(first.0.saturating_sub(1));
        if before.0 == 0 {
            return SegmentNumber::FIRST;
        }
        let is_named = self.index.dropped_up_to(self.chain, before).is_some();
        if is_named || self.is_dropped_now(before) {
            return *first;
        }
        report.problem(self.at(
            SegmentNumber::FIRST,
            None,
            &format!(
                "segments up to {before} are gone, and no signed record of retention names them"
            ),
        ));
        *first
    }

    fn segment(
        &self,
        number: SegmentNumber,
        bytes: u64,
        state: &mut ChainProgress,
        claims: &mut Claims,
        take: TakeLine<'_>,
        report: &mut Report,
    ) {
        let is_last = self.files.segments.keys().next_back() == Some(&number);
        state.found.segments += 1;
        // Read it before the lines: a concurrent writer only adds lines.
        let checkpoint = self.checkpoint(number, report);
        if let Some(checkpoint) = &checkpoint {
            state.want([Wanted {
                size: checkpoint.size,
                root: checkpoint.root,
                is_from_elsewhere: false,
                segment: Some(number),
            }]);
        }
        let signed = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
        let lines_before = state.found.lines;
        let outcome = self.lines(number, is_last, signed, state, claims, take, report);
        if let Err((line, what)) = outcome {
            report.problem(self.at(number, line, &what));
            state.walk = None;
            state.drop_wanted(number);
            return;
        }
        if state.found.lines == lines_before {
            if self.is_dropped_now(number) {
                state.drop_wanted(number);
                return;
            }
            self.judge_empty(number, bytes, is_last, checkpoint.is_some(), report);
            return;
        }
        self.judge_checkpoint(number, is_last, checkpoint.as_ref(), state, report);
    }

    /// Verifies the lines of a segment. The error describes the problem and the line.
    #[expect(clippy::too_many_arguments, reason = "all of it is the one state of the one pass")]
    fn lines(
        &self,
        number: SegmentNumber,
        is_last: bool,
        signed: u64,
        state: &mut ChainProgress,
        claims: &mut Claims,
        take: TakeLine<'_>,
        report: &mut Report,
    ) -> Result<(), (Option<u64>, String)> {
        let source = match self.folder.segment(self.chain, number) {
            Ok(source) => source,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && self.is_dropped_now(number) =>
            {
                state.walk = None;
                return Ok(());
            }
            Err(error) => return Err((None, format!("it cannot be read: {error}"))),
        };
        let mut reader = LineReader::new(source);
        for line_number in 1.. {
            let here = |what: &dyn std::fmt::Display| (Some(line_number), what.to_string());
            let start = reader.position();
            let piece = reader.next_piece();
            let piece = piece
                .map_err(|error| (Some(line_number), format!("it cannot be read: {error}")))?;
            let bytes = match piece {
                None => return Ok(()),
                Some(Piece::Line(bytes)) => bytes,
                Some(Piece::Tail(bytes)) if is_last && is_torn(bytes) => {
                    report.note(format!(
                        "chain {}, segment {number}: {} bytes of a line that was being written when its writer was stopped; the next writer closes it",
                        self.chain,
                        bytes.len()
                    ));
                    return Ok(());
                }
                Some(Piece::Tail(_)) => return Err(here(&"it does not end in a newline")),
                Some(Piece::TooLong) => return Err(here(&"it is longer than any line may be")),
            };
            let length = bytes.len() as u64 + 1;
            let line = scan(bytes).map_err(|error| here(&error))?;
            let step = if start == 0 {
                self.begin(number, &line, state)
            } else {
                state.walk.as_mut().map_or(Ok(()), |walk| walk.step(&line))
            };
            step.map_err(|what| here(&what))?;
            state.count(&line, length).map_err(|what| here(&what))?;
            if line.seq < signed {
                claims.take(self.chain, number, line_number, &line);
            }
            take(&line, line.seq < signed).map_err(|what| here(&what))?;
            self.compare(state, report);
            (self.progress)(length);
        }
        Ok(())
    }

    /// Whether retention has dropped the segment since the index was read. The index itself is
    /// never dropped.
    fn is_dropped_now(&self, number: SegmentNumber) -> bool {
        let is_named = |index: &Index| index.dropped_up_to(self.chain, number).is_some();
        self.current.is_some_and(|current| is_named(&current.read()))
    }

    /// Verifies the first line of a segment: its statement must match the lines before it.
    fn begin(
        &self,
        number: SegmentNumber,
        line: &Line<'_>,
        state: &mut ChainProgress,
    ) -> Result<(), &'static str> {
        let stated = Walk::before(line)?;
        match &state.walk {
            Some(walk) if stated != walk.tree => {
                return Err("it does not continue where the segment before it ended");
            }
            Some(walk) if line.prev != walk.last => {
                return Err("its `prev` is not the hash of the line before");
            }
            Some(_) => {}
            None => self.resume_at(number, line, &stated)?,
        }
        state.walk = Some(Walk::begin(line)?);
        Ok(())
    }

    /// Continues at the first existing segment, or at the first after a bad one.
    fn resume_at(
        &self,
        number: SegmentNumber,
        line: &Line<'_>,
        stated: &Frontier,
    ) -> Result<(), &'static str> {
        let is_first = self.files.segments.keys().next() == Some(&number);
        if number == SegmentNumber::FIRST {
            if stated.size() > 0 || line.name != Some("chain.opened") {
                return Err("it is not the first line of a chain");
            }
            let listed = self.index.chains.get(self.chain);
            if listed.is_some_and(|first| *first != line.hash) {
                return Err("it is not the first line that the index lists for this chain");
            }
        } else if is_first {
            let before = SegmentNumber(number.0.saturating_sub(1));
            let dropped = self.index.dropped_up_to(self.chain, before);
            if dropped.is_some_and(|dropped| {
                dropped.next_seq() != stated.size() || dropped.root != stated.root()
            }) {
                return Err("it does not continue where the segments that retention dropped ended");
            }
        }
        Ok(())
    }

    fn checkpoint(&self, number: SegmentNumber, report: &mut Report) -> Option<Checkpoint> {
        let bad = |what: String| self.at(number, None, &format!("its checkpoint: {what}"));
        let text = match self.folder.checkpoint(self.chain, number) {
            Ok(text) => text?,
            Err(error) => {
                report.problem(bad(format!("it cannot be read: {error}")));
                return None;
            }
        };
        match Checkpoint::open(&text, self.keys) {
            Ok(checkpoint) if self.is_own(&checkpoint) => Some(checkpoint),
            Ok(checkpoint) => {
                report.problem(bad(format!("it is one of `{}`", checkpoint.origin)));
                None
            }
            Err(error) => {
                report.problem(bad(error.to_string()));
                None
            }
        }
    }

    /// Whether a checkpoint belongs to this chain and home.
    fn is_own(&self, checkpoint: &Checkpoint) -> bool {
        let is_home = self.home.is_none_or(|name| checkpoint.origin == origin(name, self.chain));
        is_home && checkpoint.chain().as_ref() == Some(self.chain)
    }

    /// Compares the checkpoints for the tree's current size.
    fn compare(&self, state: &mut ChainProgress, report: &mut Report) {
        let Some(walk) = &state.walk else { return };
        let size = walk.tree.size();
        while state.wanted.last().is_some_and(|wanted| wanted.size <= size) {
            let Some(wanted) = state.wanted.pop() else { break };
            // A checkpoint before this segment is judged with its own segment, or cannot be
            // compared any more.
            if wanted.size < size {
                if wanted.is_from_elsewhere {
                    self.judge_dropped_head(&wanted, report);
                }
                continue;
            }
            if wanted.root == walk.tree.root() {
                state.found.covered = state.found.covered.max(size);
            } else if wanted.is_from_elsewhere {
                report.problem(Problem::of_chain(
                    self.chain,
                    format!(
                        "its first {size} lines are not those of the checkpoint kept elsewhere"
                    ),
                ));
            } else if let Some(segment) = wanted.segment {
                report.problem(self.at(segment, None, "its checkpoint is of other lines"));
            }
        }
    }

    /// A kept head within the lines that retention dropped can only be compared at the end of a
    /// segment.
    fn judge_dropped_head(&self, wanted: &Wanted, report: &mut Report) {
        let dropped = self.index.dropped.get(self.chain);
        let same_end = dropped
            .and_then(|dropped| dropped.values().find(|segment| segment.next_seq() == wanted.size));
        match same_end {
            Some(segment) if segment.root == wanted.root => {}
            Some(_) => report.problem(Problem::of_chain(
                self.chain,
                "the checkpoint kept elsewhere is not of the lines that retention dropped",
            )),
            None => report.note(format!(
                "chain {}: the checkpoint kept elsewhere is older than what retention left; it proves nothing of what is left",
                self.chain
            )),
        }
    }

    /// A stopped writer can leave an empty segment, but only as the last one.
    fn judge_empty(
        &self,
        number: SegmentNumber,
        bytes: u64,
        is_last: bool,
        has_checkpoint: bool,
        report: &mut Report,
    ) {
        if is_last && !has_checkpoint && number != SegmentNumber::FIRST {
            if bytes == 0 {
                report.note(format!(
                    "chain {}, segment {number}: zero bytes (its writer was stopped as it began it)",
                    self.chain
                ));
            }
        } else {
            report.problem(self.at(number, None, "it has no lines"));
        }
    }

    fn judge_checkpoint(
        &self,
        number: SegmentNumber,
        is_last: bool,
        checkpoint: Option<&Checkpoint>,
        state: &mut ChainProgress,
        report: &mut Report,
    ) {
        let Some(walk) = &state.walk else { return };
        let (first, size) = (walk.first_seq, walk.tree.size());
        let has_file = self.files.checkpoints.binary_search(&number).is_ok();
        match checkpoint {
            Some(checkpoint) if checkpoint.size > size => report.problem(self.at(
                number,
                None,
                &format!(
                    "its checkpoint covers {} lines of the chain and there are {size}: the newest are gone",
                    checkpoint.size
                ),
            )),
            Some(checkpoint) if checkpoint.size <= first => report.problem(self.at(
                number,
                None,
                "its checkpoint is older than the segment",
            )),
            Some(checkpoint) if !is_last && checkpoint.size < size => report.problem(self.at(
                number,
                None,
                "its checkpoint does not cover all of it, though a later segment was begun",
            )),
            // A bad checkpoint was already reported. The first line of a chain is signed when it is
            // created.
            None if !has_file && (!is_last || number == SegmentNumber::FIRST) => {
                report.problem(self.at(number, None, "its checkpoint is gone"));
            }
            Some(_) | None => {}
        }
        if is_last {
            let signed = checkpoint.map_or(first, |checkpoint| checkpoint.size);
            self.judge_unsigned(number, size.saturating_sub(signed), signed, report);
        }
        state.drop_wanted(number);
    }

    /// More unsigned lines than a writer leaves were written by an attacker, or by a concurrent
    /// writer: in that case the checkpoint has advanced too.
    fn judge_unsigned(&self, number: SegmentNumber, lines: u64, signed: u64, report: &mut Report) {
        let most = if self.chain.is_index() { MAX_UNSIGNED_INDEX_LINES } else { CHECKPOINT_LINES };
        if lines <= most {
            return;
        }
        let newest = self.folder.checkpoint(self.chain, number).ok().flatten();
        let newest = newest.and_then(|text| Checkpoint::open(&text, self.keys).ok());
        if newest.is_none_or(|newest| newest.size <= signed) {
            let what = format!("{lines} lines without a checkpoint, more than a writer leaves");
            report.problem(self.at(number, None, &what));
        }
    }

    /// Reports checkpoints without a segment.
    fn stray_checkpoints(&self, report: &mut Report) {
        for number in &self.files.checkpoints {
            if self.files.segments.contains_key(number) {
                continue;
            }
            if self.index.dropped_up_to(self.chain, *number).is_some() {
                report.note(format!(
                    "chain {}, segment {number}: its checkpoint is still there, retention dropped the segment",
                    self.chain
                ));
            } else {
                report.problem(self.at(
                    *number,
                    None,
                    "its checkpoint is there and the segment is gone",
                ));
            }
        }
    }

    fn finish(&self, mut state: ChainProgress, report: &mut Report) -> ChainReport {
        // The remaining checkpoints are larger than the chain. Its own were judged with their
        // segments.
        let size = state.walk.as_ref().map(|walk| walk.tree.size());
        for wanted in state.wanted.iter().filter(|wanted| wanted.is_from_elsewhere) {
            let there = size.map_or_else(
                || "its end cannot be read".to_owned(),
                |size| format!("there are {size}"),
            );
            report.problem(Problem::of_chain(
                self.chain,
                format!(
                    "the checkpoint kept elsewhere covers {} lines and {there}: the newest are gone",
                    wanted.size
                ),
            ));
        }
        if state.clock_went_back > 0 {
            report.note(format!(
                "chain {}: the clock went back {} time(s); lines keep the order in which they were written",
                self.chain, state.clock_went_back
            ));
        }
        if state.adopted > 0 {
            report.note(format!(
                "chain {}: {} line(s) had no checkpoint when their writer was stopped, and were signed by the next one",
                self.chain, state.adopted
            ));
        }
        state.found.size = size.unwrap_or(state.found.covered);
        state.found.last_ts = (!state.last_ts.is_empty()).then_some(state.last_ts);
        state.found.without_outcome = state.open_calls.len() as u64 + state.open_uncounted;
        state.found
    }

    fn at(&self, segment: SegmentNumber, line: Option<u64>, what: &str) -> Problem {
        Problem {
            chain: Some(self.chain.clone()),
            segment: Some(segment),
            line,
            what: what.to_owned(),
        }
    }
}

impl ChainProgress {
    fn new(chain: &ChainId) -> ChainProgress {
        ChainProgress {
            walk: None,
            found: ChainReport {
                chain: chain.clone(),
                segments: 0,
                lines: 0,
                bytes: 0,
                size: 0,
                covered: 0,
                decisions: 0,
                outcomes: 0,
                events: 0,
                without_outcome: 0,
                first_ts: None,
                last_ts: None,
            },
            open_calls: HashSet::new(),
            open_uncounted: 0,
            last_ts: String::new(),
            clock_went_back: 0,
            adopted: 0,
            wanted: Vec::new(),
        }
    }

    fn want(&mut self, more: impl IntoIterator<Item = Wanted>) {
        self.wanted.extend(more);
        self.wanted.sort_by_key(|wanted| std::cmp::Reverse(wanted.size));
    }

    /// Removes a segment's own checkpoint, which is judged with the segment.
    fn drop_wanted(&mut self, number: SegmentNumber) {
        self.wanted.retain(|wanted| wanted.segment != Some(number));
    }

    fn count(&mut self, line: &Line<'_>, length: u64) -> Result<(), &'static str> {
        let found = &mut self.found;
        found.lines += 1;
        found.bytes += length;
        let id = || -> Result<ReceiptId, &'static str> {
            let text = line.receipt_id.unwrap_or_default();
            text.parse().map_err(|_| "its `receipt_id` is invalid")
        };
        match line.kind {
            LineKind::Event => {
                found.events += 1;
                if line.name == Some("chain.resumed") {
                    self.adopted = self.adopted.saturating_add(adopted_lines(line));
                }
            }
            LineKind::Decision { awaits_outcome: false } => found.decisions += 1,
            LineKind::Decision { awaits_outcome: true } => {
                found.decisions += 1;
                if self.open_calls.len() < MAX_OPEN_CALLS {
                    self.open_calls.insert(id()?);
                } else {
                    self.open_uncounted += 1;
                }
            }
            LineKind::Outcome => {
                found.outcomes += 1;
                if !self.open_calls.remove(&id()?) {
                    self.open_uncounted = self.open_uncounted.saturating_sub(1);
                }
            }
        }
        if line.ts < self.last_ts.as_str() {
            self.clock_went_back += 1;
        }
        if found.first_ts.is_none() {
            found.first_ts = Some(line.ts.to_owned());
        }
        self.last_ts.clear();
        self.last_ts.push_str(line.ts);
        Ok(())
    }
}

/// The number of unsigned lines that a writer reported when it continued the chain.
fn adopted_lines(line: &Line<'_>) -> u64 {
    let line: Option<serde_json::Value> = serde_json::from_slice(line.bytes).ok();
    line.as_ref().and_then(|line| line.pointer("/data/unsigned")?.as_u64()).unwrap_or(0)
}

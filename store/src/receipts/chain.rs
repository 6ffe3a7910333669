//! The chain of this process, as the one thread sees it that holds it.
//!
//! INVARIANT: a draft that was reported as written is with the operating system, in the order in which it was queued.

use super::disk::{DiskChain, Unsynced};
use super::journal::Journal;
use super::retention::Keep;
use super::room::make_room;
use super::settings::{OnFull, Settings};
use super::signer::{Outcome as Signature, Signer};
use contract::time::Timestamp;
use ledger::chain::{CHECKPOINT_LINES, ChainWriter, Unsigned, WriteError};
use ledger::drafts::Drafts;
use ledger::folder::SegmentNumber;
use ledger::line::Draft;

/// So many lines without a checkpoint are given to the signer, before a call has to wait for it.
const SIGN_AHEAD_LINES: u64 = CHECKPOINT_LINES * 3 / 4;

/// Outcomes that wait in memory while the disk is full.
pub const MAX_WAITING_OUTCOMES: usize = 1_024;

/// The memory that is kept for the next drafts.
const KEPT_BYTES: usize = 128 * 1024;

#[derive(Debug)]
pub(super) struct Chain {
    writer: ChainWriter<DiskChain>,
    signer: Signer,
    /// The signer has a checkpoint whose outcome was not taken yet.
    is_signing: bool,
    /// It could not put the last one in its place: the next line that cannot do without it tries again.
    is_signing_paused: bool,
    /// Memory for the drafts that are taken next.
    spare: Drafts,
    /// Outcomes that could not be written. They are written before anything else.
    waiting: Drafts,
    /// Outcomes that could not be written, and were too many to wait.
    lost_outcomes: u64,
    /// The lines that are on disk, or about to be.
    lines_to_disk: u64,
    /// The segment when retention was last looked at.
    retained_at: SegmentNumber,
    is_retention_due: bool,
}

/// What could not be written: drafts from this one on.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) from: usize,
    pub(super) error: WriteError,
}

impl Chain {
    pub(super) fn new(writer: ChainWriter<DiskChain>, signer: Signer) -> Chain {
        Chain {
            signer,
            is_signing: false,
            is_signing_paused: false,
            spare: Drafts::default(),
            waiting: Drafts::default(),
            lost_outcomes: 0,
            lines_to_disk: writer.written_lines(),
            retained_at: writer.segment(),
            is_retention_due: false,
            writer,
        }
    }

    /// Takes all drafts out of a queue, for [`Chain::write`].
    pub(super) fn take(&mut self, queue: &mut Drafts) -> Drafts {
        std::mem::replace(queue, std::mem::take(&mut self.spare))
    }

    /// Writes drafts, and before them the outcomes that wait: with one write, but where a checkpoint has to come between.
    /// A failure ends all that is left; outcomes among it wait for the next time.
    pub(super) fn write(
        &mut self,
        mut drafts: Drafts,
        settings: &Settings,
        journal: &Journal,
    ) -> Result<(), Unwritten> {
        self.heed_signer();
        let mut written = self.write_from(&drafts, 0);
        if let Err(Unwritten { from, error: WriteError::Io(error) }) = &written
            && crate::error::is_disk_full(error)
            && settings.on_full == OnFull::DropOldest
            && make_room(journal, self.newest(&drafts)).is_ok()
        {
            written = self.write_from(&drafts, *from);
        }
        if let Err(Unwritten { from, .. }) = &written {
            self.keep_outcomes(&drafts, *from);
        }
        drafts.clear(KEPT_BYTES);
        self.spare = drafts;
        if self.retained_at != self.writer.segment() {
            self.retained_at = self.writer.segment();
            self.is_retention_due = settings.keep != Keep::default();
        }
        self.sign_ahead();
        written
    }

    fn write_from(&mut self, drafts: &Drafts, from: usize) -> Result<(), Unwritten> {
        let waiting = std::mem::take(&mut self.waiting);
        let all = waiting.iter().chain(drafts.iter().skip(from));
        let (written, outcome) = self.write_all(all);
        waiting.iter().skip(written).for_each(|draft| self.waiting.push(draft));
        let from = from + written.saturating_sub(waiting.len());
        outcome.map_err(|error| Unwritten { from, error })
    }

    /// Returns how many were written before a failure.
    ///
    /// INVARIANT: the writer writes by itself only where it needs a checkpoint, and then has nothing left to write: so
    /// what a failed write was to write is never counted as written.
    fn write_all<'d>(
        &mut self,
        drafts: impl Iterator<Item = Draft<'d>>,
    ) -> (usize, Result<(), WriteError>) {
        let (mut taken, mut written) = (0, 0);
        for draft in drafts {
            if self.writer.needs_checkpoint(draft.ts()) {
                if let Err(error) = self.writer.flush() {
                    return (written, Err(error));
                }
                written = taken;
                self.wait_for_signer();
            }
            if let Err(error) = self.writer.take(draft) {
                // What was taken before it is still a part of the chain.
                let written = if self.writer.flush().is_ok() { taken } else { written };
                return (written, Err(error));
            }
            taken += 1;
        }
        match self.writer.flush() {
            Ok(()) => (taken, Ok(())),
            Err(error) => (written, Err(error)),
        }
    }

    fn keep_outcomes(&mut self, drafts: &Drafts, from: usize) {
        for draft in drafts.iter().skip(from).filter(Draft::is_outcome) {
            if self.waiting.len() < MAX_WAITING_OUTCOMES {
                self.waiting.push(draft);
            } else {
                self.lost_outcomes += 1;
            }
        }
    }

    /// Outcomes that could not be written, and were too many to wait.
    pub(super) fn lost_outcomes(&self) -> u64 {
        self.lost_outcomes
    }

    fn newest(&self, drafts: &Drafts) -> Timestamp {
        drafts.iter().last().map_or_else(super::writer::now, |draft| draft.ts())
    }

    /// Takes note of what the signer has done by now.
    fn heed_signer(&mut self) {
        if self.is_signing
            && let Some(signature) = self.signer.outcome()
        {
            self.take_note(signature);
        }
    }

    fn wait_for_signer(&mut self) {
        if self.is_signing {
            let signature = self.signer.wait();
            self.take_note(signature);
        }
    }

    fn take_note(&mut self, signature: Signature) {
        self.is_signing = false;
        self.is_signing_paused = signature.is_err();
        if let Ok(signed) = signature {
            self.writer.note_put(&signed);
        }
    }

    /// Gives the signer a checkpoint when it is time. After a failure it waits for a line that cannot do without.
    fn sign_ahead(&mut self) {
        let uncovered = self.writer.uncovered_lines();
        if uncovered < SIGN_AHEAD_LINES {
            self.is_signing_paused = false;
        } else if !self.is_signing
            && !self.is_signing_paused
            && let Some(unsigned) = self.writer.unsigned()
        {
            self.give(unsigned);
        }
    }

    fn give(&mut self, unsigned: Unsigned) {
        self.is_signing = true;
        self.signer.give(unsigned);
    }

    /// Signs all that is written, now.
    pub(super) fn checkpoint(&mut self) -> Result<(), WriteError> {
        self.wait_for_signer();
        self.writer.checkpoint()
    }

    /// A checkpoint that is due for its age. It is given to the signer when its lines are on disk.
    pub(super) fn unsigned_if_due(&self, now: Timestamp) -> Option<Unsigned> {
        self.writer.unsigned_if_due(now)
    }

    /// Gives the signer a checkpoint, unless a newer one is there.
    pub(super) fn sign(&mut self, unsigned: Unsigned) {
        self.heed_signer();
        if !self.is_signing && self.writer.is_newer(&unsigned) {
            self.give(unsigned);
        }
    }

    /// What is written and not on disk, where there is some. The caller has to sync it, or nothing is written any more.
    pub(super) fn take_unsynced(&mut self) -> Option<Unsynced> {
        let lines = self.writer.written_lines();
        let is_behind = std::mem::replace(&mut self.lines_to_disk, lines) < lines;
        is_behind.then(|| self.writer.files().take_unsynced())
    }

    /// Whether segments may be there that are not kept any more. Asked once, there are none until the next segment.
    pub(super) fn take_retention_due(&mut self) -> bool {
        std::mem::take(&mut self.is_retention_due)
    }

    pub(super) fn is_retention_due(&self) -> bool {
        self.is_retention_due
    }

    #[cfg(test)]
    pub(super) fn written_lines(&self) -> u64 {
        self.writer.written_lines()
    }
}

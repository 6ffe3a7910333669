//! The chain of this process: receipts as calls are made.
//!
//! INVARIANT: when [`Receipts::decision`] returns, the line is with the operating system (and on disk, where
//! `fsync = "always"`), so a call that is dispatched after it is never missing from the ledger.

use super::disk::{DiskChain, RESERVE, new_file};
use super::error::ReceiptsError;
use super::journal::Journal;
use super::keys::ArgsKey;
use super::opening::open_locked;
use super::retention::{self, Keep};
use super::settings::{Fsync, OnFull, Settings};
use super::signer::{Outcome as Signature, Signer};
use crate::home::Home;
use contract::time::Timestamp;
use ledger::chain::{CHECKPOINT_LINES, ChainWriter, Unsigned, Written};
use ledger::folder::{ChainId, SegmentNumber};
use ledger::record::{Decision, Event, Outcome, Record};
use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often lines are brought to the disk where `fsync = "interval"`.
pub const SYNC_INTERVAL_MILLISECONDS: u64 = 1_000;

/// So many lines without a checkpoint are given to the signer, before a call has to wait for it.
const SIGN_AHEAD_LINES: u64 = CHECKPOINT_LINES * 3 / 4;

/// Outcomes that wait in memory while the disk is full.
pub const MAX_WAITING_OUTCOMES: usize = 1_024;

/// Outcomes that come while the chain is being written to. Whoever brings one more waits until it is not.
const MAX_LATE_OUTCOMES: usize = 1_024;

/// What is given up on a full disk to be able to say what was dropped.
const RESERVE_BYTES: usize = 64 * 1024;

/// How much is freed at least when the oldest segments go.
const FREE_AT_LEAST_BYTES: u64 = 64 * 1024;

/// Lines that are to be written with one write. A write that fails ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch(u64);

/// The receipts that this process writes. Shared by all of its calls.
#[derive(Debug)]
pub struct Receipts {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    args_key: ArgsKey,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Outcomes that came while the chain was being written to. Whoever writes to it next takes them along.
    late: Mutex<Vec<Outcome>>,
    /// There is something to sync, or it is time to stop.
    work: Condvar,
    /// Something was synced.
    synced: Condvar,
    /// Held by the one call that makes room on a full disk.
    room: Mutex<()>,
    settings: Settings,
    journal: Journal,
    folder: PathBuf,
    signer: Signer,
}

#[derive(Debug)]
struct State {
    writer: ChainWriter<DiskChain>,
    waiting: VecDeque<Outcome>,
    /// Outcomes among the lines that are not written yet.
    unsettled: Vec<Outcome>,
    /// Writes that failed: the lines that were to be written with them are not.
    failures: u64,
    /// The segment when retention was last looked at.
    retained_at: SegmentNumber,
    /// Lines that are written, and of these, on disk.
    written: u64,
    on_disk: u64,
    /// A sync that failed: what the disk holds is unknown from then on.
    fault: Option<String>,
    is_retention_due: bool,
    /// The signer has a checkpoint whose outcome was not taken yet.
    is_signing: bool,
    /// It could not put the last one in its place.
    is_signing_paused: bool,
    is_stopping: bool,
}

impl Receipts {
    /// Goes on with a chain that no process writes to, or begins one.
    pub fn open(home: &Home, settings: Settings) -> Result<Receipts, ReceiptsError> {
        let now = now();
        let journal = Journal::new(home);
        let opened = match open_locked(home, &journal, settings, now) {
            Err(error) if error.is_disk_full() && settings.on_full == OnFull::DropOldest => {
                make_room(&journal, now)?;
                open_locked(home, &journal, settings, now)
            }
            other => other,
        };
        let (locked, args_key, mut writer) = opened?;
        if settings.on_full == OnFull::DropOldest {
            // Without it the next full disk is a refusal; that is no reason not to start.
            let _ = make_reserve(&home.receipts_path());
        }
        drop(locked);
        let retained_at = writer.segment();
        let folder = home.receipts_path();
        let failed = || ReceiptsError::io("start a thread for", &folder);
        let signer = Signer::start(writer.files().checkpoints()).map_err(failed())?;
        let state = State {
            writer,
            waiting: VecDeque::new(),
            unsettled: Vec::new(),
            failures: 0,
            retained_at,
            written: 0,
            on_disk: 0,
            fault: None,
            is_retention_due: false,
            is_signing: false,
            is_signing_paused: false,
            is_stopping: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            late: Mutex::default(),
            work: Condvar::new(),
            synced: Condvar::new(),
            room: Mutex::new(()),
            settings,
            journal,
            folder: folder.clone(),
            signer,
        });
        let worker = {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("receipts".to_owned())
                .spawn(move || shared.work())
                .map_err(failed())?
        };
        Ok(Receipts { shared, worker: Some(worker), args_key })
    }

    /// Records a decision. Nothing may be dispatched before this returned, nor when it failed.
    pub fn decision(&self, decision: &Decision<'_>) -> Result<Written, ReceiptsError> {
        self.shared.append(&Record::Decision(decision))
    }

    /// Records a decision with the next [`Receipts::settle`]: nothing may be dispatched before that returned, nor when
    /// it failed. For calls that come many at a time.
    pub fn decision_later(&self, decision: &Decision<'_>) -> Result<Batch, ReceiptsError> {
        self.shared.append_later(self.shared.lock(), &Record::Decision(decision))
    }

    /// Records how a dispatched call ended with the next [`Receipts::settle`]. Nobody waits here for a write, but where
    /// more outcomes came during one than are kept.
    pub fn outcome_later(&self, outcome: &Outcome) -> Result<(), ReceiptsError> {
        // Making room on a full disk is for who settles.
        let is_left_to_others = self.shared.settings.on_full == OnFull::DropOldest;
        let state = match self.shared.state.try_lock() {
            Ok(state) if !is_left_to_others => state,
            Err(TryLockError::Poisoned(state)) if !is_left_to_others => state.into_inner(),
            _ if self.shared.keep_late(outcome) => return Ok(()),
            _ => self.shared.lock(),
        };
        self.outcome_with(state, outcome)
    }

    fn outcome_with(
        &self,
        state: MutexGuard<'_, State>,
        outcome: &Outcome,
    ) -> Result<(), ReceiptsError> {
        let taken = self.shared.append_later(state, &Record::Outcome(outcome));
        taken.map(drop).or_else(|_| self.outcome(outcome))
    }

    /// Writes all that was to be written later, with one write. An error where a line of this batch is not written.
    pub fn settle(&self, batch: Option<Batch>) -> Result<(), ReceiptsError> {
        self.shared.settle(batch)
    }

    /// Records how a dispatched call ended. On a full disk the outcome waits, and the next decision has to wait for it.
    pub fn outcome(&self, outcome: &Outcome) -> Result<(), ReceiptsError> {
        match self.shared.append(&Record::Outcome(outcome)) {
            Ok(_) => Ok(()),
            Err(error) if error.is_disk_full() => {
                let mut state = self.shared.lock();
                if state.waiting.len() >= MAX_WAITING_OUTCOMES {
                    return Err(error);
                }
                state.waiting.push_back(*outcome);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub fn event(&self, event: &Event<'_>) -> Result<Written, ReceiptsError> {
        self.shared.append(&Record::Event(event))
    }

    /// The end of the process, for who cannot give this up because other threads hold on to it: what still waits is
    /// written, everything is signed and on disk. What comes later is refused.
    pub fn finish(&self) {
        let mut state = self.shared.lock();
        state.is_stopping = true;
        self.shared.work.notify_all();
        // The thread's end is told as a fault: nothing is written that nobody would sync or sign.
        while state.fault.is_none() {
            state = self.shared.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn args_key(&self) -> &ArgsKey {
        &self.args_key
    }

    pub fn chain(&self) -> ChainId {
        self.shared.lock().writer.chain().clone()
    }

    /// Signs all that is written, now.
    pub fn checkpoint(&self) -> Result<(), ReceiptsError> {
        let mut state = self.shared.lock();
        self.shared.wait_for_signer(&mut state);
        self.shared.flush(&mut state)?;
        state.writer.checkpoint().map_err(|error| self.shared.failed(error))
    }
}

impl State {
    /// Whether the signer should have a checkpoint now. After a failure it waits for a line that cannot do without.
    fn is_signing_due(&self) -> bool {
        !self.is_signing
            && !self.is_signing_paused
            && self.writer.uncovered_lines() >= SIGN_AHEAD_LINES
    }

    /// Outcomes that could not be written, as many as there is room for.
    fn keep_waiting(&mut self, outcomes: impl IntoIterator<Item = Outcome>) {
        let room = MAX_WAITING_OUTCOMES.saturating_sub(self.waiting.len());
        self.waiting.extend(outcomes.into_iter().take(room));
    }

    /// One that failed is put by the next line that cannot do without it, which is refused where that fails too.
    fn take_note(&mut self, signature: Signature) {
        self.is_signing = false;
        self.is_signing_paused = signature.is_err();
        if let Ok(signed) = signature {
            self.writer.note_put(&signed);
        }
    }

    /// Whether the next append, with all that waits for it, may have to put a checkpoint in its place first.
    fn may_need_checkpoint(&self, ts: Timestamp) -> bool {
        self.may_need_checkpoint_for(0, ts)
    }

    /// The same for that many lines before it.
    fn may_need_checkpoint_for(&self, lines: usize, ts: Timestamp) -> bool {
        let coming = (self.waiting.len() + lines) as u64 + 2;
        self.writer.uncovered_lines() + coming > CHECKPOINT_LINES || self.writer.is_rotation_due(ts)
    }
}

impl Drop for Receipts {
    /// The end of the process: what still waits is written, everything is signed and on disk.
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.work.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread left the chain as it was before its append, or after it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn late(&self) -> MutexGuard<'_, Vec<Outcome>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there was room for it.
    fn keep_late(&self, outcome: &Outcome) -> bool {
        let mut late = self.late();
        let has_room = late.len() < MAX_LATE_OUTCOMES;
        if has_room {
            late.push(*outcome);
        }
        has_room
    }

    /// The state, when an append may put a checkpoint in its place without meeting the signer.
    fn settled(&self, ts: Timestamp) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        self.heed_signer(&mut state, ts);
        state
    }

    fn heed_signer(&self, state: &mut State, ts: Timestamp) {
        if state.is_signing {
            if let Some(signature) = self.signer.outcome() {
                state.take_note(signature);
            } else if state.may_need_checkpoint(ts) {
                self.wait_for_signer(state);
            }
        }
    }

    fn wait_for_signer(&self, state: &mut State) {
        if state.is_signing {
            state.take_note(self.signer.wait());
        }
    }

    fn give_to_signer(&self, state: &mut State, unsigned: Unsigned) {
        state.is_signing = true;
        self.signer.give(unsigned);
    }

    fn failed(&self, error: ledger::chain::WriteError) -> ReceiptsError {
        ReceiptsError::of_write(error, &self.folder)
    }

    fn append(&self, record: &Record<'_>) -> Result<Written, ReceiptsError> {
        let mut state = self.settled(record.ts());
        let written = match self.try_append(&mut state, record) {
            Err(error) if error.is_disk_full() && self.settings.on_full == OnFull::DropOldest => {
                drop(state);
                // One makes room for all who wait for it.
                let room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
                state = self.settled(record.ts());
                match self.try_append(&mut state, record) {
                    Err(error) if error.is_disk_full() => {
                        drop(state);
                        make_room(&self.journal, record.ts())?;
                        drop(room);
                        state = self.settled(record.ts());
                        self.try_append(&mut state, record)?
                    }
                    other => other?,
                }
            }
            other => other?,
        };
        self.look_after(&mut state);
        if self.settings.fsync == Fsync::Always {
            self.wait_for_disk(state)?;
        }
        Ok(written)
    }

    fn append_later(
        &self,
        mut state: MutexGuard<'_, State>,
        record: &Record<'_>,
    ) -> Result<Batch, ReceiptsError> {
        // Making room on a full disk, and what waits for it, are matters of the other way.
        let may_make_room = self.settings.on_full == OnFull::DropOldest;
        if may_make_room || !state.waiting.is_empty() || state.fault.is_some() {
            drop(state);
            return self.append(record).map(|_| Batch(self.lock().failures));
        }
        self.take_later(&mut state, record)?;
        Ok(Batch(state.failures))
    }

    /// Takes a line that is written with the next [`Shared::flush`].
    fn take_later(&self, state: &mut State, record: &Record<'_>) -> Result<(), ReceiptsError> {
        self.heed_signer(state, record.ts());
        if state.may_need_checkpoint(record.ts()) {
            self.write(state)?;
        }
        state.writer.append_later(record).map_err(|error| self.failed(error))?;
        // Kept with the line, under one lock: what is written is not kept, and what is not written is not lost.
        if let Record::Outcome(outcome) = record {
            state.unsettled.push(**outcome);
        }
        Ok(())
    }

    fn settle(&self, batch: Option<Batch>) -> Result<(), ReceiptsError> {
        let mut state = self.lock();
        let is_ended = batch.is_some_and(|batch| batch != Batch(state.failures));
        self.flush(&mut state)?;
        if is_ended {
            return Err(ReceiptsError::Sync(
                "a line before this one could not be written".to_owned(),
            ));
        }
        self.look_after(&mut state);
        if self.settings.fsync == Fsync::Always {
            self.wait_for_disk(state)?;
        }
        Ok(())
    }

    /// Writes what is not written yet, late outcomes with it. An error where a line that was taken before is not written.
    fn flush(&self, state: &mut State) -> Result<(), ReceiptsError> {
        let late = std::mem::take(&mut *self.late());
        let Some(last) = late.last() else { return self.write(state) };
        // What would take more than one write must not fail what the first one has written.
        let is_one_write = !state.may_need_checkpoint_for(late.len(), last.ts);
        let written = if is_one_write { Ok(()) } else { self.write(state) };
        for outcome in &late {
            if self.take_later(state, &Record::Outcome(outcome)).is_err() {
                state.keep_waiting([*outcome]);
            }
        }
        let rest = self.write(state);
        if is_one_write { rest } else { written }
    }

    /// On a failure the outcomes among it wait for room, as single ones do.
    fn write(&self, state: &mut State) -> Result<(), ReceiptsError> {
        let before = state.writer.written_lines();
        let flushed = state.writer.flush();
        state.written += state.writer.written_lines() - before;
        let unsettled = std::mem::take(&mut state.unsettled);
        if let Err(error) = flushed {
            state.failures += 1;
            state.keep_waiting(unsettled);
            return Err(self.failed(error));
        }
        Ok(())
    }

    /// What follows a write: retention with a new segment, and a checkpoint when it is time.
    fn look_after(&self, state: &mut State) {
        if state.retained_at != state.writer.segment() {
            state.retained_at = state.writer.segment();
            state.is_retention_due = self.settings.keep != Keep::default();
            self.work.notify_all();
        }
        if state.is_signing_due()
            && let Some(unsigned) = state.writer.unsigned()
        {
            self.give_to_signer(state, unsigned);
        }
    }

    fn try_append(&self, state: &mut State, record: &Record<'_>) -> Result<Written, ReceiptsError> {
        if let Some(fault) = &state.fault {
            return Err(ReceiptsError::Sync(fault.clone()));
        }
        self.flush(state)?;
        // Late outcomes may have used up what was left until the next checkpoint.
        self.heed_signer(state, record.ts());
        while let Some(outcome) = state.waiting.front().copied() {
            state.writer.append(&Record::Outcome(&outcome)).map_err(|error| self.failed(error))?;
            state.waiting.pop_front();
            state.written += 1;
        }
        let written = state.writer.append(record).map_err(|error| self.failed(error))?;
        state.written += 1;
        if state.writer.uncovered_lines() < SIGN_AHEAD_LINES {
            state.is_signing_paused = false;
        }
        Ok(written)
    }

    /// Waits until a sync that began after now has ended. All who wait share it.
    fn wait_for_disk(&self, mut state: MutexGuard<'_, State>) -> Result<(), ReceiptsError> {
        let wanted = state.written;
        self.work.notify_all();
        while state.on_disk < wanted {
            if let Some(fault) = &state.fault {
                return Err(ReceiptsError::Sync(fault.clone()));
            }
            state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Drops what is not kept any more, with nobody waiting for it. A failure to drop is not a failure to record: it is
    /// tried again with the next segment.
    fn retain<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        if !std::mem::take(&mut state.is_retention_due) {
            return state;
        }
        drop(state);
        let now = now();
        let journal = self.journal.lock(now);
        let _ =
            journal.and_then(|mut journal| retention::apply(&mut journal, self.settings.keep, now));
        self.lock()
    }

    /// The thread that brings lines to the disk, and to the signer what has waited long enough.
    fn work(&self) {
        // Whoever waits for the disk is not left waiting, however this thread ends.
        let _end = EndOfWork(self);
        let pause = Duration::from_millis(SYNC_INTERVAL_MILLISECONDS);
        let mut state = self.lock();
        loop {
            let is_idle = |state: &mut State| !state.is_stopping && !self.has_work(state);
            let woken = self.work.wait_timeout_while(state, pause, is_idle);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let is_stopping = state.is_stopping;
            // Nothing stays unwritten for longer than a pause, whoever forgot to settle it.
            let _ = self.flush(&mut state);
            let unsigned = state.writer.unsigned_if_due(now());
            // What is signed is on disk before the checkpoint is, but for a burst that leaves no time for it.
            state = self.sync(state);
            if let Some(signature) = self.signer.outcome() {
                state.take_note(signature);
            }
            if let Some(unsigned) = unsigned
                && state.fault.is_none()
                && !state.is_signing
                && state.writer.is_newer(&unsigned)
            {
                self.give_to_signer(&mut state, unsigned);
            }
            state = self.retain(state);
            if is_stopping {
                self.wait_for_signer(&mut state);
                self.finish(&mut state);
                let _ = state.writer.checkpoint();
                return;
            }
        }
    }

    fn has_work(&self, state: &State) -> bool {
        let has_waiters = self.settings.fsync == Fsync::Always
            && state.on_disk < state.written
            && state.fault.is_none();
        has_waiters || state.is_retention_due
    }

    fn sync<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let written = state.written;
        if self.settings.fsync == Fsync::Never || state.on_disk == written {
            return state;
        }
        let unsynced = state.writer.files().take_unsynced();
        drop(state);
        let outcome = unsynced.sync();
        let mut state = self.lock();
        match outcome {
            Ok(()) => state.on_disk = state.on_disk.max(written),
            Err(error) => state.fault = Some(error.to_string()),
        }
        self.synced.notify_all();
        state
    }

    fn finish(&self, state: &mut State) {
        while let Some(outcome) = state.waiting.pop_front() {
            if state.writer.append(&Record::Outcome(&outcome)).is_err() {
                return;
            }
        }
        if self.settings.fsync != Fsync::Never {
            let _ = state.writer.files().take_unsynced().sync();
        }
    }
}

struct EndOfWork<'s>(&'s Shared);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        let ended = || "the thread that syncs has ended".to_owned();
        self.0.lock().fault.get_or_insert_with(ended);
        self.0.synced.notify_all();
    }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Drops the oldest segments. The reserve makes room for the record that names them.
fn make_room(journal: &Journal, now: Timestamp) -> Result<(), ReceiptsError> {
    let folder = journal.folder().path();
    let _ = fs::remove_file(folder.join(RESERVE));
    let freed = journal
        .lock(now)
        .and_then(|mut journal| retention::free(&mut journal, FREE_AT_LEAST_BYTES, now));
    // Without its reserve the next full disk is a refusal, which is no worse than this one.
    let _ = make_reserve(folder);
    if freed? == 0 { Err(ReceiptsError::Full { path: folder.to_owned() }) } else { Ok(()) }
}

fn make_reserve(folder: &std::path::Path) -> Result<(), ReceiptsError> {
    let path = folder.join(RESERVE);
    let failed = || ReceiptsError::io("make", &path);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= RESERVE_BYTES as u64) {
        return Ok(());
    }
    let mut file = new_file(&path).map_err(failed())?;
    file.write_all(&vec![0; RESERVE_BYTES]).map_err(failed())
}

#[cfg(test)]
mod tests;

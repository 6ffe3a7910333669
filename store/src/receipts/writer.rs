//! The receipts of this process, as calls are made, from any number of threads and tasks.
//!
//! A record is encoded by the thread that brings it, then queued. The thread that finds the chain free writes for all
//! that are queued, with one write.
//!
//! INVARIANT: who has a [`Settled`] has a line that is with the operating system (and on disk, where `fsync = "always"`),
//! so a call that is dispatched against it is never missing from the ledger.

use super::chain::{Chain, Unwritten};
use super::disk::Unsynced;
use super::error::ReceiptsError;
use super::journal::Journal;
use super::keys::ArgsKey;
use super::opening::open_locked;
use super::progress::Progress;
use super::retention;
use super::room::{make_reserve, make_room};
use super::settings::{Fsync, OnFull, Settings};
use super::signer::Signer;
use super::ticket::{Settled, Settling, Ticket};
use super::worker::{Tended, Worker};
use crate::home::Home;
use contract::time::Timestamp;
use ledger::drafts::Drafts;
use ledger::folder::ChainId;
use ledger::line::{Draft, Encoder};
use ledger::record::{Decision, Event, Outcome, Record};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

/// Records that are queued. Who brings one more writes them first.
pub const MAX_QUEUED_RECORDS: usize = 1_024;

const PANICKED: &str = "a thread that wrote them has panicked";
const CLOSED: &str = "they are closed";

/// The receipts that this process writes. Shared by all of its calls.
#[derive(Debug)]
pub struct Receipts {
    shared: Arc<Shared>,
    args_key: ArgsKey,
    chain: ChainId,
}

#[derive(Debug)]
struct Shared {
    /// Tells the tickets of several ledgers apart.
    id: u64,
    queue: Mutex<Queue>,
    chain: Mutex<Chain>,
    progress: Progress,
    settings: Settings,
    journal: Journal,
    worker: Arc<Worker>,
    /// There is something for the thread that syncs which does not wait for the next second.
    is_asked: AtomicBool,
    /// Something was queued that the thread is to write which holds the chain.
    is_left: AtomicBool,
    /// Outcomes that could not be written, and were too many to wait.
    lost_outcomes: AtomicU64,
}

/// Records that are encoded, and wait for the thread that writes them.
#[derive(Debug, Default)]
struct Queue {
    drafts: Drafts,
    /// The number of the first of them.
    first: u64,
    is_closed: bool,
}

impl Receipts {
    /// Goes on with a chain that no process writes to, or begins one.
    pub fn open(home: &Home, settings: Settings) -> Result<Receipts, ReceiptsError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
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
        let folder = home.receipts_path();
        let failed = || ReceiptsError::io("start a thread for", &folder);
        let worker = Worker::of_process().map_err(failed())?;
        let chain = writer.chain().clone();
        let signer = Signer::new(writer.files().checkpoints(), worker.clone());
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            queue: Mutex::default(),
            chain: Mutex::new(Chain::new(writer, signer)),
            progress: Progress::new(folder.clone()),
            settings,
            journal,
            worker: worker.clone(),
            is_asked: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            lost_outcomes: AtomicU64::new(0),
        });
        let tended: Arc<dyn Tended> = shared.clone();
        worker.add(shared.id, Arc::downgrade(&tended)).map_err(failed())?;
        Ok(Receipts { shared, args_key, chain })
    }

    /// Takes a decision, to be written with others. Nothing may be dispatched for it before its ticket is settled.
    pub fn decision_later(&self, decision: &Decision<'_>) -> Result<Ticket, ReceiptsError> {
        self.shared.queue(&Record::Decision(decision))
    }

    /// Takes how a dispatched call ended, to be written with others, within a second at the latest. On a full disk it
    /// waits, and the next decision has to wait for it.
    pub fn outcome_later(&self, outcome: &Outcome) -> Result<(), ReceiptsError> {
        self.shared.queue(&Record::Outcome(outcome)).map(drop)
    }

    /// Whether a ticket is settled already. Costs next to nothing; a ticket whose records cannot be written never is.
    pub fn is_settled(&self, ticket: &Ticket) -> bool {
        ticket.ledger == self.shared.id
            && self
                .shared
                .progress
                .verdict(ticket.first, ticket.last)
                .is_some_and(|end| end.is_ok())
    }

    /// Blocks until all records of a ticket are written, or could not be.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is used up: one proof a decision")]
    pub fn settle(&self, ticket: Ticket) -> Result<Settled, ReceiptsError> {
        self.shared.own(&ticket)?;
        self.shared.settle(ticket.first, ticket.last).map(Settled)
    }

    /// The same without blocking: a future.
    pub fn settling(&self, ticket: Ticket) -> Settling<'_> {
        Settling { receipts: self, ticket: Some(ticket), is_registered: false }
    }

    /// Blocks until all that is queued is written, or could not be.
    pub fn flush(&self) -> Result<(), ReceiptsError> {
        let queued = self.shared.queued()?;
        if queued.is_empty() { Ok(()) } else { self.shared.settle(queued.start, queued.end - 1) }
    }

    /// Has all that is queued written: by this thread, or by the one that holds the chain just now, which is not waited
    /// for. Returns an error where this thread knows that it could not be written.
    pub fn write_queued(&self) -> Result<(), ReceiptsError> {
        let queued = self.shared.queued()?;
        if queued.is_empty() {
            return Ok(());
        }
        if !self.shared.try_hold()? {
            self.shared.is_left.store(true, Ordering::SeqCst);
            // INVARIANT: the thread that holds the chain checks the mark after releasing it. So either the chain is free by
            // now, or its holder sees the mark.
            fence(Ordering::SeqCst);
            self.shared.try_hold()?;
        }
        self.shared.progress.verdict(queued.start, queued.end - 1).unwrap_or(Ok(()))
    }

    /// Records a decision, and blocks until it is settled.
    pub fn decision(&self, decision: &Decision<'_>) -> Result<(), ReceiptsError> {
        self.shared.append(&Record::Decision(decision))
    }

    /// Records how a dispatched call ended. On a full disk the outcome waits, and the next decision has to wait for it.
    pub fn outcome(&self, outcome: &Outcome) -> Result<(), ReceiptsError> {
        let lost = || self.shared.lost_outcomes.load(Ordering::Acquire);
        let lost_before = lost();
        match self.shared.append(&Record::Outcome(outcome)) {
            Err(error) if error.is_disk_full() && lost() == lost_before => Ok(()),
            other => other,
        }
    }

    pub fn event(&self, event: &Event<'_>) -> Result<(), ReceiptsError> {
        self.shared.append(&Record::Event(event))
    }

    /// The end of the process, for who cannot give this up because other threads hold on to it: what still waits is
    /// written, everything is signed and on disk. What comes later is refused.
    pub fn finish(&self) {
        self.shared.close();
    }

    pub fn args_key(&self) -> &ArgsKey {
        &self.args_key
    }

    pub fn chain(&self) -> ChainId {
        self.chain.clone()
    }

    /// Signs all that is written, now.
    pub fn checkpoint(&self) -> Result<(), ReceiptsError> {
        let mut chain = self.shared.hold()?;
        chain.checkpoint().map_err(|error| ReceiptsError::of_write(error, self.folder()))
    }

    fn folder(&self) -> &std::path::Path {
        self.shared.journal.folder().path()
    }

    /// One look at a ticket for a task that waits for it.
    pub(super) fn poll_settled(
        &self,
        ticket: &Ticket,
        waker: &Waker,
        is_registered: &mut bool,
    ) -> Poll<Result<(), ReceiptsError>> {
        if let Err(error) = self.shared.own(ticket) {
            return Poll::Ready(Err(error));
        }
        let mut verdict = self.shared.try_settle(ticket);
        if verdict.is_none() {
            // INVARIANT: after this, who lets go of the chain, or reports more as done, wakes the task. What was let go or
            // reported before is seen by looking again.
            self.shared.progress.register(ticket.last, waker);
            *is_registered = true;
            verdict = self.shared.try_settle(ticket);
        }
        let Some(verdict) = verdict else { return Poll::Pending };
        if std::mem::take(is_registered) {
            self.shared.progress.unregister(ticket.last);
        }
        Poll::Ready(verdict)
    }

    /// A task does not wait any longer. It may have been woken to write for others: that is the next one's turn then.
    pub(super) fn give_up(&self, ticket: &Ticket) {
        self.shared.progress.unregister(ticket.last);
        self.shared.progress.wake();
    }
}

impl Drop for Receipts {
    /// The end of the process: what still waits is written, everything is signed and on disk.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    /// Encodes a record, and queues it.
    fn queue(&self, record: &Record<'_>) -> Result<Ticket, ReceiptsError> {
        thread_local! {
            static ENCODER: RefCell<Encoder> = RefCell::default();
        }
        ENCODER.with_borrow_mut(|encoder| {
            let draft = encoder
                .draft(record)
                .map_err(|error| ReceiptsError::Write(ledger::chain::WriteError::Encode(error)))?;
            let number = self.push(draft)?;
            Ok(Ticket { ledger: self.id, first: number, last: number })
        })
    }

    fn push(&self, draft: Draft<'_>) -> Result<u64, ReceiptsError> {
        loop {
            let mut queue = self.queue.lock().map_err(|_| self.fail(PANICKED))?;
            if queue.is_closed || self.progress.has_fault() {
                return Err(self.stopped());
            }
            if queue.drafts.len() < MAX_QUEUED_RECORDS {
                let number = queue.first + queue.drafts.len() as u64;
                queue.drafts.push(draft);
                return Ok(number);
            }
            drop(queue);
            drop(self.hold()?);
        }
    }

    /// The numbers of the records that are queued.
    fn queued(&self) -> Result<Range<u64>, ReceiptsError> {
        let queue = self.queue.lock().map_err(|_| self.fail(PANICKED))?;
        Ok(queue.first..queue.first + queue.drafts.len() as u64)
    }

    fn append(&self, record: &Record<'_>) -> Result<(), ReceiptsError> {
        let ticket = self.queue(record)?;
        self.settle(ticket.first, ticket.last)
    }

    fn settle(&self, first: u64, last: u64) -> Result<(), ReceiptsError> {
        if !self.progress.is_written(last) {
            // The thread that holds the chain writes this record too, or leaves it to this thread.
            drop(self.hold()?);
        }
        loop {
            if let Some(verdict) = self.progress.verdict(first, last) {
                return verdict;
            }
            self.progress.wait(last);
        }
    }

    /// How a ticket fared; writes for all that are queued where the chain is free and that is needed.
    fn try_settle(&self, ticket: &Ticket) -> Option<Result<(), ReceiptsError>> {
        if !self.progress.is_written(ticket.last)
            && let Err(error) = self.try_hold()
        {
            return Some(Err(error));
        }
        self.progress.verdict(ticket.first, ticket.last)
    }

    fn own(&self, ticket: &Ticket) -> Result<(), ReceiptsError> {
        if ticket.ledger == self.id {
            return Ok(());
        }
        Err(ReceiptsError::ForeignTicket)
    }

    /// Waits for the chain, and writes all that is queued.
    fn hold(&self) -> Result<Held<'_>, ReceiptsError> {
        let chain = self.chain.lock().map_err(|_| self.fail(PANICKED))?;
        self.held(chain)
    }

    /// Writes all that is queued, where no other thread has the chain. Returns whether none had.
    fn try_hold(&self) -> Result<bool, ReceiptsError> {
        match self.chain.try_lock() {
            Ok(chain) => self.held(chain).map(|_| true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Poisoned(_)) => Err(self.fail(PANICKED)),
        }
    }

    fn held<'s>(&'s self, chain: MutexGuard<'s, Chain>) -> Result<Held<'s>, ReceiptsError> {
        let mut held = Held { chain, _release: Release::of(self, false) };
        if self.progress.has_fault() {
            return Err(self.stopped());
        }
        self.write(&mut held)?;
        Ok(held)
    }

    /// Writes what others left to this thread while it held the chain.
    fn write_left(&self) {
        while self.is_left.load(Ordering::SeqCst) && !self.progress.has_fault() {
            // Who holds the chain by now writes all that is queued, and looks at the mark again.
            let Ok(chain) = self.chain.try_lock() else { return };
            let mut held = Held { chain, _release: Release::of(self, true) };
            if self.write(&mut held).is_err() {
                return;
            }
        }
    }

    fn write(&self, chain: &mut Chain) -> Result<(), ReceiptsError> {
        let (drafts, first) = {
            let mut queue = self.queue.lock().map_err(|_| self.fail(PANICKED))?;
            // The thread that set the mark queued its line before that, and so before this thread took the queue.
            if self.is_left.load(Ordering::Relaxed) {
                self.is_left.store(false, Ordering::SeqCst);
            }
            let first = queue.first;
            queue.first += queue.drafts.len() as u64;
            (chain.take(&mut queue.drafts), first)
        };
        let end = first + drafts.len() as u64;
        if let Err(Unwritten { from, error }) = chain.write(drafts, &self.settings, &self.journal) {
            self.progress.note_failure(first + from as u64, end, &error);
            self.lost_outcomes.store(chain.lost_outcomes(), Ordering::Release);
        }
        self.progress.note_written(end);
        if self.settings.fsync != Fsync::Always {
            self.progress.note_done(end);
        } else if first < end {
            self.ask();
        }
        if chain.is_retention_due() {
            self.ask();
        }
        Ok(())
    }

    /// Wakes the thread that syncs.
    fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
        self.worker.ask();
    }

    fn fail(&self, why: &str) -> ReceiptsError {
        self.progress.fail(why);
        self.stopped()
    }

    fn stopped(&self) -> ReceiptsError {
        self.progress.fault().unwrap_or_else(|| ReceiptsError::Stopped(CLOSED.to_owned()))
    }

    /// What comes from now on is refused; what came before is written, signed and on disk when this returns.
    fn close(&self) {
        match self.queue.lock() {
            Ok(mut queue) => queue.is_closed = true,
            Err(_) => self.progress.fail(PANICKED),
        }
        // What the worker syncs just now is on disk after this, or the fault is told.
        self.worker.remove(self.id);
        if let Ok(mut chain) = self.hold() {
            let unsynced = self.unsynced(&mut chain);
            if self.sync(unsynced) {
                let _ = chain.checkpoint();
            }
            let is_retention_due = chain.take_retention_due();
            drop(chain);
            if is_retention_due {
                self.retain();
            }
        }
        self.progress.fail(CLOSED);
    }

    /// What is to be brought to the disk.
    fn unsynced(&self, chain: &mut Chain) -> ToSync {
        let is_wanted = self.settings.fsync != Fsync::Never;
        ToSync {
            files: is_wanted.then(|| chain.take_unsynced()).flatten(),
            end: self.progress.written(),
        }
    }

    /// Returns whether lines may still be written: after a failed write the content of the disk is unknown.
    fn sync(&self, unsynced: ToSync) -> bool {
        if let Err(error) = unsynced.files.map_or(Ok(()), Unsynced::sync) {
            self.progress.fail(&format!("the disk did not take them: {error}"));
            return false;
        }
        self.progress.note_done(unsynced.end);
        self.progress.wake();
        true
    }

    /// Drops what is not kept any more, while no caller waits for it. A failure to drop is not a failure to record: it is
    /// tried again with the next segment.
    fn retain(&self) {
        let now = now();
        let journal = self.journal.lock(now);
        let _ =
            journal.and_then(|mut journal| retention::apply(&mut journal, self.settings.keep, now));
    }
}

impl Tended for Shared {
    fn take_asked(&self) -> bool {
        self.is_asked.swap(false, Ordering::AcqRel)
    }

    fn tend(&self) {
        let folder = self.journal.folder().path();
        contract::trip::trip("disk", folder.as_os_str().as_encoded_bytes());
        // Nothing stays unwritten for longer than a pause, even if the caller forgot to settle it.
        let Ok(mut chain) = self.hold() else { return };
        let unsynced = self.unsynced(&mut chain);
        let unsigned = chain.unsigned_if_due(now());
        let is_retention_due = chain.take_retention_due();
        drop(chain);
        // What is signed is on disk before the checkpoint is, but for a burst that leaves no time for it.
        if !self.sync(unsynced) {
            return;
        }
        if let Some(unsigned) = unsigned
            && let Ok(mut chain) = self.hold()
        {
            chain.sign(unsigned);
        }
        if is_retention_due {
            self.retain();
        }
    }

    fn fail(&self, why: &str) {
        self.progress.fail(why);
    }
}

/// Files to bring to the disk, and the records that are on disk then: those below a number.
struct ToSync {
    files: Option<Unsynced>,
    end: u64,
}

/// The chain, held by this thread alone. Letting go of it wakes who waits for what was written, or for the chain.
struct Held<'s> {
    // Dropped in this order.
    chain: MutexGuard<'s, Chain>,
    _release: Release<'s>,
}

impl Deref for Held<'_> {
    type Target = Chain;

    fn deref(&self) -> &Chain {
        &self.chain
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }
}

struct Release<'s> {
    shared: &'s Shared,
    was_panicking: bool,
    /// It was held to write what others left: who does that looks again by itself.
    is_for_others: bool,
}

impl<'s> Release<'s> {
    fn of(shared: &'s Shared, is_for_others: bool) -> Release<'s> {
        Release { shared, was_panicking: std::thread::panicking(), is_for_others }
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let is_panicking = std::thread::panicking();
        if is_panicking && !self.was_panicking {
            return self.shared.progress.fail(PANICKED);
        }
        self.shared.progress.wake();
        if !is_panicking && !self.is_for_others {
            self.shared.write_left();
        }
    }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;

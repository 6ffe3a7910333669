//! How far a chain is: which records are settled, which could not be written, and who waits to be told.
//!
//! Records are counted as they are queued. Knows nothing of files: the thread that writes or syncs reports it here.

use super::error::ReceiptsError;
use ledger::chain::WriteError;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, OnceLock};
use std::task::Waker;

/// The failed writes that are remembered until their records are asked about. Older records are taken as failed.
const MAX_FAILURES: usize = 64;

const PANICKED: &str = "a thread that kept count of the receipts has panicked";

#[derive(Debug)]
pub(super) struct Progress {
    /// Where the chain is, for errors.
    folder: PathBuf,
    /// Records below this number are written, or failed.
    written: AtomicU64,
    /// Of these, the ones that no caller has to wait for any longer. Under `fsync = "always"` they are on disk.
    done: AtomicU64,
    has_failures: AtomicBool,
    failures: Mutex<Failures>,
    /// How many wait, so that who reports does not have to look.
    waiting: AtomicUsize,
    waiters: Mutex<BTreeMap<u64, Waker>>,
    /// More is done, for threads that wait in `waiters`.
    changed: Condvar,
    /// Why nothing is written any more.
    fault: OnceLock<String>,
}

#[derive(Debug, Default)]
struct Failures {
    ranges: VecDeque<Failure>,
    /// Records below this number may have failed without being remembered.
    forgotten: u64,
}

/// Records from one number to before another that could not be written.
#[derive(Debug)]
struct Failure {
    from: u64,
    to: u64,
    kind: io::ErrorKind,
    what: String,
}

impl Progress {
    pub(super) fn new(folder: PathBuf) -> Progress {
        Progress {
            folder,
            written: AtomicU64::default(),
            done: AtomicU64::default(),
            has_failures: AtomicBool::default(),
            failures: Mutex::default(),
            waiting: AtomicUsize::default(),
            waiters: Mutex::default(),
            changed: Condvar::default(),
            fault: OnceLock::new(),
        }
    }

    /// Whether all records up to this one are written or failed. Says nothing of the disk.
    pub(super) fn is_written(&self, last: u64) -> bool {
        last < self.written.load(Ordering::Acquire)
    }

    /// The number below which all records are written or failed.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How the records from `first` to `last` fared; none as long as it is open.
    ///
    /// INVARIANT: `Ok` only where each of them is written, and on disk where that is asked for.
    pub(super) fn verdict(&self, first: u64, last: u64) -> Option<Result<(), ReceiptsError>> {
        if last >= self.done.load(Ordering::SeqCst) {
            return self.fault().map(Err);
        }
        if !self.has_failures.load(Ordering::Acquire) {
            return Some(Ok(()));
        }
        let failure = match self.failures.lock() {
            Ok(failures) => failures.of(first, last),
            Err(_) => return Some(Err(ReceiptsError::Stopped(PANICKED.to_owned()))),
        };
        let of = |error| Err(ReceiptsError::of_write(WriteError::Io(error), &self.folder));
        Some(failure.map_or(Ok(()), of))
    }

    /// Records from one number to before another could not be written.
    pub(super) fn note_failure(&self, from: u64, to: u64, error: &WriteError) {
        let (kind, what) = match error {
            WriteError::Io(error) => (error.kind(), error.to_string()),
            WriteError::Encode(error) => (io::ErrorKind::Other, error.to_string()),
        };
        match self.failures.lock() {
            Ok(mut failures) => failures.add(Failure { from, to, kind, what }),
            Err(_) => return self.fail(PANICKED),
        }
        self.has_failures.store(true, Ordering::Release);
    }

    /// All records below a number were written or failed.
    pub(super) fn note_written(&self, to: u64) {
        self.written.store(to, Ordering::Release);
    }

    /// Settles all records below a number. [`Progress::wake`] wakes their waiters.
    pub(super) fn note_done(&self, to: u64) {
        self.done.fetch_max(to, Ordering::SeqCst);
    }

    /// Nothing is written any more: all that wait are told.
    pub(super) fn fail(&self, why: &str) {
        self.fault.get_or_init(|| why.to_owned());
        self.wake();
    }

    pub(super) fn has_fault(&self) -> bool {
        self.fault.get().is_some()
    }

    pub(super) fn fault(&self) -> Option<ReceiptsError> {
        self.fault.get().map(|why| ReceiptsError::Stopped(why.clone()))
    }

    /// Wakes all whose records are done, and one whose record is not written yet: it may write for all.
    ///
    /// INVARIANT: called after every release of the chain, so who could not write because the chain was held is woken.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let (done, written) =
            (self.done.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst));
        let ready = {
            // With the lock poisoned all are woken, and find the fault.
            let mut waiters = self.waiters.lock().unwrap_or_else(|poisoned| {
                self.fault.get_or_init(|| PANICKED.to_owned());
                poisoned.into_inner()
            });
            let mut rest =
                waiters.split_off(if self.fault.get().is_some() { &u64::MAX } else { &done });
            let next = rest.range(written..).next().map(|(number, _)| *number);
            std::mem::swap(&mut *waiters, &mut rest);
            let mut ready = rest;
            if let Some(next) = next {
                ready.extend(waiters.remove_entry(&next));
            }
            self.waiting.fetch_sub(ready.len(), Ordering::SeqCst);
            ready
        };
        self.changed.notify_all();
        ready.into_values().for_each(Waker::wake);
    }

    /// Has a task woken when a record is done, or when it is this task's turn to write. The caller checks again
    /// afterwards.
    pub(super) fn register(&self, last: u64, waker: &Waker) {
        let Ok(mut waiters) = self.waiters.lock() else { return self.fail(PANICKED) };
        if waiters.insert(last, waker.clone()).is_none() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        drop(waiters);
        fence(Ordering::SeqCst);
    }

    /// The task does not wait any longer.
    pub(super) fn unregister(&self, last: u64) {
        let Ok(mut waiters) = self.waiters.lock() else { return self.fail(PANICKED) };
        if waiters.remove(&last).is_some() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Blocks until a record is done, or nothing is written any more.
    pub(super) fn wait(&self, last: u64) {
        let Ok(mut waiters) = self.waiters.lock() else { return self.fail(PANICKED) };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while self.verdict(last, last).is_none() {
            match self.changed.wait(waiters) {
                Ok(woken) => waiters = woken,
                Err(_) => {
                    self.fault.get_or_init(|| PANICKED.to_owned());
                    break;
                }
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Failures {
    fn add(&mut self, failure: Failure) {
        match self.ranges.back_mut() {
            Some(last) if last.to == failure.from => {
                *last = Failure { from: last.from, ..failure };
            }
            _ => self.ranges.push_back(failure),
        }
        if self.ranges.len() > MAX_FAILURES
            && let Some(oldest) = self.ranges.pop_front()
        {
            self.forgotten = oldest.to;
        }
    }

    /// Why one of these records could not be written, if so.
    fn of(&self, first: u64, last: u64) -> Option<io::Error> {
        let found = self.ranges.iter().rev().find(|range| range.from <= last && first < range.to);
        let forgotten = || {
            let what = "it is no longer known whether the line was written";
            (first < self.forgotten).then(|| io::Error::other(what))
        };
        found.map(|found| io::Error::new(found.kind, found.what.clone())).or_else(forgotten)
    }
}

#[cfg(test)]
mod tests;

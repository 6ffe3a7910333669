//! Checkpoints of one chain that the worker signs and puts in their place while calls append: each takes as long as some
//! dozen lines.
//!
//! INVARIANT: signing never needs the lock of the chain, so no append waits for it but one that needs its checkpoint.

use super::disk::Checkpoints;
use super::worker::Worker;
use ledger::chain::{Signed, Unsigned};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A checkpoint in its place, or why it is not there.
pub(super) type Outcome = io::Result<Signed>;

/// What a chain gives its checkpoints to.
#[derive(Debug)]
pub(super) struct Signer {
    desk: Arc<Desk>,
    worker: Arc<Worker>,
}

/// One checkpoint at a time, between the chain and the worker.
#[derive(Debug)]
pub(super) struct Desk {
    checkpoints: Checkpoints,
    papers: Mutex<Papers>,
    changed: Condvar,
    /// Whether there is an outcome, for who would not wait.
    has_outcome: AtomicBool,
}

#[derive(Debug, Default)]
struct Papers {
    job: Option<Unsigned>,
    is_signing: bool,
    outcome: Option<Outcome>,
}

impl Signer {
    pub(super) fn new(checkpoints: Checkpoints, worker: Arc<Worker>) -> Signer {
        let desk = Desk {
            checkpoints,
            papers: Mutex::default(),
            changed: Condvar::new(),
            has_outcome: AtomicBool::new(false),
        };
        Signer { desk: Arc::new(desk), worker }
    }

    /// Hands over one checkpoint. The outcome of the one before it has been taken.
    pub(super) fn give(&self, unsigned: Unsigned) {
        if let Ok(mut papers) = self.desk.lock() {
            papers.job = Some(unsigned);
        }
        self.worker.sign(self.desk.clone());
    }

    /// The outcome, where there is one by now.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        if !self.desk.has_outcome.load(Ordering::Acquire) {
            return None;
        }
        self.desk.lock().map_or_else(|error| Some(Err(error)), |mut papers| self.take(&mut papers))
    }

    /// The outcome of what was given. What the worker has not begun with is done here: it may be far behind.
    pub(super) fn wait(&self) -> Outcome {
        let mut papers = self.desk.lock()?;
        if let Some(unsigned) = papers.job.take() {
            drop(papers);
            return self.desk.put(unsigned);
        }
        loop {
            if let Some(outcome) = self.take(&mut papers) {
                return outcome;
            }
            if !papers.is_signing {
                return Err(io::Error::other("no thread signs the checkpoint"));
            }
            papers = self.desk.changed.wait(papers).map_err(|_| panicked())?;
        }
    }

    fn take(&self, papers: &mut Papers) -> Option<Outcome> {
        self.desk.has_outcome.store(false, Ordering::Release);
        papers.outcome.take()
    }
}

impl Desk {
    /// Signs what was given, unless that was taken back. The worker calls this.
    pub(super) fn work(&self) {
        let Ok(mut papers) = self.lock() else { return };
        let Some(unsigned) = papers.job.take() else { return };
        papers.is_signing = true;
        drop(papers);
        // The chain is not left waiting, however this ends.
        let mut end = EndOfSigning { desk: self, outcome: Some(Err(panicked())) };
        end.outcome = Some(self.put(unsigned));
    }

    fn put(&self, unsigned: Unsigned) -> Outcome {
        contract::trip::trip("signer", b"sign");
        let signed = unsigned.sign();
        self.checkpoints.put(signed.segment, &signed.text).map(|()| signed)
    }

    fn lock(&self) -> io::Result<MutexGuard<'_, Papers>> {
        self.papers.lock().map_err(|_| panicked())
    }
}

fn panicked() -> io::Error {
    io::Error::other("a thread that signs checkpoints has panicked")
}

struct EndOfSigning<'d> {
    desk: &'d Desk,
    outcome: Option<Outcome>,
}

impl Drop for EndOfSigning<'_> {
    fn drop(&mut self) {
        if let Ok(mut papers) = self.desk.lock() {
            papers.outcome = self.outcome.take();
            papers.is_signing = false;
        }
        self.desk.has_outcome.store(true, Ordering::Release);
        self.desk.changed.notify_all();
    }
}

//! The thread that signs checkpoints and puts them in their place while calls append: each takes as long as some dozen
//! lines.
//!
//! INVARIANT: it never needs the lock of the chain, so no append waits for it but one that needs its checkpoint.

use super::disk::Checkpoints;
use ledger::chain::{Signed, Unsigned};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A checkpoint in its place, or why it is not there.
pub(super) type Outcome = io::Result<Signed>;

#[derive(Debug)]
pub(super) struct Signer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Desk {
    papers: Mutex<Papers>,
    changed: Condvar,
    /// Whether an outcome lies on the desk, for who would not wait.
    has_outcome: AtomicBool,
}

#[derive(Debug, Default)]
struct Papers {
    job: Option<Unsigned>,
    outcome: Option<Outcome>,
    is_closed: bool,
}

impl Signer {
    pub(super) fn start(checkpoints: Checkpoints) -> io::Result<Signer> {
        let desk = Arc::new(Desk::default());
        let desk_of_thread = desk.clone();
        let thread = std::thread::Builder::new()
            .name("receipts-signer".to_owned())
            .spawn(move || desk_of_thread.work(&checkpoints))?;
        Ok(Signer { desk, thread: Some(thread) })
    }

    /// Hands over one checkpoint. The outcome of the one before it has been taken.
    pub(super) fn give(&self, unsigned: Unsigned) {
        self.desk.lock().job = Some(unsigned);
        self.desk.changed.notify_all();
    }

    /// The outcome, where there is one by now.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        if !self.desk.has_outcome.load(Ordering::Acquire) {
            return None;
        }
        self.desk.take_outcome(&mut self.desk.lock())
    }

    /// Waits for the outcome of what was given.
    pub(super) fn wait(&self) -> Outcome {
        let mut papers = self.desk.lock();
        loop {
            if let Some(outcome) = self.desk.take_outcome(&mut papers) {
                return outcome;
            }
            if papers.is_closed {
                return Err(io::Error::other("the thread that signs has ended"));
            }
            papers = self.desk.changed.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        self.desk.lock().is_closed = true;
        self.desk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_outcome(&self, papers: &mut Papers) -> Option<Outcome> {
        self.has_outcome.store(false, Ordering::Release);
        papers.outcome.take()
    }

    fn work(&self, checkpoints: &Checkpoints) {
        give_way();
        // Whoever waits is not left waiting, however this thread ends.
        let _end = EndOfWork(self);
        let mut papers = self.lock();
        while !papers.is_closed {
            let Some(unsigned) = papers.job.take() else {
                papers = self.changed.wait(papers).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(papers);
            let signed = unsigned.sign();
            let put = checkpoints.put(signed.segment, &signed.text);
            papers = self.lock();
            papers.outcome = Some(put.map(|()| signed));
            self.has_outcome.store(true, Ordering::Release);
            self.changed.notify_all();
        }
    }
}

/// Signing takes as long as a call: whoever makes one goes first. Where the system does not do that, nothing is lost.
fn give_way() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), LOWEST_PRIORITY);
}

#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;

struct EndOfWork<'d>(&'d Desk);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

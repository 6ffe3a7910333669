//! A bug in the gate stops one message, not the session. Each message is handled inside a boundary
//! that turns a panic into a refusal with -32012, a line in the error log and a released request.
//!
//! A lock that was held during a panic may protect inconsistent data. Nothing is decided with that:
//! the session refuses everything from then on. Several panics within a short time end the session.

pub(crate) use contract::trip::trip;

use super::Session;
use crate::error_log::ErrorLog;
use crate::reason::ReasonCode;
use crate::refusal::Refusal;
use crate::requests::{EndedRequests, Phase};
use ledger::record::{OutcomeStatus, ReceiptId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wire::envelope::{Envelope, Kind, OwnedId};

/// This many panics within the window end the session.
const MAX_PANICS: usize = 3;
const PANIC_WINDOW: Duration = Duration::from_secs(60);

/// The message for a request that a panic ended.
const WORDS: &str = "○ holdpoint — a fault of the gate itself: whether the call was made is not known. \
    It is noted in errors.jsonl in the home folder; a person reports it.";

/// Unwinds to the boundary from a lock that was held during a panic.
struct Broken;

/// What to do when the session must end.
type Ending = Box<dyn Fn() + Send + Sync>;

/// The faults of a session, or of a server.
#[derive(Default)]
pub(crate) struct Faults {
    panics: Mutex<VecDeque<Instant>>,
    /// Whether something that calls are decided on may be inconsistent.
    is_broken: AtomicBool,
    /// Whether everything that was in flight at that time has been refused.
    is_closed: AtomicBool,
    ending: OnceLock<Ending>,
}

impl Faults {
    /// Runs some work. A panic is recorded, with the length of the message it was about, and `None`
    /// is returned.
    pub(crate) fn contain<T>(
        &self,
        errors: &ErrorLog,
        bytes: usize,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => return Some(done),
            // The original panic was recorded when it happened.
            Err(panic) if panic.is::<Broken>() => {
                self.is_broken.store(true, Ordering::SeqCst);
                return None;
            }
            Err(_) => {}
        }
        errors.note(ReasonCode::Internal, bytes as u64);
        self.count_panic();
        None
    }

    /// Sets what to do after too many panics.
    pub(crate) fn on_fault(&self, ending: impl Fn() + Send + Sync + 'static) {
        let _ = self.ending.set(Box::new(ending));
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    /// Counts a recorded panic. Too many end the session.
    fn count_panic(&self) {
        if self.count(Instant::now())
            && let Some(end) = self.ending.get()
        {
            end();
        }
    }

    /// Records a panic. Returns whether there were too many.
    fn count(&self, now: Instant) -> bool {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        panics.retain(|at| now.saturating_duration_since(*at) < PANIC_WINDOW);
        panics.push_back(now);
        panics.len() >= MAX_PANICS
    }
}

/// How far this thread has got with its current message.
#[derive(Default)]
struct Progress {
    /// A decision on it was recorded.
    is_decided: Cell<bool>,
    /// The client was answered.
    is_answered: Cell<bool>,
    /// The request that the message answers, once it is no longer pending.
    taken: RefCell<Option<(OwnedId, ReceiptId)>>,
}

thread_local! {
    static PROGRESS: Progress = Progress::default();
}

pub(super) fn note_decided() {
    PROGRESS.with(|progress| progress.is_decided.set(true));
}

pub(super) fn note_answered() {
    PROGRESS.with(|progress| progress.is_answered.set(true));
}

pub(super) fn note_taken(id: OwnedId, receipt_id: ReceiptId) {
    PROGRESS.with(|progress| *progress.taken.borrow_mut() = Some((id, receipt_id)));
}

/// Locks something that calls are decided on. Unwinds to the boundary if it may be inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|_| resume_unwind(Box::new(Broken)))
}

impl Session {
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Runs some work. A panic is recorded, with the length of the message it was about, and `None`
    /// is returned.
    pub(crate) fn contain<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> Option<T> {
        PROGRESS.with(|progress| {
            progress.is_decided.set(false);
            progress.is_answered.set(false);
            progress.taken.borrow_mut().take();
        });
        self.faults.contain(&self.server.errors, bytes, work)
    }

    /// Counts a recorded panic. Too many end the session.
    pub(super) fn count_fault(&self) {
        self.faults.count_panic();
    }

    /// Handles a panic on the path to a remote server that belongs to no request, or that ended
    /// several requests.
    pub(crate) fn way_failed(&self) {
        self.note_fault(ReasonCode::Internal, 0);
        self.count_fault();
    }

    /// Locks a part of the session. Unwinds to the boundary if it may be inconsistent.
    pub(super) fn lock<'a, T>(&'a self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(|_| {
            self.faults.is_broken.store(true, Ordering::SeqCst);
            resume_unwind(Box::new(Broken))
        })
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.faults.is_broken()
    }

    /// Refuses the request that was being handled during a panic, unless it was already answered.
    pub(crate) fn release_failed(&self, id: &OwnedId, method: &str, bytes: usize) {
        let (is_decided, is_answered) =
            PROGRESS.with(|progress| (progress.is_decided.get(), progress.is_answered.get()));
        let released = catch_unwind(AssertUnwindSafe(|| {
            let ended = self.state().requests.end(self.at(id.key()));
            if let Some(dispatched) = ended.as_ref().and_then(Phase::dispatched) {
                self.record_failure(dispatched, OutcomeStatus::Error);
            } else if !is_decided {
                match ended.as_ref().and_then(Phase::kept) {
                    Some(kept) => self.record_unseen(&kept.request, ReasonCode::Internal),
                    None => self.record_denial(method, bytes, ReasonCode::Internal, Instant::now()),
                };
            }
        }));
        if !is_answered {
            self.refuse_failed(id.raw());
        }
        if released.is_err() {
            // It was just answered, so it must not be refused with the others.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.requests.end(self.at(id.key()));
            drop(state);
            self.close_broken();
        }
    }

    /// Refuses the request whose answer was being forwarded during a panic.
    pub(super) fn release_answered(&self, envelope: Option<&Envelope<'_>>) {
        let (taken, is_answered) = PROGRESS
            .with(|progress| (progress.taken.borrow_mut().take(), progress.is_answered.get()));
        match (taken, envelope.map(|envelope| &envelope.kind)) {
            (Some((id, receipt_id)), _) if !is_answered => {
                let status = OutcomeStatus::Error;
                self.server.recorder.outcome(receipt_id, status, 0, Duration::ZERO, Duration::ZERO);
                self.refuse_failed(id.raw());
            }
            (Some(_), _) => {}
            (None, Some(Kind::Response { id: Some(id), .. })) => {
                let failed = || self.fail(id.key(), ReasonCode::Internal, OutcomeStatus::Error);
                if catch_unwind(AssertUnwindSafe(failed)).is_err() {
                    self.close_broken();
                }
            }
            (None, _) => {}
        }
    }

    /// Answers with -32012, without reading anything that may be inconsistent.
    pub(super) fn refuse_failed(&self, id: &[u8]) {
        let refusal = Refusal::fault(ReasonCode::Internal, WORDS, self.server.id.as_str());
        let message = refusal.to_message(id);
        // If even this panics, the client cannot be notified.
        let _ = catch_unwind(AssertUnwindSafe(|| self.answer_client(id, &message)));
    }

    /// Refuses everything in flight, once, when nothing more can be decided.
    pub(crate) fn close_broken(&self) {
        if !self.is_broken() || self.faults.is_closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.remark(
            "a fault of the gate itself: everything is refused until the server is started again",
        );
        let EndedRequests { dispatched, kept } = {
            // Only used to find the pending requests.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.requests.abandon_all()
        };
        for (_, dispatched) in &dispatched {
            self.record_failure(dispatched, OutcomeStatus::Error);
        }
        let dispatched = dispatched.iter().map(|(key, _)| key);
        let unanswered = dispatched.chain(kept.iter().map(|(key, _)| key));
        unanswered.for_each(|key| self.refuse_failed(key.id.raw()));
    }
}

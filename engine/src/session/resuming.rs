//! Resumes requests that waited. Each was scanned when it arrived, and is decided on once, by the
//! thread that claims it.
//!
//! A request that must be sent is passed to the thread that may block on the server; all others are
//! answered immediately.

use super::boundary::trip;
use super::{Met, Passage, Session};
use crate::call::Method;
use crate::decide::{Decided, Ruling};
use crate::errands::Errand;
use crate::outlet::FreeMessage;
use crate::reason::ReasonCode;
use crate::requests::{Asking, Kept, OwnedRequest, RequestKey};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use wire::envelope::Id;

/// A request that waited and can now be sent, with the facts it was decided on.
#[derive(Debug)]
pub struct DecidedRequest {
    pub(crate) request: Arc<OwnedRequest>,
    met: Met,
    decided: Decided,
}

/// Counts a thread that is resuming a request. The request's table entry may be removed before the
/// client is answered.
struct Resuming<'a>(&'a AtomicUsize);

impl<'a> Resuming<'a> {
    fn new(count: &'a AtomicUsize) -> Resuming<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Resuming(count)
    }
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Session {
    /// Whether requests that waited still have to be sent or answered.
    pub(crate) fn has_waiting(&self) -> bool {
        // The table comes first: a thread is counted before it removes a request from it.
        let has_unfinished =
            || self.state.lock().is_ok_and(|state| state.requests.has_unfinished());
        !self.is_broken() && (has_unfinished() || self.resuming.load(Ordering::SeqCst) > 0)
    }

    /// Resumes a released request, unless another thread does so or it has ended.
    pub(crate) fn resume(&self, key: &RequestKey) {
        self.go_on_with(key, || {
            let claimed = self.state().requests.claim(key.as_ref());
            if let Some(kept) = claimed {
                self.decide_on(&kept);
            }
        });
    }

    /// A panic refuses the request.
    fn go_on_with(&self, key: &RequestKey, work: impl FnOnce()) {
        let _resuming = Resuming::new(&self.resuming);
        if self.contain(0, work).is_none() {
            self.release_failed(&key.id, "", 0);
        }
    }

    fn decide_on(&self, kept: &Kept) {
        let Kept { request, .. } = kept;
        let (id, kind) = (request.id().as_id(), request.kind());
        let passage = passage_of(kept, &id);
        trip("resume", passage.request.frame);
        let met = {
            let state = self.state();
            let known = state.view.known();
            let freshness = kind.list().map(|list| known.freshness(list));
            let age = freshness.and_then(|freshness| freshness.age(Instant::now()));
            Met::of(known, &state.client.principal, age)
        };
        if let Method::List(list) = kind {
            return self.answer_list(&passage, list, &met);
        }
        if self.answers_itself(kind, met.situation()) {
            return self.answer_unadmitted(&passage, &met);
        }
        // A call whose client has disconnected is not made, so that no grant is used up for it.
        let decided = match kept.cancellation.is_some() || kept.has_left {
            false => self.decide_approved(&passage, &met),
            true => self.decide(&passage.request.call, &met),
        };
        match decided.ruling {
            Ruling::Allow => {
                self.state().requests.decide(self.at(id.key()));
                let decided = DecidedRequest { request: request.clone(), met: met.kept(), decided };
                self.errand(Errand::Resume(Box::new(decided)));
            }
            Ruling::Hold(_) | Ruling::Deny(_) => self.carry_out(&passage, &met, &decided),
        }
    }

    /// Sends a request that waited, unless it has ended. Its cancellation follows it.
    pub(crate) fn send_decided(&self, decided: &DecidedRequest) {
        let _resuming = Resuming::new(&self.resuming);
        let brought = self.state().requests.bring(self.key, &decided.request);
        let Some(kept) = brought else { return };
        let id = kept.request.id().as_id();
        self.carry_out(&passage_of(&kept, &id), &decided.met, &decided.decided);
        self.send_gathered();
        let until = Instant::now().checked_add(self.server.settings.cancelled_patience);
        let cancellation = self.state().requests.left(self.at(id.key()), until);
        if let Some(frame) = &cancellation {
            let method = "notifications/cancelled";
            self.gather_for_server(&FreeMessage::notification(frame, method));
            self.send_gathered();
        }
    }

    /// Called when the gate answers a request itself. One that waited is removed from the table.
    pub(super) fn end_wait(&self, passage: &Passage<'_>) {
        if passage.has_waited {
            self.state().requests.end(self.at(passage.request.id.key()));
        }
    }

    /// Refuses a released request, because the lists or the check that it waited for did not
    /// arrive.
    pub(crate) fn refuse_unseen(&self, key: &RequestKey, reason: ReasonCode) {
        self.go_on_with(key, || {
            let Some(kept) = self.state().requests.claim(key.as_ref()) else { return };
            let reason = self.record_unseen(&kept.request, reason);
            self.state().requests.end(key.as_ref());
            self.refuse_sized(key.id.raw(), reason, kept.request.bytes());
        });
    }

    /// Records that a request is refused. Returns the reason shown to the client.
    pub(super) fn record_unseen(&self, request: &OwnedRequest, reason: ReasonCode) -> ReasonCode {
        self.record_denial(request.method(), request.bytes(), reason, request.begun())
    }
}

fn passage_of<'a>(kept: &'a Kept, id: &'a Id<'a>) -> Passage<'a> {
    Passage {
        request: kept.request.parsed(id),
        begun: kept.request.begun(),
        // The person is not asked about a call that the client has cancelled.
        asking: if kept.cancellation.is_some() { Asking::Done } else { kept.asking },
        deadline: kept.deadline,
        has_waited: true,
    }
}

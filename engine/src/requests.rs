//! The table of a server's requests: each client request, from when the gate takes it until it is
//! answered, and the gate's own requests. Each phase transition is a function here; its callers do
//! the reading and writing.
//!
//! It depends only on its arguments: no lock, no clock, no I/O.
//!
//! INVARIANT: a request that the gate has taken and not answered has exactly one entry in one
//! phase. So its id stays in use throughout, and a cancellation always finds it.

mod ending;
mod own;
mod parsed;
mod phase;
mod sending;

pub use parsed::{OwnedRequest, ParsedRequest};
pub use phase::{
    Answered, Asked, Asking, Awaited, CallAnswer, Cancelling, Dispatched, DispatchedKind,
    EndedRequests, Kept, Late, Lateness, ParkedCall, Phase, Refused, RequestKey, RequestRef,
    SessionKey,
};

use contract::surface::{EntryId, ListKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

/// The most client requests that wait for the server's answer.
pub const MAX_PENDING: usize = 10_000;
/// The most requests that are stored because they wait or were just released, and their total size
/// in bytes.
pub const MAX_WAITING: usize = 1_000;
pub const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The pending requests of one server.
#[derive(Debug, Default)]
pub struct Requests {
    /// By session and then by id, so that an operation on one session never scans the requests of
    /// others.
    sessions: BTreeMap<SessionKey, HashMap<OwnedId, Phase>>,
    /// The waiting requests, oldest first.
    queue: BTreeMap<u64, RequestKey>,
    next_place: u64,
    counts: Counts,
    /// The gate's own requests by their id with its quotes. If an unreadable line may have been the
    /// answer, with the time until which it is still awaited.
    own: HashMap<Vec<u8>, Option<Instant>>,
    is_ended: bool,
}

/// The number of requests in various phases, maintained so that no query scans the table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    kept: usize,
    kept_bytes: usize,
    /// Those that must be sent to the server or answered by the gate, whatever a person decides.
    unfinished: usize,
    dispatched: usize,
    calls: usize,
    handshakes: usize,
}

impl Counts {
    fn of(phase: &Phase) -> Counts {
        let is_kind = |kind| phase.dispatched().is_some_and(|dispatched| dispatched.kind == kind);
        let is_unfinished = match phase {
            Phase::Waiting {
                awaited: Awaited::List(_) | Awaited::Admission | Awaited::Corpus,
                ..
            }
            | Phase::Released(_)
            | Phase::Claimed(_)
            | Phase::Decided(_)
            | Phase::Leaving { .. } => true,
            Phase::Waiting { awaited: Awaited::Person(_) | Awaited::Approval, .. }
            | Phase::InFlight(_)
            | Phase::Cancelled(_) => false,
        };
        Counts {
            kept: usize::from(phase.kept().is_some()),
            kept_bytes: phase.kept().map_or(0, |kept| kept.request.bytes()),
            unfinished: usize::from(is_unfinished),
            dispatched: usize::from(phase.dispatched().is_some()),
            calls: usize::from(is_kind(DispatchedKind::Call)),
            handshakes: usize::from(is_kind(DispatchedKind::Handshake)),
        }
    }

    fn zip(self, other: Counts, with: fn(usize, usize) -> usize) -> Counts {
        Counts {
            kept: with(self.kept, other.kept),
            kept_bytes: with(self.kept_bytes, other.kept_bytes),
            unfinished: with(self.unfinished, other.unfinished),
            dispatched: with(self.dispatched, other.dispatched),
            calls: with(self.calls, other.calls),
            handshakes: with(self.handshakes, other.handshakes),
        }
    }

    fn add(&mut self, phase: &Phase) {
        *self = self.zip(Counts::of(phase), usize::saturating_add);
    }

    fn subtract(&mut self, phase: &Phase) {
        *self = self.zip(Counts::of(phase), usize::saturating_sub);
    }
}

impl Requests {
    /// Whether a request with this id can be taken.
    pub fn admits(&self, at: RequestRef<'_>) -> Result<(), Refused> {
        if self.phase(at).is_some() {
            Err(Refused::Taken)
        } else if self.is_ended {
            Err(Refused::Ended)
        } else {
            Ok(())
        }
    }

    pub fn phase(&self, at: RequestRef<'_>) -> Option<&Phase> {
        self.sessions.get(&at.session)?.get(at.id)
    }

    /// A request that was released and not yet claimed by a thread.
    pub fn released(&self, at: RequestRef<'_>) -> Option<&Arc<OwnedRequest>> {
        match self.phase(at)? {
            Phase::Released(kept) => Some(&kept.request),
            Phase::Waiting { .. }
            | Phase::Claimed(_)
            | Phase::Decided(_)
            | Phase::Leaving { .. }
            | Phase::InFlight(_)
            | Phase::Cancelled(_) => None,
        }
    }

    /// Whether the server has ended, so that nothing can be dispatched anymore.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether any request still must be sent to the server or answered here. One that a person was
    /// asked about may never be.
    pub fn has_unfinished(&self) -> bool {
        self.counts.unfinished > 0
    }

    /// Whether one of the gate's own requests has this id.
    pub fn has_own(&self, id: &[u8]) -> bool {
        self.own.contains_key(id)
    }

    /// Whether the server has unanswered calls.
    pub fn has_calls(&self) -> bool {
        self.counts.calls > 0
    }

    /// Whether the server has unanswered handshakes.
    pub fn has_handshakes(&self) -> bool {
        self.counts.handshakes > 0
    }

    /// The lists that requests wait for.
    pub fn waited_lists(&self) -> BTreeSet<ListKind> {
        let list_of = |awaited: &Awaited| match awaited {
            Awaited::List(list) => Some(*list),
            Awaited::Admission | Awaited::Person(_) | Awaited::Approval | Awaited::Corpus => None,
        };
        self.waiting().filter_map(|(_, awaited)| list_of(awaited)).collect()
    }

    /// Whether requests wait for a check of the server's admission.
    pub fn has_unadmitted(&self) -> bool {
        self.waiting().any(|(_, awaited)| *awaited == Awaited::Admission)
    }

    /// The entries that a person is asked about.
    pub fn asked_entries(&self) -> BTreeSet<EntryId> {
        let entry_of = |awaited: &Awaited| match awaited {
            Awaited::Person(entry) => Some(entry.clone()),
            Awaited::List(_) | Awaited::Admission | Awaited::Approval | Awaited::Corpus => None,
        };
        self.waiting().filter_map(|(_, awaited)| entry_of(awaited)).collect()
    }

    /// The waiting requests, oldest first.
    fn waiting(&self) -> impl Iterator<Item = (&RequestKey, &Awaited)> {
        self.queue.values().filter_map(|key| match self.phase(key.as_ref())? {
            Phase::Waiting { awaited, .. } => Some((key, awaited)),
            Phase::Released(_)
            | Phase::Claimed(_)
            | Phase::Decided(_)
            | Phase::Leaving { .. }
            | Phase::InFlight(_)
            | Phase::Cancelled(_) => None,
        })
    }
}

impl Requests {
    fn enqueue(&mut self, key: RequestKey) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.queue.insert(place, key);
        place
    }

    fn insert(&mut self, key: RequestKey, phase: Phase) {
        self.counts.add(&phase);
        self.sessions.entry(key.session).or_default().insert(key.id, phase);
    }

    /// Changes the phase of a request, if it exists.
    fn change<T>(
        &mut self,
        at: RequestRef<'_>,
        change: impl FnOnce(Phase) -> (Phase, T),
    ) -> Option<T> {
        let requests = self.sessions.get_mut(&at.session)?;
        let (id, before) = requests.remove_entry(at.id)?;
        self.counts.subtract(&before);
        let (after, result) = change(before);
        self.counts.add(&after);
        requests.insert(id, after);
        Some(result)
    }

    /// Releases the waiting requests for which `is_released` holds, oldest first.
    fn release(&mut self, is_released: impl Fn(&Awaited) -> bool) -> Vec<RequestKey> {
        let waiting = self.waiting().filter(|(_, awaited)| is_released(awaited));
        let released: Vec<RequestKey> = waiting.map(|(key, _)| key.clone()).collect();
        released.iter().for_each(|key| self.release_one(key.as_ref()));
        released
    }

    /// Releases a request that waits, or that was decided and not yet sent to the server.
    fn release_one(&mut self, at: RequestRef<'_>) {
        let place = self.change(at, |phase| match phase {
            Phase::Waiting { kept, place, .. } => (Phase::Released(kept), Some(place)),
            Phase::Decided(kept) => (Phase::Released(kept), None),
            other => (other, None),
        });
        if let Some(place) = place.flatten() {
            self.queue.remove(&place);
        }
    }

    /// The requests in the phases for which `is_meant` holds, oldest first.
    fn oldest_first(&self, is_meant: impl Fn(&Phase) -> bool) -> Vec<RequestKey> {
        let mut found: Vec<(Instant, RequestKey)> = Vec::new();
        for (session, requests) in &self.sessions {
            for (id, phase) in requests.iter().filter(|(_, phase)| is_meant(phase)) {
                if let Some(kept) = phase.kept() {
                    let key = RequestKey { session: *session, id: id.clone() };
                    found.push((kept.request.begun(), key));
                }
            }
        }
        found.sort_by_key(|(begun, _)| *begun);
        found.into_iter().map(|(_, key)| key).collect()
    }
}

#[cfg(test)]
mod tests;

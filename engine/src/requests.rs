//! The table of a server's requests: each request of a client from when the gate takes it until it is answered, and the
//! gate's own requests. Every change of phase is a function here; those who call it do the reading and the writing.
//!
//! It knows nothing but its arguments: no lock, no clock, no I/O.
//!
//! INVARIANT: a request that the gate has taken and not answered has one entry with one phase. So its id is taken throughout,
//! and a cancellation always finds it.

mod parsed;
mod phase;

pub use parsed::{OwnedRequest, ParsedRequest};
pub use phase::{
    Answered, Asked, Asking, Awaited, Cancelling, Dispatched, DispatchedKind, EndedRequests, Kept,
    Late, Lateness, Phase, Refused, RequestKey, RequestRef, SessionKey,
};

use contract::surface::{EntryId, ListKind};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::{Id, OwnedId};

/// The most requests of clients that wait for the server's answer.
pub const MAX_PENDING: usize = 10_000;
/// The most requests that are kept because they wait for something or were just released, and their bytes.
pub const MAX_WAITING: usize = 1_000;
pub const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The requests in flight of one server.
#[derive(Debug, Default)]
pub struct Requests {
    /// By session and then by id: what is done for one session never looks at the requests of the others.
    sessions: HashMap<SessionKey, HashMap<OwnedId, Phase>>,
    /// The requests that wait, the oldest first.
    queue: BTreeMap<u64, RequestKey>,
    next_place: u64,
    counts: Counts,
    /// The gate's own requests by their id with its quotes, and how long an answer is still waited for where a line that
    /// cannot be read may have been it.
    own: HashMap<Vec<u8>, Option<Instant>>,
    is_ended: bool,
}

/// How many requests are in which phases, so that nobody has to look through them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    kept: usize,
    kept_bytes: usize,
    /// Those that have to be brought to the server or answered by the gate, whatever a person says.
    unfinished: usize,
    dispatched: usize,
    calls: usize,
    handshakes: usize,
}

impl Counts {
    fn of(phase: &Phase) -> Counts {
        let is_kind = |kind| phase.dispatched().is_some_and(|dispatched| dispatched.kind == kind);
        let is_unfinished = match phase {
            Phase::Waiting { awaited: Awaited::List(_) | Awaited::Admission, .. }
            | Phase::Released(_)
            | Phase::Claimed(_)
            | Phase::Decided(_)
            | Phase::Leaving { .. } => true,
            Phase::Waiting { awaited: Awaited::Person(_), .. }
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

/// Looking.
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

    /// A request that was released and that no thread has claimed.
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

    /// Whether the server has ended: nothing can be dispatched any more.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether any request has yet to be brought to the server or answered here. One that a person was asked about may
    /// never be.
    pub fn has_unfinished(&self) -> bool {
        self.counts.unfinished > 0
    }

    /// Whether the server has calls to answer.
    pub fn has_calls(&self) -> bool {
        self.counts.calls > 0
    }

    /// Whether the server has a handshake to answer.
    pub fn has_handshakes(&self) -> bool {
        self.counts.handshakes > 0
    }

    /// The lists that requests wait for.
    pub fn waited_lists(&self) -> BTreeSet<ListKind> {
        let list_of = |awaited: &Awaited| match awaited {
            Awaited::List(list) => Some(*list),
            Awaited::Admission | Awaited::Person(_) => None,
        };
        self.waiting().filter_map(|(_, awaited)| list_of(awaited)).collect()
    }

    /// The entries that a person is asked about.
    pub fn asked_entries(&self) -> BTreeSet<EntryId> {
        let entry_of = |awaited: &Awaited| match awaited {
            Awaited::Person(entry) => Some(entry.clone()),
            Awaited::List(_) | Awaited::Admission => None,
        };
        self.waiting().filter_map(|(_, awaited)| entry_of(awaited)).collect()
    }

    /// The requests that wait, the oldest first.
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

/// On the way to the server.
impl Requests {
    /// A new request waits.
    pub fn wait(
        &mut self,
        session: SessionKey,
        request: OwnedRequest,
        awaited: Awaited,
        asking: Asking,
        deadline: Option<Instant>,
    ) -> Result<(), Refused> {
        let key = RequestKey { session, id: request.id().clone() };
        self.admits(key.as_ref())?;
        let bytes = self.counts.kept_bytes.saturating_add(request.bytes());
        if self.counts.kept >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            return Err(Refused::TooMany);
        }
        let kept = Kept { request: Arc::new(request), asking, deadline, cancellation: None };
        let place = self.enqueue(key.clone());
        self.insert(key, Phase::Waiting { kept, awaited, place });
        Ok(())
    }

    /// Releases the requests that waited for one of these lists, the oldest first.
    pub fn release_listed(&mut self, lists: &[ListKind]) -> Vec<RequestKey> {
        self.release(|awaited| match awaited {
            Awaited::List(list) => lists.contains(list),
            Awaited::Admission | Awaited::Person(_) => false,
        })
    }

    /// Releases the requests that waited for a check of the server's admission, the oldest first.
    pub fn release_unadmitted(&mut self) -> Vec<RequestKey> {
        self.release(|awaited| match awaited {
            Awaited::Admission => true,
            Awaited::List(_) | Awaited::Person(_) => false,
        })
    }

    /// Releases the requests that a person was asked about, the oldest first. What they took is not counted against the
    /// call: it has until this deadline.
    pub fn release_asked(&mut self, entry: &EntryId, deadline: Option<Instant>) -> Vec<RequestKey> {
        let released = self.release(|awaited| is_person(awaited, entry));
        for key in &released {
            self.change(key.as_ref(), |phase| match phase {
                Phase::Released(kept) => (Phase::Released(Kept { deadline, ..kept }), ()),
                other => (other, ()),
            });
        }
        released
    }

    /// Releases everything that waits. Returns it with what was released before and not claimed, the oldest first.
    pub fn release_all(&mut self) -> Vec<RequestKey> {
        self.release(|_| true);
        self.oldest_first(|phase| matches!(phase, Phase::Released(_)))
    }

    /// Releases the requests that were not sent in time, the oldest first. One that waits for a thread that is stuck in a
    /// write to the server is among them.
    pub fn release_late(&mut self, now: Instant) -> Vec<RequestKey> {
        let is_late = |kept: &Kept| kept.deadline.is_some_and(|deadline| deadline <= now);
        let late = self.oldest_first(|phase| match phase {
            Phase::Waiting { kept, .. } | Phase::Released(kept) | Phase::Decided(kept) => {
                is_late(kept)
            }
            Phase::Claimed(_)
            | Phase::Leaving { .. }
            | Phase::InFlight(_)
            | Phase::Cancelled(_) => false,
        });
        late.iter().for_each(|key| self.release_one(key.as_ref()));
        late
    }

    /// Claims a released request for the thread that asks. Returns `None` if another thread has it, or if it has ended.
    pub fn claim(&mut self, at: RequestRef<'_>) -> Option<Kept> {
        self.change(at, |phase| match phase {
            Phase::Released(kept) => (Phase::Claimed(kept.clone()), Some(kept)),
            other => (other, None),
        })?
    }

    /// A released request has to wait for something else.
    pub fn wait_again(&mut self, at: RequestRef<'_>, awaited: Awaited) {
        let place = self.next_place;
        let id = self.change(at, |phase| match phase {
            Phase::Released(kept) => {
                let id = kept.request.id().clone();
                (Phase::Waiting { kept, awaited, place }, Some(id))
            }
            other => (other, None),
        });
        if let Some(id) = id.flatten() {
            self.enqueue(RequestKey { session: at.session, id });
        }
    }

    /// A claimed request waits for what a person says of this entry, for as long as they take.
    pub fn ask(&mut self, at: RequestRef<'_>, entry: EntryId) -> Asked {
        let place = self.next_place;
        let asked = self.change(at, |phase| match phase {
            Phase::Claimed(kept) if kept.cancellation.is_none() => {
                let id = kept.request.id().clone();
                let kept = Kept { asking: Asking::Done, deadline: None, ..kept };
                (Phase::Waiting { kept, awaited: Awaited::Person(entry), place }, Some(id))
            }
            other => (other, None),
        });
        match asked.flatten() {
            Some(id) => {
                self.enqueue(RequestKey { session: at.session, id });
                Asked::Waits
            }
            None => Asked::Cancelled,
        }
    }

    /// It was decided to send a claimed request; the thread that may block on the server is to bring it there.
    pub fn decide(&mut self, at: RequestRef<'_>) {
        self.change(at, |phase| match phase {
            Phase::Claimed(kept) => (Phase::Decided(kept), ()),
            other => (other, ()),
        });
    }

    /// Claims a decided request for the thread that brings it to the server. Returns `None` if it has ended, also if a later
    /// request has its id.
    pub fn bring(&mut self, session: SessionKey, request: &Arc<OwnedRequest>) -> Option<Kept> {
        let at = RequestRef { session, id: request.id().key() };
        self.change(at, |phase| match phase {
            Phase::Decided(kept) if Arc::ptr_eq(&kept.request, request) => {
                (Phase::Claimed(kept.clone()), Some(kept))
            }
            other => (other, None),
        })?
    }

    /// A request that did not wait goes to the server.
    pub fn dispatch(
        &mut self,
        session: SessionKey,
        id: OwnedId,
        dispatched: Dispatched,
    ) -> Result<(), Refused> {
        self.has_room_to_dispatch()?;
        match self.sessions.entry(session).or_default().entry(id) {
            Entry::Occupied(_) => Err(Refused::Taken),
            Entry::Vacant(place) => {
                self.counts.add(place.insert(Phase::InFlight(dispatched)));
                Ok(())
            }
        }
    }

    /// A claimed request goes to the server, with what was said of it meanwhile.
    pub fn leave(&mut self, at: RequestRef<'_>, dispatched: Dispatched) -> Result<(), Refused> {
        self.has_room_to_dispatch()?;
        let left = self.change(at, |phase| match phase {
            Phase::Claimed(Kept { cancellation, .. }) => {
                (Phase::Leaving { dispatched, cancellation }, true)
            }
            other => (other, false),
        });
        // The session of a claimed request that is not there any more has ended.
        if left == Some(true) { Ok(()) } else { Err(Refused::Ended) }
    }

    fn has_room_to_dispatch(&self) -> Result<(), Refused> {
        if self.is_ended {
            Err(Refused::Ended)
        } else if self.counts.dispatched >= MAX_PENDING {
            Err(Refused::TooMany)
        } else {
            Ok(())
        }
    }

    /// The bytes of a request that waited have left. Returns the cancellation that has to follow it.
    pub fn left(&mut self, at: RequestRef<'_>, until: Option<Instant>) -> Option<Vec<u8>> {
        self.change(at, |phase| match phase {
            Phase::Leaving { dispatched, cancellation: None } => {
                (Phase::InFlight(dispatched), None)
            }
            Phase::Leaving { dispatched, cancellation } => {
                (Phase::Cancelled(until_at_most(dispatched, until)), cancellation)
            }
            other => (other, None),
        })?
    }

    /// The client does not wait for a request any more. The server may still answer it until then.
    pub fn cancel(
        &mut self,
        at: RequestRef<'_>,
        cancellation: &[u8],
        until: Option<Instant>,
    ) -> Cancelling {
        let with = |kept: Kept| Kept { cancellation: Some(cancellation.to_vec()), ..kept };
        let cancelling = self.change(at, |phase| match phase {
            Phase::Waiting { kept, awaited, place } => {
                let session = at.session;
                let cancelling = match &awaited {
                    Awaited::List(_) | Awaited::Admission => Cancelling::Follows,
                    Awaited::Person(_) => {
                        let id = kept.request.id().clone();
                        Cancelling::Resumes(RequestKey { session, id })
                    }
                };
                (Phase::Waiting { kept: with(kept), awaited, place }, cancelling)
            }
            Phase::Released(kept) => (Phase::Released(with(kept)), Cancelling::Follows),
            Phase::Claimed(kept) => (Phase::Claimed(with(kept)), Cancelling::Follows),
            Phase::Decided(kept) => (Phase::Decided(with(kept)), Cancelling::Follows),
            Phase::Leaving { dispatched, .. } => {
                let cancellation = Some(cancellation.to_vec());
                (Phase::Leaving { dispatched, cancellation }, Cancelling::Follows)
            }
            Phase::InFlight(dispatched) | Phase::Cancelled(dispatched)
                if dispatched.kind != DispatchedKind::Handshake =>
            {
                (Phase::Cancelled(until_at_most(dispatched, until)), Cancelling::Goes)
            }
            Phase::InFlight(_) | Phase::Cancelled(_) => (phase, Cancelling::Unknown),
        });
        if let Some(Cancelling::Resumes(_)) = cancelling {
            self.release_one(at);
        }
        cancelling.unwrap_or(Cancelling::Unknown)
    }
}

/// At the end.
impl Requests {
    /// Takes out the request that the server answered, or will not answer. Returns `None` if nobody waits for that.
    pub fn answer(&mut self, at: RequestRef<'_>) -> Option<Answered> {
        if self.own.remove(at.id).is_some() {
            return Some(Answered::Own);
        }
        let (id, dispatched) = self.take_dispatched(at)?;
        Some(Answered::Client(id, dispatched))
    }

    /// Takes out a request of the client that was dispatched.
    pub fn take_dispatched(&mut self, at: RequestRef<'_>) -> Option<(OwnedId, Dispatched)> {
        let requests = self.sessions.get_mut(&at.session)?;
        requests.get(at.id)?.dispatched()?;
        let (id, phase) = requests.remove_entry(at.id)?;
        self.counts.subtract(&phase);
        Some((id, *phase.dispatched()?))
    }

    /// Takes out a request that the server says was cancelled, if it was: an earlier one may have had its id. A handshake is
    /// cancelled by the gate alone.
    pub fn take_cancelled(&mut self, at: RequestRef<'_>) -> Option<(OwnedId, Dispatched)> {
        let is_cancelled = match self.phase(at)? {
            Phase::Cancelled(_) => true,
            Phase::InFlight(dispatched) | Phase::Leaving { dispatched, .. } => {
                dispatched.kind == DispatchedKind::Handshake
            }
            Phase::Waiting { .. } | Phase::Released(_) | Phase::Claimed(_) | Phase::Decided(_) => {
                false
            }
        };
        if is_cancelled { self.take_dispatched(at) } else { None }
    }

    /// Takes out a request in whatever phase it is. The gate answers it.
    pub fn end(&mut self, at: RequestRef<'_>) -> Option<Phase> {
        let phase = self.sessions.get_mut(&at.session)?.remove(at.id)?;
        self.counts.subtract(&phase);
        if let Phase::Waiting { place, .. } = &phase {
            self.queue.remove(place);
        }
        Some(phase)
    }

    /// Takes out the dispatched requests whose time is over.
    pub fn take_late(&mut self, now: Instant) -> Vec<Late> {
        let is_over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let lateness = |phase: &Phase| {
            let dispatched = phase.dispatched()?;
            if is_over(dispatched.doubted_until) {
                return Some(Lateness::Unreadable);
            }
            if !is_over(dispatched.deadline) {
                return None;
            }
            Some(match (phase, dispatched.kind) {
                (Phase::Cancelled(_), _) => Lateness::Abandoned,
                (_, DispatchedKind::Handshake) => Lateness::Unstarted,
                (_, DispatchedKind::Ping | DispatchedKind::Call | DispatchedKind::Other) => {
                    Lateness::TimedOut
                }
            })
        };
        let mut late = Vec::new();
        for (session, requests) in &mut self.sessions {
            let over = requests.extract_if(|_, phase| lateness(phase).is_some());
            for (id, phase) in over {
                self.counts.subtract(&phase);
                if let (Some(lateness), Some(dispatched)) = (lateness(&phase), phase.dispatched()) {
                    let (key, dispatched) = (RequestKey { session: *session, id }, *dispatched);
                    late.push(Late { key, dispatched, lateness });
                }
            }
        }
        late
    }

    /// The server has ended. Takes out all that can still be answered, and refuses what comes. A claimed request stays: the
    /// thread that has it finds that it cannot be sent, and answers it.
    pub fn end_all(&mut self) -> EndedRequests {
        self.is_ended = true;
        self.own.clear();
        self.take_all(|phase| !matches!(phase, Phase::Claimed(_)))
    }

    /// The session has ended. Takes out its requests; one that a thread has claimed cannot be sent any more.
    pub fn end_session(&mut self, session: SessionKey) -> EndedRequests {
        let mut ended = EndedRequests::default();
        for (id, phase) in self.sessions.remove(&session).unwrap_or_default() {
            self.counts.subtract(&phase);
            if let Phase::Waiting { place, .. } = &phase {
                self.queue.remove(place);
            }
            ended.push(RequestKey { session, id }, &phase);
        }
        ended.sort();
        ended
    }

    /// Takes out everything, without relying on anything but the entries themselves: after a panic, which may have left the
    /// rest half changed.
    pub fn abandon_all(&mut self) -> EndedRequests {
        self.own.clear();
        self.take_all(|_| true)
    }

    fn take_all(&mut self, is_taken: impl Fn(&Phase) -> bool) -> EndedRequests {
        let mut ended = EndedRequests::default();
        for (session, requests) in &mut self.sessions {
            for (id, phase) in requests.extract_if(|_, phase| is_taken(phase)) {
                self.counts.subtract(&phase);
                ended.push(RequestKey { session: *session, id }, &phase);
            }
        }
        self.queue.clear();
        ended.sort();
        ended
    }
}

impl EndedRequests {
    fn push(&mut self, key: RequestKey, phase: &Phase) {
        if let Some(kept) = phase.kept() {
            self.kept.push((key, kept.request.clone()));
        } else if let Some(dispatched) = phase.dispatched() {
            self.dispatched.push((key, *dispatched));
        }
    }

    fn sort(&mut self) {
        self.kept.sort_by_key(|(_, request)| request.begun());
    }
}

/// The gate's own requests, and lines that cannot be read.
impl Requests {
    /// The gate sends a request of its own. Its id, with its quotes, has to be one that nobody can guess.
    pub fn add_own(&mut self, id: Vec<u8>) {
        self.own.insert(id, None);
    }

    /// An answer to a request of the gate's own is not waited for any longer. Returns whether it was.
    pub fn end_own(&mut self, id: &[u8]) -> bool {
        self.own.remove(id).is_some()
    }

    /// Notes that a line which cannot be read may have been the answer to a request: to those of these ids that are
    /// unanswered, or else, if it was meant to be a message, to the only one in flight. Returns whether it was an answer to
    /// anything, as far as can be told.
    pub fn doubt(
        &mut self,
        session: SessionKey,
        ids: &[Id<'_>],
        is_message: bool,
        until: Instant,
    ) -> bool {
        let mut is_answer = false;
        let mut requests = self.sessions.get_mut(&session);
        for id in ids {
            let found = requests.as_mut().and_then(|requests| requests.get_mut(id.key()));
            let doubted =
                found.and_then(Phase::dispatched_mut).map(|found| &mut found.doubted_until);
            if let Some(doubted) = doubted.or(self.own.get_mut(id.key())) {
                doubted.get_or_insert(until);
                is_answer = true;
            }
        }
        if is_answer || !is_message {
            return is_answer;
        }
        let dispatched = requests.into_iter().flat_map(HashMap::values_mut);
        let dispatched = dispatched.filter_map(Phase::dispatched_mut);
        let mut unanswered =
            dispatched.map(|found| &mut found.doubted_until).chain(self.own.values_mut());
        if let (Some(doubted), None) = (unanswered.next(), unanswered.next()) {
            doubted.get_or_insert(until);
        }
        true
    }

    /// The gate's own requests whose answer seems to have come in a line that cannot be read.
    pub fn take_late_own(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        self.own.extract_if(|_, until| is_over(until)).map(|(id, _)| id).collect()
    }
}

/// Inside.
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

    /// Replaces the phase of a request, where there is one.
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

    /// Releases the requests that wait for this, the oldest first.
    fn release(&mut self, is_released: impl Fn(&Awaited) -> bool) -> Vec<RequestKey> {
        let waiting = self.waiting().filter(|(_, awaited)| is_released(awaited));
        let released: Vec<RequestKey> = waiting.map(|(key, _)| key.clone()).collect();
        released.iter().for_each(|key| self.release_one(key.as_ref()));
        released
    }

    /// Releases a request that waits, or that was decided and not brought to the server.
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

    /// The requests in these phases, the oldest first.
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

fn is_person(awaited: &Awaited, entry: &EntryId) -> bool {
    match awaited {
        Awaited::Person(asked) => asked == entry,
        Awaited::List(_) | Awaited::Admission => false,
    }
}

fn until_at_most(dispatched: Dispatched, until: Option<Instant>) -> Dispatched {
    let deadline = [dispatched.deadline, until].into_iter().flatten().min();
    Dispatched { deadline, ..dispatched }
}

#[cfg(test)]
mod tests;

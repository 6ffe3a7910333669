//! A request on its way to the server: it waits, is released, claimed, decided and sent. It may be
//! cancelled at any point.

use super::{
    Asked, Asking, Awaited, Cancelling, Dispatched, DispatchedKind, Kept, MAX_PENDING, MAX_WAITING,
    MAX_WAITING_BYTES, OwnedRequest, ParkedCall, Phase, Refused, RequestKey, RequestRef, Requests,
    SessionKey,
};
use contract::hash::EntryHash;
use contract::surface::{EntryId, ListKind};
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

impl Requests {
    /// Adds a new request that waits.
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
        let request = Arc::new(request);
        let kept = Kept { request, asking, deadline, cancellation: None, has_left: false };
        let place = self.enqueue(key.clone());
        self.insert(key, Phase::Waiting { kept, awaited, place });
        Ok(())
    }

    /// Releases the requests that waited for one of these lists, oldest first.
    pub fn release_listed(&mut self, lists: &[ListKind]) -> Vec<RequestKey> {
        self.release(|awaited| match awaited {
            Awaited::List(list) => lists.contains(list),
            Awaited::Admission | Awaited::Person(_) | Awaited::Approval | Awaited::Corpus => false,
        })
    }

    /// Releases the requests that waited for this list and arrived before it was requested, oldest
    /// first.
    pub fn release_earlier(&mut self, list: ListKind, asked_for: Instant) -> Vec<RequestKey> {
        self.release_those(list, |request| request.begun() <= asked_for)
    }

    /// Releases the requests that a list can serve: those for the list itself, and calls that
    /// arrived until this time.
    pub fn release_served(&mut self, list: ListKind, until: Instant) -> Vec<RequestKey> {
        self.release_those(list, |request| {
            request.begun() <= until || request.method() == list.method()
        })
    }

    fn release_those(
        &mut self,
        list: ListKind,
        is_released: impl Fn(&OwnedRequest) -> bool,
    ) -> Vec<RequestKey> {
        let is_it = |key: &RequestKey| {
            let kept = self.phase(key.as_ref()).and_then(Phase::kept);
            kept.is_some_and(|kept| is_released(&kept.request))
        };
        let waiting = self.waiting().filter(|(_, awaited)| **awaited == Awaited::List(list));
        let released: Vec<RequestKey> = waiting.map(|(key, _)| key.clone()).filter(is_it).collect();
        released.iter().for_each(|key| self.release_one(key.as_ref()));
        released
    }

    /// Releases the requests that waited for a check of the server's admission, oldest first.
    pub fn release_unadmitted(&mut self) -> Vec<RequestKey> {
        self.release(|awaited| match awaited {
            Awaited::Admission => true,
            Awaited::List(_) | Awaited::Person(_) | Awaited::Approval | Awaited::Corpus => false,
        })
    }

    /// Releases the requests that waited for a corpus, oldest first.
    pub fn release_looked_up(&mut self) -> Vec<RequestKey> {
        self.release(|awaited| *awaited == Awaited::Corpus)
    }

    /// Releases the requests that a person was asked about, oldest first. The person's time does
    /// not count against the call, which gets this new deadline.
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

    /// Releases everything that waits. Returns those requests and the ones released before but not
    /// claimed, oldest first.
    pub fn release_all(&mut self) -> Vec<RequestKey> {
        self.release(|_| true);
        self.oldest_first(|phase| matches!(phase, Phase::Released(_)))
    }

    /// Releases the requests that were not sent in time, oldest first. This includes one that waits
    /// for a thread that is blocked writing to the server.
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

    /// Claims a released request for the calling thread. Returns `None` if another thread has
    /// claimed it, or if it has ended.
    pub fn claim(&mut self, at: RequestRef<'_>) -> Option<Kept> {
        self.change(at, |phase| match phase {
            Phase::Released(kept) => (Phase::Claimed(kept.clone()), Some(kept)),
            other => (other, None),
        })?
    }

    /// Makes a released request wait for something else.
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

    /// Makes a claimed request wait for a person's decision about this entry, without a time limit.
    pub fn ask(&mut self, at: RequestRef<'_>, entry: EntryId) -> Asked {
        self.wait_claimed(at, Awaited::Person(entry))
    }

    /// Makes a claimed request wait for a person's decision about it.
    pub fn park(&mut self, at: RequestRef<'_>) -> Asked {
        self.wait_claimed(at, Awaited::Approval)
    }

    /// Releases a request that waits for another person. Returns whether it was waiting for one.
    pub fn release_parked(&mut self, at: RequestRef<'_>) -> bool {
        let is_parked =
            matches!(self.phase(at), Some(Phase::Waiting { awaited: Awaited::Approval, .. }));
        if is_parked {
            self.release_one(at);
        }
        is_parked
    }

    /// Identifies a request for the question to the person at the client. Returns `None` if it no
    /// longer waits for them.
    pub fn parked(&self, at: RequestRef<'_>, contract: EntryHash) -> Option<ParkedCall> {
        match self.phase(at) {
            Some(Phase::Waiting { kept, awaited: Awaited::Approval, place }) => {
                Some(ParkedCall { id: kept.request.id().clone(), place: *place, contract })
            }
            Some(_) | None => None,
        }
    }

    /// Releases a request with the decision of the person at the client. Returns whether it was
    /// still waiting for that. The person's time does not count against the call, which gets this
    /// new deadline.
    ///
    /// INVARIANT: an answer counts for the request it was given for, not for a later one with the
    /// same id.
    pub fn release_answered(
        &mut self,
        session: SessionKey,
        call: &ParkedCall,
        asking: Asking,
        deadline: Option<Instant>,
    ) -> bool {
        let at = RequestRef { session, id: call.id.key() };
        let answered = self.change(at, |phase| match phase {
            Phase::Waiting { kept, awaited: Awaited::Approval, place } if place == call.place => {
                let kept = Kept { asking, deadline, ..kept };
                (Phase::Waiting { kept, awaited: Awaited::Approval, place }, true)
            }
            other => (other, false),
        });
        answered == Some(true) && self.release_parked(at)
    }

    /// Called when the client of a request has disconnected. If the request waited for another
    /// person, releases it and returns its id. Otherwise the request continues, but uses up no
    /// approval.
    pub fn abandon(&mut self, at: RequestRef<'_>) -> Option<OwnedId> {
        let left = |kept: Kept| Kept { has_left: true, ..kept };
        let abandoned = self.change(at, |phase| match phase {
            Phase::Waiting { kept, awaited: Awaited::Approval, place } => {
                let id = kept.request.id().clone();
                let kept = Kept { cancellation: Some(Vec::new()), ..kept };
                (Phase::Waiting { kept, awaited: Awaited::Approval, place }, Some(id))
            }
            Phase::Waiting { kept, awaited, place } => {
                (Phase::Waiting { kept: left(kept), awaited, place }, None)
            }
            Phase::Released(kept) => (Phase::Released(left(kept)), None),
            other => (other, None),
        });
        abandoned.flatten().filter(|_| self.release_parked(at))
    }

    fn wait_claimed(&mut self, at: RequestRef<'_>, awaited: Awaited) -> Asked {
        let place = self.next_place;
        let asked = self.change(at, |phase| match phase {
            Phase::Claimed(kept) if kept.cancellation.is_none() => {
                let id = kept.request.id().clone();
                let kept = Kept { asking: Asking::Done, deadline: None, ..kept };
                (Phase::Waiting { kept, awaited, place }, Some(id))
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

    /// Marks a claimed request as decided. The thread that may block on the server then sends it.
    pub fn decide(&mut self, at: RequestRef<'_>) {
        self.change(at, |phase| match phase {
            Phase::Claimed(kept) => (Phase::Decided(kept), ()),
            other => (other, ()),
        });
    }

    /// Claims a decided request for the thread that sends it to the server. Returns `None` if it
    /// has ended, even if a later request has its id.
    pub fn bring(&mut self, session: SessionKey, request: &Arc<OwnedRequest>) -> Option<Kept> {
        let at = RequestRef { session, id: request.id().key() };
        self.change(at, |phase| match phase {
            Phase::Decided(kept) if Arc::ptr_eq(&kept.request, request) => {
                (Phase::Claimed(kept.clone()), Some(kept))
            }
            other => (other, None),
        })?
    }

    /// Records that a request that did not wait is being sent to the server.
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

    /// Records that a claimed request is being sent to the server, with its cancellation if one
    /// arrived.
    pub fn leave(&mut self, at: RequestRef<'_>, dispatched: Dispatched) -> Result<(), Refused> {
        self.has_room_to_dispatch()?;
        let left = self.change(at, |phase| match phase {
            Phase::Claimed(Kept { cancellation, .. }) => {
                (Phase::Leaving { dispatched, cancellation }, true)
            }
            other => (other, false),
        });
        // If the claimed request is gone, its session has ended.
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

    /// Records that the bytes of a request that waited were sent. Returns the cancellation that
    /// must follow it.
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

    /// Records that the client no longer waits for a request. The server may still answer it until
    /// then.
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
                    Awaited::List(_) | Awaited::Admission | Awaited::Corpus => Cancelling::Follows,
                    Awaited::Person(_) | Awaited::Approval => {
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

fn is_person(awaited: &Awaited, entry: &EntryId) -> bool {
    match awaited {
        Awaited::Person(asked) => asked == entry,
        Awaited::List(_) | Awaited::Admission | Awaited::Approval | Awaited::Corpus => false,
    }
}

fn until_at_most(dispatched: Dispatched, until: Option<Instant>) -> Dispatched {
    let deadline = [dispatched.deadline, until].into_iter().flatten().min();
    Dispatched { deadline, ..dispatched }
}

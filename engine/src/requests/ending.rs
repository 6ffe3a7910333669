//! How a request ends: it is answered, it times out, or its session or the server ends.

use super::{
    Answered, Dispatched, DispatchedKind, EndedRequests, Late, Lateness, Phase, RequestKey,
    RequestRef, Requests, SessionKey,
};
use std::time::Instant;
use wire::envelope::OwnedId;

impl Requests {
    /// Removes the request that the server answered, or will not answer. Returns `None` if no
    /// request with this id was dispatched.
    pub fn answer(&mut self, at: RequestRef<'_>) -> Option<Answered> {
        if !self.own.is_empty() && self.own.remove(at.id).is_some() {
            return Some(Answered::Own);
        }
        let (id, dispatched) = self.take_dispatched(at)?;
        Some(Answered::Client(id, dispatched))
    }

    /// Removes a dispatched request of the client.
    pub fn take_dispatched(&mut self, at: RequestRef<'_>) -> Option<(OwnedId, Dispatched)> {
        let requests = self.sessions.get_mut(&at.session)?;
        let (id, phase) = requests.remove_entry(at.id)?;
        let Some(dispatched) = phase.dispatched().copied() else {
            requests.insert(id, phase);
            return None;
        };
        self.counts.subtract(&phase);
        Some((id, dispatched))
    }

    /// Removes a request that the server says was cancelled, provided that it was: an earlier
    /// request may have had its id. Only the gate cancels handshakes.
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

    /// Removes a request in any phase. The gate answers it.
    pub fn end(&mut self, at: RequestRef<'_>) -> Option<Phase> {
        let phase = self.sessions.get_mut(&at.session)?.remove(at.id)?;
        self.counts.subtract(&phase);
        if let Phase::Waiting { place, .. } = &phase {
            self.queue.remove(place);
        }
        Some(phase)
    }

    /// Removes the dispatched requests that have timed out.
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

    /// Called when the server has ended. Removes everything that can still be answered, and refuses
    /// new requests. A claimed request stays: the thread that claimed it finds that it cannot be
    /// sent, and answers it.
    pub fn end_all(&mut self) -> EndedRequests {
        self.is_ended = true;
        self.own.clear();
        self.take_all(|phase| !matches!(phase, Phase::Claimed(_)))
    }

    /// Called when the session has ended. Removes its requests; one that a thread has claimed can
    /// no longer be sent.
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

    /// Removes everything, relying only on the entries themselves, because a panic may have left
    /// the rest in an inconsistent state.
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

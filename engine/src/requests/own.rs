//! The gate's own requests to the server, and unreadable lines from the server.

use super::{Phase, Requests, SessionKey};
use std::collections::HashMap;
use std::time::Instant;
use wire::envelope::Id;

impl Requests {
    /// Adds one of the gate's own requests. Its id, with its quotes, must be unguessable, so that
    /// neither a client nor a server can answer in place of the other.
    pub fn add_own(&mut self, id: Vec<u8>) {
        self.own.insert(id, None);
    }

    /// Stops waiting for the answer to one of the gate's own requests. Returns whether it was
    /// awaited.
    pub fn end_own(&mut self, id: &[u8]) -> bool {
        self.own.remove(id).is_some()
    }

    /// Records that an unreadable line may have been an answer: to the pending requests among these
    /// ids or, if the line was meant to be a message, to the only one in flight. Returns whether it
    /// may have answered any request.
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

    /// The gate's own requests whose answer was probably in an unreadable line.
    pub fn take_late_own(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        self.own.extract_if(|_, until| is_over(until)).map(|(id, _)| id).collect()
    }
}

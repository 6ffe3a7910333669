//! The gate's own requests to the server, and lines of the server that cannot be read.

use super::{Phase, Requests, SessionKey};
use std::collections::HashMap;
use std::time::Instant;
use wire::envelope::Id;

impl Requests {
    /// The gate sends a request of its own. Its id, with its quotes, must be unguessable: it is what
    /// keeps a client or a server from answering in place of the other.
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

//! The answer to `initialize` or `server/discover`: what the server says of itself before anything is listed.

use super::Session;
use super::state::SessionState;
use super::stopped::without_words;
use super::unadmitted::Keeping;
use crate::call::{Call, Method};
use crate::judge::FirstUsePolicy;
use crate::server::driver::SessionWake;
use contract::surface::Surface;
use gate::first_use::first_use;
use gate::pins::PinBook;
use gate::view::{handshake_surface, shaped_handshake, with_member};
use std::time::Instant;
use wire::envelope::{Envelope, Id};

/// The answer to a handshake is being read: its request is no longer in flight, and what it says is not known yet.
pub(super) struct Greeting<'a>(&'a Session);

impl Drop for Greeting<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.state();
            state.greetings_read = state.greetings_read.saturating_sub(1);
            state.greetings_read == 0
        };
        // A client that did not wait for the answer has lists waiting for it.
        if is_last {
            self.0.wake(SessionWake::Greeted);
        }
    }
}

impl Session {
    /// Notes, under the lock that took the request out of the table, that the answer to a handshake is being read. Without
    /// that the keeper could look in between, take the server for one that needs no greeting, and ask it for lists that it
    /// does not offer.
    pub(super) fn take_greeting(&self, state: &mut SessionState) -> Greeting<'_> {
        state.greetings_read += 1;
        Greeting(self)
    }

    /// Remembers the server's answer as it came, and sends the client as much of it as was accepted.
    pub(super) fn answer_handshake(&self, envelope: &Envelope<'_>, id: &Id<'_>, result: &[u8]) {
        let text = String::from_utf8_lossy(result).into_owned();
        let Some(surface) = handshake_surface(&text) else {
            // What cannot be read in one way is not shown; the session goes on with as little as it can.
            self.forget_greeting(&mut self.state());
            let reason = crate::reason::ReasonCode::UpstreamUnreadable;
            return self.refuse_sized(id.raw(), reason, envelope.raw.len());
        };
        let version = surface.protocol_version.clone();
        let keeping = {
            let mut state = self.state();
            let keeping = self.keeps_handshake(&mut state, envelope.raw, &text);
            state.take_handshake(text.into());
            state.kept_greeting = None;
            state.client.protocol_version = version;
            keeping
        };
        match keeping {
            Keeping::NotNeeded => self.show_handshake(envelope, id, result),
            Keeping::Kept => self.wake(SessionWake::Admit),
            Keeping::Refused(reason) => {
                self.refuse(id.raw(), reason);
                self.wake(SessionWake::Admit);
            }
        }
    }

    /// The server refused to be greeted. One that was greeted before is checked again first: the check that it passed was
    /// of another greeting.
    pub(super) fn answer_refused_handshake(
        &self,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        error: &[u8],
    ) {
        let keeping = {
            let mut state = self.state();
            let is_checked = self.server.settings.admission_max_age.is_some();
            match state.handshake {
                Some(_) if is_checked => self.keep_handshake(&mut state, envelope.raw),
                Some(_) | None => Keeping::NotNeeded,
            }
        };
        match keeping {
            Keeping::NotNeeded => self.show_refused_handshake(envelope, id, error),
            Keeping::Kept => self.wake(SessionWake::Admit),
            Keeping::Refused(reason) => {
                self.refuse(id.raw(), reason);
                self.wake(SessionWake::Admit);
            }
        }
    }

    /// Sends the client the server's refusal, without the server's words while the server is stopped or not admitted.
    pub(super) fn show_refused_handshake(
        &self,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        error: &[u8],
    ) {
        let situation = self.situation();
        let is_unadmitted =
            situation.admission.is_closed() && !self.server.settings.greets_before_check;
        if situation.view.stopped().is_some() || is_unadmitted {
            self.answer_client(id.raw(), &without_words(id, error));
        } else {
            self.answer_client(id.raw(), envelope.raw);
        }
    }

    /// A server that was greeted gave no answer to a further greeting that can be read: neither what it said before nor the
    /// check of that counts any more.
    pub(super) fn forget_greeting(&self, state: &mut SessionState) {
        if self.server.settings.admission_max_age.is_none() || state.handshake.is_none() {
            return;
        }
        state.handshake = None;
        state.is_covered = false;
        state.view.change(|known| {
            known.handshake = None;
            known.is_unjudged = true;
            known.outdate();
        });
    }

    /// Sends the client as much of the answer as was accepted.
    pub(super) fn show_handshake(&self, envelope: &Envelope<'_>, id: &Id<'_>, result: &[u8]) {
        let Some(surface) = handshake_surface(&String::from_utf8_lossy(result)) else {
            let reason = crate::reason::ReasonCode::UpstreamUnreadable;
            return self.refuse_sized(id.raw(), reason, envelope.raw.len());
        };
        let (book, is_first, is_closed) = {
            let state = self.state();
            let known = state.view.known();
            let is_closed = known.situation.admission.is_closed();
            (known.book.clone(), !known.has_baseline, is_closed)
        };
        if is_closed {
            // Nothing that an unadmitted server says of itself is shown.
            let own = self.own_handshake();
            let message = with_member(envelope.raw, "result", Some(own.as_bytes()));
            return self.answer_client(id.raw(), &message);
        }
        let rules = self.server.rules.clone();
        let trusted = (is_first && rules.first_use == FirstUsePolicy::Trust)
            .then(|| trusted_at_first(&surface));
        let book = trusted.as_ref().unwrap_or(&book);
        let shaped = shaped_handshake(result, book, &surface, &rules.settings, rules.mode);
        if shaped == result {
            self.answer_client(id.raw(), envelope.raw);
        } else {
            self.answer_client(id.raw(), &with_member(envelope.raw, "result", Some(&shaped)));
        }
    }

    /// When the time of a request is over. A handshake has none here: a server that takes long to start may yet have to
    /// answer calls soon, and its time counts from when it was greeted.
    /// A subscription stays open for as long as the session does, and the result of a task is waited for until it is there.
    pub(super) fn deadline(&self, call: &Call<'_>, begun: Instant) -> Option<Instant> {
        match call.kind {
            Method::Handshake => None,
            Method::Other if matches!(call.method, "subscriptions/listen" | "tasks/result") => None,
            Method::List(_) | Method::Use(_) | Method::Ping | Method::Other => {
                begun.checked_add(self.server.settings.call_timeout?)
            }
        }
    }
}

fn trusted_at_first(surface: &Surface) -> PinBook {
    let mut book = PinBook::default();
    first_use(surface).pin_in(&mut book, crate::recorder::now(), "");
    book
}

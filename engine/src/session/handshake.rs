//! The response to `initialize` or `server/discover`: what the server declares before anything is
//! listed.

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

/// Exists while a handshake response is being read: its request is no longer in flight, and its
/// contents are not known yet.
pub(super) struct Greeting<'a>(&'a Session);

impl Drop for Greeting<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.state();
            state.greetings_read = state.greetings_read.saturating_sub(1);
            state.greetings_read == 0
        };
        // If the client did not wait for the response, its list requests are waiting for it.
        if is_last {
            self.0.wake(SessionWake::Greeted);
        }
    }
}

impl Session {
    /// Records that a handshake response is being read, under the same lock under which the request
    /// was removed from the table. Otherwise the keeper could run in between, conclude that the
    /// server needs no handshake, and request lists that it does not offer.
    pub(super) fn take_greeting(&self, state: &mut SessionState) -> Greeting<'_> {
        state.greetings_read += 1;
        Greeting(self)
    }

    /// Stores the server's original response, and sends the client its accepted parts.
    pub(super) fn answer_handshake(&self, envelope: &Envelope<'_>, id: &Id<'_>, result: &[u8]) {
        let text = String::from_utf8_lossy(result).into_owned();
        let Some(surface) = handshake_surface(&text) else {
            // An ambiguous response is not shown; the session continues with the minimum.
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

    /// Handles a refused handshake. If the server completed one before, it is checked again first,
    /// because the earlier check was for that handshake.
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

    /// Sends the client the server's refusal, without the server's text while the server is stopped
    /// or not admitted.
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

    /// Called when the server gives no readable response to another handshake: neither its earlier
    /// one nor the check of it is valid anymore.
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

    /// Sends the client the accepted parts of the response.
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
            // Nothing that an unadmitted server declares is shown.
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

    /// When a request times out. A handshake has no deadline here: a slow server may have to answer
    /// calls soon after starting, so its time is counted from when the handshake was sent. A
    /// subscription stays open as long as the session, and the result of a task is awaited without
    /// a limit.
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

//! The server's admission, checked beside everything else: the network may take its time, and the keeper may not.

use super::{Discovery, Keeper, Wake};
use crate::admission::{Admittance, Checker};
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::session::boundary::trip;
use crate::session::{LateGreeting, OwnAnswer, Session};
use contract::surface::ListKind;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use wire::Answer;
use wire::attestation::Greeting;
use wire::listing::is_offered;

/// A server that is not admitted is checked again by itself: first after this long, then after twice as long each time, up
/// to the longest. Its document may only not have been there yet, and without tools no call comes that would ask.
const FIRST_RECHECK: Duration = Duration::from_secs(2);
const LONGEST_RECHECK: Duration = Duration::from_secs(300);

/// What the keeper knows of checks.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    /// Until the first check is begun.
    pub(super) checker: Option<Checker>,
    to_checker: Option<Sender<Asked>>,
    pub(super) is_wanted: bool,
    is_checking: bool,
    /// When the server's greeting was looked at for the newest check.
    asked_at: Option<Instant>,
    /// When a server that is not admitted is checked again, and how long that is after the last time.
    recheck: Option<(Instant, Duration)>,
    /// The server was greeted late, and the client is still to be told that there are lists now.
    is_untold: bool,
}

/// What a check needs to know: the server's handshake if it was greeted, and how to greet it if not.
type Asked = (Option<Arc<str>>, Greeting);

impl Keeper {
    /// Has a server that is not admitted checked again when its time has come.
    pub(super) fn check_again(&mut self) {
        let is_due = self.admission.recheck.is_some_and(|(due, _)| due <= Instant::now());
        if is_due && !self.admission.is_checking && self.session.state().ended.is_none() {
            self.admission.is_wanted = true;
        }
    }

    /// Begins a check that is wanted. While the server is being greeted its answer is waited for: the check may need it.
    pub(super) fn begin_check(&mut self) {
        let is_greeting = || {
            let state = self.session.state();
            state.pending.values().any(|pending| pending.is_handshake)
        };
        if !self.admission.is_wanted
            || self.admission.is_checking
            || self.discovery.is_some()
            || is_greeting()
            || (self.session.settings.greets_before_check && !self.is_met())
        {
            return;
        }
        if let Some(checker) = self.admission.checker.take() {
            self.admission.to_checker = start(checker, &self.session);
        }
        self.admission.is_wanted = false;
        self.admission.asked_at = Some(Instant::now());
        let handshake = self.session.state().handshake.clone();
        let asked = (handshake, self.session.greeting());
        let checker = self.admission.to_checker.as_ref();
        let is_sent = checker.is_some_and(|checker| checker.send(asked).is_ok());
        self.admission.is_checking = is_sent;
        if !is_sent {
            self.session.remark("the server's admission cannot be checked");
            self.session.refuse_unadmitted();
        }
    }

    /// A check ended without a result: what waits for it is refused, and the server is checked again later.
    pub(super) fn not_checked(&mut self) {
        self.admission.is_checking = false;
        self.admission.recheck = Some((Instant::now() + FIRST_RECHECK, FIRST_RECHECK));
        self.session.refuse_unadmitted();
    }

    /// What was found counts from now on, and what waited for it goes on.
    pub(super) fn admitted(&mut self, checked: crate::admission::Checked) {
        self.admission.is_checking = false;
        let admitted = checked.admitted.clone();
        let is_news = self.session.admit(checked);
        let is_closed = self.session.situation().admission.is_closed();
        let before = self.admission.recheck.map(|(_, pause)| pause);
        self.admission.recheck = is_closed.then(|| {
            let pause = pause_after(before);
            (Instant::now() + pause, pause)
        });
        if is_news {
            let server = self.session.situation().server.clone();
            let failure = admitted.failure();
            let is_warned = failure.is_some() && admitted.denied().is_none();
            let (signer, clearance) = match (admitted.verified(), failure) {
                (Some(verified), _) => (Some(verified.signer()), Some(verified.clearance())),
                (None, Some(denial)) => (denial.signer(), denial.clearance()),
                (None, None) => (None, None),
            };
            let data = json!({
                "level": clearance.map(attest::Clearance::name),
                "signer": signer.map(attest::KeyId::as_str),
                "reason": failure.map(|denial| denial.reason().as_str()),
                "note": is_warned.then_some(attest::WARN_ONLY),
            });
            self.session.recorder.event(server.as_str(), admitted.event(), None, &data);
            if let Some(denial) = failure {
                let what = if is_warned {
                    "is not attested and is used all the same (open flavor: warn-only)"
                } else {
                    "is not admitted"
                };
                self.session.remark(&format!(
                    "the server {what}: {}: {}",
                    denial.reason(),
                    denial.detail()
                ));
            }
            // Who vouches for it is part of what it is judged by.
            self.session.state().is_unjudged = true;
            let is_closed = self.session.situation().admission.is_closed();
            if !is_closed && self.has_all_lists() && !self.judge() {
                return self.session.refuse_unadmitted();
            }
        }
        if let Some(asked_at) = self.admission.asked_at {
            self.session.deliver_handshakes(asked_at);
        }
        self.go_on();
    }

    /// Goes on with what waited for the check. A server that was admitted late is greeted first.
    fn go_on(&mut self) {
        let (is_closed, is_greeted) = {
            let state = self.session.state();
            (state.situation.admission.is_closed(), state.kept_greeting.is_none())
        };
        if !is_closed && !is_greeted {
            return self.wanted.extend(ListKind::ALL);
        }
        if !is_closed {
            self.session.announce();
            self.tell_offered();
        }
        let released = self.session.state().release_unadmitted();
        for id in released {
            self.session.resume_admitted(id);
        }
    }

    /// Sends the client's greeting, which the gate answered itself, to the server.
    pub(super) fn greet(&mut self) {
        let kept = self.session.state().kept_greeting.clone();
        let (Some(kept), Some(id)) = (kept, self.new_id()) else { return };
        let method = "initialize";
        let params = String::from_utf8_lossy(&kept.params).into_owned();
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let request = id.clone().into_bytes();
        self.session.state().own.insert(request.clone());
        let own = OwnMessage { frame, method, id: Some(id), protocol_version: None };
        self.session.errand(Errand::Send(own));
        self.discovery = Some(Discovery { request, begun: Instant::now(), is_greeting: true });
    }

    /// The server answered the greeting that was sent late.
    pub(super) fn greeted(&mut self, answer: &OwnAnswer) {
        let outcome = match answer {
            OwnAnswer::Answer(Answer::Result(text)) => self.session.take_late_handshake(text),
            OwnAnswer::Answer(Answer::Error { .. } | Answer::Unreadable(_)) => {
                LateGreeting::Unreadable
            }
            OwnAnswer::Failed(reason) => return self.refuse_waiting(*reason),
        };
        match outcome {
            LateGreeting::Done => {
                self.admission.is_untold = true;
                self.go_on();
            }
            LateGreeting::Unchecked => {
                self.admission.is_untold = true;
                self.admission.is_wanted = true;
            }
            LateGreeting::Unreadable => {
                self.session
                    .remark("the server is admitted now, and did not accept the client's greeting");
                self.refuse_waiting(ReasonCode::UpstreamUnreadable);
            }
            LateGreeting::OtherVersion => {
                let why = "it is admitted now, and speaks another protocol version than the client was told; restart it in your client";
                self.session.remark(&format!("the server cannot be used in this session: {why}"));
                self.session.server_ended(why);
            }
        }
    }

    /// Tells the client which lists a server has that was greeted late.
    fn tell_offered(&mut self) {
        if !std::mem::take(&mut self.admission.is_untold) {
            return;
        }
        let offered: Vec<ListKind> = {
            let state = self.session.state();
            let handshake = state.handshake.as_deref().filter(|_| state.client.is_initialized);
            let is_offered =
                |list: &ListKind| handshake.is_some_and(|text| is_offered(text, *list));
            ListKind::ALL.into_iter().filter(is_offered).collect()
        };
        self.tell_changed(offered);
    }
}

/// How long a server that is still not admitted is left alone.
fn pause_after(before: Option<Duration>) -> Duration {
    before.map_or(FIRST_RECHECK, |pause| pause.saturating_mul(2)).min(LONGEST_RECHECK)
}

/// A thread that checks when it is asked to, until nobody can ask any more.
fn start(mut checker: Checker, session: &Arc<Session>) -> Option<Sender<Asked>> {
    let (ask, asked) = channel::<Asked>();
    let session = session.clone();
    let thread = std::thread::Builder::new().name("admission".to_owned());
    let started = thread.spawn(move || {
        while let Ok((handshake, greeting)) = asked.recv() {
            let checked = session.contain(0, || {
                trip("admission", b"check");
                checker.check(handshake.as_deref(), greeting)
            });
            session.wake(
                checked.map_or(Wake::NotChecked, |checked| Wake::Admitted(Box::new(checked))),
            );
        }
    });
    started.is_ok().then_some(ask)
}

impl Admittance {
    pub(crate) fn is_like(&self, other: &crate::admission::Admitted) -> bool {
        matches!(self, Admittance::Known(known) if **known == *other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_checks_grow_and_have_an_end() {
        let pauses =
            std::iter::successors(Some(pause_after(None)), |pause| Some(pause_after(Some(*pause))));
        let pauses: Vec<Duration> = pauses.take(10).collect();
        assert_eq!(pauses[..2], [FIRST_RECHECK, FIRST_RECHECK * 2]);
        assert_eq!(pauses[8..], [LONGEST_RECHECK, LONGEST_RECHECK]);
    }
}

//! The server's admission, checked beside everything else: the network may take its time, and the keeper may not.

use super::{Keeper, Wake};
use crate::admission::{Admittance, Checker};
use crate::session::Session;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A server that is not admitted is checked again by itself: first after this long, then after twice as long each time, up
/// to the longest. Its document may only not have been there yet, and without tools no call comes that would ask.
const FIRST_RECHECK: Duration = Duration::from_secs(2);
const LONGEST_RECHECK: Duration = Duration::from_secs(300);

/// What the keeper knows of checks.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    /// Until the first check is begun.
    pub(super) checker: Option<Checker>,
    to_checker: Option<Sender<Option<Arc<str>>>>,
    pub(super) is_wanted: bool,
    is_checking: bool,
    /// When the server's greeting was looked at for the newest check.
    asked_at: Option<Instant>,
    /// When a server that is not admitted is checked again, and how long that is after the last time.
    recheck: Option<(Instant, Duration)>,
}

impl Keeper {
    /// Has a server that is not admitted checked again when its time has come.
    pub(super) fn check_again(&mut self) {
        let is_due = self.admission.recheck.is_some_and(|(due, _)| due <= Instant::now());
        if is_due && !self.admission.is_checking && self.session.state().ended.is_none() {
            self.admission.is_wanted = true;
        }
    }

    /// Begins a check that is wanted, once the server was greeted: it may carry its document in the answer.
    pub(super) fn begin_check(&mut self) {
        if !self.admission.is_wanted || self.admission.is_checking || !self.is_met() {
            return;
        }
        if let Some(checker) = self.admission.checker.take() {
            self.admission.to_checker = start(checker, &self.session);
        }
        self.admission.is_wanted = false;
        self.admission.asked_at = Some(Instant::now());
        let handshake = self.session.state().handshake.clone();
        let is_sent = self
            .admission
            .to_checker
            .as_ref()
            .is_some_and(|checker| checker.send(handshake).is_ok());
        self.admission.is_checking = is_sent;
        if !is_sent {
            self.session.remark("the server's admission cannot be checked");
            self.session.refuse_unadmitted();
        }
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
            let (signer, clearance) = match (admitted.verified(), failure) {
                (Some(verified), _) => (Some(verified.signer()), Some(verified.clearance())),
                (None, Some(denial)) => (denial.signer(), denial.clearance()),
                (None, None) => (None, None),
            };
            let data = json!({
                "level": clearance.map(attest::Clearance::name),
                "signer": signer.map(attest::KeyId::as_str),
                "reason": failure.map(|denial| denial.reason().as_str()),
            });
            self.session.recorder.event(server.as_str(), admitted.event(), None, &data);
            if let Some(denial) = failure {
                let what = if admitted.denied().is_some() {
                    "is not admitted"
                } else {
                    "is used with a warning"
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
            if !is_closed && !self.outcomes.is_empty() && !self.judge() {
                return self.session.refuse_unadmitted();
            }
        }
        if let Some(asked_at) = self.admission.asked_at {
            self.session.deliver_handshakes(asked_at);
        }
        let released = self.session.state().release_unadmitted();
        for id in released {
            self.session.resume_admitted(id);
        }
    }
}

/// How long a server that is still not admitted is left alone.
fn pause_after(before: Option<Duration>) -> Duration {
    before.map_or(FIRST_RECHECK, |pause| pause.saturating_mul(2)).min(LONGEST_RECHECK)
}

/// A thread that checks when it is asked to, until nobody can ask any more.
fn start(mut checker: Checker, session: &Arc<Session>) -> Option<Sender<Option<Arc<str>>>> {
    let (ask, asked) = channel::<Option<Arc<str>>>();
    let session = session.clone();
    let thread = std::thread::Builder::new().name("admission".to_owned());
    let started = thread.spawn(move || {
        while let Ok(handshake) = asked.recv() {
            let checked = checker.check(handshake.as_deref());
            session.wake(Wake::Admitted(Box::new(checked)));
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

//! Decides when the server's admission is checked, and what continues after a check.

use super::{Check, Command, Glance, Keeper, Remark};
use crate::reason::ReasonCode;
use crate::session::{LateGreeting, OwnAnswer};
use contract::surface::ListKind;
use std::time::{Duration, Instant};
use wire::Answer;

/// The delay before an unadmitted server is checked again automatically. It doubles each time up to
/// the maximum. The document may simply not be published yet, and without tools no call would
/// trigger a check.
const FIRST_RECHECK: Duration = Duration::from_secs(2);
const LONGEST_RECHECK: Duration = Duration::from_secs(300);

/// The keeper's state about checks.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    pub(super) is_wanted: bool,
    is_checking: bool,
    /// When the handshake was read for the latest check.
    asked_at: Option<Instant>,
    /// When an unadmitted server is checked again, and how long after the previous check that is.
    recheck: Option<(Instant, Duration)>,
    /// The handshake was delayed, and the client must still be notified that there are lists now.
    is_untold: bool,
}

impl Admissions {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_wanted && !self.is_checking && self.recheck.is_none()
    }

    pub(super) fn is_checking(&self) -> bool {
        self.is_checking
    }

    /// Whether this session repeats the check while the server is not admitted.
    pub(super) fn is_repeated(&self) -> bool {
        self.recheck.is_some()
    }

    /// Cancels the requests made before a fault.
    pub(super) fn forget(&mut self) {
        self.is_wanted = false;
        self.is_checking = false;
    }

    /// Starts a new check for what this session waits for.
    pub(super) fn begin_again(&mut self) {
        self.is_checking = false;
        self.is_wanted = true;
    }

    /// Requests another check of an unadmitted server when it is due, and a first check if requests
    /// wait for lists that no check covers.
    pub(super) fn check_again(&mut self, glance: &Glance, now: Instant) {
        let is_lacking = self.recheck.is_none() && glance.lacks_check && !glance.waited.is_empty();
        let is_due = self.recheck.is_some_and(|(due, _)| due <= now) || is_lacking;
        self.is_wanted |= is_due && !self.is_checking && !glance.has_ended;
    }
}

impl Keeper {
    /// Starts a check that is wanted. During a handshake, waits for the response, because the check
    /// may need it.
    pub(super) fn begin_check(&mut self, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        if !self.admission.is_wanted
            || self.admission.is_checking
            || self.handshake.is_some()
            || glance.is_greeting
            || (self.settings.greets_before_check && !self.is_met(glance, now, out))
        {
            return;
        }
        self.admission.is_wanted = false;
        self.admission.is_checking = true;
        out.push(Command::Check);
    }

    /// Handles a check without an outcome: what waits for it is refused, and the server is checked
    /// again later.
    pub(super) fn not_checked(&mut self, now: Instant, out: &mut Vec<Command>) {
        self.admission.is_checking = false;
        self.admission.recheck = Some((now + FIRST_RECHECK, FIRST_RECHECK));
        out.push(Command::RefuseUnadmitted);
    }

    pub(super) fn check_not_begun(&mut self, out: &mut Vec<Command>) {
        self.admission.is_checking = false;
        self.admission.recheck = Some((self.told_at + FIRST_RECHECK, FIRST_RECHECK));
        out.push(Command::Remark(Remark::CannotCheck));
        out.push(Command::RefuseUnadmitted);
    }

    /// Applies the outcome of a check, and resumes what waited for it. Who vouches for the server
    /// affects how it is judged.
    pub(super) fn checked(
        &mut self,
        check: Check,
        glance: &Glance,
        now: Instant,
        out: &mut Vec<Command>,
    ) {
        self.admission.is_checking = false;
        self.admission.asked_at = Some(check.began);
        let before = self.admission.recheck.map(|(_, pause)| pause);
        self.admission.recheck = (glance.is_closed && check.is_leader).then(|| {
            let pause = pause_after(before);
            (now + pause, pause)
        });
        if check.is_news && !glance.is_closed && self.judge_for_check(glance, out) {
            return;
        }
        self.go_on_after_check(glance, out);
    }

    pub(super) fn go_on_after_check(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        let asked_at = self.admission.asked_at;
        out.extend(asked_at.map(|before| Command::DeliverHandshakes { before }));
        self.go_on(glance, out);
    }

    /// Resumes what waited for the check. A server that was admitted late gets its handshake first.
    fn go_on(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        if !glance.is_closed && glance.has_kept_greeting {
            return self.wanted.extend(ListKind::ALL);
        }
        if !glance.is_closed {
            out.push(Command::Announce);
            if std::mem::take(&mut self.admission.is_untold) {
                out.push(Command::TellOffered);
            }
        }
        out.push(Command::ReleaseUnadmitted);
    }

    /// Handles the server's response to the delayed handshake.
    pub(super) fn greeting_answered(&mut self, answer: OwnAnswer, out: &mut Vec<Command>) {
        match answer {
            OwnAnswer::Answer(Answer::Result(text)) => out.push(Command::TakeLateGreeting(text)),
            OwnAnswer::Answer(Answer::Error { .. } | Answer::Unreadable(_)) => {
                self.greeting_refused(out);
            }
            OwnAnswer::Failed(reason) => self.refuse_waiting(reason, out),
        }
    }

    fn greeting_refused(&mut self, out: &mut Vec<Command>) {
        out.push(Command::Remark(Remark::GreetingRefused));
        self.refuse_waiting(ReasonCode::UpstreamUnreadable, out);
    }

    pub(super) fn greeted_late(
        &mut self,
        outcome: LateGreeting,
        glance: &Glance,
        out: &mut Vec<Command>,
    ) {
        match outcome {
            LateGreeting::Done => {
                self.admission.is_untold = true;
                self.go_on(glance, out);
            }
            LateGreeting::Unchecked => {
                self.admission.is_untold = true;
                self.admission.is_wanted = true;
            }
            LateGreeting::Unreadable => self.greeting_refused(out),
            LateGreeting::OtherVersion => out.push(Command::End(
                "it is admitted now, but negotiated a different protocol version than the gate told the client; restart it in your client",
            )),
        }
    }
}

/// How long to wait before an unadmitted server is checked again.
fn pause_after(before: Option<Duration>) -> Duration {
    before.map_or(FIRST_RECHECK, |pause| pause.saturating_mul(2)).min(LONGEST_RECHECK)
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

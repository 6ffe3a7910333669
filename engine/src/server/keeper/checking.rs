//! When the server's admission is checked, and what goes on after a check.

use super::{Check, Command, Glance, Keeper, Remark};
use crate::reason::ReasonCode;
use crate::session::{LateGreeting, OwnAnswer};
use contract::surface::ListKind;
use std::time::{Duration, Instant};
use wire::Answer;

/// A server that is not admitted is checked again by itself: first after this long, then after twice as long each time, up
/// to the longest. Its document may only not have been there yet, and without tools no call comes that would ask.
const FIRST_RECHECK: Duration = Duration::from_secs(2);
const LONGEST_RECHECK: Duration = Duration::from_secs(300);

/// What the keeper knows of checks.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    pub(super) is_wanted: bool,
    is_checking: bool,
    /// When the server's greeting was looked at for the newest check.
    asked_at: Option<Instant>,
    /// When a server that is not admitted is checked again, and how long that is after the last time.
    recheck: Option<(Instant, Duration)>,
    /// The server was greeted late, and the client is still to be told that there are lists now.
    is_untold: bool,
}

impl Admissions {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_wanted && !self.is_checking && self.recheck.is_none()
    }

    pub(super) fn is_checking(&self) -> bool {
        self.is_checking
    }

    /// Whether this session has the server checked again while it is not admitted.
    pub(super) fn is_repeated(&self) -> bool {
        self.recheck.is_some()
    }

    /// What was wanted before a fault is wanted no longer.
    pub(super) fn forget(&mut self) {
        self.is_wanted = false;
        self.is_checking = false;
    }

    /// What this session waits for has to be checked by itself.
    pub(super) fn begin_again(&mut self) {
        self.is_checking = false;
        self.is_wanted = true;
    }

    /// Has a server that is not admitted checked again when its time has come, and one that no check counts for if requests
    /// wait for its lists.
    pub(super) fn check_again(&mut self, glance: &Glance, now: Instant) {
        let is_lacking = self.recheck.is_none() && glance.lacks_check && !glance.waited.is_empty();
        let is_due = self.recheck.is_some_and(|(due, _)| due <= now) || is_lacking;
        self.is_wanted |= is_due && !self.is_checking && !glance.has_ended;
    }
}

impl Keeper {
    /// Begins a check that is wanted. While the server is being greeted its answer is waited for: the check may need it.
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

    /// A check ended without an outcome: what waits for it is refused, and the server is checked again later.
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

    /// What was found counts from now on, and what waited for it goes on. Who vouches for the server is part of what it is
    /// judged by.
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

    /// Goes on with what waited for the check. A server that was admitted late is greeted first.
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

    /// The server answered the greeting that was sent late.
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
                "it is admitted now, and speaks another protocol version than the client was told; restart it in your client",
            )),
        }
    }
}

/// How long a server that is still not admitted is left alone.
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

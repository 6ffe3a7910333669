//! Checks whether an incident stops this call, which takes precedence over the server's contract.

use super::anomaly::QUARANTINED;
use crate::anomaly::quarantine_id;
use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use crate::situation::{Revoked, StoppedBy};

#[derive(Debug)]
pub(crate) struct IncidentCheck;

impl Check for IncidentCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, principal, situation, .. } = *question;
        if let Some(stopped) = situation.stopped(call, principal) {
            let what = match stopped {
                StoppedBy::Risk => "no call of this risk goes through",
                StoppedBy::Tool => "no call of this tool goes through",
                StoppedBy::Principal => "no call of yours goes through",
            };
            let message = format!(
                "○ holdpoint — an incident is declared: {what}. A person ends it with `holdpoint incident off --reason TEXT`."
            );
            return Answer::deny(ReasonCode::KillSwitch, message);
        }
        // Usually there are no quarantines, and the session's id need not be computed.
        let quarantined = &situation.switches.quarantined;
        if !quarantined.is_empty() && quarantined.contains(&quarantine_id(call, principal)) {
            return Answer::deny(ReasonCode::SessionQuarantined, QUARANTINED);
        }
        let message = match situation.revoked(principal) {
            None => return Answer::Continue,
            Some(Revoked::Principal) => {
                "○ holdpoint — the user of this session was revoked while it was running: no call of this session goes \
                 through. A person clears the user, then restarts the server in the client."
            }
            Some(Revoked::Server) => {
                "○ holdpoint — a person revoked this server while it was running: no call of this session goes through. \
                 A person clears the server, then restarts it in the client."
            }
        };
        Answer::deny(ReasonCode::SessionQuarantined, message)
    }
}

//! Is there an incident? Then nothing of the server's is used, whatever its contract says.

use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use crate::situation::Revoked;

#[derive(Debug)]
pub(crate) struct IncidentCheck;

impl Check for IncidentCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { principal, situation, .. } = *question;
        if situation.switches.is_incident {
            return Answer::deny(
                ReasonCode::KillSwitch,
                "○ holdpoint — an incident is declared: no call of this server goes through. \
                 A person ends it with `holdpoint incident off`.",
            );
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

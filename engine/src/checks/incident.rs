//! Is there an incident? Then nothing of the server's is used, whatever its contract says.

use crate::call::{Call, Method};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;

#[derive(Debug)]
pub struct IncidentCheck;

impl Check for IncidentCheck {
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        let Method::Use(_) = Method::of(call.method) else { return Answer::Continue };
        let (reason, message) = if situation.is_incident {
            (
                ReasonCode::KillSwitch,
                "○ holdpoint — an incident is declared: no call of this server goes through. \
                 A person ends it with `holdpoint incident off`.",
            )
        } else if situation.is_principal_revoked {
            (
                ReasonCode::SessionQuarantined,
                "○ holdpoint — the user of this session was revoked while it was running: no call of this session goes \
                 through. A person clears the user, then restarts the server in the client.",
            )
        } else if situation.is_revoked {
            (
                ReasonCode::SessionQuarantined,
                "○ holdpoint — a person revoked this server while it was running: no call of this session goes through. \
                 A person clears the server, then restarts it in the client.",
            )
        } else {
            return Answer::Continue;
        };
        Answer::Deny(Denial { reason, message: message.to_owned() })
    }
}

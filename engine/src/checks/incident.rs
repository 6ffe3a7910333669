//! Is there an incident? Then nothing of the server's is used, whatever its contract says.

use crate::call::{Call, Method};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;

#[derive(Debug)]
pub struct IncidentCheck;

impl Check for IncidentCheck {
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        match Method::of(call.method) {
            Method::Use(_) if situation.is_incident => Answer::Deny(Denial {
                reason: ReasonCode::KillSwitch,
                message:
                    "○ holdpoint — an incident is declared: no call of this server goes through. \
                          A person ends it: holdpoint incident status"
                        .to_owned(),
            }),
            _ => Answer::Continue,
        }
    }
}

//! Checks whether this principal may make this call. It precedes every other check: a principal
//! that may not use a tool learns nothing about it, not even that it exists.

use crate::call::Method;
use crate::decide::{Answer, Authorization, Authorizer, Check, Denial, Question, Unauthorized};
use crate::reason::ReasonCode;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct AuthorizationCheck {
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl Check for AuthorizationCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, principal, situation, .. } = *question;
        match call.kind {
            // The gateway answers these itself. A list is filtered instead.
            Method::Handshake | Method::Ping | Method::List(_) => return Answer::Continue,
            Method::Use(_) | Method::Other => {}
        }
        let authorization = self.authorizer.authorize(principal, &situation.server, call);
        match authorization {
            Authorization::Permit { policy } => Answer::Permitted { policy },
            Authorization::NeedsApproval { policy, groups } => {
                Answer::NeedsApproval { policy, groups }
            }
            Authorization::Deny { why, policy, is_hidden } => {
                let reason = reason_of(why);
                let denial = if is_hidden {
                    Denial::unknown(call, reason)
                } else {
                    Denial::new(reason, words_of(why))
                };
                Answer::Deny(Denial { policy, ..denial })
            }
        }
    }
}

fn reason_of(why: Unauthorized) -> ReasonCode {
    match why {
        Unauthorized::NoPolicyMatch => ReasonCode::NoPolicyMatch,
        Unauthorized::Forbidden => ReasonCode::Forbidden,
        Unauthorized::PolicyError => ReasonCode::PolicyError,
    }
}

fn words_of(why: Unauthorized) -> &'static str {
    match why {
        Unauthorized::NoPolicyMatch => "○ holdpoint — no policy permits this call",
        Unauthorized::Forbidden => "○ holdpoint — a policy forbids this call",
        Unauthorized::PolicyError => {
            "○ holdpoint — a policy could not be evaluated for this call, so it was not made"
        }
    }
}

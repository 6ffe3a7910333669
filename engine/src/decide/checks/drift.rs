//! Checks whether the contract has changed since it was accepted, with a single lookup in the view.

use crate::call::Method;
use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use gate::view::{Use, UseRuling};
use gate::words::{self, Reviewer};

#[derive(Debug)]
pub(crate) struct DriftCheck;

impl Check for DriftCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, situation, held_tools, .. } = *question;
        if let Method::List(list) = call.kind {
            // An unreadable list is not shown.
            let unreadable = situation.view.unreadable(list);
            return unreadable.cloned().map_or(Answer::Continue, Answer::Hold);
        }
        let Some(target) = call.target else {
            let message = "○ holdpoint — the target of the call is missing or ambiguous";
            return Answer::deny(ReasonCode::BadFrame, message);
        };
        let ruling = situation.view.rule(&Use {
            target,
            arguments: call.arguments,
            posture: situation.settings.posture,
            reviewer: Reviewer::Terminal(situation.server.as_str()),
            held_tools,
        });
        match ruling {
            UseRuling::Proceed => Answer::Continue,
            UseRuling::Hold(standing) => Answer::Hold(standing),
            UseRuling::NotListed => {
                let message = words::not_listed(target.key);
                Answer::deny(ReasonCode::UnknownTool, message)
            }
        }
    }
}

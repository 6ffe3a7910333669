//! Checks that the arguments can be copied into the headers that the tool's definition requires.
//! Only stateless HTTP servers use such headers.

use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use wire::remote::Unmirrored;

#[derive(Debug)]
pub(crate) struct MirrorCheck;

impl Check for MirrorCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, situation, .. } = *question;
        let asked = call.target.and_then(|target| situation.mirrorings.get(target));
        let deny = |reason, why: &dyn std::fmt::Display| {
            Answer::deny(reason, format!("○ holdpoint — {why}"))
        };
        match asked.map(|asked| asked.as_ref().map(|asked| asked.headers(call.arguments))) {
            None | Some(Ok(Ok(_))) => Answer::Continue,
            Some(Err(bad)) => deny(
                ReasonCode::UnknownTool,
                &format!("the tool's definition breaks the protocol, so it is not offered: {bad}"),
            ),
            Some(Ok(Err(why))) => deny(reason_of(why), &why),
        }
    }
}

fn reason_of(why: Unmirrored) -> ReasonCode {
    match why {
        Unmirrored::Ambiguous => ReasonCode::AmbiguousMessage,
        Unmirrored::NotRepresentable => ReasonCode::SchemaViolation,
        Unmirrored::TooLong => ReasonCode::PayloadTooLarge,
    }
}

//! Checks the size and nesting depth of the message.

use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;

/// The size limits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreflightLimits {
    pub arguments_bytes: usize,
    pub depth: usize,
}

impl Default for PreflightLimits {
    fn default() -> Self {
        PreflightLimits { arguments_bytes: 16 * 1024 * 1024, depth: 128 }
    }
}

#[derive(Debug)]
pub(crate) struct PreflightCheck {
    pub(crate) limits: PreflightLimits,
}

impl Check for PreflightCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let call = question.call;
        let PreflightLimits { arguments_bytes, depth } = self.limits;
        if call.arguments.is_some_and(|arguments| arguments.len() > arguments_bytes) {
            return Answer::deny(
                ReasonCode::PayloadTooLarge,
                format!(
                    "○ holdpoint — the arguments are larger than {arguments_bytes} bytes (limits.arguments_bytes)"
                ),
            );
        }
        if call.depth > depth {
            return Answer::deny(
                ReasonCode::TooDeep,
                format!(
                    "○ holdpoint — the message is nested deeper than {depth} levels (limits.depth)"
                ),
            );
        }
        Answer::Continue
    }
}

//! Is the message of a size and depth that a server can be expected to bear?

use crate::call::Call;
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;

/// What a call may be at most.
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
pub struct PreflightCheck {
    pub limits: PreflightLimits,
}

impl Check for PreflightCheck {
    fn check(&self, call: &Call<'_>, _: &Situation) -> Answer {
        let PreflightLimits { arguments_bytes, depth } = self.limits;
        let deny = |reason, message| Answer::Deny(Denial { reason, message });
        if call.arguments.is_some_and(|arguments| arguments.len() > arguments_bytes) {
            return deny(
                ReasonCode::PayloadTooLarge,
                format!(
                    "○ holdpoint — the arguments are larger than {arguments_bytes} bytes (limits.arguments_bytes)"
                ),
            );
        }
        if call.depth > depth {
            return deny(
                ReasonCode::TooDeep,
                format!(
                    "○ holdpoint — the message is nested deeper than {depth} levels (limits.depth)"
                ),
            );
        }
        Answer::Continue
    }
}

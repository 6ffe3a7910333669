//! Checks that the tool is on the closed list of tools that may be used, whatever the server lists.

use crate::decide::{Answer, Check, Question};
use crate::reason::ReasonCode;
use attest::{Reason, ToolAllowlist};
use gate::naming::named_tool;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct AllowlistCheck {
    pub(crate) allowed: Arc<ToolAllowlist>,
}

impl Check for AllowlistCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let call = question.call;
        // A call whose tool is ambiguous is on no list.
        if call.target.is_some_and(|target| self.allowed.check(target.key).is_ok()) {
            return Answer::Continue;
        }
        let tool =
            call.target.map_or_else(|| "tool".to_owned(), |target| named_tool(target.key, false));
        Answer::deny(
            ReasonCode::Admission(Reason::ToolNotAdmitted),
            format!(
                "○ holdpoint — the {tool} is not on the allowlist of this server. \
                 A person decides whether to add it to `admission.allow_tools` in holdpoint.toml."
            ),
        )
    }
}

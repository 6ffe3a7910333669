//! Is the tool one of those that may be used on this server? A closed list, whatever the server lists.

use crate::call::{Call, Method};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use attest::{Reason, ToolAllowlist};
use contract::surface::EntryType;
use gate::naming::named_tool;
use std::sync::Arc;

#[derive(Debug)]
pub struct AllowlistCheck {
    pub allowed: Arc<ToolAllowlist>,
}

impl Check for AllowlistCheck {
    fn check(&self, call: &Call<'_>, _: &Situation) -> Answer {
        let Method::Use(EntryType::Tool) = Method::of(call.method) else { return Answer::Continue };
        // A call that does not say in one way which tool it is about is on no list.
        if call.target.is_some_and(|target| self.allowed.check(target.key).is_ok()) {
            return Answer::Continue;
        }
        let tool =
            call.target.map_or_else(|| "tool".to_owned(), |target| named_tool(target.key, false));
        Answer::Deny(Denial {
            reason: ReasonCode::Admission(Reason::ToolNotAdmitted),
            message: format!(
                "○ holdpoint — the {tool} is not on the allowlist of this server. \
                 A person decides whether to add it to `admission.allow_tools` in holdpoint.toml."
            ),
        })
    }
}

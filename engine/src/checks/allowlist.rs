//! Is the tool one of those that may be used on this server? A closed list, whatever the server lists.

use crate::call::{Call, Method};
use crate::path::{Answer, Check, Denial};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use attest::{Reason, ToolAllowlist};
use contract::surface::EntryType;
use std::sync::Arc;

#[derive(Debug)]
pub struct AllowlistCheck {
    pub allowed: Arc<ToolAllowlist>,
}

impl Check for AllowlistCheck {
    fn check(&self, call: &Call<'_>, _: &Situation) -> Answer {
        let Method::Use(EntryType::Tool) = Method::of(call.method) else { return Answer::Continue };
        // A call that does not say in one way which tool it is about is on no list.
        match call.target.map(|target| self.allowed.check(target.key)) {
            Some(Ok(())) => Answer::Continue,
            Some(Err(_)) | None => Answer::Deny(Denial {
                reason: ReasonCode::Admission(Reason::ToolNotAdmitted),
                message: "○ holdpoint — the tool is not on the list of those that may be used on this server. \
                          A person adds it: `admission.allow_tools` in holdpoint.toml, or `holdpoint run --allow-tool NAME`"
                    .to_owned(),
            }),
        }
    }
}

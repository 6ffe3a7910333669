//! Checks whether the person at the client must allow calls of this tool. The session asks them
//! once all checks have passed.

use crate::decide::{Answer, Check, Question};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct ApprovalCheck {
    pub(crate) tools: BTreeSet<String>,
}

impl Check for ApprovalCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        // A call whose tool is ambiguous may be about one of these.
        match question.call.target {
            Some(target) if !self.tools.contains(target.key) => Answer::Continue,
            Some(_) | None => Answer::NeedsPerson,
        }
    }
}

//! Is the tool one that the person at the client has to allow each call of? The session asks them, once every check is passed.

use crate::decide::{Answer, Check, Question};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct ApprovalCheck {
    pub(crate) tools: BTreeSet<String>,
}

impl Check for ApprovalCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        // A call that does not say in one way which tool it is about may be about one of these.
        match question.call.target {
            Some(target) if !self.tools.contains(target.key) => Answer::Continue,
            Some(_) | None => Answer::NeedsPerson,
        }
    }
}

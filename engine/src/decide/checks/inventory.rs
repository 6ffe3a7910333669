//! Checks whether the server may be used at all: a person may have stopped it, or may not have
//! reviewed it yet.

use crate::call::Method;
use crate::decide::{Answer, Check, Question};

#[derive(Debug)]
pub(crate) struct InventoryCheck;

impl Check for InventoryCheck {
    /// While a server is stopped, only the handshake and `ping` are forwarded. Its lists are
    /// refused rather than empty, so that a host shows its user why there are no tools and what to
    /// do about it.
    fn check(&self, question: &Question<'_>) -> Answer {
        let view = &question.situation.view;
        let Some(closed) = view.closed() else { return Answer::Continue };
        match question.call.kind {
            Method::Handshake | Method::Ping => Answer::Continue,
            Method::List(list) if view.lacks(list) => Answer::Continue,
            Method::List(_) => Answer::Hold(closed.clone()),
            Method::Use(_) | Method::Other if view.stopped().is_some() => {
                Answer::Hold(closed.clone())
            }
            Method::Use(_) | Method::Other => Answer::Continue,
        }
    }
}

//! Is the server one that may be used at all? A person may have stopped it, or may not have looked at it yet.

use crate::call::{Call, Method};
use crate::path::{Answer, Check};
use crate::situation::Situation;

#[derive(Debug)]
pub struct InventoryCheck;

impl Check for InventoryCheck {
    /// While a server is stopped, only the handshake and `ping` go up. A list of it is refused, not empty: a host shows
    /// its user why there are no tools, and what to do about it.
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        let view = &situation.view;
        let Some(closed) = view.closed() else { return Answer::Continue };
        match Method::of(call.method) {
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

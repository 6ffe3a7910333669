//! Is the server one that may be used at all? A person may have stopped it, or may not have looked at it yet.

use crate::call::{Call, Method};
use crate::path::{Answer, Check};
use crate::situation::Situation;

#[derive(Debug)]
pub struct InventoryCheck;

impl Check for InventoryCheck {
    /// While a server is stopped, only the handshake, `ping` and the lists go up.
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        let Some(stopped) = situation.view.stopped() else { return Answer::Continue };
        match Method::of(call.method) {
            Method::Handshake | Method::List(_) | Method::Ping => Answer::Continue,
            Method::Use(_) | Method::Other => Answer::Hold(stopped.clone()),
        }
    }
}

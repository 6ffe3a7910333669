//! A look at a server outside every session: an administrator asked for it, or a schedule did.

use super::{Known, Server};
use crate::judge::{Instance, Seen};
use crate::recorder::now;
use contract::client::ClientCapabilities;
use contract::surface::{Entry, Surface};
use gate::server::ServerStatus;
use store::StoreError;
use wire::Observed;

/// A look is no process's: it has a view of its own, which lasts until the next look. A server that showed a change here is
/// not taken for unchanged because a process that runs since before the change does not show it.
const LOOKED: Instance = Instance(u64::MAX - 1);

/// Why what was seen counts for nothing.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("what the server says of itself cannot be read in one way")]
    Unreadable,
    #[error("the server is quarantined: release it first")]
    Quarantined,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Server {
    /// Takes in what the server said when it was looked at: pins it at first use, pins benign changes again, and holds the
    /// rest, as in a session. Returns the status of the server after that.
    pub fn take_in(&self, observed: &Observed, origin: Entry) -> Result<ServerStatus, LookError> {
        let seen = seen_of(observed, origin);
        let surface = seen.surface().ok_or(LookError::Unreadable)?;
        // What people decided since counts for every view before this one is compared with the others.
        self.look_again()?;
        let mut judge = self.judge();
        if judge.status()? == ServerStatus::Quarantined {
            return Err(LookError::Quarantined);
        }
        judge.take_in(&seen, surface, now())?;
        let status = judge.status()?;
        drop(judge);
        if status == ServerStatus::Changed {
            // INVARIANT: what was found here is held for the next call: no call is decided on what a session saw before.
            self.views().iter().for_each(|view| view.change(Known::outdate));
        }
        Ok(status)
    }
}

/// The surface of a server that was looked at, for the acts of people that need one.
pub fn looked_surface(observed: &Observed, origin: Entry) -> Result<Surface, LookError> {
    seen_of(observed, origin).surface().ok_or(LookError::Unreadable)
}

fn seen_of(observed: &Observed, origin: Entry) -> Seen {
    Seen {
        handshake: Some(observed.handshake.as_str().into()),
        lists: observed.lists.iter().cloned().collect(),
        origin: Some(origin),
        client: Some(ClientCapabilities::default()),
        instance: LOOKED,
        attested: None,
    }
}

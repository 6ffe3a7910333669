//! Listing a server outside of any session, requested by an administrator or a schedule.

use super::{Known, Server};
use crate::judge::{Instance, Seen};
use crate::recorder::now;
use contract::client::ClientCapabilities;
use contract::surface::{Entry, Surface};
use gate::server::ServerStatus;
use store::StoreError;
use wire::Observed;

/// Such a listing belongs to no process, so it has its own view, which lasts until the next one. If
/// it shows a change, the server must not be treated as unchanged because an older process does not
/// show that change.
const LOOKED: Instance = Instance(u64::MAX - 1);

/// Why the observation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("the server's handshake is invalid or ambiguous")]
    Unreadable,
    #[error("the server is quarantined: release it first")]
    Quarantined,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Server {
    /// Takes in what the server showed: pins it on first use, re-pins benign changes, and holds the
    /// rest, like a session. Returns the resulting status of the server.
    pub fn take_in(&self, observed: &Observed, origin: Entry) -> Result<ServerStatus, LookError> {
        let seen = seen_of(observed, origin);
        let surface = seen.surface().ok_or(LookError::Unreadable)?;
        // Apply people's recent decisions to every view before this one is compared with the
        // others.
        self.look_again()?;
        let mut judge = self.judge();
        if judge.status()? == ServerStatus::Quarantined {
            return Err(LookError::Quarantined);
        }
        judge.take_in(&seen, surface, now())?;
        let status = judge.status()?;
        drop(judge);
        if status == ServerStatus::Changed {
            // INVARIANT: what was found here is held for the next call, so no call is decided on
            // what a session saw before.
            self.views().iter().for_each(|view| view.change(Known::outdate));
        }
        Ok(status)
    }
}

/// The surface of a listed server, for people's acts that need one.
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

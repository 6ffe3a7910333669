//! A server process that a session receives after it has begun, once the server is admitted.
//!
//! The session's outlet to the server exists from the start, and fails until then. If the session
//! ends first, it no longer accepts a process.

use crate::admission::StartedServer;
use crate::outlet::{FreeMessage, LineOutlet, Outgoing, ServerOutlet};
use crate::process::{ServerGroup, ServerProcess};
use std::io;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::receipts::Settled;

/// Creates the three ends: for the code that starts the process, for the session, and for the
/// thread that reads from the server.
pub fn handover() -> (Handover, LateOutlet, LateServer) {
    let (give, taken) = channel();
    let slot = Arc::new(Mutex::new(Slot { outlet: None, give: Some(give) }));
    let group = ServerGroup::default();
    let handover = Handover { slot: slot.clone(), group: group.clone() };
    (handover, LateOutlet { slot }, LateServer { group, taken })
}

#[derive(Debug)]
struct Slot {
    outlet: Option<LineOutlet<ChildStdin>>,
    /// `None` once the session no longer accepts a process.
    give: Option<Sender<(ServerProcess, ChildStdout)>>,
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    // Both fields are replaced as a whole, so a panic elsewhere cannot leave them inconsistent.
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a process to the session.
#[derive(Debug)]
pub struct Handover {
    slot: Arc<Mutex<Slot>>,
    group: ServerGroup,
}

impl Handover {
    /// The group in which the process must be started, which the session signals.
    pub fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// Returns the process as an error if the session has ended.
    pub fn give(&self, started: StartedServer) -> Result<(), Box<StartedServer>> {
        let mut slot = lock(&self.slot);
        let StartedServer { process, input, output } = started;
        let Some(give) = &slot.give else {
            return Err(Box::new(StartedServer { process, input, output }));
        };
        if let Err(returned) = give.send((process, output)) {
            let (process, output) = returned.0;
            return Err(Box::new(StartedServer { process, input, output }));
        }
        slot.outlet = Some(LineOutlet::new(input));
        Ok(())
    }
}

/// The session's outlet to the server.
#[derive(Debug)]
pub struct LateOutlet {
    slot: Arc<Mutex<Slot>>,
}

impl ServerOutlet for LateOutlet {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        match &mut lock(&self.slot).outlet {
            Some(outlet) => outlet.send(message),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        lock(&self.slot).outlet.as_mut().is_some_and(|outlet| outlet.gather(request))
    }

    fn flush(&mut self, settled: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        match &mut lock(&self.slot).outlet {
            Some(outlet) => outlet.flush(settled, last),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush_free(&mut self) -> io::Result<()> {
        lock(&self.slot).outlet.as_mut().map_or(Ok(()), LineOutlet::flush_free)
    }

    fn discard(&mut self) {
        if let Some(outlet) = &mut lock(&self.slot).outlet {
            outlet.discard();
        }
    }

    fn close(&mut self) {
        let mut slot = lock(&self.slot);
        slot.outlet = None;
        slot.give = None;
    }
}

/// The process, once there is one.
#[derive(Debug)]
pub struct LateServer {
    group: ServerGroup,
    taken: Receiver<(ServerProcess, ChildStdout)>,
}

impl LateServer {
    /// The processes of the server, once there are any.
    pub fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// Waits for the process. Returns `None` if the session ends without one.
    pub fn wait(self) -> Option<(ServerProcess, ChildStdout)> {
        self.taken.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_process_nothing_is_sent_and_the_end_is_noticed() {
        let (handover, mut outlet, server) = handover();
        let message = Outgoing { frame: b"{}", ..Outgoing::default() };
        assert!(!outlet.gather(&message));
        assert!(outlet.flush_free().is_ok());
        assert!(outlet.send(&FreeMessage::answer(b"{}")).is_err());
        outlet.close();
        assert!(server.wait().is_none());
        assert!(lock(&handover.slot).give.is_none());
    }
}

//! Closes all egress at once, for incident mode.

use std::sync::Arc;
use tokio::sync::watch;

/// Whether confined programs may reach the network. Clones share their state.
#[derive(Debug, Clone)]
pub struct EgressSwitch {
    closed: Arc<watch::Sender<bool>>,
}

impl Default for EgressSwitch {
    fn default() -> Self {
        EgressSwitch { closed: Arc::new(watch::Sender::new(false)) }
    }
}

impl EgressSwitch {
    /// Refuses new connections and ends open ones.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    pub fn open(&self) {
        self.closed.send_replace(false);
    }

    pub fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }
}

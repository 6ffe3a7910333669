//! Connections that are open and carry no request. Only as young as a server surely still has them open.

use super::limits::{MAX_IDLE_AGE, MAX_IDLE_CONNECTIONS};
use crate::http::connect::Live;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Live, Instant)>>,
}

impl Pool {
    /// The connection that was used last, where there is one. Those that are too old are closed.
    pub(super) fn take(&self) -> Option<Live> {
        let mut idle = self.idle();
        idle.retain(|(_, since)| since.elapsed() < MAX_IDLE_AGE);
        idle.pop().map(|(live, _)| live)
    }

    /// Keeps a connection whose answer was read to its end; past the limit it is closed.
    pub(super) fn keep(&self, live: Live) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push((live, Instant::now()));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Live, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

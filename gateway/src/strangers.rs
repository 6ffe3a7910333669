//! Requests of callers that proved no identity: counted, and recorded at most once a second, so that a flood of them fills
//! no ledger.

use crate::node::Node;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Strangers {
    refused: AtomicU64,
    recorded: Mutex<Option<Recorded>>,
}

#[derive(Debug, Clone, Copy)]
struct Recorded {
    at: Instant,
    count: u64,
}

impl Strangers {
    pub(crate) fn note(&self, node: &Node, reason: &str, fault: &str) {
        let count = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let since = {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            let last = recorded.filter(|last| last.at.elapsed() < PAUSE);
            if last.is_some() {
                return;
            }
            let before = recorded.replace(Recorded { at: Instant::now(), count });
            count - before.map_or(0, |before| before.count)
        };
        let data = json!({"reason": reason, "fault": fault, "count": since});
        node.shared.recorder.event("gateway", "auth.refused", None, &data);
    }
}

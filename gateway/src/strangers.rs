//! Unauthenticated requests: counted, and recorded at most once per source and second, so that a
//! flood of them cannot fill a ledger.

use crate::node::Node;
use crate::sign_in::REFUSED_EVENT;
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(1);
/// The most sources that are distinguished within a second. All others count as one.
const MAX_SOURCES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Strangers {
    refused: AtomicU64,
    recent: Mutex<HashMap<Told, Recent>>,
}

/// The key for rate limiting: a source, with the reason if it concerns a sign-in.
type Told = (Option<IpAddr>, Option<&'static str>);

#[derive(Debug, Clone, Copy)]
struct Recent {
    at: Instant,
    /// Refusals that will be recorded with the next one.
    unrecorded: u64,
}

impl Strangers {
    /// The number of refused requests.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, node: &Node, source: Option<IpAddr>, reason: &str, fault: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let Some(((source, _), count)) = self.due((source, None), Instant::now()) else { return };
        let source = source.map(|address| address.to_string());
        let data = json!({"reason": reason, "fault": fault, "count": count, "source": source});
        node.shared.recorder.event("gateway", "auth.refused", None, &data);
    }

    /// The same for a refused sign-in. Each reason is limited separately, so that an attack is not
    /// hidden behind a mistake.
    pub(crate) fn note_sign_in(
        &self,
        node: &Node,
        source: Option<IpAddr>,
        (reason, cause): (&'static str, Option<&'static str>),
        fault: &str,
    ) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let due = self.due((source, Some(cause.unwrap_or(reason))), Instant::now());
        let Some(((source, _), count)) = due else { return };
        let source = source.map(|address| address.to_string());
        let mut data = json!({"reason": reason, "fault": fault, "count": count, "source": source});
        if let (Some(cause), Some(data)) = (cause, data.as_object_mut()) {
            data.insert("cause".to_owned(), cause.into());
        }
        node.shared.recorder.event("gateway", REFUSED_EVENT, None, &data);
    }

    /// The source and number of refusals to record now, if any.
    fn due(&self, source: Told, now: Instant) -> Option<(Told, u64)> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |recent: &Recent| now.duration_since(recent.at) >= PAUSE;
        if recent.len() >= MAX_SOURCES {
            recent.retain(|_, recent| !is_over(recent));
        }
        let is_full = recent.len() >= MAX_SOURCES && !recent.contains_key(&source);
        let source = if is_full { (None, source.1) } else { source };
        match recent.get_mut(&source) {
            Some(known) if !is_over(known) => {
                known.unrecorded += 1;
                None
            }
            known => {
                let count = 1 + known.map_or(0, |known| known.unrecorded);
                recent.insert(source, Recent { at: now, unrecorded: 0 });
                Some((source, count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_recorded_once_a_second_and_a_flood_of_sources_as_one() {
        let (strangers, begun) = (Strangers::default(), Instant::now());
        let address = |number: u8| (Some(IpAddr::from([10, 0, 0, number])), None);
        assert_eq!(strangers.due(address(1), begun), Some((address(1), 1)));
        assert_eq!(strangers.due(address(1), begun), None);
        assert_eq!(strangers.due(address(2), begun), Some((address(2), 1)));
        assert_eq!(strangers.due(address(1), begun + PAUSE), Some((address(1), 2)));
        let recorded = (3..200).filter(|number| strangers.due(address(*number), begun).is_some());
        assert!(recorded.count() <= MAX_SOURCES);
    }
}

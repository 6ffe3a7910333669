//! The pending lookups: each definition is looked up once at a time, and a refusal waits for it
//! only for a limited time.

use super::REFUSAL_PATIENCE;
use contract::hash::DefinitionHash;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long to wait before a failed lookup is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// The most lookups that are remembered. Beyond that all are forgotten.
const MAX_REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Answered(HashMap<DefinitionHash, LookUp>);

#[derive(Debug, Clone, Copy)]
struct LookUp {
    since: Instant,
    is_over: bool,
}

impl Answered {
    /// Returns whether to send a lookup now.
    pub(super) fn ask(&mut self, definition: DefinitionHash, now: Instant) -> bool {
        let is_asked = self.0.get(&definition).is_some_and(|look_up| {
            now.saturating_duration_since(look_up.since) < RETRY_AFTER || !look_up.is_over
        });
        if is_asked {
            return false;
        }
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        self.0.insert(definition, LookUp { since: now, is_over: false });
        true
    }

    /// Records that a response arrived, or that none will.
    pub(super) fn end(&mut self, definition: DefinitionHash) {
        if let Some(look_up) = self.0.get_mut(&definition) {
            look_up.is_over = true;
        }
    }

    pub(super) fn awaited_until(
        &self,
        definition: DefinitionHash,
        now: Instant,
    ) -> Option<Instant> {
        let look_up = self.0.get(&definition).filter(|look_up| !look_up.is_over)?;
        let until = look_up.since + REFUSAL_PATIENCE;
        (until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_asked_about_once_and_waited_for_no_longer_than_its_time() {
        let definition = DefinitionHash::from_bytes([1; 32]);
        let (mut answered, begun) = (Answered::default(), Instant::now());
        assert!(answered.ask(definition, begun));
        assert!(!answered.ask(definition, begun));
        let until = answered.awaited_until(definition, begun);
        assert_eq!(until, Some(begun + REFUSAL_PATIENCE));
        assert_eq!(answered.awaited_until(definition, begun + REFUSAL_PATIENCE), None);
        assert!(!answered.ask(definition, begun + RETRY_AFTER), "it is still on its way");
        answered.end(definition);
        assert_eq!(answered.awaited_until(definition, begun), None);
        assert!(!answered.ask(definition, begun + RETRY_AFTER - Duration::from_millis(1)));
        assert!(answered.ask(definition, begun + RETRY_AFTER));
    }
}

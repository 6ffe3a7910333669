//! Keeps the rules of changes that wait, so that a list that is fetched again compiles nothing again.

use super::{CallRules, ToolChange};
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most changes that are kept, and about the most bytes that they take when they are compiled.
pub const MAX_CACHED_RULES: usize = 64;
pub const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

/// All that rules depend on.
type Key = ([EntryHash; 3], bool);

/// The rules of changes by the hashes of their definitions. Copies share what is in it.
#[derive(Debug, Clone, Default)]
pub struct CallRulesCache(Arc<Mutex<HashMap<Key, Arc<CallRules>>>>);

impl CallRulesCache {
    /// The rules of a change: those that are kept, or new ones.
    pub fn rules(&self, change: ToolChange<'_>) -> Arc<CallRules> {
        let hashes = [change.approved, change.accepted, change.new].map(Entry::entry_hash);
        let key = (hashes, change.defers_text);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = kept.get(&key).cloned() {
            drop_heaviest(&mut kept);
            return rules;
        }
        let rules = Arc::new(CallRules::of(change));
        if kept.len() >= MAX_CACHED_RULES {
            // Changes that still wait are kept by the view that they are in; only the next list compiles them again.
            kept.clear();
        }
        kept.insert(key, rules.clone());
        drop_heaviest(&mut kept);
        rules
    }
}

/// Drops the heaviest rules while all together are too heavy. Rules grow when the first call compiles them, so they are
/// weighed each time.
fn drop_heaviest(kept: &mut HashMap<Key, Arc<CallRules>>) {
    let mut weights: Vec<(usize, Key)> =
        kept.iter().map(|(key, rules)| (rules.bytes(), *key)).collect();
    weights.sort_unstable_by_key(|(bytes, _)| *bytes);
    let mut all: usize = weights.iter().map(|(bytes, _)| bytes).sum();
    while let Some((bytes, key)) = weights.pop().filter(|_| all > MAX_CACHED_BYTES) {
        kept.remove(&key);
        all -= bytes;
    }
}

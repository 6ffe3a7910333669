//! Caches the rules of waiting changes, so that fetching a list again does not recompile them.

use super::{CallRules, ToolChange};
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most changes in the cache, and about the most bytes that they take when compiled.
pub const MAX_CACHED_RULES: usize = 64;
pub const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

/// Everything that the rules depend on.
type Key = ([EntryHash; 3], bool);

/// Rules by the hashes of their definitions. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub struct CallRulesCache(Arc<Mutex<HashMap<Key, Arc<CallRules>>>>);

impl CallRulesCache {
    /// The rules of a change, from the cache or newly made.
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
            // The current view holds the rules of changes that still wait, so only the next list
            // recompiles them.
            kept.clear();
        }
        kept.insert(key, rules.clone());
        drop_heaviest(&mut kept);
        rules
    }
}

/// Drops the largest rules until the rest fit. Rules grow when the first call compiles them, so
/// they are measured each time.
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

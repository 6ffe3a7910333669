//! Keeps the rules of changes that wait, so that a list that is fetched again compiles nothing again.

use super::{CallRules, ToolChange};
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most changes that are kept, and the most bytes of their definitions.
pub const MAX_CACHED_RULES: usize = 256;
pub const MAX_CACHED_BYTES: usize = 4 * 1024 * 1024;

/// All that rules depend on.
type Key = ([EntryHash; 3], bool);

/// The rules of changes by the hashes of their definitions. Copies share what is in it.
#[derive(Debug, Clone, Default)]
pub struct CallRulesCache(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    rules: HashMap<Key, Arc<CallRules>>,
    bytes: usize,
}

impl CallRulesCache {
    /// The rules of a change: those that are kept, or new ones.
    pub fn rules(&self, change: ToolChange<'_>) -> Arc<CallRules> {
        let hashes = [change.approved, change.accepted, change.new].map(Entry::entry_hash);
        let key = (hashes, change.defers_text);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = kept.rules.get(&key) {
            return rules.clone();
        }
        let rules = Arc::new(CallRules::of(change));
        let bytes = rules.bytes();
        if kept.rules.len() >= MAX_CACHED_RULES || kept.bytes + bytes > MAX_CACHED_BYTES {
            // Changes that still wait are kept by the view that they are in; only the next list compiles them again.
            *kept = Kept::default();
        }
        if bytes <= MAX_CACHED_BYTES {
            kept.bytes += bytes;
            kept.rules.insert(key, rules.clone());
        }
        rules
    }
}

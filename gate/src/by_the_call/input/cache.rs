//! Caches the compiled rules of tools by the hashes of their definitions, shared by all servers of
//! a process.

use super::InputRules;
use crate::by_the_call::Undecided;
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The most compiled definitions in the cache, and about the most bytes that they take: enough for
/// 10,000 tools of usual size. A smaller cache would recompile constantly for callers that use all
/// of them in turn.
pub const MAX_CACHED_INPUTS: usize = 12_288;
pub const MAX_CACHED_INPUT_BYTES: usize = 256 * 1024 * 1024;

/// The result of compiling a definition.
pub type CompiledInput = Result<Arc<InputRules>, Undecided>;

#[derive(Debug)]
struct Kept {
    compiled: CompiledInput,
    bytes: usize,
    last_used: AtomicU64,
}

/// Compiled rules. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub struct InputRulesCache(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    rules: RwLock<KeptRules>,
    uses: AtomicU64,
}

#[derive(Debug, Default)]
struct KeptRules {
    by_definition: HashMap<EntryHash, Kept>,
    /// The total size, maintained so that adding a definition does not have to sum up all of them.
    bytes: usize,
}

impl InputRulesCache {
    /// The rules of a tool, from the cache or newly compiled.
    pub fn rules(&self, tool: &Entry) -> CompiledInput {
        let Shared { rules, uses } = &*self.0;
        let now = uses.fetch_add(1, Ordering::Relaxed);
        let hash = tool.entry_hash();
        let kept = rules.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.by_definition.get(&hash) {
            found.last_used.store(now, Ordering::Relaxed);
            return found.compiled.clone();
        }
        drop(kept);
        // Two callers may compile the same definition concurrently. The results are equal.
        let compiled = InputRules::compile(tool).map(Arc::new);
        let bytes = compiled.as_ref().map_or(tool.raw().len(), |rules| rules.bytes());
        let new = Kept { compiled: compiled.clone(), bytes, last_used: AtomicU64::new(now) };
        rules.write().unwrap_or_else(PoisonError::into_inner).keep(hash, new);
        compiled
    }

    /// How many definitions are cached, and about how many bytes they take.
    pub fn size(&self) -> (usize, usize) {
        let rules = self.0.rules.read().unwrap_or_else(PoisonError::into_inner);
        (rules.by_definition.len(), rules.bytes)
    }
}

impl KeptRules {
    fn keep(&mut self, hash: EntryHash, new: Kept) {
        self.bytes += new.bytes;
        if let Some(before) = self.by_definition.insert(hash, new) {
            self.bytes -= before.bytes;
        }
        if self.by_definition.len() > MAX_CACHED_INPUTS || self.bytes > MAX_CACHED_INPUT_BYTES {
            self.drop_unused();
        }
    }

    /// Drops the least recently used rules. It removes a tenth more than necessary, so that not
    /// every further definition has to scan the cache.
    fn drop_unused(&mut self) {
        let all = self.by_definition.iter();
        let mut oldest: Vec<(u64, EntryHash)> =
            all.map(|(hash, kept)| (kept.last_used.load(Ordering::Relaxed), *hash)).collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        for (_, hash) in oldest {
            if self.by_definition.len() <= MAX_CACHED_INPUTS / 10 * 9
                && self.bytes <= MAX_CACHED_INPUT_BYTES / 10 * 9
            {
                break;
            }
            if let Some(dropped) = self.by_definition.remove(&hash) {
                self.bytes -= dropped.bytes;
            }
        }
    }
}

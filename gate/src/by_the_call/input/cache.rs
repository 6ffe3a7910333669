//! Keeps the compiled rules of tools by the hashes of their definitions, for all servers of a process together.

use super::InputRules;
use crate::by_the_call::Undecided;
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The most definitions that are kept compiled, and about the most bytes that they take.
pub const MAX_CACHED_INPUTS: usize = 4_096;
pub const MAX_CACHED_INPUT_BYTES: usize = 64 * 1024 * 1024;

/// What was found of a definition.
pub type CompiledInput = Result<Arc<InputRules>, Undecided>;

#[derive(Debug)]
struct Kept {
    compiled: CompiledInput,
    bytes: usize,
    last_used: AtomicU64,
}

/// Compiled rules. Copies share what is in it.
#[derive(Debug, Clone, Default)]
pub struct InputRulesCache(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: RwLock<HashMap<EntryHash, Kept>>,
    uses: AtomicU64,
}

impl InputRulesCache {
    /// The rules of a tool: those that are kept, or new ones.
    pub fn rules(&self, tool: &Entry) -> CompiledInput {
        let Shared { kept, uses } = &*self.0;
        let now = uses.fetch_add(1, Ordering::Relaxed);
        let hash = tool.entry_hash();
        if let Some(found) = kept.read().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            found.last_used.store(now, Ordering::Relaxed);
            return found.compiled.clone();
        }
        // Two callers may compile one definition at a time: both results are the same.
        let compiled = InputRules::compile(tool).map(Arc::new);
        let bytes = compiled.as_ref().map_or(tool.raw().len(), |rules| rules.bytes());
        let new = Kept { compiled: compiled.clone(), bytes, last_used: AtomicU64::new(now) };
        let mut kept = kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.insert(hash, new);
        drop_unused(&mut kept);
        compiled
    }

    /// How many definitions are kept, and about how many bytes they take.
    pub fn size(&self) -> (usize, usize) {
        let kept = self.0.kept.read().unwrap_or_else(PoisonError::into_inner);
        (kept.len(), kept.values().map(|kept| kept.bytes).sum())
    }
}

/// Drops the rules that were not used for the longest time while there are too many of them. A tenth more goes with them, so
/// that not every further definition looks through all of them.
fn drop_unused(kept: &mut HashMap<EntryHash, Kept>) {
    let mut count = kept.len();
    let mut bytes: usize = kept.values().map(|kept| kept.bytes).sum();
    if count <= MAX_CACHED_INPUTS && bytes <= MAX_CACHED_INPUT_BYTES {
        return;
    }
    let mut oldest: Vec<(u64, EntryHash, usize)> = kept
        .iter()
        .map(|(hash, kept)| (kept.last_used.load(Ordering::Relaxed), *hash, kept.bytes))
        .collect();
    oldest.sort_unstable_by_key(|(used, _, _)| *used);
    for (_, hash, size) in oldest {
        if count <= MAX_CACHED_INPUTS / 10 * 9 && bytes <= MAX_CACHED_INPUT_BYTES / 10 * 9 {
            break;
        }
        kept.remove(&hash);
        count -= 1;
        bytes -= size;
    }
}

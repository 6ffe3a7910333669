//! A bounded cache with two generations: when the young one is full it becomes the old one, and the
//! old one is dropped.
//!
//! Entries in use stay, unused ones disappear after at most two generations, and no entry needs a
//! timestamp.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

const SHARDS: usize = 16;

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    shards: Vec<Mutex<Generations<K, V>>>,
    /// The capacity of one generation of one shard.
    generation: usize,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// A cache of at most `entries` entries, rounded up to a multiple of twice the number of
    /// shards.
    pub(crate) fn new(entries: usize) -> Cache<K, V> {
        let empty = || Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() });
        Cache {
            shards: (0..SHARDS).map(|_| empty()).collect(),
            generation: entries.div_ceil(2 * SHARDS).max(1),
        }
    }

    fn shard(&self, number: u8) -> Option<&Mutex<Generations<K, V>>> {
        self.shards.get(usize::from(number) % SHARDS)
    }

    pub(crate) fn get(&self, shard: u8, key: &K) -> Option<V> {
        // A panic elsewhere leaves the maps consistent, because every change is a single insertion
        // or swap.
        let mut entries = self.shard(shard)?.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = entries.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = entries.old.remove_entry(key)?;
        self.keep(&mut entries, key, value.clone());
        Some(value)
    }

    pub(crate) fn insert(&self, shard: u8, key: K, value: V) {
        if let Some(shard) = self.shard(shard) {
            let mut entries = shard.lock().unwrap_or_else(PoisonError::into_inner);
            self.keep(&mut entries, key, value);
        }
    }

    fn keep(&self, entries: &mut Generations<K, V>, key: K, value: V) {
        if entries.young.len() >= self.generation {
            entries.old = std::mem::take(&mut entries.young);
        }
        entries.young.insert(key, value);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap());
        shards.map(|entries| entries.young.len() + entries.old.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_holds_more_than_its_limit() {
        let cache = Cache::new(320);
        for number in 0..100_000_u32 {
            cache.insert(number.to_le_bytes()[0], number, number);
            assert!(number % 1_000 != 0 || cache.len() <= 320);
        }
        assert!(cache.len() <= 320 && cache.len() >= 160);
        assert_eq!(cache.get(99_999_u32.to_le_bytes()[0], &99_999), Some(99_999));
        assert_eq!(cache.get(0, &0), None);
    }

    #[test]
    fn what_is_used_stays() {
        let cache = Cache::new(64);
        cache.insert(0, 0, "kept");
        for number in 1..1_000 {
            cache.insert(0, number, "other");
            assert_eq!(cache.get(0, &0), Some("kept"));
        }
        assert_eq!(cache.get(0, &500), None);
    }
}

//! Random numbers that are reproducible from a seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Uses the seed in `HOLDPOINT_SEED`, or else this one. Prints the seed, so that a failure can
    /// be reproduced.
    pub fn from_seed_or(usual: u64) -> Random {
        let seed = match std::env::var("HOLDPOINT_SEED") {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("HOLDPOINT_SEED is not a number")),
            Err(_) => usual,
        };
        eprintln!("HOLDPOINT_SEED={seed}");
        Random(seed)
    }

    /// Uses the seed in `HOLDPOINT_SEED`, or else one that differs from run to run.
    pub fn from_clock() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Random::from_seed_or(u64::try_from(now.as_micros()).unwrap_or_default())
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.number() % end).unwrap_or_default()
    }

    /// True in this percentage of cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.number() % 100 < share
    }

    /// A random element of a non-empty slice.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A random subset of the elements, in order; each is chosen with this percentage.
    pub fn some_of<T: Clone>(&mut self, from: &[T], share: u64) -> Vec<T> {
        from.iter().filter(|_| self.percent(share)).cloned().collect()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}

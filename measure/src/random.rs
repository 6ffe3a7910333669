//! A deterministic random number generator (SplitMix64).

use sha2::{Digest, Sha256};

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A separate generator per subject, so that adding a package does not change the cases of
    /// others.
    pub(crate) fn of(seed: u64, subject: &str) -> Random {
        let digest = Sha256::digest(format!("{seed}\n{subject}").as_bytes());
        Random(u64::from_be_bytes(digest.first_chunk().copied().unwrap_or_default()))
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.number() % end).unwrap_or_default()
    }

    /// Picks a random element.
    pub(crate) fn pick<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        things.get(self.below(things.len()))
    }
}

//! Tokens that were verified, by their hash, for a few minutes. Bounded: a full half replaces the older half.

use super::CredentialHash;
use super::caller::VerifiedToken;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long a verified token is believed without verifying it again.
pub(super) const TOKEN_CACHE_SECONDS: i64 = 300;
/// The most tokens of each half.
const HALF: usize = 5_000;

#[derive(Debug, Default)]
pub(super) struct TokenCache(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<CredentialHash, Arc<VerifiedToken>>,
    older: HashMap<CredentialHash, Arc<VerifiedToken>>,
}

impl TokenCache {
    pub(super) fn find(&self, hash: &CredentialHash) -> Option<Arc<VerifiedToken>> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        halves.newer.get(hash).or_else(|| halves.older.get(hash)).cloned()
    }

    pub(super) fn keep(&self, hash: CredentialHash, token: Arc<VerifiedToken>) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.newer.len() >= HALF {
            halves.older = std::mem::take(&mut halves.newer);
        }
        halves.newer.insert(hash, token);
    }

    pub(super) fn forget(&self, hash: &CredentialHash) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        halves.newer.remove(hash);
        halves.older.remove(hash);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let halves = self.0.lock().unwrap();
        halves.newer.len() + halves.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::verified_token;

    #[test]
    fn the_cache_is_bounded_and_keeps_the_newest() {
        let cache = TokenCache::default();
        let token = Arc::new(verified_token());
        let hash = |number: usize| CredentialHash::of(number.to_string().as_bytes());
        for number in 0..3 * HALF {
            cache.keep(hash(number), Arc::clone(&token));
            assert!(cache.len() <= 2 * HALF);
        }
        assert!(cache.find(&hash(3 * HALF - 1)).is_some());
        assert!(cache.find(&hash(0)).is_none());
        cache.forget(&hash(3 * HALF - 1));
        assert!(cache.find(&hash(3 * HALF - 1)).is_none());
    }
}

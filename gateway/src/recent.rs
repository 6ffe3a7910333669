//! A cache keyed by the hash of a credential. Bounded: when the newer half is full, it replaces the
//! older half.

use crate::identity::CredentialHash;
use foldhash::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most values of each half.
const HALF: usize = 5_000;

#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<Halves<T>>);

#[derive(Debug)]
struct Halves<T> {
    newer: HashMap<CredentialHash, Arc<T>>,
    older: HashMap<CredentialHash, Arc<T>>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Mutex::new(Halves { newer: HashMap::default(), older: HashMap::default() }))
    }
}

impl<T> Recent<T> {
    pub(crate) fn find(&self, hash: &CredentialHash) -> Option<Arc<T>> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        halves.newer.get(hash).or_else(|| halves.older.get(hash)).cloned()
    }

    pub(crate) fn keep(&self, hash: CredentialHash, value: Arc<T>) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.newer.len() >= HALF {
            halves.older = std::mem::take(&mut halves.newer);
        }
        halves.newer.insert(hash, value);
    }

    pub(crate) fn forget(&self, hash: &CredentialHash) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        halves.newer.remove(hash);
        halves.older.remove(hash);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let halves = self.0.lock().unwrap();
        halves.newer.len() + halves.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_no_more_than_there_is_room_for() {
        let recent = Recent::default();
        let hash = |number: usize| CredentialHash::of(number.to_string().as_bytes());
        for number in 0..3 * HALF {
            recent.keep(hash(number), Arc::new(number));
            assert!(recent.len() <= 2 * HALF);
        }
        assert!(recent.find(&hash(3 * HALF - 1)).is_some());
        assert!(recent.find(&hash(0)).is_none());
        recent.forget(&hash(3 * HALF - 1));
        assert!(recent.find(&hash(3 * HALF - 1)).is_none());
    }
}

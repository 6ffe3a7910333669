//! Maps and sets ordered by key, with little code for each type they are instantiated with.
//!
//! `std::collections::BTreeMap` compiles to about four kilobytes for every pair of types, and there
//! are dozens of pairs: a seventh of the WebAssembly. These are vectors of bounded vectors, so that
//! hostile keys in the worst order still cost only a bounded move per insertion.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::{Flatten, Map};
use std::slice;
use std::vec;

/// The most items in one part: an insertion moves no more than these.
const MAX_ITEMS: usize = 64;

/// A map ordered by key.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// INVARIANT: no part is empty, and keys ascend from each item to the next.
    parts: Vec<Vec<(K, V)>>,
}

/// The position of an item, existing or to be inserted: the part, and the index in it.
type Spot = (usize, usize);

impl<K, V> SortedMap<K, V> {
    pub const fn new() -> Self {
        SortedMap { parts: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn iter(&self) -> Iter<'_, K, V> {
        self.parts.iter().flatten().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.parts.iter().flatten().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.parts.iter().flatten().map(|(_, value)| value)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.parts.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.parts.iter_mut().flatten().map(|(_, value)| value)
    }

    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.parts.into_iter().flatten().map(|(key, _)| key)
    }

    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.parts.into_iter().flatten().map(|(_, value)| value)
    }

    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        self.parts.iter_mut().for_each(|part| part.retain_mut(|(key, value)| is_kept(key, value)));
        self.parts.retain(|part| !part.is_empty());
    }

    fn at_mut(&mut self, (part, at): Spot) -> Option<&mut V> {
        self.parts.get_mut(part)?.get_mut(at).map(|(_, value)| value)
    }

    /// Inserts an item at its position. Returns its final position.
    fn put(&mut self, (part, at): Spot, item: (K, V)) -> Spot {
        let Some(items) = self.parts.get_mut(part) else {
            self.parts.push(vec![item]);
            return (self.parts.len() - 1, 0);
        };
        if items.len() < MAX_ITEMS {
            items.insert(at, item);
            return (part, at);
        }
        // Keys mostly arrive in order. Splitting at the end then keeps the parts full.
        let half = if at == MAX_ITEMS { MAX_ITEMS } else { MAX_ITEMS / 2 };
        let mut later = items.split_off(half);
        let spot = match at.checked_sub(half) {
            Some(at) => {
                later.insert(at, item);
                (part + 1, at)
            }
            None => {
                items.insert(at, item);
                (part, at)
            }
        };
        self.parts.insert(part + 1, later);
        spot
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Spot, Spot>
    where
        K: Borrow<Q>,
    {
        // Most keys come in order, behind all others.
        let (last, items) = (self.parts.len().saturating_sub(1), self.parts.last());
        if let Some((greatest, _)) = items.and_then(|items| items.last())
            && greatest.borrow() < key
        {
            return Err((last, items.map_or(0, Vec::len)));
        }
        let begins_by = |part: &Vec<(K, V)>| {
            part.first().is_some_and(|(first, _)| first.borrow().cmp(key) != Ordering::Greater)
        };
        let part = self.parts.partition_point(begins_by).saturating_sub(1);
        let items = self.parts.get(part).map_or(&[][..], Vec::as_slice);
        let found = items.binary_search_by(|(other, _)| other.borrow().cmp(key));
        found.map(|at| (part, at)).map_err(|at| (part, at))
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (part, at) = self.find(key).ok()?;
        self.parts.get(part)?.get(at).map(|(_, value)| value)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let spot = self.find(key).ok()?;
        self.at_mut(spot)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the previous value of the key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(spot) => self.at_mut(spot).map(|before| std::mem::replace(before, value)),
            Err(spot) => {
                self.put(spot, (key, value));
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (part, at) = self.find(key).ok()?;
        let items = self.parts.get_mut(part)?;
        let (_, value) = items.remove(at);
        if items.is_empty() {
            self.parts.remove(part);
        }
        Some(value)
    }

    /// The value of a key, inserting one if there is none.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let (part, at) = match self.find(&key) {
            Ok(spot) => spot,
            Err(spot) => self.put(spot, (key, value())),
        };
        #[expect(clippy::indexing_slicing, reason = "it was found there, or put there just now")]
        let (_, value) = &mut self.parts[part][at];
        value
    }

    /// The value of a key, inserting the default if there is none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }
}

/// See [`SortedMap::iter`].
pub type Iter<'m, K, V> =
    Map<Flatten<slice::Iter<'m, Vec<(K, V)>>>, fn(&'m (K, V)) -> (&'m K, &'m V)>;

impl<'m, K, V> IntoIterator for &'m SortedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = Flatten<vec::IntoIter<Vec<(K, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.parts.into_iter().flatten()
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, items: T) {
        for (key, value) in items {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(items: T) -> Self {
        let mut map = SortedMap::new();
        map.extend(items);
        map
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

/// A set ordered by item.
#[derive(Clone)]
pub struct SortedSet<T>(SortedMap<T, ()>);

impl<T> SortedSet<T> {
    pub const fn new() -> Self {
        SortedSet(SortedMap::new())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> SetIter<'_, T> {
        self.0.parts.iter().flatten().map(|(item, ())| item)
    }

    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        self.0.retain(|item, ()| is_kept(item));
    }
}

impl<T: Ord> SortedSet<T> {
    /// Returns whether the item was new.
    pub fn insert(&mut self, item: T) -> bool {
        self.0.insert(item, ()).is_none()
    }

    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(item)
    }

    /// Returns whether the item was present.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(item).is_some()
    }

    /// The first item that is not less than `item`.
    pub fn first_from<Q: Ord + ?Sized>(&self, item: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        let (Ok((part, at)) | Err((part, at))) = self.0.find(item);
        let within = self.0.parts.get(part).and_then(|items| items.get(at));
        let next = || self.0.parts.get(part + 1).and_then(|items| items.first());
        within.or_else(next).map(|(item, ())| item)
    }

    /// The items that `other` does not have.
    pub fn difference<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = &'s T> {
        self.iter().filter(|item| !other.contains(*item))
    }

    /// The items that `other` has too.
    pub fn intersection<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = &'s T> {
        self.iter().filter(|item| other.contains(*item))
    }

    /// The items that are in exactly one of the two sets.
    pub fn symmetric_difference(self, other: Self) -> Self {
        let mut different = self;
        for item in other {
            if !different.remove(&item) {
                different.insert(item);
            }
        }
        different
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|item| other.contains(item))
    }
}

/// See [`SortedSet::iter`].
pub type SetIter<'s, T> = Map<Flatten<slice::Iter<'s, Vec<(T, ())>>>, fn(&'s (T, ())) -> &'s T>;

impl<'s, T> IntoIterator for &'s SortedSet<T> {
    type Item = &'s T;
    type IntoIter = SetIter<'s, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = Map<Flatten<vec::IntoIter<Vec<(T, ())>>>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(item, ())| item)
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = SortedSet::new();
        set.extend(items);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for SortedSet<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        SortedSet::new()
    }
}

impl<T: PartialEq> PartialEq for SortedSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq> Eq for SortedSet<T> {}

impl<T: Hash> Hash for SortedSet<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|item| item.hash(state));
    }
}

impl<T: fmt::Debug> fmt::Debug for SortedSet<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self).finish()
    }
}

/// The order of some bytes, as that of slices: eight at a time, because keys are short and WebAssembly has no fast way to
/// compare a few bytes.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(crate) fn bytes_order(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    loop {
        let (left_word, left_after) = first_word(left_rest);
        let (right_word, right_after) = first_word(right_rest);
        // Zeros take the place of what is missing: where they pass for bytes, the shorter one is first.
        match left_word.cmp(&right_word) {
            Ordering::Equal if left_after.is_empty() || right_after.is_empty() => {
                return left.len().cmp(&right.len());
            }
            Ordering::Equal => (left_rest, right_rest) = (left_after, right_after),
            different => return different,
        }
    }
}

#[inline(always)]
fn first_word(bytes: &[u8]) -> (u64, &[u8]) {
    match bytes.split_first_chunk::<8>() {
        Some((word, after)) => (u64::from_be_bytes(*word), after),
        None => {
            let word = bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            (if bytes.is_empty() { 0 } else { word << (64 - 8 * bytes.len()) }, &[])
        }
    }
}

#[cfg(test)]
mod tests;

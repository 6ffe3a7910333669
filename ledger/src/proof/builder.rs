//! Builds proofs in one pass over the leaves of a tree, in memory that does not grow with the tree.

use super::{ConsistencyProof, InclusionProof};
use crate::tree::{Frontier, MAX_SIZE, NodeHash};
use std::ops::Range;

/// Why a proof cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("there is no line {index} in a tree of {size} lines")]
    NoSuchLine { index: u64, size: u64 },
    #[error("a tree of {new} lines cannot have grown from one of {old} lines")]
    Shrunk { old: u64, new: u64 },
    #[error("a tree has at most {MAX_SIZE} lines")]
    TooLarge,
    #[error("the lines before {kept} were dropped, and the proof needs the hashes of some of them")]
    Dropped { kept: u64 },
    #[error("the proof is about {size} lines, and there are only {seen}")]
    TooFew { size: u64, seen: u64 },
}

/// Builds an [`InclusionProof`] from all leaves of the tree, or from those after a frontier.
#[derive(Debug)]
pub struct InclusionBuilder {
    index: u64,
    size: u64,
    roots: Roots,
}

impl InclusionBuilder {
    /// `from` is the tree before the first leaf to be pushed.
    pub fn new(index: u64, size: u64, from: &Frontier) -> Result<Self, BuildError> {
        if size > MAX_SIZE {
            return Err(BuildError::TooLarge);
        }
        if index >= size {
            return Err(BuildError::NoSuchLine { index, size });
        }
        if index < from.size() {
            return Err(BuildError::Dropped { kept: from.size() });
        }
        let roots = Roots::new(inclusion_ranges(index, size), from)?;
        Ok(InclusionBuilder { index, size, roots })
    }

    /// Adds the next leaf. Leaves beyond the tree's size are ignored.
    pub fn push(&mut self, leaf: NodeHash) {
        self.roots.push(leaf);
    }

    pub fn finish(self) -> Result<InclusionProof, BuildError> {
        let path = self.roots.finish(self.size)?;
        Ok(InclusionProof { index: self.index, size: self.size, path })
    }
}

/// Builds a [`ConsistencyProof`] from all leaves of the new tree, or from those after a frontier.
#[derive(Debug)]
pub struct ConsistencyBuilder {
    old: u64,
    new: u64,
    roots: Roots,
}

impl ConsistencyBuilder {
    /// `from` is the tree before the first leaf to be pushed.
    pub fn new(old: u64, new: u64, from: &Frontier) -> Result<Self, BuildError> {
        if new > MAX_SIZE {
            return Err(BuildError::TooLarge);
        }
        if old > new {
            return Err(BuildError::Shrunk { old, new });
        }
        let roots = Roots::new(consistency_ranges(old, new), from)?;
        Ok(ConsistencyBuilder { old, new, roots })
    }

    /// Adds the next leaf. Leaves beyond the new tree's size are ignored.
    pub fn push(&mut self, leaf: NodeHash) {
        self.roots.push(leaf);
    }

    pub fn finish(self) -> Result<ConsistencyProof, BuildError> {
        let path = self.roots.finish(self.new)?;
        Ok(ConsistencyProof { old: self.old, new: self.new, path })
    }
}

/// The ranges of leaves under each sibling on the path from a leaf to the root.
fn inclusion_ranges(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut within = 0..size;
    while within.end - within.start > 1 {
        let middle = middle_of(&within);
        let (left, right) = (within.start..middle, middle..within.end);
        let sibling;
        (within, sibling) = if index < middle { (left, right) } else { (right, left) };
        ranges.push(sibling);
    }
    ranges.reverse();
    ranges
}

/// The ranges of leaves under the nodes from which the roots of both trees are computed.
fn consistency_ranges(old: u64, new: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if old == 0 || old == new {
        return ranges;
    }
    let mut within = 0..new;
    while old != within.end {
        let middle = middle_of(&within);
        let (left, right) = (within.start..middle, middle..within.end);
        let sibling;
        (within, sibling) = if old <= middle { (left, right) } else { (right, left) };
        ranges.push(sibling);
    }
    // The rest is the last subtree of the old tree. If that is the whole old tree, its root is
    // known.
    if within.start > 0 {
        ranges.push(within);
    }
    ranges.reverse();
    ranges
}

/// The split point of a tree of at least two leaves: the left part is the largest perfect subtree
/// that is smaller than the tree.
fn middle_of(range: &Range<u64>) -> u64 {
    range.start + (1 << (range.end - range.start - 1).ilog2())
}

/// Computes the roots over disjoint ranges of leaves.
#[derive(Debug)]
struct Roots {
    /// The ranges still needed, with their positions in the path, in reverse order.
    wanted: Vec<(usize, Range<u64>)>,
    found: Vec<(usize, NodeHash)>,
    seen: u64,
    /// The tree over the leaves seen so far of the next range.
    part: Frontier,
}

impl Roots {
    fn new(ranges: Vec<Range<u64>>, from: &Frontier) -> Result<Self, BuildError> {
        let mut wanted: Vec<_> = ranges.into_iter().enumerate().collect();
        wanted.sort_by_key(|(_, range)| std::cmp::Reverse(range.start));
        let part = Frontier::new();
        let mut roots = Roots { wanted, found: Vec::new(), seen: from.size(), part };
        let begun = roots.wanted.iter().rev().take_while(|(_, range)| range.start < from.size());
        for (place, range) in begun.cloned().collect::<Vec<_>>() {
            let part = part_before(&range, from);
            let part = part.ok_or(BuildError::Dropped { kept: from.size() })?;
            if part.size() == range.end - range.start {
                roots.found.push((place, part.root()));
                roots.wanted.pop();
            } else {
                roots.part = part;
            }
        }
        Ok(roots)
    }

    fn push(&mut self, leaf: NodeHash) {
        let at = self.seen;
        self.seen += 1;
        let Some((place, range)) = self.wanted.last() else { return };
        if !range.contains(&at) {
            return;
        }
        self.part.push(leaf);
        if self.seen == range.end {
            self.found.push((*place, self.part.root()));
            self.wanted.pop();
            self.part = Frontier::new();
        }
    }

    fn finish(mut self, size: u64) -> Result<Vec<NodeHash>, BuildError> {
        if self.seen < size {
            return Err(BuildError::TooFew { size, seen: self.seen });
        }
        self.found.sort_by_key(|(place, _)| *place);
        Ok(self.found.into_iter().map(|(_, root)| root).collect())
    }
}

/// The tree over those leaves of a range that are before a frontier; `None` if the frontier has
/// merged them with others.
///
/// A range starts at a multiple of the smallest power of two that is not below its length. So a
/// range that ends at or after the frontier starts at the same leaf as one of the frontier's
/// subtrees, and consists of that and all following subtrees. A range that ends before the frontier
/// is perfect: it equals one of the subtrees, or lies inside one.
fn part_before(range: &Range<u64>, from: &Frontier) -> Option<Frontier> {
    let mut start = 0;
    let mut roots = from.roots();
    while start < range.start {
        start += 1 << (from.size() - start).checked_ilog2()?;
        roots = roots.get(1..)?;
    }
    if start != range.start {
        return None;
    }
    let left = from.size() - start;
    if range.end >= from.size() {
        return Frontier::from_parts(left, roots);
    }
    let is_whole = range.end - start == 1 << left.checked_ilog2()?;
    is_whole.then(|| Frontier::from_parts(range.end - start, roots.get(..1)?)).flatten()
}

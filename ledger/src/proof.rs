//! Proofs over the Merkle tree according to RFC 9162 §2.1.3 and §2.1.4: that a line is in a tree,
//! and that a tree only grew.
//!
//! They are built in one pass over the leaves, and verified with a few hashes. [`document`]
//! combines them with their line and checkpoints.

use crate::tree::{Frontier, NodeHash, parent};
use serde::{Serialize, Serializer};

mod builder;
pub mod document;

pub use builder::{BuildError, ConsistencyBuilder, InclusionBuilder};
pub use document::{ProofDocument, ProofError, ProofSummary, check};

/// The most hashes accepted in a proof: no tree is deeper than its size has bits.
pub const MAX_PATH: usize = 64;

/// A proof that a leaf is in a tree: the roots of the sibling subtrees on the path to the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InclusionProof {
    pub index: u64,
    pub size: u64,
    #[serde(serialize_with = "base64_path")]
    pub path: Vec<NodeHash>,
}

/// A proof that a tree is a prefix of a larger one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsistencyProof {
    pub old: u64,
    pub new: u64,
    #[serde(serialize_with = "base64_path")]
    pub path: Vec<NodeHash>,
}

/// The result of verifying a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Proven {
    Yes,
    No,
}

impl Proven {
    fn when(holds: bool) -> Self {
        if holds { Proven::Yes } else { Proven::No }
    }
}

impl InclusionProof {
    /// Verifies that the leaf has this index in the tree with this root.
    pub fn verify(&self, leaf: NodeHash, root: NodeHash) -> Proven {
        if self.index >= self.size {
            return Proven::No;
        }
        // The positions of the node and of the last node in their level of the tree.
        let (mut place, mut last) = (self.index, self.size - 1);
        let mut node = leaf;
        for sibling in &self.path {
            if last == 0 {
                return Proven::No;
            }
            if is_right(place) || place == last {
                node = parent(*sibling, node);
                (place, last) = up_to_right(place, last);
            } else {
                node = parent(node, *sibling);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        Proven::when(last == 0 && node == root)
    }
}

impl ConsistencyProof {
    /// Verifies that the tree with the new root starts with the whole tree with the old one.
    pub fn verify(&self, old_root: NodeHash, new_root: NodeHash) -> Proven {
        if self.old > self.new {
            return Proven::No;
        }
        // RFC 9162 omits these two cases, which need no hashes: the empty tree is a prefix of every
        // tree, and a tree is a prefix of itself.
        if self.old == 0 {
            return Proven::when(self.path.is_empty() && old_root == Frontier::new().root());
        }
        if self.old == self.new {
            return Proven::when(self.path.is_empty() && old_root == new_root);
        }
        let (mut place, mut last) = (self.old - 1, self.new - 1);
        while is_right(place) {
            (place, last) = (place >> 1, last >> 1);
        }
        // If the old tree is one perfect subtree, the proof starts from its root without repeating
        // it.
        let mut path = self.path.iter().copied();
        let first = if self.old.is_power_of_two() { Some(old_root) } else { path.next() };
        let Some(first) = first else { return Proven::No };
        let (mut old_node, mut new_node) = (first, first);
        for sibling in path {
            if last == 0 {
                return Proven::No;
            }
            if is_right(place) || place == last {
                old_node = parent(sibling, old_node);
                new_node = parent(sibling, new_node);
                (place, last) = up_to_right(place, last);
            } else {
                new_node = parent(new_node, sibling);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        Proven::when(last == 0 && old_node == old_root && new_node == new_root)
    }
}

fn is_right(place: u64) -> bool {
    place & 1 == 1
}

/// Moves up the right edge, past the levels at which the node has no sibling, until it is a right
/// child or the root.
fn up_to_right(mut place: u64, mut last: u64) -> (u64, u64) {
    while !is_right(place) && place != 0 {
        (place, last) = (place >> 1, last >> 1);
    }
    (place, last)
}

fn base64_path<S: Serializer>(path: &[NodeHash], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(path.iter().map(NodeHash::base64))
}
#[cfg(test)]
mod tests;

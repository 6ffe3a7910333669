//! The Merkle tree of RFC 9162 §2.1 over the lines of a chain, stored as its frontier: only what
//! adding leaves requires.
//!
//! A leaf represents one line and is computed from the line's hash, so that a proof needs no other
//! bytes of the line.

use crate::digits;
use crate::record::Digest32;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The largest tree size that is accepted from a file. Sizes are JSON numbers, and every JSON
/// parser reads these exactly.
pub const MAX_SIZE: u64 = (1 << 53) - 1;

/// The maximum number of subtrees: one per bit of the size.
const MAX_ROOTS: usize = 64;

/// The hash of a node: a leaf, a subtree, or the whole tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeHash(pub [u8; 32]);

/// The text is not a node's hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a node of the tree is 32 bytes, in 64 lower-case hexadecimal digits or 44 characters of base64"
)]
pub struct BadNodeHash;

impl NodeHash {
    const ZERO: NodeHash = NodeHash([0; 32]);

    pub fn base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub fn from_base64(text: &str) -> Result<NodeHash, BadNodeHash> {
        let mut bytes = [0; 33];
        // The buffer is larger than 32 bytes because the decoder needs room for 44 characters. Only
        // the canonical encoding is accepted: exact padding, and no extra bits after the last byte.
        match STANDARD.decode_slice(text, &mut bytes) {
            Ok(32) => bytes.first_chunk().copied().map(NodeHash).ok_or(BadNodeHash),
            _ => Err(BadNodeHash),
        }
    }
}

impl fmt::Display for NodeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for NodeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NodeHash({self})")
    }
}

impl FromStr for NodeHash {
    type Err = BadNodeHash;

    fn from_str(text: &str) -> Result<Self, BadNodeHash> {
        digits::decode(text.as_bytes()).map(NodeHash).ok_or(BadNodeHash)
    }
}

impl Serialize for NodeHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Digest32(self.0).serialize(serializer)
    }
}

/// The leaf for a line, computed from the line's `hash`.
pub fn leaf(line_hash: &[u8; 32]) -> NodeHash {
    let mut bytes = [0; 33];
    // Hash all bytes in one call: a tree has two hashes per line.
    if let Some(place) = bytes.get_mut(1..) {
        place.copy_from_slice(line_hash);
    }
    NodeHash(Sha256::digest(bytes).into())
}

/// The leaf for an entry of any length.
pub fn leaf_of_entry(entry: &[u8]) -> NodeHash {
    NodeHash(Sha256::new_with_prefix([0]).chain_update(entry).finalize().into())
}

/// The parent of two nodes.
pub fn parent(left: NodeHash, right: NodeHash) -> NodeHash {
    let mut bytes = [1; 65];
    if let Some((_, nodes)) = bytes.split_first_mut() {
        let (first, second) = nodes.split_at_mut(32);
        first.copy_from_slice(&left.0);
        second.copy_from_slice(&right.0);
    }
    NodeHash(Sha256::digest(bytes).into())
}

/// A growing tree: its size, and the roots of the perfect subtrees it consists of.
#[derive(Clone)]
pub struct Frontier {
    size: u64,
    /// Largest first, one per bit set in the size; the remaining places are unused.
    roots: [NodeHash; MAX_ROOTS],
}

impl Frontier {
    pub fn new() -> Self {
        Frontier { size: 0, roots: [NodeHash::ZERO; MAX_ROOTS] }
    }

    /// The tree with this [`Frontier::size`] and these [`Frontier::roots`]; `None` if they are
    /// inconsistent.
    pub fn from_parts(size: u64, roots: &[NodeHash]) -> Option<Self> {
        if size > MAX_SIZE || roots.len() != size.count_ones() as usize {
            return None;
        }
        let mut frontier = Frontier { size, ..Self::new() };
        frontier.roots.iter_mut().zip(roots).for_each(|(place, root)| *place = *root);
        Some(frontier)
    }

    pub fn push(&mut self, leaf: NodeHash) {
        let roots = self.size.count_ones() as usize;
        // Like binary counting: each low bit that is set carries into the next, which is one merge.
        let merged = self.size.trailing_ones() as usize;
        let node =
            self.roots().iter().rev().take(merged).fold(leaf, |right, left| parent(*left, right));
        if let Some(place) = self.roots.get_mut(roots - merged) {
            *place = node;
        }
        self.size += 1;
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root of the whole tree. For an empty tree, the hash of the empty string.
    pub fn root(&self) -> NodeHash {
        let node = self.roots().iter().rev().copied().reduce(|right, left| parent(left, right));
        node.unwrap_or_else(|| NodeHash(Sha256::digest([]).into()))
    }

    /// The roots of the perfect subtrees, largest first.
    pub fn roots(&self) -> &[NodeHash] {
        self.roots.get(..self.size.count_ones() as usize).unwrap_or_default()
    }
}

impl Default for Frontier {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Frontier {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.roots() == other.roots()
    }
}

impl Eq for Frontier {}

impl fmt::Debug for Frontier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Frontier");
        shown.field("size", &self.size).field("roots", &self.roots()).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;

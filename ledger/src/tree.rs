//! The Merkle tree of RFC 9162 §2.1 over the lines of a chain, kept as its frontier: what the next leaves need, no more.
//!
//! A leaf stands for one line and is made of the line's own hash, so that a proof about a line needs no other bytes of it.

use crate::digits;
use crate::record::Digest32;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The largest tree that is read from a file. Sizes are JSON numbers there, and these are the ones that every reader of
/// JSON takes exactly.
pub const MAX_SIZE: u64 = (1 << 53) - 1;

/// As many subtrees as a size has bits.
const MAX_ROOTS: usize = 64;

/// The hash of a node: a leaf, a subtree, or the whole tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeHash(pub [u8; 32]);

/// Something that is not the text of a node's hash.
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
        // The decoder wants room for all that 44 characters can hold. One spelling counts: no missing or spare padding, no bits
        // behind the last byte.
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

/// The leaf of a line, by the line's `hash`.
pub fn leaf(line_hash: &[u8; 32]) -> NodeHash {
    let mut bytes = [0; 33];
    // One call with all bytes: a tree has two hashes a line.
    if let Some(place) = bytes.get_mut(1..) {
        place.copy_from_slice(line_hash);
    }
    NodeHash(Sha256::digest(bytes).into())
}

/// The leaf of an entry of any length.
pub fn leaf_of_entry(entry: &[u8]) -> NodeHash {
    NodeHash(Sha256::new_with_prefix([0]).chain_update(entry).finalize().into())
}

/// The node over two others.
pub fn parent(left: NodeHash, right: NodeHash) -> NodeHash {
    let mut bytes = [1; 65];
    if let Some((_, nodes)) = bytes.split_first_mut() {
        let (first, second) = nodes.split_at_mut(32);
        first.copy_from_slice(&left.0);
        second.copy_from_slice(&right.0);
    }
    NodeHash(Sha256::digest(bytes).into())
}

/// A tree that grows: its size and the roots of the perfect subtrees that it is made of.
#[derive(Clone)]
pub struct Frontier {
    size: u64,
    /// Largest first. One for each bit that is set in the size; what lies behind them is left over.
    roots: [NodeHash; MAX_ROOTS],
}

impl Frontier {
    pub fn new() -> Self {
        Frontier { size: 0, roots: [NodeHash::ZERO; MAX_ROOTS] }
    }

    /// The tree that [`Frontier::size`] and [`Frontier::roots`] told of; none where they cannot have been one.
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
        // As in counting: each low bit that is set is carried over into the next, a merge each.
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

    /// The root of the whole tree. That of an empty one is the hash of nothing.
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

//! Computes roots and proofs from the nodes of a tree, wherever they are stored: in memory, in
//! files, or behind a URL.

use super::tile::NodeSource;
use ledger::proof::{ConsistencyProof, InclusionProof};
use ledger::tree::{Frontier, NodeHash, parent};

/// The root of a tree's first `size` leaves.
pub fn root<S: NodeSource>(nodes: &mut S, size: u64) -> Result<NodeHash, S::Error> {
    if size == 0 {
        return Ok(Frontier::new().root());
    }
    range(nodes, 0, size)
}

/// The node over a range of leaves, split according to RFC 9162.
fn range<S: NodeSource>(nodes: &mut S, start: u64, end: u64) -> Result<NodeHash, S::Error> {
    let size = end - start;
    if size.is_power_of_two() && start.is_multiple_of(size) {
        let level = size.trailing_zeros();
        return nodes.node(level, start >> level);
    }
    let split = start + split_of(size);
    let left = range(nodes, start, split)?;
    let right = range(nodes, split, end)?;
    Ok(parent(left, right))
}

/// The largest power of two below a size.
fn split_of(size: u64) -> u64 {
    1 << (u64::BITS - 1 - (size - 1).leading_zeros())
}

/// Proves that a leaf is in a tree. The index must be below the size.
pub fn inclusion<S: NodeSource>(
    nodes: &mut S,
    index: u64,
    size: u64,
) -> Result<InclusionProof, S::Error> {
    let mut path = Vec::new();
    let (mut start, mut end) = (0, size);
    while end - start > 1 {
        let split = start + split_of(end - start);
        if index < split {
            path.push(range(nodes, split, end)?);
            end = split;
        } else {
            path.push(range(nodes, start, split)?);
            start = split;
        }
    }
    path.reverse();
    Ok(InclusionProof { index, size, path })
}

/// Proves that a tree is a prefix of a larger one.
pub fn consistency<S: NodeSource>(
    nodes: &mut S,
    old: u64,
    new: u64,
) -> Result<ConsistencyProof, S::Error> {
    let mut path = Vec::new();
    if old > 0 && old < new {
        let (mut start, mut end) = (0, new);
        // Whether the old tree covers the whole remaining left part.
        let mut is_whole_left = true;
        while old != end {
            let split = start + split_of(end - start);
            if old <= split {
                path.push(range(nodes, split, end)?);
                end = split;
            } else {
                path.push(range(nodes, start, split)?);
                start = split;
                is_whole_left = false;
            }
        }
        if !is_whole_left {
            path.push(range(nodes, start, end)?);
        }
        path.reverse();
    }
    Ok(ConsistencyProof { old, new, path })
}

#[cfg(test)]
mod tests {
    use super::super::tile::Nodes;
    use super::*;
    use ledger::proof::Proven;
    use ledger::tree::leaf_of_entry;

    #[test]
    fn every_proof_of_small_trees_verifies_and_none_for_another_leaf_or_tree() {
        let mut nodes = Nodes::default();
        let leaf = |number: u64| leaf_of_entry(&number.to_be_bytes());
        let mut roots = vec![Frontier::new().root()];
        for number in 0..67 {
            nodes.push(leaf(number));
            roots.push(root(&mut &nodes, number + 1).unwrap());
        }
        for size in 1..=67_u64 {
            for index in 0..size {
                let proof = inclusion(&mut &nodes, index, size).unwrap();
                assert_eq!(proof.verify(leaf(index), roots[size as usize]), Proven::Yes);
                assert_eq!(proof.verify(leaf(index + 1), roots[size as usize]), Proven::No);
            }
            for old in 0..=size {
                let proof = consistency(&mut &nodes, old, size).unwrap();
                let (old_root, new_root) = (roots[old as usize], roots[size as usize]);
                assert_eq!(proof.verify(old_root, new_root), Proven::Yes, "{old} {size}");
                assert_eq!(proof.verify(leaf(900), new_root), Proven::No, "{old} {size}");
            }
        }
    }
}

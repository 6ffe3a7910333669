use super::*;
use crate::tree::MAX_SIZE;
use crate::tree::tests::{grown, known_leaves, leaves, node, reference_middle, reference_root};

/// The tree sizes that are tested exhaustively.
const SIZES: usize = 40;

/// The tree sizes that are tested exhaustively with every number of dropped leaves.
const SIZES_AFTER_DROPS: usize = 24;

fn inclusion(index: u64, size: u64, leaves: &[NodeHash]) -> Result<InclusionProof, BuildError> {
    inclusion_from(0, index, size, leaves)
}

/// The proof if the first `dropped` leaves are only available as a frontier.
fn inclusion_from(
    dropped: usize,
    index: u64,
    size: u64,
    leaves: &[NodeHash],
) -> Result<InclusionProof, BuildError> {
    let mut builder = InclusionBuilder::new(index, size, &grown(&leaves[..dropped]))?;
    leaves[dropped..].iter().for_each(|leaf| builder.push(*leaf));
    builder.finish()
}

fn consistency(old: u64, new: u64, leaves: &[NodeHash]) -> Result<ConsistencyProof, BuildError> {
    consistency_from(0, old, new, leaves)
}

fn consistency_from(
    dropped: usize,
    old: u64,
    new: u64,
    leaves: &[NodeHash],
) -> Result<ConsistencyProof, BuildError> {
    let mut builder = ConsistencyBuilder::new(old, new, &grown(&leaves[..dropped]))?;
    leaves[dropped..].iter().for_each(|leaf| builder.push(*leaf));
    builder.finish()
}

/// PATH as defined in RFC 9162 §2.1.3.1.
fn reference_path(index: usize, leaves: &[NodeHash]) -> Vec<NodeHash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let middle = reference_middle(leaves.len());
    let (left, right) = leaves.split_at(middle);
    let (mut path, beside) = if index < middle {
        (reference_path(index, left), right)
    } else {
        (reference_path(index - middle, right), left)
    };
    path.push(reference_root(beside));
    path
}

/// SUBPROOF as defined in RFC 9162 §2.1.4.1.
fn reference_subproof(old: usize, leaves: &[NodeHash], is_whole: bool) -> Vec<NodeHash> {
    if old == leaves.len() {
        return if is_whole { Vec::new() } else { vec![reference_root(leaves)] };
    }
    let middle = reference_middle(leaves.len());
    let (left, right) = leaves.split_at(middle);
    let (mut path, beside) = if old <= middle {
        (reference_subproof(old, left, is_whole), right)
    } else {
        (reference_subproof(old - middle, right, false), left)
    };
    path.push(reference_root(beside));
    path
}

/// Wrong paths: each hash changed, removed, repeated or swapped with the next, and one hash too
/// many.
fn tampered(path: &[NodeHash]) -> Vec<Vec<NodeHash>> {
    let other = NodeHash([0x5a; 32]);
    let mut paths = vec![[path, &[other]].concat(), [&[other], path].concat()];
    for at in 0..path.len() {
        let edited = |edit: &dyn Fn(&mut Vec<NodeHash>)| {
            let mut path = path.to_vec();
            edit(&mut path);
            path
        };
        paths.push(edited(&|path| path[at].0[31] ^= 1));
        paths.push([&path[..at], &path[at + 1..]].concat());
        paths.push(edited(&|path| path.insert(at, path[at])));
        if at > 0 {
            paths.push(edited(&|path| path.swap(at - 1, at)));
        }
    }
    paths
}

#[test]
fn the_known_tree_has_its_known_inclusion_proofs() {
    let leaves = known_leaves();
    let check = |index: u64, size: u64, path: &[&str]| {
        let proof = inclusion(index, size, &leaves).unwrap();
        assert_eq!(proof.path, path.iter().map(|text| node(text)).collect::<Vec<_>>());
        let root = reference_root(&leaves[..size as usize]);
        assert_eq!(proof.verify(leaves[index as usize], root), Proven::Yes);
    };
    check(0, 1, &[]);
    check(
        0,
        8,
        &[
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    );
    check(
        5,
        8,
        &[
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    );
    check(2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]);
    check(
        1,
        5,
        &[
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    );
}

#[test]
fn the_known_tree_has_its_known_consistency_proofs() {
    let leaves = known_leaves();
    let check = |old: u64, new: u64, path: &[&str]| {
        let proof = consistency(old, new, &leaves).unwrap();
        assert_eq!(proof.path, path.iter().map(|text| node(text)).collect::<Vec<_>>());
        let root = |size: u64| reference_root(&leaves[..size as usize]);
        assert_eq!(proof.verify(root(old), root(new)), Proven::Yes);
    };
    check(1, 1, &[]);
    check(
        1,
        8,
        &[
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    );
    check(
        6,
        8,
        &[
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    );
    check(
        2,
        5,
        &[
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    );
}

#[test]
fn every_leaf_of_every_tree_is_proven_and_no_other_and_no_tampered_path() {
    let leaves = leaves(SIZES as u64);
    let roots: Vec<NodeHash> = (0..=SIZES).map(|size| reference_root(&leaves[..size])).collect();
    for size in 1..=SIZES {
        for index in 0..size {
            let proof = inclusion(index as u64, size as u64, &leaves[..size]).unwrap();
            assert_eq!(proof.path, reference_path(index, &leaves[..size]), "{index} of {size}");
            for (other, leaf) in leaves.iter().enumerate() {
                let expected = Proven::when(other == index);
                assert_eq!(
                    proof.verify(*leaf, roots[size]),
                    expected,
                    "{index} of {size}, {other}"
                );
            }
            for (other, root) in roots.iter().enumerate() {
                let expected = Proven::when(other == size);
                assert_eq!(
                    proof.verify(leaves[index], *root),
                    expected,
                    "{index} of {size}, {other}"
                );
            }
            for path in tampered(&proof.path) {
                let proof = InclusionProof { path, ..proof };
                assert_eq!(proof.verify(leaves[index], roots[size]), Proven::No, "{proof:?}");
            }
        }
    }
}

#[test]
fn a_proof_does_not_hold_at_another_index() {
    let leaves = leaves(SIZES as u64);
    for size in 1..=SIZES {
        let root = reference_root(&leaves[..size]);
        for index in 0..size as u64 {
            let proof = inclusion(index, size as u64, &leaves[..size]).unwrap();
            for other in (0..=size as u64).filter(|other| *other != index) {
                let moved = InclusionProof { index: other, ..proof.clone() };
                assert_eq!(moved.verify(leaves[index as usize], root), Proven::No, "{moved:?}");
            }
        }
    }
}

#[test]
fn every_tree_is_the_beginning_of_every_larger_one_and_of_no_other() {
    let leaves = leaves(SIZES as u64);
    let roots: Vec<NodeHash> = (0..=SIZES).map(|size| reference_root(&leaves[..size])).collect();
    let strange = NodeHash([0x5a; 32]);
    for new in 1..=SIZES {
        for old in 1..=new {
            let proof = consistency(old as u64, new as u64, &leaves[..new]).unwrap();
            let expected = reference_subproof(old, &leaves[..new], true);
            assert_eq!(proof.path, expected, "{old} to {new}");
            assert_eq!(proof.verify(roots[old], roots[new]), Proven::Yes, "{old} to {new}");
            for (other, root) in roots.iter().enumerate() {
                if other != old {
                    assert_eq!(proof.verify(*root, roots[new]), Proven::No, "{other}: {proof:?}");
                }
                if other != new {
                    assert_eq!(proof.verify(roots[old], *root), Proven::No, "{other}: {proof:?}");
                }
            }
            assert_eq!(proof.verify(strange, strange), Proven::when(old == new), "{proof:?}");
            for path in tampered(&proof.path) {
                let proof = ConsistencyProof { path, ..proof };
                assert_eq!(proof.verify(roots[old], roots[new]), Proven::No, "{proof:?}");
            }
        }
    }
}

#[test]
fn a_path_that_ends_below_the_root_of_a_deeper_tree_proves_nothing() {
    // Trees of the same depth can have paths of the same shape, which the signed sizes distinguish.
    let leaves = leaves(SIZES as u64);
    for new in 1..=SIZES {
        let deeper = 2 * new.next_power_of_two() as u64;
        let root = reference_root(&leaves[..new]);
        for index in 0..new {
            let proof = inclusion(index as u64, new as u64, &leaves).unwrap();
            let proof = InclusionProof { size: deeper, ..proof };
            assert_eq!(proof.verify(leaves[index], root), Proven::No, "{proof:?}");
        }
        for old in 1..=new {
            let proof = consistency(old as u64, new as u64, &leaves).unwrap();
            let proof = ConsistencyProof { new: deeper, ..proof };
            let old_root = reference_root(&leaves[..old]);
            assert_eq!(proof.verify(old_root, root), Proven::No, "{proof:?}");
        }
    }
}

#[test]
fn the_empty_tree_begins_every_tree_and_nothing_else_passes_for_it() {
    let leaves = leaves(5);
    let (empty, root) = (reference_root(&[]), reference_root(&leaves));
    let proof = consistency(0, 5, &leaves).unwrap();
    assert_eq!(proof.path, []);
    assert_eq!(proof.verify(empty, root), Proven::Yes);
    assert_eq!(proof.verify(root, root), Proven::No);
    let longer = ConsistencyProof { path: vec![root], ..proof };
    assert_eq!(longer.verify(empty, root), Proven::No);
    assert_eq!(consistency(0, 0, &[]).unwrap().verify(empty, empty), Proven::Yes);
}

#[test]
fn a_tree_that_shrank_is_never_proven() {
    let leaves = leaves(8);
    let root = |size: usize| reference_root(&leaves[..size]);
    for (old, new) in [(8_usize, 7_usize), (8, 4), (1, 0)] {
        let (old_size, new_size) = (old as u64, new as u64);
        let refused = BuildError::Shrunk { old: old_size, new: new_size };
        assert_eq!(consistency(old_size, new_size, &leaves), Err(refused));
        for path in [vec![], vec![root(old)], vec![root(new)]] {
            let proof = ConsistencyProof { old: old_size, new: new_size, path };
            assert_eq!(proof.verify(root(old), root(new)), Proven::No, "{proof:?}");
        }
    }
}

#[test]
fn leaves_after_the_tree_change_nothing() {
    let leaves = leaves(SIZES as u64);
    for size in 1..20_usize {
        for index in 0..size as u64 {
            let (all, exact) = (&leaves[..], &leaves[..size]);
            let size = size as u64;
            assert_eq!(inclusion(index, size, all), inclusion(index, size, exact));
            assert_eq!(consistency(index, size, all), consistency(index, size, exact));
        }
    }
}

#[test]
fn too_few_leaves_make_no_proof() {
    let leaves = leaves(8);
    for seen in 0..8_usize {
        let too_few = BuildError::TooFew { size: 8, seen: seen as u64 };
        for index in 0..8 {
            let inclusion = inclusion(index, 8, &leaves[..seen]);
            assert_eq!(inclusion, Err(too_few.clone()), "{index}");
            assert_eq!(consistency(index, 8, &leaves[..seen]), Err(too_few.clone()), "{index}");
        }
    }
}

#[test]
fn what_lies_outside_of_any_tree_is_refused_at_once() {
    let no_such_line = |index, size| Err(BuildError::NoSuchLine { index, size });
    assert_eq!(inclusion(0, 0, &[]), no_such_line(0, 0));
    assert_eq!(inclusion(3, 3, &leaves(3)), no_such_line(3, 3));
    let from = Frontier::new();
    assert!(InclusionBuilder::new(MAX_SIZE - 1, MAX_SIZE, &from).is_ok());
    assert!(ConsistencyBuilder::new(MAX_SIZE - 1, MAX_SIZE, &from).is_ok());
    let inclusion = InclusionBuilder::new(0, MAX_SIZE + 1, &from);
    assert_eq!(inclusion.unwrap_err(), BuildError::TooLarge);
    let consistency = ConsistencyBuilder::new(1, MAX_SIZE + 1, &from);
    assert_eq!(consistency.unwrap_err(), BuildError::TooLarge);
    // A proof can claim any size: verification terminates and fails.
    for path in [leaves(0), leaves(1), leaves(MAX_PATH as u64)] {
        let proof = InclusionProof { index: u64::MAX - 1, size: u64::MAX, path: path.clone() };
        assert_eq!(proof.verify(leaves(1)[0], leaves(2)[1]), Proven::No);
        let proof = ConsistencyProof { old: u64::MAX - 1, new: u64::MAX, path };
        assert_eq!(proof.verify(leaves(1)[0], leaves(2)[1]), Proven::No);
    }
}

/// Whether the frontier of the first `dropped` leaves keeps a hash: all that start at or after it,
/// and those over leaves that it has not merged with others.
fn is_kept(start: usize, end: usize, dropped: usize) -> bool {
    if end > dropped {
        return true;
    }
    let mut subtree = 0;
    while subtree < start {
        subtree += 1 << (dropped - subtree).ilog2();
    }
    subtree == start && (end == dropped || end - start == 1 << (dropped - start).ilog2())
}

/// The range of leaves under each hash of [`reference_path`] or [`reference_subproof`].
fn spans(leaf_or_old: usize, size: usize, is_old: bool) -> Vec<(usize, usize)> {
    let (mut spans, mut start, mut end) = (Vec::new(), 0, size);
    while if is_old { leaf_or_old != end } else { end - start > 1 } {
        let middle = start + reference_middle(end - start);
        if leaf_or_old < middle || (is_old && leaf_or_old == middle) {
            spans.push((middle, end));
            end = middle;
        } else {
            spans.push((start, middle));
            start = middle;
        }
    }
    if is_old && start > 0 {
        spans.push((start, end));
    }
    spans
}

#[test]
fn after_dropped_leaves_the_same_proof_is_made_or_none() {
    let leaves = leaves(SIZES_AFTER_DROPS as u64);
    let (mut made, mut refused) = (0, 0);
    for dropped in 0..=SIZES_AFTER_DROPS {
        for size in 1..=SIZES_AFTER_DROPS {
            for index in 0..size {
                let (index_number, size_number) = (index as u64, size as u64);
                let proof = inclusion_from(dropped, index_number, size_number, &leaves);
                let is_there = index >= dropped
                    && spans(index, size, false)
                        .iter()
                        .all(|(start, end)| is_kept(*start, *end, dropped));
                assert_eq!(
                    proof,
                    or_dropped(inclusion(index_number, size_number, &leaves), is_there, dropped)
                );

                let old = index + 1;
                let proof = consistency_from(dropped, old as u64, size_number, &leaves);
                let is_there = spans(old, size, true)
                    .iter()
                    .all(|(start, end)| is_kept(*start, *end, dropped));
                assert_eq!(
                    proof,
                    or_dropped(consistency(old as u64, size_number, &leaves), is_there, dropped)
                );
                if is_there { made += 1 } else { refused += 1 }
            }
        }
    }
    assert!(made > 1000 && refused > 1000, "{made} {refused}");
}

/// The expected proof after leaves were dropped.
fn or_dropped<P>(
    whole: Result<P, BuildError>,
    is_there: bool,
    dropped: usize,
) -> Result<P, BuildError> {
    if is_there { whole } else { Err(BuildError::Dropped { kept: dropped as u64 }) }
}

#[test]
fn what_was_kept_is_proven_against_what_was_signed_when_it_was_dropped() {
    // The important cases: every remaining line, and growth from every size since the drop.
    let leaves = leaves(SIZES_AFTER_DROPS as u64);
    for dropped in 0..SIZES_AFTER_DROPS {
        for size in dropped + 1..=SIZES_AFTER_DROPS {
            for index in dropped..size {
                let proof = inclusion_from(dropped, index as u64, size as u64, &leaves).unwrap();
                let root = reference_root(&leaves[..size]);
                assert_eq!(proof.verify(leaves[index], root), Proven::Yes);
            }
            for old in dropped..=size {
                let proof = consistency_from(dropped, old as u64, size as u64, &leaves).unwrap();
                let (old, new) = (reference_root(&leaves[..old]), reference_root(&leaves[..size]));
                assert_eq!(proof.verify(old, new), Proven::Yes);
            }
        }
    }
}

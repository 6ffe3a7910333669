use super::*;

/// The leaves of Certificate Transparency's well-known test tree.
pub(crate) fn known_leaves() -> Vec<NodeHash> {
    let texts = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    texts.iter().map(|text| hashed(&[&[0], &hex::decode(text).unwrap()])).collect()
}

/// Any number of distinct leaves.
pub(crate) fn leaves(count: u64) -> Vec<NodeHash> {
    (0..count).map(|number| hashed(&[b"leaf", &number.to_be_bytes()])).collect()
}

/// The root of a tree as defined in RFC 9162, without using the code under test.
pub(crate) fn reference_root(leaves: &[NodeHash]) -> NodeHash {
    match leaves {
        [] => hashed(&[]),
        [leaf] => *leaf,
        leaves => {
            let (left, right) = leaves.split_at(reference_middle(leaves.len()));
            hashed(&[&[1], &reference_root(left).0, &reference_root(right).0])
        }
    }
}

/// The largest power of two below a size.
pub(crate) fn reference_middle(size: usize) -> usize {
    (0..).map(|power| 1 << power).take_while(|middle| *middle < size).last().unwrap()
}

pub(crate) fn grown(leaves: &[NodeHash]) -> Frontier {
    let mut frontier = Frontier::new();
    leaves.iter().for_each(|leaf| frontier.push(*leaf));
    frontier
}

pub(crate) fn node(hexadecimal: &str) -> NodeHash {
    hexadecimal.parse().unwrap()
}

fn hashed(parts: &[&[u8]]) -> NodeHash {
    NodeHash(Sha256::digest(parts.concat()).into())
}

#[test]
fn the_known_tree_has_its_known_roots() {
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut frontier = Frontier::new();
    assert_eq!(frontier.root(), node(roots[0]));
    for (leaf, root) in known_leaves().into_iter().zip(&roots[1..]) {
        frontier.push(leaf);
        assert_eq!(frontier.root(), node(root), "{} leaves", frontier.size());
    }
    assert_eq!(frontier.size(), 8);
}

#[test]
fn a_leaf_is_marked_and_holds_the_hash_of_its_line() {
    let line_hash: [u8; 32] = std::array::from_fn(|at| at as u8);
    let expected = "699cacdb4c39d8e0bb1223352765a7f7acdc51dec6694f7b54c3d0a47f0cc409";
    assert_eq!(leaf(&line_hash), node(expected));
    assert_ne!(leaf(&[0; 32]), leaf(&[1; 32]));
}

#[test]
fn every_size_has_the_root_of_the_definition() {
    let leaves = leaves(70);
    for size in 0..=leaves.len() {
        assert_eq!(grown(&leaves[..size]).root(), reference_root(&leaves[..size]), "{size} leaves");
    }
}

#[test]
fn another_order_is_another_tree() {
    let mut leaves = leaves(70);
    let root = grown(&leaves).root();
    for at in 1..leaves.len() {
        leaves.swap(at - 1, at);
        assert_ne!(grown(&leaves).root(), root, "{at}");
        leaves.swap(at - 1, at);
    }
}

#[test]
fn roots_are_the_perfect_subtrees_largest_first() {
    let leaves = leaves(13);
    let expected = [&leaves[..8], &leaves[8..12], &leaves[12..]].map(reference_root);
    assert_eq!(grown(&leaves).roots(), expected);
}

#[test]
fn a_tree_goes_on_from_its_parts() {
    let leaves = leaves(70);
    for size in 0..=leaves.len() {
        let before = grown(&leaves[..size]);
        let mut after = Frontier::from_parts(before.size(), before.roots()).unwrap();
        assert_eq!(after, before);
        leaves[size..].iter().for_each(|leaf| after.push(*leaf));
        assert_eq!(after, grown(&leaves), "from {size} leaves");
    }
}

#[test]
fn what_was_merged_does_not_tell_trees_apart() {
    // The unused places of a tree of four leaves contain remains of its smaller subtrees.
    let grown = grown(&leaves(4));
    let read = Frontier::from_parts(4, grown.roots()).unwrap();
    assert_eq!(grown, read);
    assert_eq!(format!("{grown:?}"), format!("{read:?}"));
    let other = Frontier::from_parts(4, &leaves(1)).unwrap();
    assert_ne!(grown, other);
    assert_ne!(grown, Frontier::from_parts(8, grown.roots()).unwrap());
}

#[test]
fn parts_that_no_tree_has_are_refused() {
    let roots = leaves(64);
    for size in [0_u64, 1, 2, 3, 7, 8, MAX_SIZE] {
        let count = size.count_ones() as usize;
        assert!(Frontier::from_parts(size, &roots[..count]).is_some(), "{size}");
        assert!(Frontier::from_parts(size, &roots[..count + 1]).is_none(), "{size}");
        if count > 0 {
            assert!(Frontier::from_parts(size, &roots[..count - 1]).is_none(), "{size}");
        }
    }
}

#[test]
fn the_largest_size_is_read_and_grows_and_one_more_is_not_read() {
    let root = leaves(1);
    assert!(Frontier::from_parts(MAX_SIZE + 1, &root).is_none());
    assert!(Frontier::from_parts(u64::MAX, &leaves(64)).is_none());
    let mut largest = Frontier::from_parts(MAX_SIZE, &leaves(53)).unwrap();
    largest.push(root[0]);
    assert_eq!(largest.size(), MAX_SIZE + 1);
    assert_eq!(largest.roots().len(), 1);
}

#[test]
fn a_hash_has_one_text_of_each_kind() {
    let hash = leaves(1)[0];
    assert_eq!(hash.to_string().parse(), Ok(hash));
    assert_eq!(NodeHash::from_base64(&hash.base64()), Ok(hash));
    assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{hash}\""));
    assert_eq!(NodeHash([0; 32]).base64(), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");

    let hexadecimal = "ab".repeat(32);
    assert!(hexadecimal.parse::<NodeHash>().is_ok());
    for text in
        [&hexadecimal.to_uppercase(), &hexadecimal[1..], &"ab".repeat(33), &"zz".repeat(32), ""]
    {
        assert_eq!(text.parse::<NodeHash>(), Err(BadNodeHash), "{text}");
    }
    for text in [
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", // Bits behind the last byte.
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",  // No padding.
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", // 33 bytes.
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", // 31 bytes.
        "-_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", // The alphabet for addresses.
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
        "",
    ] {
        assert_eq!(NodeHash::from_base64(text), Err(BadNodeHash), "{text}");
    }
}

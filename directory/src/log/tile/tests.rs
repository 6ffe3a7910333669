use super::*;
use ledger::tree::{Frontier, leaf_of_entry};

fn tree(size: u64) -> Nodes {
    let mut nodes = Nodes::default();
    for number in 0..size {
        nodes.push(leaf_of_entry(&number.to_be_bytes()));
    }
    nodes
}

#[test]
fn paths_are_those_of_the_specification() {
    let check = |level, index, width, path: &str| {
        let tile = Tile { level, index, width };
        assert_eq!(tile.to_string(), path);
        assert_eq!(Tile::parse(path), Some(tile));
    };
    check(TileLevel::Hashes(0), 1_234_067, 256, "tile/0/x001/x234/067");
    check(TileLevel::Hashes(2), 7, 3, "tile/2/007.p/3");
    check(TileLevel::Entries, 0, 256, "tile/entries/000");
    check(TileLevel::Entries, 1_000, 255, "tile/entries/x001/000.p/255");
}

#[test]
fn other_paths_are_refused() {
    for path in [
        "tile/0/7",
        "tile/0/0007",
        "tile/00/007",
        "tile/7/000",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/007",
        "tile/0/x000/001",
        "tile/0/001/002",
        "tile/0/x001/x002",
        "tile/0/../000",
        "tile/data/000",
        "tile/0/x9/000",
        "tile/0/x999/x999/x999/x999/x999/x999/999",
    ] {
        assert_eq!(Tile::parse(path), None, "{path}");
    }
}

#[test]
fn new_tiles_are_the_partial_ones_and_those_that_were_completed() {
    let paths = |old, new| -> Vec<String> {
        Tile::new_tiles(old, new).iter().map(ToString::to_string).collect()
    };
    assert_eq!(paths(0, 0), Vec::<String>::new());
    assert_eq!(paths(0, 3), ["tile/entries/000.p/3", "tile/0/000.p/3"]);
    assert_eq!(paths(3, 3), Vec::<String>::new());
    assert_eq!(
        paths(200, 300),
        [
            "tile/entries/000",
            "tile/entries/001.p/44",
            "tile/0/000",
            "tile/0/001.p/44",
            "tile/1/000.p/1"
        ]
    );
    assert_eq!(paths(256, 257), ["tile/entries/001.p/1", "tile/0/001.p/1"]);
}

#[test]
fn every_node_is_found_in_its_tile() {
    let size = 70_000;
    let nodes = tree(size);
    for (level, place) in [(0, 0), (0, 69_999), (1, 34_999), (7, 3), (8, 200), (9, 135), (16, 0)] {
        let (tile, span) = tile_of(level, place, size);
        let TileLevel::Hashes(tile_level) = tile.level else { panic!() };
        let bytes = nodes.tile(tile_level, tile.index, tile.width).unwrap();
        assert_eq!(node_in_tile(&bytes, span), (&nodes).node(level, place).ok(), "{level} {place}");
    }
}

#[test]
fn all_nodes_give_the_root_of_the_frontier() {
    for size in [1, 2, 3, 255, 256, 257, 1_000] {
        let mut frontier = Frontier::new();
        (0..size).for_each(|number: u64| frontier.push(leaf_of_entry(&number.to_be_bytes())));
        let nodes = tree(size);
        assert_eq!(super::super::proof::root(&mut &nodes, size), Ok(frontier.root()), "{size}");
    }
}

#[test]
fn a_bundle_is_read_as_it_was_written_and_in_no_other_way() {
    let entries = vec![b"{}".to_vec(), Vec::new(), vec![b'x'; MAX_ENTRY_BYTES]];
    let bundle = write_bundle(&entries).unwrap();
    assert_eq!(read_bundle(&bundle, 3), Some(entries));
    assert_eq!(read_bundle(&bundle, 2), None);
    assert_eq!(read_bundle(&bundle, 4), None);
    assert_eq!(read_bundle(&bundle[..bundle.len() - 1], 3), None);
    assert_eq!(write_bundle(&[vec![b'x'; MAX_ENTRY_BYTES + 1]]), None);
}

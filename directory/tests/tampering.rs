//! Makes a thousand random changes to a published log, each without its key, and checks that a
//! verifier detects every one.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this file is a test"
)]

use contract::time::Timestamp;
use directory::crawl::{Manifest, Observation, Outcome};
use directory::log::reader::{LogFolder, LogReader};
use directory::log::tile::{Nodes, Tile, TileLevel, read_bundle, write_bundle};
use directory::model::Model;
use directory::writer::{Folders, LogWriter};
use ledger::note::Keyring;
use ledger::tree::leaf_of_entry;
use std::fs;
use std::path::{Path, PathBuf};
use testing::Random;

const CHANGES: usize = 1_000;
const NOW: Timestamp = Timestamp(1_790_000_000_000);

/// A log of a few hundred entries: more than one bundle.
fn publish(folder: &Path) -> (Folders, Keyring) {
    let folders = Folders { data: folder.join("data"), keys: folder.join("keys") };
    let mut writer = LogWriter::open(&folders, "https://d.example", None, NOW).expect("a new log");
    for number in 0..90 {
        for release in ["1.0.0", "1.1.0"] {
            let tool = format!(
                r#"{{"tools":[{{"name":"read","description":"reads {release}","inputSchema":{{"type":"object"}}}}]}}"#
            );
            let seen = Observation {
                server: format!("npm:server-{number}").parse().expect("an id"),
                release: Some(release.to_owned()),
                at: NOW,
                outcome: Outcome::Listed(tool),
                cause: None,
                manifest: Manifest { version: Some(release.to_owned()), ..Manifest::default() },
                launch: Vec::new(),
            };
            writer.record(&seen, NOW).expect("it is recorded");
        }
    }
    writer.publish().expect("it is published");
    let key = fs::read_to_string(folders.log().join("key")).expect("the public key");
    (folders, Keyring::from_text(&key).expect("a key"))
}

/// Verifies a log from outside: signature, tree, tiles and histories.
fn verify(log: &Path, keys: &Keyring) -> Result<u64, String> {
    let mut reader = LogReader::new(LogFolder(log.to_owned()), keys.clone());
    let (checkpoint, _) = reader.checkpoint().map_err(|fault| fault.to_string())?;
    let mut model = Model::default();
    let mut heard =
        |_: u64, entry: &[u8]| model.apply(entry).map(|_| ()).map_err(|misfit| misfit.to_string());
    reader.verify(&checkpoint, &mut heard).map_err(|fault| fault.to_string())?;
    Ok(checkpoint.size)
}

fn files(log: &Path, size: u64) -> Vec<PathBuf> {
    let tiles = Tile::new_tiles(0, size).into_iter().map(|tile| log.join(tile.to_string()));
    tiles.chain([log.join("checkpoint")]).collect()
}

fn change(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => changed.truncate(at),
        1 => changed.insert(at, b'0'),
        2 => drop(changed.remove(at)),
        3 => changed.swap(at, random.below(bytes.len())),
        _ => changed[at] ^= 1 << random.below(8),
    }
    changed
}

#[test]
fn every_change_of_a_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folders, keys) = publish(folder.path());
    let log = folders.log();
    let size = verify(&log, &keys).expect("the log holds");
    assert!(size > 256, "{size}");
    let files = files(&log, size);
    let mut random = Random::new(21);
    let mut made = 0;
    while made < CHANGES {
        let path = &files[random.below(files.len())];
        let bytes = fs::read(path).expect("a file");
        let changed = change(&bytes, &mut random);
        if changed == bytes {
            continue;
        }
        fs::write(path, &changed).expect("it can be changed");
        assert!(verify(&log, &keys).is_err(), "change {made} of {}", path.display());
        fs::write(path, &bytes).expect("it can be put back");
        made += 1;
    }
    verify(&log, &keys).expect("the log holds again");
}

/// An attacker who has the files but not the key can build a consistent tree, but cannot sign its
/// checkpoint.
#[test]
fn a_verdict_that_is_changed_with_all_its_hashes_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folders, keys) = publish(folder.path());
    let log = folders.log();
    let size = verify(&log, &keys).expect("the log holds");
    let bundle = Tile { level: TileLevel::Entries, index: 0, width: 256 };
    let path = log.join(bundle.to_string());
    let mut entries = read_bundle(&fs::read(&path).expect("a bundle"), 256).expect("entries");
    let text = String::from_utf8(entries[7].clone()).expect("text");
    assert!(text.contains("REVIEW"), "{text}");
    entries[7] = text.replace("REVIEW", "ALLOW").into_bytes();
    fs::write(&path, write_bundle(&entries).expect("a bundle")).expect("it is written");
    let rest = Tile { level: TileLevel::Entries, index: 1, width: (size - 256) as u16 };
    let rest = fs::read(log.join(rest.to_string())).expect("a bundle");
    entries.extend(read_bundle(&rest, (size - 256) as u16).expect("entries"));
    let mut nodes = Nodes::default();
    entries.iter().for_each(|entry| nodes.push(leaf_of_entry(entry)));
    for tile in Tile::new_tiles(0, size) {
        if let TileLevel::Hashes(level) = tile.level {
            let bytes = nodes.tile(level, tile.index, tile.width).expect("a tile");
            fs::write(log.join(tile.to_string()), bytes).expect("it is written");
        }
    }
    let found = verify(&log, &keys).expect_err("it is found");
    assert!(found.contains("entry") || found.contains("root"), "{found}");
}

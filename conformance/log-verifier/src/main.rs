//! Verifies a directory's log from its URL with crates that are not Holdpoint's: `signed_note` checks the checkpoint's
//! signature, `tlog_tiles` the tiles and a proof of inclusion for every entry, and a proof of consistency with every
//! earlier size that is named.
//!
//! `log-verifier URL KEY [SIZE ROOT]…`; pages are fetched with `curl`.

use signed_note::{Note, StandardVerifier, VerifierList};
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::process::Command;
use tlog_tiles::{
    Checkpoint, Hash, Tile, TileHashReader, TileReader, check_record, check_tree, prove_record,
    prove_tree, record_hash,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Log {
    url: String,
    /// Tiles that were fetched, by their paths.
    fetched: RefCell<HashMap<String, Vec<u8>>>,
}

impl Log {
    fn fetch(&self, path: &str) -> Result<Vec<u8>> {
        let url = format!("{}/log/{path}", self.url);
        let fetched = Command::new("curl").args(["-fsS", "--max-time", "60", &url]).output()?;
        if !fetched.status.success() {
            return Err(format!("{url}: {}", String::from_utf8_lossy(&fetched.stderr)).into());
        }
        Ok(fetched.stdout)
    }

    /// The entries of the bundle with this number: each after its length in two bytes.
    fn entries(&self, bundle: u64, size: u64) -> Result<Vec<Vec<u8>>> {
        let width = u32::try_from((size - bundle * 256).min(256))?;
        let path = Tile::new(8, 0, bundle, width, true).path();
        let bytes = self.fetch(&path.replacen("tile/8/data/", "tile/entries/", 1))?;
        let (mut rest, mut entries) = (bytes.as_slice(), Vec::new());
        while let [high, low, following @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let entry = following.get(..length).ok_or("an entry is cut")?;
            entries.push(entry.to_vec());
            rest = &following[length..];
        }
        if !rest.is_empty() || entries.len() != width as usize {
            return Err(format!("bundle {bundle} does not have {width} entries").into());
        }
        Ok(entries)
    }
}

impl TileReader for Log {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> std::result::Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let read = |tile: &Tile| {
            // The crate's paths have the height of a tile in them, which C2SP's do not.
            let path = tile.path().replacen("tile/8/", "tile/", 1);
            if let Some(tile) = self.fetched.borrow().get(&path) {
                return Ok(tile.clone());
            }
            let bytes = self.fetch(&path).map_err(|_| tlog_tiles::Error::InvalidTile)?;
            self.fetched.borrow_mut().insert(path, bytes.clone());
            Ok(bytes)
        };
        tiles.iter().map(read).collect()
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(key)) = (arguments.next(), arguments.next()) else {
        return Err("log-verifier URL KEY [SIZE ROOT]…".into());
    };
    let url = url.trim_end_matches('/').to_owned();
    let log = Log { url, fetched: RefCell::default() };
    let note = Note::from_bytes(&log.fetch("checkpoint")?)?;
    let verifier = StandardVerifier::new(key.trim()).map_err(|error| format!("{error:?}"))?;
    note.verify(&VerifierList::new(vec![Box::new(verifier)]))?;
    let checkpoint = Checkpoint::from_bytes(note.text()).map_err(|error| error.to_string())?;
    let (size, root) = (checkpoint.size(), *checkpoint.hash());
    let reader = TileHashReader::new(size, root, &log);
    for bundle in 0..size.div_ceil(256) {
        for (number, entry) in (bundle * 256..).zip(log.entries(bundle, size)?) {
            let proof = prove_record(size, number, &reader)?;
            check_record(&proof, size, root, number, record_hash(&entry))
                .map_err(|error| format!("entry {number}: {error}"))?;
        }
    }
    println!(
        "{}: {size} entries, each proved to be in the signed tree {root}",
        checkpoint.origin()
    );
    while let (Some(earlier), Some(its_root)) = (arguments.next(), arguments.next()) {
        let (earlier, its_root) = (earlier.parse()?, Hash::parse_hash(&its_root)?);
        let proof = prove_tree(size, earlier, &reader)?;
        check_tree(&proof, size, root, earlier, its_root)?;
        println!("it extends the {earlier} entries with the root {its_root}");
    }
    Ok(())
}

//! Changes a thousand random bytes of the folder, one at a time: every change is detected.

use super::*;
use ledger::verify::verify;
use store::receipts::{DiskFolder, public_keys};
use testing::Random;

const EDITS: u64 = 1_000;

/// Of how many edits the binary verifies one.
const BINARY_STEP: u64 = 20;

#[test]
fn a_thousand_changed_bytes_are_all_found() {
    let bench = Bench::new();
    let home = Home::open(&bench.home()).unwrap();
    act(&home, 0);
    write_calls(&home, 0..5);
    bench.run(["receipts", "verify"]).exits(0);
    let mut random = Random::from_clock();
    let files = files_of(&home.receipts_path());
    assert!(files.len() >= 10, "{files:?}");
    let total: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let keys = public_keys(&home.receipts_public_key_path()).unwrap();
    let folder = DiskFolder::new(&home.receipts_path());
    for edit in 0..EDITS {
        // Every second edit first picks a file: checkpoints are small, and would rarely be hit.
        let (path, bytes, at) = match edit % 2 {
            0 => at_offset(&files, random.number() % total),
            _ => {
                let (path, bytes) = &files[random.below(files.len())];
                (path, bytes, random.below(bytes.len()))
            }
        };
        let mut edited = bytes.clone();
        edited[at] ^= 1 + random.below(255) as u8;
        fs::write(path, &edited).unwrap();
        let what = format!("edit {edit}: byte {at} of {} is {}", path.display(), edited[at]);
        let chain = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let report = verify(&folder, &keys, &[], &|_| {}).unwrap();
        let mut named = report.problems.iter().filter_map(|problem| problem.chain.as_ref());
        assert!(named.any(|name| name.as_str() == chain), "{what}\n{:?}", report.problems);
        if edit % BINARY_STEP == 0 {
            eprintln!("{what}");
            let answer = bench.run(["receipts", "verify"]).exits(14);
            answer.says(&format!("✗ chain {chain}, segment ")).says("does not verify: ");
        }
        fs::write(path, bytes).unwrap();
    }
    bench.run(["receipts", "verify"]).exits(0);
}

type Files = Vec<(PathBuf, Vec<u8>)>;

/// All files of the folder, in order.
fn files_of(folder: &Path) -> Files {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = |path: PathBuf| match path.is_dir() {
        true => files_of(&path),
        false => vec![(path.clone(), fs::read(path).unwrap())],
    };
    paths.into_iter().flat_map(files).collect()
}

fn at_offset(files: &Files, mut offset: u64) -> (&PathBuf, &Vec<u8>, usize) {
    for (path, bytes) in files {
        if offset < bytes.len() as u64 {
            return (path, bytes, offset as usize);
        }
        offset -= bytes.len() as u64;
    }
    panic!("past the end");
}

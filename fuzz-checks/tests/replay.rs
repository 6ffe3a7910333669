//! Runs every fuzz target on its seeds, on earlier failing inputs, and on a fixed number of
//! mutations of both.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of this file is a test; what it prints is shown where a check fails"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use testing::Random;

/// The number of mutated inputs per target.
const MUTATIONS: usize = 500;
/// Larger seeds are replayed but not mutated: a debug build takes seconds for each.
const MUTATED_BYTES: usize = 8 * 1024;
/// Bytes that are significant to parsers.
const INSERTED: &[u8] = b"\"\\{}[],:0-e\0\xff\n";

macro_rules! replays {
    ($($target:ident),+ $(,)?) => {
        /// The targets that this file replays.
        const TARGETS: &[&str] = &[$(stringify!($target)),+];
        $(#[test]
        fn $target() {
            replay(stringify!($target), |bytes| fuzz_checks::$target::run(bytes));
        })+
    };
}

replays!(
    attestation,
    canonical,
    confinement,
    consult,
    diff,
    directory,
    envelope,
    hosts_json,
    hosts_toml,
    hosts_yaml,
    installed,
    ledger,
    lines,
    markers,
    network,
    pins_line,
    proofs,
    reader,
    redirect_uris,
    screen,
    sdk_session,
    sign_in_challenge,
    sign_in_metadata,
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

#[test]
fn every_fuzz_target_is_replayed() {
    let folder = root().join("fuzz/fuzz_targets");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("the targets' folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, TARGETS);
}

fn replay(target: &str, run: impl Fn(&[u8])) {
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "no input for `{target}`");
    for (name, input) in &inputs {
        // Only displayed if the check panics.
        eprintln!("{name}");
        run(input);
    }
    let small: Vec<&[u8]> = inputs
        .iter()
        .map(|(_, input)| input.as_slice())
        .filter(|input| !input.is_empty() && input.len() <= MUTATED_BYTES)
        .collect();
    let mut random = Random::new(0);
    for _ in 0..MUTATIONS {
        let Some(seed) = small.get(random.below(small.len())) else { return };
        let mutated = mutate(seed, &small, &mut random);
        eprintln!("{}", String::from_utf8_lossy(&mutated).escape_debug());
        run(&mutated);
    }
}

/// The files that `scripts/fuzz` starts from.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds = tempfile::tempdir().expect("a folder");
    let made = Command::new("python3")
        .arg(root().join("scripts/fuzz-seeds"))
        .arg(seeds.path())
        .status()
        .expect("python3 makes the seeds");
    assert!(made.success());
    let own = seeds.path().join(target);
    let first = if own.is_dir() { own } else { root().join("conformance") };
    let mut inputs = Vec::new();
    for folder in [first, root().join("fuzz/regressions").join(target)] {
        read_all(&folder, &mut inputs);
    }
    inputs.sort();
    inputs
}

fn read_all(folder: &Path, inputs: &mut Vec<(String, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            read_all(&path, inputs);
        } else {
            inputs.push((path.display().to_string(), std::fs::read(&path).expect("a seed")));
        }
    }
}

fn mutate(seed: &[u8], others: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, INSERTED[random.below(INSERTED.len())]),
            2 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => {
                let other = others[random.below(others.len())];
                let from = random.below(other.len());
                let until = (from + random.below(64)).min(other.len());
                bytes.splice(at..at, other[from..until].iter().copied());
            }
        }
    }
    bytes
}

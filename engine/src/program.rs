//! The digest of a program's file. Digests are cached by device, inode, size and change time,
//! because hashing a large program takes as long as starting it. Overwriting a file in place
//! changes its change time.

use attest::{Algorithm, DigestHasher};
use contract::hash::sha256_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Larger programs are not hashed.
pub const MAX_PROGRAM_BYTES: u64 = 512 * 1024 * 1024;
/// The most digests in the cache.
const MAX_KEPT: usize = 200;
/// Smaller files are hashed faster than they are looked up.
const WORTH_KEEPING_BYTES: u64 = 256 * 1024;
/// The largest digest cache file that is read.
const MAX_FILE_BYTES: u64 = 256 * 1024;
const CHUNK_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    file: String,
    sha256: String,
}

/// Finds a program like the system does.
pub fn find_program(program: &str, directory: Option<&Path>) -> Option<PathBuf> {
    if program.contains(std::path::MAIN_SEPARATOR) {
        let path =
            directory.map_or_else(|| PathBuf::from(program), |directory| directory.join(program));
        return path.is_file().then_some(path);
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

/// The SHA-256 of a program's file, if it can be found and read. `kept` is the cache file.
pub fn digest_of(program: &Path, kept: Option<&Path>) -> Option<String> {
    let file = File::open(program).ok()?;
    let found = file.metadata().ok()?;
    if found.len() > MAX_PROGRAM_BYTES {
        return None;
    }
    let kept = kept.filter(|_| found.len() >= WORTH_KEEPING_BYTES).zip(identity(&found));
    if let Some((path, identity)) = &kept
        && let Some(known) = read(path).into_iter().find(|known| known.file == *identity)
    {
        return Some(known.sha256);
    }
    let digest = hash(file).ok()?;
    if let Some((path, identity)) = kept {
        keep(path, Kept { file: identity, sha256: digest.clone() });
    }
    Some(digest)
}

/// The digests of a program's file with every algorithm that a document may use, if it can be read.
pub fn digests_of(program: &Path) -> Option<Vec<attest::Digest>> {
    let file = File::open(program).ok()?;
    if file.metadata().ok()?.len() > MAX_PROGRAM_BYTES {
        return None;
    }
    let algorithms = [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512];
    let mut hashers = algorithms.map(DigestHasher::new);
    let mut source = file.take(MAX_PROGRAM_BYTES);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = source.read(&mut chunk).ok()?;
        if count == 0 {
            return Some(hashers.into_iter().map(DigestHasher::finish).collect());
        }
        let bytes = chunk.get(..count).unwrap_or_default();
        hashers.iter_mut().for_each(|hasher| hasher.update(bytes));
    }
}

fn hash(file: File) -> io::Result<String> {
    let mut source = file.take(MAX_PROGRAM_BYTES);
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = source.read(&mut chunk)?;
        if count == 0 {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(chunk.get(..count).unwrap_or_default());
    }
}

/// Identifies the content of the file at this path: the value changes if the file is replaced or
/// written to. `None` if the file cannot be examined, or the system does not provide this.
pub fn file_identity(path: &Path) -> Option<String> {
    identity(&fs::metadata(path).ok()?)
}

/// Distinguishes this content of this file from any other; `None` if the system does not provide
/// this.
#[cfg(unix)]
fn identity(found: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (dev, ino, size) = (found.dev(), found.ino(), found.size());
    let text = format!("{dev}:{ino}:{size}:{}.{}", found.ctime(), found.ctime_nsec());
    Some(sha256_hex(text.as_bytes()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<String> {
    let _ = sha256_hex(b"");
    None
}

fn read(path: &Path) -> Vec<Kept> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut text = String::new();
    match file.take(MAX_FILE_BYTES).read_to_string(&mut text) {
        Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Keeps the newest digests. If they cannot be written, they are computed again next time.
fn keep(path: &Path, kept: Kept) {
    let mut all = read(path);
    all.retain(|known| known.file != kept.file);
    all.push(kept);
    let excess = all.len().saturating_sub(MAX_KEPT);
    all.drain(..excess);
    let Ok(text) = serde_json::to_string(&all) else { return };
    let unfinished = path.with_extension(format!("{}.new", std::process::id()));
    if write_private(&unfinished, text.as_bytes()).is_ok() && fs::rename(&unfinished, path).is_err()
    {
        let _ = fs::remove_file(&unfinished);
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_kept_until_the_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let (program, kept) =
            (directory.path().join("program"), directory.path().join("digests.json"));
        let content = vec![7; usize::try_from(WORTH_KEEPING_BYTES).unwrap()];
        fs::write(&program, &content).unwrap();
        let digest = digest_of(&program, Some(&kept)).unwrap();
        assert_eq!(digest, sha256_hex(&content));
        assert_eq!(read(&kept).len(), 1);
        assert_eq!(digest_of(&program, Some(&kept)), Some(digest.clone()));
        let mut other = content.clone();
        other[0] = 8;
        fs::write(&program, &other).unwrap();
        assert_eq!(digest_of(&program, Some(&kept)), Some(sha256_hex(&other)));
    }

    #[test]
    fn what_is_kept_is_what_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let (program, kept) =
            (directory.path().join("program"), directory.path().join("digests.json"));
        fs::write(&program, vec![7; usize::try_from(WORTH_KEEPING_BYTES).unwrap()]).unwrap();
        let identity = identity(&fs::metadata(&program).unwrap()).unwrap();
        keep(&kept, Kept { file: identity, sha256: "kept".to_owned() });
        assert_eq!(digest_of(&program, Some(&kept)).as_deref(), Some("kept"));
    }

    #[test]
    fn only_so_many_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("digests.json");
        for number in 0..=MAX_KEPT {
            keep(&kept, Kept { file: number.to_string(), sha256: String::new() });
        }
        let all = read(&kept);
        assert_eq!(all.len(), MAX_KEPT);
        assert_eq!(all.last().unwrap().file, MAX_KEPT.to_string());
    }
}

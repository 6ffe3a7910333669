//! The key that seals ids. Nodes that share a database share it, so that any node can open any id.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

const FILE: &str = "cluster.key";
const BYTES: usize = 32;

/// Reads the key in this folder, or creates it.
pub(crate) fn read_or_create(folder: &Path) -> io::Result<[u8; BYTES]> {
    let path = folder.join(FILE);
    match File::open(&path) {
        Ok(file) => read(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut key = [0_u8; BYTES];
            getrandom::fill(&mut key).map_err(io::Error::other)?;
            match create(&path, &key) {
                Ok(()) => Ok(key),
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    read(File::open(&path)?)
                }
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

fn create(path: &Path, key: &[u8; BYTES]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(hex::encode(key).as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn read(file: File) -> io::Result<[u8; BYTES]> {
    let mut text = String::new();
    file.take(1_024).read_to_string(&mut text)?;
    let mut key = [0_u8; BYTES];
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a key of 64 hex digits");
    hex::decode_to_slice(text.trim(), &mut key).map_err(wrong)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_a_broken_one_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let key = read_or_create(folder.path()).unwrap();
        assert_eq!(read_or_create(folder.path()).unwrap(), key);
        std::fs::write(folder.path().join(FILE), "short").unwrap();
        assert!(read_or_create(folder.path()).is_err());
    }
}

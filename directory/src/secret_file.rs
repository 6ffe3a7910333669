//! Random bytes that a directory generates once and stores with its keys: the salt of the network,
//! and the secret for claims.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

const BYTES: usize = 32;

/// Reads the bytes from a file, or creates the file. Threads and processes that do so concurrently
/// get the same bytes.
pub fn read_or_make(folder: &Path, name: &str) -> io::Result<[u8; BYTES]> {
    let path = folder.join(name);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    crate::log::publish::create_private_folder(folder)?;
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("no randomness"))?;
    // A temporary file has a unique name, and only its user may read it.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(new, "{}", hex::encode(bytes))?;
    new.as_file().sync_all()?;
    // Does not replace a file that another thread or process created in the meantime.
    match new.persist_noclobber(&path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => read(&path),
    }
}

fn read(path: &Path) -> io::Result<[u8; BYTES]> {
    let text = fs::read_to_string(path)?;
    let mut bytes = [0; BYTES];
    let damaged = |_| io::Error::new(io::ErrorKind::InvalidData, "not 64 hexadecimal digits");
    hex::decode_to_slice(text.trim_end(), &mut bytes).map_err(damaged)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_made_once_for_their_user_alone_and_a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = read_or_make(&keys, "network.salt").unwrap();
        assert_eq!(read_or_make(&keys, "network.salt").unwrap(), first);
        assert_ne!(read_or_make(&keys, "claims.secret").unwrap(), first);
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 2, "no other file is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(keys.join("network.salt")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(keys.join("network.salt"), "beef").unwrap();
        assert!(read_or_make(&keys, "network.salt").is_err());
    }

    #[test]
    fn threads_that_make_it_at_once_agree() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let made: Vec<_> = std::thread::scope(|scope| {
                let make = || scope.spawn(|| read_or_make(folder.path(), "s").unwrap());
                let threads: Vec<_> = std::iter::repeat_with(make).take(4).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(made.iter().all(|bytes| *bytes == made[0]));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
        }
    }
}

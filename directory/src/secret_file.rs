//! Random bytes that a directory makes once and keeps with its keys: the salt of the network, and the secret of claims.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const BYTES: usize = 32;

/// The bytes of a file; new ones where there is none. Two processes that make it at once agree on one of them.
pub fn read_or_make(folder: &Path, name: &str) -> io::Result<[u8; BYTES]> {
    let path = folder.join(name);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    crate::log::publish::create_private_folder(folder)?;
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("no randomness"))?;
    let new = folder.join(format!("{name}.{}.new", std::process::id()));
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(format!("{}\n", hex::encode(bytes)).as_bytes())?;
    file.sync_all()?;
    // A link is made only if there is no file of that name yet; a rename would replace another process's.
    let linked = fs::hard_link(&new, &path);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
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
    fn processes_that_make_it_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        testing::wait_for("the bytes", || read_or_make(folder.path(), "s").ok())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|bytes| *bytes == made[0]));
    }
}

//! One writer per data folder: the process that holds the lock on its file. The lock is released
//! when the process ends, even if it is killed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "writer.lock";

/// The right to write, while it is held.
#[derive(Debug)]
pub struct Lease {
    _file: File,
}

/// Why the lease could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("another process writes to `{}`{}", folder.display(), holder.as_ref().map(|id| format!(" (process {id})")).unwrap_or_default())]
    Held { folder: PathBuf, holder: Option<String> },
    #[error("`{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl Lease {
    /// Takes the lease, or returns its holder. Does not wait.
    pub fn take(folder: &Path) -> Result<Lease, LeaseError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| LeaseError::File { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&mut file).take(16).read_to_string(&mut holder);
                let holder = Some(holder.trim().to_owned()).filter(|text| {
                    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
                });
                return Err(LeaseError::Held { folder: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Only displayed to a user who is refused the lease.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = write!(file, "{}", std::process::id());
        Ok(Lease { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lease::take(folder.path()).unwrap();
        let refused = Lease::take(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("(process {})", std::process::id())), "{refused}");
        drop(first);
        Lease::take(folder.path()).unwrap();
    }
}

//! Whether the disk of a home is full. A full disk stops every write, and the resulting errors do
//! not name the cause.

use std::path::Path;

/// With less space than this, neither the database's journal nor a receipt segment can grow.
const LEAST_BYTES: u64 = 256 * 1024;

/// A message for the user if the disk that holds this folder is full.
pub(crate) fn full(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|path| path.is_dir())?;
    is_full(available_bytes(there)?).then(|| {
        format!(
            "the disk of `{}` is full: until you make room there, nothing can be recorded, so calls are refused and nothing can be approved",
            folder.display()
        )
    })
}

const fn is_full(available: u64) -> bool {
    available < LEAST_BYTES
}

#[cfg(unix)]
fn available_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn available_bytes(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_when_nothing_more_can_be_written() {
        assert!(is_full(0) && is_full(LEAST_BYTES - 1) && !is_full(LEAST_BYTES));
    }

    #[test]
    fn a_disk_with_room_is_not_full() {
        assert_eq!(full(&std::env::temp_dir().join("not/there/yet")), None);
    }
}

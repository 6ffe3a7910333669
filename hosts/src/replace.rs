//! Replaces a file atomically: if the process is interrupted, either the complete old or the
//! complete new file exists.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The prefix of our temporary files, in the folder of the file being replaced.
const PREFIX: &str = ".holdpoint-";

/// How often to retry restoring a file while another program keeps writing to it.
#[cfg(unix)]
const MAX_SWAPS: usize = 100;

/// The outcome of replacing a file.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    Done,
    /// Another program wrote the file in the meantime, so nothing was changed.
    Moved,
}

/// Why a file cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error("cannot be replaced: {0}")]
    File(#[from] io::Error),
    #[error("is not a regular file")]
    NotAFile,
    #[error("is marked as read-only")]
    ReadOnly,
    #[error("has several hard links, which a replacement would separate")]
    Linked,
    #[error("belongs to another user, which a replacement would change")]
    Owner,
}

/// Replaces `expected` with `new`, keeping owner and mode. A link is followed to the actual file.
pub(crate) fn replace(path: &Path, expected: &[u8], new: &[u8]) -> Result<Swap, ReplaceError> {
    let real = fs::canonicalize(path)?;
    let metadata = fs::metadata(&real)?;
    check(&metadata)?;
    let folder = real.parent().ok_or(ReplaceError::NotAFile)?;
    let mut temporary =
        tempfile::Builder::new().prefix(PREFIX).suffix(".tmp").tempfile_in(folder)?;
    temporary.write_all(new)?;
    keep_owner(temporary.as_file(), &metadata)?;
    temporary.as_file().set_permissions(metadata.permissions())?;
    temporary.as_file().sync_all()?;
    // Check the length first, to avoid reading a file that has grown.
    if fs::metadata(&real)?.len() != expected.len() as u64 || fs::read(&real)? != expected {
        return Ok(Swap::Moved);
    }
    let swap = exchange(temporary, &real, expected)?;
    sync_folder(folder);
    Ok(swap)
}

/// Checks whether a file could be replaced, as far as possible without writing anything.
pub(crate) fn check_file(path: &Path) -> Result<(), ReplaceError> {
    let real = fs::canonicalize(path)?;
    check(&fs::metadata(&real)?)?;
    #[cfg(unix)]
    if let Some(folder) = real.parent() {
        use rustix::fs::{Access, access};
        access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)?;
    }
    Ok(())
}

fn check(metadata: &fs::Metadata) -> Result<(), ReplaceError> {
    if !metadata.is_file() {
        return Err(ReplaceError::NotAFile);
    }
    if metadata.permissions().readonly() {
        return Err(ReplaceError::ReadOnly);
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(metadata) > 1 {
        return Err(ReplaceError::Linked);
    }
    Ok(())
}

#[cfg(unix)]
fn keep_owner(file: &File, like: &fs::Metadata) -> Result<(), ReplaceError> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(file, Some(like.uid()), Some(like.gid())).map_err(|_| ReplaceError::Owner)
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) -> Result<(), ReplaceError> {
    Ok(())
}

/// Exchanges the two files, so that the replaced content can be inspected: a host may have written
/// at the same moment.
#[cfg(unix)]
fn exchange(
    temporary: tempfile::NamedTempFile,
    real: &Path,
    expected: &[u8],
) -> Result<Swap, ReplaceError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let swap = || renameat_with(CWD, temporary.path(), CWD, real, RenameFlags::EXCHANGE);
    let placed = fs::read(temporary.path())?;
    match swap() {
        Ok(()) => {}
        // Not every file system supports this. There, a small window between checking and replacing
        // remains.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            temporary.persist(real).map_err(|error| error.error)?;
            return Ok(Swap::Done);
        }
        Err(error) => return Err(io::Error::from(error).into()),
    }
    let out = fs::read(temporary.path())?;
    if out == expected {
        return Ok(Swap::Done);
    }
    let swap_back = || {
        swap()?;
        fs::read(temporary.path())
    };
    if !put_back(placed, out, swap_back)? {
        // The last content that came out is the newest, even if another write is happening right
        // now.
        temporary.persist(real).map_err(|error| error.error)?;
    }
    Ok(Swap::Moved)
}

/// Exchanges the files back. The file that comes out should be ours; if it is not, another program
/// wrote again, and its file is the newest. Returns whether the newest file is in place.
#[cfg(unix)]
fn put_back(
    mut placed: Vec<u8>,
    mut out: Vec<u8>,
    mut swap: impl FnMut() -> io::Result<Vec<u8>>,
) -> io::Result<bool> {
    for _ in 0..MAX_SWAPS {
        let next = swap()?;
        if next == placed {
            return Ok(true);
        }
        placed = std::mem::replace(&mut out, next);
    }
    Ok(false)
}

#[cfg(not(unix))]
fn exchange(
    temporary: tempfile::NamedTempFile,
    real: &Path,
    _: &[u8],
) -> Result<Swap, ReplaceError> {
    temporary.persist(real).map_err(|error| error.error)?;
    Ok(Swap::Done)
}

/// Makes the new name survive a power failure. If the folder cannot be synced, nothing is lost
/// compared with before.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// Removes what an interrupted process of ours left in a file's folder.
pub(crate) fn sweep(path: &Path) {
    if let Some(folder) = fs::canonicalize(path).ok().as_deref().and_then(Path::parent) {
        sweep_folder(folder);
    }
}

/// The most files that are removed at once.
const MAX_SWEPT: usize = 64;
/// Younger files may be in use.
const MIN_LEFT: Duration = Duration::from_secs(60);

fn is_left_over(age: Duration) -> bool {
    age > MIN_LEFT
}

/// Removes what an interrupted process of ours left in a folder.
pub(crate) fn sweep_folder(folder: &Path) {
    let Ok(names) = fs::read_dir(folder) else { return };
    let is_left = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(".tmp"))
    };
    let is_old = |path: &PathBuf| {
        let at = fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
        at.and_then(|at| at.elapsed().ok()).is_some_and(is_left_over)
    };
    for left in names
        .filter_map(Result::ok)
        .map(|name| name.path())
        .filter(is_left)
        .filter(is_old)
        .take(MAX_SWEPT)
    {
        let _ = fs::remove_file(left);
    }
}

/// Writes one of our own files atomically, accessible only to its user.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    let mut temporary =
        tempfile::Builder::new().prefix(PREFIX).suffix(".tmp").tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder(folder);
    Ok(())
}

#[cfg(test)]
mod tests;

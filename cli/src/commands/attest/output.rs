//! Where what was signed is written to: whole or not at all, and never over anything but an earlier one.

use super::read;
use crate::failure::Failure;
use attest::{MAX_REVOCATION_LIST_BYTES, Statement};
use std::io::Write;
use std::path::Path;

/// Says before anything is signed whether the place may be written to.
///
/// What is there is replaced only if it is a document or a list itself. To look for what a key looks like would not do:
/// keys have too many formats to recognize, and an overwritten file is gone.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::usage(format!("`{}` {why}", path.display())));
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return refused(&format!("cannot be inspected: {error}")),
    };
    if !found.is_file() {
        return refused(
            "exists and is not a regular file: name the file itself, or omit `-o` to print it",
        );
    }
    if found.len() == 0 || Statement::parse(&read(path, MAX_REVOCATION_LIST_BYTES)?).is_ok() {
        return Ok(());
    }
    refused("exists and is neither a document nor a revocation list: it is not overwritten")
}

/// Writes a temporary file and renames it, so that no reader ever sees half of it.
pub(super) fn replace(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    check(path)?;
    write(path, contents).map_err(|error| {
        Failure::internal(format!("`{}` could not be written: {error}", path.display()))
    })
}

/// Replaces a trust root, or writes the first one. The caller has read what is there, and it is one.
pub(super) fn replace_trust_root(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    // A link is followed: the file that it names is the trust root.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    write(&path, contents).map_err(|error| {
        Failure::usage(format!("`{}` could not be written: {error}", path.display()))
    })
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // It is there to be published; the process's own mask takes off what it takes off of any file.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.prefix(".holdpoint-").tempfile_in(parent.unwrap_or(Path::new(".")))?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

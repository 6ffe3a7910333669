//! Writes signed documents: atomically, and never over a file that is not a signed document itself.

use super::read;
use crate::failure::Failure;
use attest::{MAX_REVOCATION_LIST_BYTES, Statement};
use std::io::Write;
use std::path::Path;

/// Checks before signing whether the path may be written to.
///
/// An existing file is only replaced if it is a document or a list itself. Looking for what
/// resembles a key would not be enough: keys have too many formats to recognize, and an overwritten
/// file is lost.
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

/// Writes a temporary file and renames it, so that no reader sees a partial file.
pub(super) fn replace(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    check(path)?;
    write(path, contents).map_err(|error| {
        Failure::internal(format!("`{}` could not be written: {error}", path.display()))
    })
}

/// Replaces a trust root, or writes the first one. The caller has checked that an existing file is
/// a trust root.
pub(super) fn replace_trust_root(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    // Follow a symbolic link: its target is the trust root.
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
        // The file is meant to be published; the process's umask still applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.prefix(".holdpoint-").tempfile_in(parent.unwrap_or(Path::new(".")))?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

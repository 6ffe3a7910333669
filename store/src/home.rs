//! The home directory: created private, and refused if other users could change its contents.

use crate::error::HomeError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that only its user can write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Creates the directory if needed, and checks its owner and permissions.
    pub fn open(path: &Path) -> Result<Home, HomeError> {
        let absolute = std::path::absolute(path).map_err(failed("find", path))?;
        match fs::symlink_metadata(&absolute) {
            Ok(found) if found.is_symlink() => check_link(&absolute, &found)?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_directory(&absolute)?,
            Err(error) => return Err(failed("look at", &absolute)(error)),
        }
        let path = fs::canonicalize(&absolute).map_err(failed("look at", &absolute))?;
        check_directory(&path)?;
        check_ancestors(&path)?;
        let home = Home { path };
        let keys = home.keys_path();
        create_directory(&keys)?;
        check_directory(&keys)?;
        Ok(home)
    }

    /// The path of the directory, with all links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn state_path(&self) -> PathBuf {
        self.path.join("state.db")
    }

    pub fn keys_path(&self) -> PathBuf {
        self.path.join("keys")
    }

    pub fn config_path(&self) -> PathBuf {
        self.path.join("holdpoint.toml")
    }

    pub fn receipts_path(&self) -> PathBuf {
        self.path.join("receipts")
    }

    /// The public key, which `receipts verify` needs in addition to the folder.
    pub fn receipts_public_key_path(&self) -> PathBuf {
        self.keys_path().join("receipts.pub")
    }

    pub(crate) fn receipts_key_path(&self) -> PathBuf {
        self.keys_path().join("receipts.key")
    }

    /// Exists from before the signing key is created until the first index is signed with it. A
    /// signing key without this file proves that there were receipts.
    pub(crate) fn receipts_key_unused_path(&self) -> PathBuf {
        self.keys_path().join("receipts.key.unused")
    }

    pub(crate) fn args_key_path(&self) -> PathBuf {
        self.keys_path().join("args.key")
    }

    pub(crate) fn pins_key_path(&self) -> PathBuf {
        self.keys_path().join("pins.key")
    }
}

/// Creates a file that only its user can read, or checks an existing one.
pub(crate) fn private_file(path: &Path) -> Result<(), HomeError> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(failed("open", path))?;
    let found = file.metadata().map_err(failed("look at", path))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        check_owner(path, &found)?;
        if found.mode() & 0o022 != 0 {
            return Err(HomeError::OthersCanWrite { path: path.to_owned(), mode: "600" });
        }
        if found.mode() & 0o077 != 0 {
            let private = fs::Permissions::from_mode(0o600);
            file.set_permissions(private).map_err(failed("make private", path))?;
        }
    }
    if !found.is_file() {
        return Err(HomeError::Io {
            doing: "use",
            path: path.to_owned(),
            source: io::Error::other("not a file"),
        });
    }
    Ok(())
}

/// Adds the operation and path to an I/O error.
pub(crate) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError::Io { doing, path, source }
}

/// Creates the directory. If another process creates it at the same time, it is checked like an
/// existing one.
pub(crate) fn create_directory(path: &Path) -> Result<(), HomeError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed("make", parent))?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make", path)(error))
        }
        _ => Ok(()),
    }
}

/// The owner of a link controls where it leads, so the link must belong to the user or root.
fn check_link(path: &Path, found: &fs::Metadata) -> Result<(), HomeError> {
    if fs::metadata(path).is_err() {
        return Err(HomeError::DanglingLink { path: path.to_owned() });
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(found) != 0 {
        check_owner(path, found)?;
    }
    #[cfg(not(unix))]
    let _ = found;
    Ok(())
}

/// The mode bit of a folder that users share, such as `/tmp`: each user can only remove their own
/// files.
#[cfg(unix)]
const STICKY: u32 = 0o1000;

pub(crate) fn check_directory(path: &Path) -> Result<(), HomeError> {
    let found = fs::metadata(path).map_err(failed("look at", path))?;
    if !found.is_dir() {
        return Err(HomeError::NotADirectory { path: path.to_owned() });
    }
    #[cfg(unix)]
    {
        check_owner(path, &found)?;
        let mode = std::os::unix::fs::MetadataExt::mode(&found);
        if mode & 0o022 != 0 && mode & STICKY != 0 {
            return Err(HomeError::Shared { path: path.to_owned() });
        }
        if mode & 0o022 != 0 {
            return Err(HomeError::OthersCanWrite { path: path.to_owned(), mode: "700" });
        }
    }
    Ok(())
}

/// Anyone who can write to a parent directory can replace the home. A sticky one (`/tmp`) does not
/// allow that. Owners are not checked here: in a user namespace, the root directory belongs to the
/// user `nobody`.
fn check_ancestors(path: &Path) -> Result<(), HomeError> {
    #[cfg(unix)]
    for ancestor in path.ancestors().skip(1) {
        let found = fs::metadata(ancestor).map_err(failed("look at", ancestor))?;
        let mode = std::os::unix::fs::MetadataExt::mode(&found);
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            return Err(HomeError::ReplaceableByOthers { path: ancestor.to_owned() });
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(unix)]
fn check_owner(path: &Path, found: &fs::Metadata) -> Result<(), HomeError> {
    if std::os::unix::fs::MetadataExt::uid(found) == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(HomeError::NotOurs { path: path.to_owned() })
    }
}

#[cfg(all(test, unix))]
mod tests;

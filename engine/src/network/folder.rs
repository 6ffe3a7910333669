//! The folder `network` in a home: what was learned, what was sent, and whether the network is
//! turned off.
//!
//! All of it can be deleted at any time. Files are replaced as a whole, so that several processes
//! can share them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Exists while the network is turned off by `holdpoint network off`.
const OFF_FILE: &str = "off";
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFolder {
    path: PathBuf,
}

impl NetworkFolder {
    /// The folder in this home. It is created on the first write.
    pub fn of(home: &Path) -> NetworkFolder {
        NetworkFolder { path: home.join("network") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn ensure(&self) -> io::Result<()> {
        match create_private(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            outcome => outcome,
        }
    }

    pub fn is_off(&self) -> bool {
        self.path.join(OFF_FILE).exists()
    }

    /// A request that is being recorded at this moment is still sent; later ones are not.
    pub fn turn_off(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        self.write(OFF_FILE, b"`holdpoint network on` removes this file\n")
    }

    pub fn turn_on(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(OFF_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    /// A file's contents; `None` if it is missing, too large or unreadable.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let file = File::open(self.path.join(name)).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.ensure()?;
        let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
        file.write_all(bytes)?;
        file.persist(self.path.join(name)).map(drop).map_err(|error| error.error)
    }

    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path.join(name));
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }

    /// Locks the files for one process at a time. The lock is released when the value is dropped.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.ensure()?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(self.path.join("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

//! A snapshot of a tested server's folders, used to find out what the server changed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// The most files that are examined.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;

/// The state of each file, by the name that the server sees.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    files: BTreeMap<PathBuf, FileState>,
    /// There were more files than are examined.
    is_cut: bool,
}

/// The values that change when a file is written to. A program cannot set an inode's change time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileState {
    is_folder: bool,
    numbers: [i128; 5],
}

impl FileState {
    fn of(metadata: &Metadata) -> FileState {
        FileState { is_folder: metadata.is_dir(), numbers: numbers(metadata) }
    }
}

#[cfg(unix)]
fn numbers(metadata: &Metadata) -> [i128; 5] {
    use std::os::unix::fs::MetadataExt;
    let at = |seconds: i64, nanoseconds: i64| {
        i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
    };
    [
        metadata.ino().into(),
        metadata.size().into(),
        metadata.mode().into(),
        at(metadata.mtime(), metadata.mtime_nsec()),
        at(metadata.ctime(), metadata.ctime_nsec()),
    ]
}

#[cfg(not(unix))]
fn numbers(metadata: &Metadata) -> [i128; 5] {
    [metadata.len().into(), 0, 0, 0, 0]
}

impl Snapshot {
    /// Examines folders, each given with the name that the server sees.
    pub(super) fn of(folders: &[(PathBuf, PathBuf)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (folder, name) in folders {
            snapshot.add(folder, name, 0);
        }
        snapshot
    }

    fn add(&mut self, folder: &Path, name: &Path, depth: usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if self.files.len() >= MAX_FILES || depth >= MAX_DEPTH {
                self.is_cut = true;
                return;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let name = name.join(entry.file_name());
            if metadata.is_dir() {
                self.add(&entry.path(), &name, depth + 1);
            }
            self.files.insert(name, FileState::of(&metadata));
        }
    }

    /// The files that are new, missing or modified in the later snapshot. For folders, only new
    /// ones count: some are mount points that exist only while the server runs.
    pub(super) fn changed(&self, later: &Snapshot) -> Vec<PathBuf> {
        let is_changed = |name: &Path, before: Option<&FileState>, now: Option<&FileState>| {
            match (before, now) {
                (Some(before), Some(now)) if before.is_folder && now.is_folder => false,
                (Some(before), None) => !before.is_folder,
                (before, now) => before != now,
            }
            .then(|| name.to_owned())
        };
        let mut changed: Vec<PathBuf> = self
            .files
            .iter()
            .filter_map(|(name, before)| is_changed(name, Some(before), later.files.get(name)))
            .collect();
        let new = later.files.iter().filter(|(name, _)| !self.files.contains_key(*name));
        changed.extend(new.filter_map(|(name, now)| is_changed(name, None, Some(now))));
        if self.is_cut || later.is_cut {
            changed.push(PathBuf::from("(more files than are looked at)"));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn each_change_is_told_and_reading_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let folders = [(root.clone(), PathBuf::from("/home/server"))];
        for name in ["read", "written", "removed", "held"] {
            fs::write(root.join(name), "x").unwrap();
        }
        fs::create_dir_all(root.join("deep/er")).unwrap();
        fs::create_dir(root.join("placeholder")).unwrap();
        let mut held = fs::File::options().append(true).open(root.join("held")).unwrap();
        let before = Snapshot::of(&folders);
        assert!(before.changed(&Snapshot::of(&folders)).is_empty());
        fs::read(root.join("read")).unwrap();
        fs::remove_dir(root.join("placeholder")).unwrap();
        assert!(before.changed(&Snapshot::of(&folders)).is_empty());
        held.write_all(b"more").unwrap();
        fs::write(root.join("written"), "yy").unwrap();
        fs::remove_file(root.join("removed")).unwrap();
        fs::write(root.join("deep/er/new"), "").unwrap();
        fs::create_dir(root.join("made")).unwrap();
        let changed = before.changed(&Snapshot::of(&folders));
        let mut changed: Vec<&str> = changed.iter().map(|path| path.to_str().unwrap()).collect();
        changed.sort_unstable();
        let expected = ["deep/er/new", "held", "made", "removed", "written"];
        assert_eq!(changed, expected.map(|name| format!("/home/server/{name}")));
    }
}

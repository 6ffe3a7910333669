//! Checks whether the database is still the same file. Pins in a file that was removed or replaced
//! do not count, because no other process can find them.
//!
//! Looking up a path takes several times as long as examining an open file. On Linux, removing,
//! replacing or moving a file changes its inode's change time or number of links. While both stay
//! the same, the path is looked up only occasionally (a whole folder can be moved, and some file
//! systems have no change time).

use std::path::PathBuf;

/// Identifies a file regardless of its name: device and inode.
pub(super) type FileId = (u64, u64);

#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    found: Option<open::Found>,
}

impl DatabaseFile {
    pub(super) fn new(path: PathBuf) -> DatabaseFile {
        DatabaseFile {
            path,
            #[cfg(target_os = "linux")]
            found: None,
        }
    }

    /// The file that has the database's name now; `None` if there is none.
    #[cfg(target_os = "linux")]
    pub(super) fn look(&mut self) -> Option<FileId> {
        if let Some(known) = self.found.as_ref().and_then(open::Found::unchanged) {
            return Some(known);
        }
        self.found = open::Found::by(&self.path, self.found.take());
        self.found.as_ref().map(open::Found::id)
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    pub(super) fn look(&mut self) -> Option<FileId> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(&self.path).ok().map(|found| (found.dev(), found.ino()))
    }

    /// On other systems a file in use cannot be removed or replaced.
    #[cfg(not(unix))]
    pub(super) fn look(&mut self) -> Option<FileId> {
        let _ = &self.path;
        None
    }
}

#[cfg(target_os = "linux")]
mod open {
    use super::FileId;
    use rustix::fs::{Mode, OFlags, open};
    use std::fs::{File, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    /// The longest time without looking up the path.
    const LOOK_UP: Duration = Duration::from_millis(250);
    /// A change time is meaningful only once it is older than this: two changes within one tick of
    /// the file system's clock have the same time.
    const TICK: Duration = Duration::from_millis(50);

    /// The file that the path led to.
    #[derive(Debug)]
    pub(super) struct Found {
        file: File,
        id: FileId,
        /// Its state when the path was looked up; `None` if a later change could result in the same
        /// state.
        state: Option<State>,
        looked_up: Instant,
    }

    /// The values that change on a removal, a replacement or a move.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct State {
        links: u64,
        changed: (i64, i64),
    }

    impl Found {
        /// Looks up the path. A file that is already open stays open if it is the same one.
        pub(super) fn by(path: &Path, before: Option<Found>) -> Option<Found> {
            let (looked_up, was_open) = (Instant::now(), before.is_some());
            // INVARIANT: closing a file that was opened for reading releases all of SQLite's locks
            // on it. One opened with `O_PATH` does not affect locks.
            let opened =
                || open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map(File::from);
            let file = before.map_or_else(opened, |before| Ok(before.file)).ok()?;
            let found = file.metadata().ok()?;
            // INVARIANT: the state is read before the path is looked up, so that a change in
            // between is noticed next time.
            let state = State::settled(&found);
            let named = std::fs::metadata(path).ok()?;
            match id(&named) == id(&found) {
                true => Some(Found { id: id(&named), file, state, looked_up }),
                false if was_open => Found::by(path, None),
                // It was just replaced. The next check finds the new file.
                false => Some(Found { id: id(&named), file, state: None, looked_up }),
            }
        }

        pub(super) fn id(&self) -> FileId {
            self.id
        }

        /// The file, if it certainly still has its name.
        pub(super) fn unchanged(&self) -> Option<FileId> {
            let state = self.state.filter(|_| self.looked_up.elapsed() < LOOK_UP)?;
            let found = self.file.metadata().ok()?;
            (State::of(&found) == state).then_some(self.id)
        }
    }

    impl State {
        fn of(found: &Metadata) -> State {
            State { links: found.nlink(), changed: (found.ctime(), found.ctime_nsec()) }
        }

        /// The state, if its change time is old enough to be meaningful.
        fn settled(found: &Metadata) -> Option<State> {
            let state = State::of(found);
            let (seconds, nanoseconds) = state.changed;
            let since_epoch =
                Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
            let age = SystemTime::now().duration_since(UNIX_EPOCH + since_epoch).ok()?;
            (age > TICK).then_some(state)
        }
    }

    fn id(found: &Metadata) -> FileId {
        (found.dev(), found.ino())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs::{rename, write};
    use testing::wait_until;

    fn is_settled(database: &DatabaseFile) -> bool {
        database.found.as_ref().and_then(open::Found::unchanged).is_some()
    }

    /// Looks until the path need not be looked up, so that only the open file can reveal what
    /// follows.
    fn settled(path: &std::path::Path) -> (DatabaseFile, FileId) {
        let mut database = DatabaseFile::new(path.to_owned());
        wait_until("a change time that is over", || {
            let _ = database.look();
            is_settled(&database)
        });
        let id = database.look().unwrap();
        assert!(is_settled(&database));
        (database, id)
    }

    #[test]
    fn a_file_that_is_moved_removed_or_replaced_is_noticed_at_the_next_look() {
        let directory = tempfile::tempdir().unwrap();
        let [path, away] = ["state.db", "away"].map(|name| directory.path().join(name));
        write(&path, "pins").unwrap();
        let (mut database, id) = settled(&path);
        rename(&path, &away).unwrap();
        assert_eq!(database.look(), None);
        rename(&away, &path).unwrap();
        assert_eq!(database.look(), Some(id));

        let (mut database, id) = settled(&path);
        write(&away, "other pins").unwrap();
        rename(&away, &path).unwrap();
        let other = database.look();
        assert!(other.is_some_and(|other| other != id));

        let (mut database, _) = settled(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(database.look(), None);
    }

    #[test]
    fn a_folder_that_is_moved_is_noticed_when_the_path_is_looked_up_again() {
        let directory = tempfile::tempdir().unwrap();
        let [home, away] = ["home", "away"].map(|name| directory.path().join(name));
        std::fs::create_dir(&home).unwrap();
        write(home.join("state.db"), "pins").unwrap();
        let (mut database, id) = settled(&home.join("state.db"));
        rename(&home, &away).unwrap();
        wait_until("the path to be looked up", || database.look().is_none());
        rename(&away, &home).unwrap();
        assert_eq!(database.look(), Some(id));
    }

    #[test]
    fn a_change_of_a_moment_ago_is_not_relied_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.db");
        write(&path, "pins").unwrap();
        let mut database = DatabaseFile::new(path.clone());
        assert!(database.look().is_some());
        write(&path, "more pins").unwrap();
        assert!(database.look().is_some());
        assert!(!is_settled(&database));
    }
}

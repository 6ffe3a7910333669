use super::super::signer;
use super::*;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database(&self) -> Database {
        Database::open(&self.path("directory.db")).unwrap()
    }

    fn publisher(&self) -> Result<Publisher, PublishError> {
        let signer = signer::open(None, &self.path("keys"), "a.example/log").unwrap();
        Publisher::open(&self.database(), &self.path("log"), &self.path("keys"), signer)
    }

    fn add(&self, entries: &[&str]) {
        let mut database = self.database();
        let size = database.size().unwrap();
        database
            .write::<_, DatabaseError>(|writing| {
                entries
                    .iter()
                    .zip(size..)
                    .try_for_each(|(entry, number)| writing.add_leaf(number, entry.as_bytes()))
            })
            .unwrap();
    }
}

#[test]
fn a_log_is_published_once_for_each_growth() {
    let place = Place::new();
    place.add(&["a", "b"]);
    let mut publisher = place.publisher().unwrap();
    assert_eq!(publisher.publish(&place.database()).unwrap().unwrap().size, 2);
    assert_eq!(publisher.publish(&place.database()).unwrap(), None);
    place.add(&["c"]);
    assert_eq!(publisher.publish(&place.database()).unwrap().unwrap().size, 3);
    let mut again = place.publisher().unwrap();
    assert_eq!(again.published_size(), 3);
    assert_eq!(again.publish(&place.database()).unwrap(), None);
    assert!(place.path("log/tile/entries/000.p/3").is_file());
}

#[test]
fn a_restored_backup_and_another_history_are_refused() {
    let place = Place::new();
    place.add(&["a", "b"]);
    std::fs::create_dir(place.path("backup")).unwrap();
    let copy = |from: &str, to: &str| std::fs::copy(place.path(from), place.path(to)).unwrap();
    copy("directory.db", "backup/directory.db");
    place.add(&["c"]);
    place.publisher().unwrap().publish(&place.database()).unwrap();
    for name in ["directory.db-wal", "directory.db-shm"] {
        let _ = std::fs::remove_file(place.path(name));
    }
    copy("backup/directory.db", "directory.db");
    let refused = place.publisher().unwrap_err();
    assert!(matches!(refused, PublishError::Shorter { found: 2, signed: 3 }), "{refused}");
    place.add(&["other", "history"]);
    let refused = place.publisher().unwrap_err();
    assert!(matches!(refused, PublishError::Forked { signed: 3 }), "{refused}");
}

#[test]
fn lost_files_are_written_again() {
    let place = Place::new();
    place.add(&["a"]);
    place.publisher().unwrap().publish(&place.database()).unwrap();
    std::fs::remove_dir_all(place.path("log")).unwrap();
    let mut publisher = place.publisher().unwrap();
    assert!(publisher.publish(&place.database()).unwrap().is_some());
    assert!(place.path("log/tile/0/000.p/1").is_file() && place.path("log/checkpoint").is_file());
}

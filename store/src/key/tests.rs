//! The key file is written atomically, is private, and is never replaced.

use super::{KEY_BYTES, KeyProblem, create_key, read_key};
use std::fs;

#[test]
fn a_new_key_reads_back_and_is_another_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one.key"), directory.path().join("two.key"));
    let made = create_key(&one).unwrap();
    assert_eq!(read_key(&one).ok().unwrap().as_bytes(), made.as_bytes());
    assert_ne!(create_key(&two).unwrap().as_bytes(), made.as_bytes());
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing is left over");
}

#[test]
fn a_key_that_is_there_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins.key");
    let made = create_key(&path).unwrap();
    assert!(create_key(&path).is_err());
    assert_eq!(read_key(&path).ok().unwrap().as_bytes(), made.as_bytes());
}

#[test]
fn what_a_killed_process_left_is_not_taken_for_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins.key");
    fs::write(directory.path().join("pins.key.new"), [7; 5]).unwrap();
    assert!(matches!(read_key(&path), Err(KeyProblem::Missing(_))));
    create_key(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), KEY_BYTES);
    assert!(!directory.path().join("pins.key.new").exists());
}

#[cfg(unix)]
#[test]
fn a_key_is_its_users_only_and_one_that_is_not_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins.key");
    create_key(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for (mode, is_fine) in [(0o400, true), (0o640, false), (0o604, false), (0o602, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let read = read_key(&path);
        assert_eq!(read.is_ok(), is_fine, "{mode:o}");
        assert!(is_fine || matches!(read, Err(KeyProblem::Exposed(_))));
    }
}

#[test]
fn a_directory_is_no_key() {
    let directory = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert!(matches!(read_key(directory.path()), Err(KeyProblem::Unreadable(..))));
}

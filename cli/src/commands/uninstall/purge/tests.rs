use super::*;
use std::fs;
use tempfile::TempDir;

/// A user's folder that contains a Holdpoint home.
fn user() -> (TempDir, PathBuf) {
    let user = tempfile::tempdir().unwrap();
    let home = user.path().join(".holdpoint");
    fs::create_dir_all(home.join("keys")).unwrap();
    fs::create_dir_all(home.join("receipts/index")).unwrap();
    for name in ["keys/pins.key", "receipts/index/000001.jsonl", "state.db", SETTINGS] {
        fs::write(home.join(name), "").unwrap();
    }
    (user, home)
}

#[test]
fn a_home_goes_with_all_that_is_in_it() {
    let (user, home) = user();
    let left = Purge::of(&home, user.path()).unwrap().unwrap().carry_out().unwrap();
    assert!(left.is_empty() && !home.exists());
    assert!(Purge::of(&home, user.path()).unwrap().is_none());
}

#[test]
fn what_is_not_ours_stays() {
    let (user, home) = user();
    fs::write(home.join("thesis"), "").unwrap();
    fs::write(home.join("keys/house"), "").unwrap();
    let mut left = Purge::of(&home, user.path()).unwrap().unwrap().carry_out().unwrap();
    left.sort();
    assert_eq!(
        left,
        [home.join("keys"), home.join("thesis")].map(|path| path.canonicalize().unwrap())
    );
    assert!(home.join("keys/house").exists() && !home.join("keys/pins.key").exists());
}

#[test]
fn a_folder_without_our_mark_is_refused() {
    let user = tempfile::tempdir().unwrap();
    let folder = user.path().join("precious");
    fs::create_dir_all(folder.join("receipts")).unwrap();
    assert!(Purge::of(&folder, user.path()).is_err());
    fs::write(folder.join("state.db"), "").unwrap();
    assert!(Purge::of(&folder, user.path()).is_ok());
}

#[test]
fn a_users_own_folder_and_those_above_it_are_refused() {
    let (user, _) = user();
    fs::write(user.path().join("state.db"), "").unwrap();
    for folder in [user.path(), user.path().parent().unwrap(), Path::new("/")] {
        assert!(Purge::of(folder, user.path()).is_err(), "{}", folder.display());
    }
}

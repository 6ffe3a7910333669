//! Which directories are accepted as a home.

use super::{Home, check_owner};
use crate::error::HomeError;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o777)
}

#[track_caller]
fn set_mode(path: &Path, mode: u32) {
    assert!(fs::set_permissions(path, fs::Permissions::from_mode(mode)).is_ok());
}

#[test]
fn a_home_is_made_private_with_the_directories_above_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/home");
    let home = Home::open(&path).unwrap();
    assert_eq!((mode(&path), mode(&home.keys_path())), (Some(0o700), Some(0o700)));
    assert_eq!(Home::open(&path).unwrap(), home, "and opens again");
    assert!(home.state_path().ends_with("home/state.db"));
    assert!(home.config_path().ends_with("home/holdpoint.toml"));
}

#[test]
fn a_home_that_others_can_write_is_refused_with_what_to_type() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home");
    let home = Home::open(&path).unwrap();
    for refused in [0o720, 0o702, 0o777] {
        set_mode(&path, refused);
        let error = Home::open(&path).unwrap_err().to_string();
        let command = format!("type `chmod 700 {}`", home.path().display());
        assert!(error.starts_with("others can write to") && error.contains(&command), "{error}");
    }
    // Making a folder like `/tmp` private would take it away from all other users.
    set_mode(&path, 0o1777);
    assert!(matches!(Home::open(&path), Err(HomeError::Shared { .. })));
    for fine in [0o700, 0o755, 0o500] {
        set_mode(&path, fine);
        assert_eq!(Home::open(&path).unwrap(), home, "{fine:o}");
    }
}

#[test]
fn keys_that_others_can_write_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home");
    let home = Home::open(&path).unwrap();
    set_mode(&home.keys_path(), 0o770);
    assert!(matches!(Home::open(&path), Err(HomeError::OthersCanWrite { .. })));
    set_mode(&home.keys_path(), 0o700);
    Home::open(&path).unwrap();
}

#[test]
fn a_home_that_others_can_put_another_in_place_of_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let above = directory.path().join("above");
    let path = above.join("home");
    Home::open(&path).unwrap();
    set_mode(&above, 0o777);
    let error = Home::open(&path).unwrap_err();
    assert!(matches!(error, HomeError::ReplaceableByOthers { .. }), "{error}");
    assert!(error.to_string().contains("chmod o-w"), "{error}");
    // With the sticky bit, every user can add files, but none can replace those of others.
    set_mode(&above, 0o1777);
    Home::open(&path).unwrap();
}

#[test]
fn a_link_to_an_own_directory_is_followed_once_and_for_all() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    let home = Home::open(&real).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(Home::open(&link).unwrap(), home, "no link is left in the path");
}

#[test]
fn a_link_to_a_directory_that_others_can_write_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    fs::create_dir(&real).unwrap();
    set_mode(&real, 0o777);
    symlink(&real, &link).unwrap();
    assert!(matches!(Home::open(&link), Err(HomeError::OthersCanWrite { .. })));
    set_mode(&real, 0o700);
    Home::open(&link).unwrap();
}

#[test]
fn a_link_that_leads_nowhere_is_refused_and_nothing_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    symlink(directory.path().join("nowhere"), &link).unwrap();
    assert!(matches!(Home::open(&link), Err(HomeError::DanglingLink { .. })));
    assert!(!directory.path().join("nowhere").exists());
}

#[test]
fn a_file_is_no_home() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home");
    fs::write(&path, "").unwrap();
    assert!(matches!(Home::open(&path), Err(HomeError::NotADirectory { .. })));
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home");
    let home = Home::open(&path).unwrap();
    let own = fs::metadata(home.path()).unwrap();
    check_owner(home.path(), &own).unwrap();
    // Only root can give a directory away. Other users test with one that root owns: the root
    // directory.
    let other = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        path
    } else {
        Path::new("/").to_owned()
    };
    let error = Home::open(&other).unwrap_err();
    assert!(matches!(error, HomeError::NotOurs { .. }), "{error}");
    assert!(error.to_string().contains("belongs to another user"), "{error}");
}

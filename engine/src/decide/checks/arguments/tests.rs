//! Paths on this machine, in every way that a server could read them.

use super::check_path;
use policy::preflight::{PathFault, Workspace};
use std::os::unix::fs::symlink;

#[test]
fn links_are_followed_in_every_reading_of_a_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let base = directory.path().canonicalize().expect("a path");
    let work = base.join("work");
    std::fs::create_dir_all(work.join("real")).expect("folders");
    std::fs::create_dir(base.join("other")).expect("a folder");
    symlink(base.join("other"), work.join("out")).expect("a link");
    symlink("real", work.join("in")).expect("a link");
    let workspace = Workspace::new(work.to_str().expect("text")).expect("a workspace");
    for inside in ["real/a", "in/a", "%69n/a", "in\\a", "re%61l%2fa", "a%20b"] {
        assert_eq!(check_path(&workspace, inside, true), Ok(()), "{inside}");
    }
    for outside in ["out/a", "%6fut/a", "%256fut/a", "out\\a", "o%75t%2fa", "real\\..\\out"] {
        assert_eq!(check_path(&workspace, outside, true), Err(PathFault::Link), "{outside}");
    }
}

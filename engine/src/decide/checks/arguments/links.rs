//! Resolves the links of a path on this machine. A link may change between this check and the
//! server's own use; only a sandbox prevents that.

use policy::preflight::{PathFault, Workspace};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Checks that a path ends in the workspace, both as given and as read by a server that normalizes
/// it first.
pub(super) fn check(workspace: &Workspace, text: &str) -> Result<(), PathFault> {
    let root = std::fs::canonicalize(workspace.as_str()).map_err(|_| PathFault::Outside)?;
    let path = Path::new(workspace.as_str()).join(text);
    is_inside(&root, &path)?;
    let tidied = tidied(&path);
    if tidied == path { Ok(()) } else { is_inside(&root, &tidied) }
}

/// Resolves the existing part of a path. The missing part would be created below it.
fn is_inside(root: &Path, path: &Path) -> Result<(), PathFault> {
    for known in path.ancestors() {
        match std::fs::canonicalize(known) {
            Ok(real) if real.starts_with(root) => return Ok(()),
            Ok(_) => return Err(PathFault::Link),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A dangling link would be followed once its target is created.
                if std::fs::symlink_metadata(known).is_ok() {
                    return Err(PathFault::Link);
                }
            }
            Err(_) => return Err(PathFault::Outside),
        }
    }
    Err(PathFault::Outside)
}

fn tidied(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => tidied.push(part),
        }
    }
    tidied
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_lead_out_of_the_workspace_are_refused_and_others_are_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let base = directory.path().canonicalize().expect("a path");
        let work = base.join("work");
        std::fs::create_dir_all(work.join("real/deep")).expect("folders");
        std::fs::create_dir(base.join("other")).expect("a folder");
        std::fs::write(base.join("other/secret"), "x").expect("a file");
        symlink(base.join("other"), work.join("out")).expect("a link");
        symlink(base.join("other/secret"), work.join("file")).expect("a link");
        symlink(base.join("nowhere"), work.join("dangling")).expect("a link");
        symlink("real", work.join("in")).expect("a link");
        symlink("loop", work.join("loop")).expect("a link");
        let workspace = Workspace::new(work.to_str().expect("text")).expect("a workspace");
        let whole = work.join("real/new").display().to_string();
        for inside in ["", ".", "real", "in/deep", "real/new/file.txt", "in/../real", "new", &whole]
        {
            assert_eq!(check(&workspace, inside), Ok(()), "{inside}");
        }
        for outside in
            ["out", "out/secret", "out/new", "file", "dangling", "in/../out/x", "out/../real"]
        {
            assert_eq!(check(&workspace, outside), Err(PathFault::Link), "{outside}");
        }
        assert_eq!(check(&workspace, "loop/x"), Err(PathFault::Outside));
        let gone = Workspace::new("/holdpoint/no/such/folder").expect("a workspace");
        assert_eq!(check(&gone, "x"), Err(PathFault::Outside));
    }
}

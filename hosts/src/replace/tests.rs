use super::*;

fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|name| name.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_file_is_replaced_and_nothing_is_left_over() {
    let (folder, path) = file(b"old");
    assert_eq!(replace(&path, b"old", b"new").unwrap(), Swap::Done);
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(&folder), ["mcp.json"]);
}

#[test]
fn a_file_that_is_another_by_now_is_not_replaced() {
    let (folder, path) = file(b"other");
    assert_eq!(replace(&path, b"old", b"new").unwrap(), Swap::Moved);
    assert_eq!(fs::read(&path).unwrap(), b"other");
    assert_eq!(names(&folder), ["mcp.json"]);
}

#[cfg(unix)]
#[test]
fn a_write_between_looking_and_replacing_is_seen_and_undone() {
    let (folder, path) = file(b"written just now");
    let mut temporary = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&folder).unwrap();
    temporary.write_all(b"new").unwrap();
    assert_eq!(exchange(temporary, &path, b"old").unwrap(), Swap::Moved);
    assert_eq!(fs::read(&path).unwrap(), b"written just now");
    assert_eq!(names(&folder), ["mcp.json"]);
}

#[cfg(unix)]
#[test]
fn mode_and_link_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = file(b"old");
    for mode in [0o600, 0o640, 0o664] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let link = folder.path().join(format!("link-{mode:o}"));
        std::os::unix::fs::symlink("mcp.json", &link).unwrap();
        let before = fs::read(&path).unwrap();
        let new = format!("new {mode:o}");
        assert_eq!(replace(&link, &before, new.as_bytes()).unwrap(), Swap::Done);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), new);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[cfg(unix)]
#[test]
fn files_that_replacing_would_change_otherwise_are_left() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = file(b"old");
    let attempt = |path: &Path| replace(path, b"old", b"new");
    fs::hard_link(&path, folder.path().join("second")).unwrap();
    assert!(matches!(attempt(&path), Err(ReplaceError::Linked)));
    fs::remove_file(folder.path().join("second")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(matches!(attempt(&path), Err(ReplaceError::ReadOnly)));
    assert!(matches!(attempt(folder.path()), Err(ReplaceError::NotAFile)));
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn only_old_leftovers_of_ours_are_swept() {
    let (folder, path) = file(b"old");
    let left = |name: &str, hours: u64| {
        let file = File::create(folder.path().join(name)).unwrap();
        let at = std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
        file.set_modified(at).unwrap();
    };
    left(".holdpoint-abc.tmp", 1);
    left(".holdpoint-new.tmp", 0);
    left("other.tmp", 1);
    sweep(&path);
    let mut names = names(&folder);
    names.sort();
    assert_eq!(names, [".holdpoint-new.tmp", "mcp.json", "other.tmp"]);
}

#[cfg(unix)]
#[test]
fn what_we_keep_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _) = file(b"");
    let path = folder.path().join("kept");
    write_private(&path, b"secret").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A writer that writes this many times, each time just before an exchange.
#[cfg(unix)]
fn put_back_beside(writes: usize) -> (bool, Vec<u8>, usize) {
    let newest = |number: usize| format!("write {number}").into_bytes();
    let (mut file, mut temporary) = (b"ours".to_vec(), newest(0));
    let (placed, out) = (file.clone(), temporary.clone());
    let mut swaps = 0;
    let is_settled = put_back(placed, out, || {
        swaps += 1;
        if swaps <= writes {
            file = newest(swaps);
        }
        std::mem::swap(&mut file, &mut temporary);
        Ok(temporary.clone())
    });
    let is_settled = is_settled.unwrap();
    (is_settled, if is_settled { file } else { temporary }, swaps)
}

#[cfg(unix)]
#[test]
fn what_was_written_last_is_put_back_up_to_the_limit_and_kept_past_it() {
    for writes in [0, 1, 2, MAX_SWAPS - 1] {
        let newest = format!("write {writes}").into_bytes();
        assert_eq!(put_back_beside(writes), (true, newest, writes + 1));
    }
    // The loop gives up: the newest content is what came out last, and is put back without another
    // check.
    let newest = format!("write {MAX_SWAPS}").into_bytes();
    assert_eq!(put_back_beside(MAX_SWAPS), (false, newest, MAX_SWAPS));
}

#[test]
fn so_many_leftovers_are_swept_at_once_and_no_more() {
    for (count, left) in [(MAX_SWEPT, 0), (MAX_SWEPT + 1, 1)] {
        let (folder, path) = file(b"old");
        for number in 0..count {
            let file = File::create(folder.path().join(format!("{PREFIX}{number}.tmp"))).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * MIN_LEFT).unwrap();
        }
        sweep(&path);
        assert_eq!(names(&folder).len(), 1 + left);
    }
}

#[test]
fn what_is_as_old_as_the_limit_stays_and_what_is_older_goes() {
    assert!(!is_left_over(MIN_LEFT));
    assert!(is_left_over(MIN_LEFT + Duration::from_nanos(1)));
}

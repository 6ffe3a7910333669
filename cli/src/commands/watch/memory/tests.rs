use super::*;

fn servers(path: &str, names: &[&str]) -> BTreeSet<Known> {
    let known =
        |name: &&str| Known { path: PathBuf::from(path), project: None, name: (*name).to_owned() };
    names.iter().map(known).collect()
}

fn take(memory: &mut Memory, path: &str, names: &[&str]) -> Vec<String> {
    let new = memory.take(Path::new(path), servers(path, names));
    new.into_iter().map(|known| known.name).collect()
}

/// A memory whose starting point has these servers.
fn begun(folder: &Path, names: &[&str]) -> Memory {
    let mut memory = Memory::read(folder);
    assert!(take(&mut memory, "/a", names).is_empty());
    memory.keep().unwrap();
    memory
}

#[test]
fn what_is_there_at_first_is_not_new_and_what_comes_later_is_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = begun(folder.path(), &["x"]);
    assert_eq!(take(&mut memory, "/a", &["x", "y"]), ["y"]);
    assert!(take(&mut memory, "/a", &["x", "y"]).is_empty());
    assert_eq!(take(&mut memory, "/b", &["x"]), ["x"], "the same name in another file is another");
}

#[test]
fn what_was_seen_is_remembered_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path(), &["x"]);
    let mut next = Memory::read(folder.path());
    assert_eq!(take(&mut next, "/a", &["x", "y"]), ["y"]);
}

#[test]
fn what_went_and_comes_back_is_new_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = begun(folder.path(), &["x", "y"]);
    assert!(take(&mut memory, "/a", &["x"]).is_empty());
    assert_eq!(take(&mut memory, "/a", &["x", "y"]), ["y"]);
}

#[test]
fn a_file_that_could_not_be_read_at_first_has_nothing_new_once_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::read(folder.path());
    memory.could_not_read(Path::new("/a"));
    memory.keep().unwrap();
    let mut memory = Memory::read(folder.path());
    memory.could_not_read(Path::new("/b"));
    assert!(take(&mut memory, "/a", &["x"]).is_empty());
    assert_eq!(take(&mut memory, "/a", &["x", "y"]), ["y"]);
    assert_eq!(take(&mut memory, "/b", &["x"]), ["x"], "a file that came later is new as a whole");
}

#[test]
fn a_server_that_was_written_back_is_news_once_until_it_is_wired() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = begun(folder.path(), &["x"]);
    for known in servers("/a", &["x"]) {
        assert!(memory.returned(&known) && !memory.returned(&known));
        memory.is_wired(&known);
        assert!(memory.returned(&known));
    }
}

#[test]
fn what_is_forgotten_is_new_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = begun(folder.path(), &["x"]);
    for known in servers("/a", &["x"]) {
        memory.forget(&known);
    }
    assert_eq!(take(&mut memory, "/a", &["x"]), ["x"]);
}

#[test]
fn at_most_so_many_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = begun(folder.path(), &[]);
    let names: Vec<String> = (0..=MAX_KNOWN).map(|number| format!("{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(take(&mut memory, "/a", &names).len(), MAX_KNOWN);
    memory.keep().unwrap();
    assert!(!Memory::read(folder.path()).is_first, "a full memory can be read back");
}

#[test]
fn an_unreadable_file_starts_empty() {
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path(), &["x"]);
    std::fs::write(folder.path().join(FILE), "{").unwrap();
    begun(folder.path(), &["x", "y"]);
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    begun(folder.path(), &["x"]);
    let found = std::fs::metadata(folder.path().join(FILE)).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
}

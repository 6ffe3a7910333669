use super::*;
use std::process::Command;

/// A folder for using git, if git is installed.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Option<Place> {
        let place = Place(tempfile::tempdir().unwrap());
        let has_git = Command::new("git").arg("--version").output().is_ok();
        if !has_git {
            eprintln!("not run: there is no git");
        }
        has_git.then_some(place)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    #[track_caller]
    fn git(&self, folder: &str, words: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b.example"])
            .args(["-c", "protocol.file.allow=always"])
            .args(words)
            .current_dir(self.at(folder))
            .env_remove("GIT_DIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn repository(&self, folder: &str, options: &[&str]) {
        fs::create_dir_all(self.at(folder)).unwrap();
        self.git(folder, &[&["init", "-q"], options].concat());
        self.git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    #[track_caller]
    fn check(&self, folder: &str, kept: &[&str], empty: &[&str]) {
        let all = |paths: &[&str]| paths.iter().map(|path| self.at(path)).collect::<BTreeSet<_>>();
        let found = run_by_git(&self.at(folder)).unwrap();
        assert_eq!(found, RunByGit { kept: all(kept), empty: all(empty) }, "{folder}");
    }
}

#[test]
fn submodules_are_found_by_the_index_whatever_gitmodules_says() {
    let Some(place) = Place::new() else { return };
    place.repository("repo", &[]);
    place.repository("repo/libs/one", &[]);
    fs::write(place.at("repo/a file"), "x").unwrap();
    place.git("repo", &["add", "a file", "libs/one"]);
    place.check("repo", &["repo/libs/one/.git"], &[]);
    // A subfolder of a repository is treated like the whole.
    place.check("repo/libs", &["repo/libs/one/.git"], &[]);
    place.check("repo/libs/one", &[], &[]);
    // A nested submodule.
    place.repository("repo/libs/one/two", &[]);
    place.git("repo/libs/one", &["add", "two"]);
    place.check("repo", &["repo/libs/one/.git", "repo/libs/one/two/.git"], &[]);
    // Other versions of the index format.
    place.git("repo", &["update-index", "--index-version", "4"]);
    place.check("repo", &["repo/libs/one/.git", "repo/libs/one/two/.git"], &[]);
    place.git("repo", &["update-index", "--split-index"]);
    place.check("repo", &["repo/libs/one/.git", "repo/libs/one/two/.git"], &[]);
    // Removed from the work tree but not from the index.
    fs::remove_dir_all(place.at("repo/libs")).unwrap();
    place.check("repo", &[], &["repo/libs/one"]);
}

#[test]
fn longer_hashes_and_further_work_trees_are_read() {
    let Some(place) = Place::new() else { return };
    place.repository("repo", &["--object-format=sha256"]);
    place.repository("repo/one", &["--object-format=sha256"]);
    place.git("repo", &["add", "one"]);
    place.check("repo", &["repo/one/.git"], &[]);
    place.git("repo", &["commit", "-q", "-m", "second"]);
    place.git("repo", &["worktree", "add", "-q", "../other"]);
    place.check("other", &[], &["other/one"]);
}

#[test]
fn a_repository_under_another_name_is_kept_too() {
    let Some(place) = Place::new() else { return };
    place.repository("project/main", &[]);
    fs::rename(place.at("project/main/.git"), place.at("project/.bare")).unwrap();
    fs::write(place.at("project/main/.git"), "gitdir: ../.bare\n").unwrap();
    fs::write(place.at("project/.git"), "gitdir: ./.bare\n").unwrap();
    place.check("project", &["project/.bare"], &[]);
    place.check("project/main", &[], &[]);
}

#[test]
fn what_a_configuration_names_is_found() {
    let Some(place) = Place::new() else { return };
    place.repository("repo", &[]);
    place.git("repo", &["config", "core.hooksPath", "tools/hooks"]);
    place.git("repo", &["config", "include.path", "../shared.gitconfig"]);
    place.git("repo", &["config", "includeIf.gitdir:/x.path", "/somewhere/else"]);
    place.check("repo", &[], &["repo/tools/hooks"]);
    fs::create_dir_all(place.at("repo/tools/hooks")).unwrap();
    fs::write(place.at("repo/shared.gitconfig"), "").unwrap();
    place.check("repo", &["repo/shared.gitconfig", "repo/tools/hooks"], &[]);
    place.check("repo/tools", &["repo/tools/hooks"], &[]);
}

#[test]
fn what_is_no_repository_has_nothing_and_a_broken_index_is_refused() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.at("plain/.git")).unwrap();
    place.check("plain", &[], &[]);
    place.repository("repo", &[]);
    fs::write(place.at("repo/.git/index"), b"DIRC\0\0\0\x02\0\0\0\x09").unwrap();
    let refusal = run_by_git(&place.at("repo")).unwrap_err().to_string();
    assert!(refusal.contains("submodules are not known"), "{refusal}");
}

#[test]
fn settings_are_read_as_git_writes_them() {
    let read = |text: &str| -> Vec<(String, String, String)> {
        settings(text).map(|it| (it.section, it.key, it.value)).collect()
    };
    let one = |section: &str, key: &str, value: &str| {
        vec![(section.to_owned(), key.to_owned(), value.to_owned())]
    };
    assert_eq!(read("[submodule \"a]b\"]\n\tpath = x y ; note\n"), one("submodule", "path", "x y"));
    assert_eq!(read("[Core] HooksPath = \"h\""), one("core", "hookspath", "h"));
    assert_eq!(read("[includeIf \"gitdir:~/w/\"]\n path=p#x"), one("includeif", "path", "p"));
    assert!(read("[core]\n\tbare\n# path = x\n[unfinished\npath = \n").is_empty());
}

#[test]
fn any_bytes_are_read_without_a_fault() {
    let mut bytes = b"DIRC\0\0\0\x04\xff\xff\xff\xff".to_vec();
    assert_eq!(index::links(&bytes, 20), None);
    bytes.extend([0xff; 200]);
    assert_eq!(index::links(&bytes, 20), None);
    for length in 0..bytes.len() {
        let _ = index::links(&bytes[..length], 32);
    }
    assert_eq!(index::links(b"", 20), None);
}

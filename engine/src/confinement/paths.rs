//! Determines which paths a launch needs to see: the code that it runs, and the existing paths in
//! its arguments.

use std::path::{Component, Path, PathBuf};

/// System folders. One of these, or a folder above one, is never shown just because a word names
/// it.
const OF_SYSTEM: [&str; 14] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/sbin",
    "/sys", "/tmp", "/usr",
];
/// Where credentials are stored: a user's, given as the end of a folder in any home, and the
/// system's. They are shown only if the operator lists them as files to read, never because a word
/// of a launch names one.
const CREDENTIALS: [&str; 27] = [
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".claude.json",
    ".codex",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".holdpoint",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    "/etc/gshadow",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
];
/// Files that mark the folder of a project.
const PROJECT_FILES: [&str; 4] = ["package.json", "pyproject.toml", "setup.py", "deno.json"];

/// The existing paths in a launch's words, without duplicates. Relative ones are resolved against
/// `within`.
pub(super) fn named_paths(words: &[String], within: Option<&Path>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for word in words {
        let value = word.split_once('=').map(|(_, value)| value);
        for text in [Some(word.as_str()), value].into_iter().flatten() {
            let Some(path) = existing(text, within) else { continue };
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn existing(text: &str, within: Option<&Path>) -> Option<PathBuf> {
    if text.is_empty() || text.starts_with('-') || text.contains("://") || text.contains('\0') {
        return None;
    }
    let path = Path::new(text);
    let path = if path.is_absolute() { path.to_owned() } else { within?.join(path) };
    let path = without_dots(&path)?;
    let is_of_system = OF_SYSTEM.iter().any(|folder| path == Path::new(folder));
    (!is_of_system && path.exists() && !holds_credentials(&path)).then_some(path)
}

/// Whether a path is in a place where credentials are stored, also through links.
pub fn holds_credentials(path: &Path) -> bool {
    let real = path.canonicalize();
    [Some(path), real.as_deref().ok()].into_iter().flatten().any(|path| {
        path.ancestors().any(|part| CREDENTIALS.iter().any(|place| part.ends_with(place)))
    })
}

/// The path with `.` and `..` resolved textually.
fn without_dots(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => plain.push(part),
        }
    }
    plain.is_absolute().then_some(plain)
}

/// What must be visible to run a code file: the folder of its packages, of its project, or its own
/// folder; only the file itself if that folder is a user's home or a system folder. `real` must not
/// contain links.
pub(super) fn code_root(real: &Path, user_home: Option<&Path>) -> PathBuf {
    let is_too_wide = |folder: &Path| {
        let is_above_home = user_home.is_some_and(|home| home.starts_with(folder));
        is_above_home || OF_SYSTEM.iter().any(|known| folder == Path::new(known))
    };
    let modules = real.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
    if let Some(modules) = modules {
        return modules.to_owned();
    }
    let is_project = |folder: &&Path| PROJECT_FILES.iter().any(|name| folder.join(name).is_file());
    let project =
        real.ancestors().skip(1).take_while(|folder| !is_too_wide(folder)).find(is_project);
    let own = real.parent().filter(|folder| !is_too_wide(folder));
    project.or(own).unwrap_or(real).to_owned()
}

/// The npm package that a file belongs to, according to its path.
pub(super) fn npm_package_of(file: &Path) -> Option<String> {
    let real = file.canonicalize().ok()?;
    let mut parts = real.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let all: Vec<String> = parts.by_ref().collect();
    let at = all.iter().rposition(|part| part == "node_modules")?;
    match (all.get(at + 1)?, all.get(at + 2)) {
        (scope, Some(name)) if scope.starts_with('@') => Some(format!("{scope}/{name}")),
        (name, _) => Some(name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn existing_paths_in_words_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["data", "work"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let absolute = root.join("data").display().to_string();
        let words: Vec<String> = [
            "-y",
            "files",
            &absolute,
            "--root=./work",
            "data/../work",
            "/nowhere/at/all",
            "/",
            "/etc",
            "/tmp",
            "https://a.example/x",
        ]
        .map(str::to_owned)
        .to_vec();
        let found = named_paths(&words, Some(&root));
        assert_eq!(found, [root.join("data"), root.join("work")]);
        assert_eq!(named_paths(&words, None), [root.join("data")]);
    }

    #[test]
    fn a_word_never_shows_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".ssh")).unwrap();
        fs::write(root.join(".ssh/id_ed25519"), "").unwrap();
        fs::write(root.join(".sshrc"), "").unwrap();
        std::os::unix::fs::symlink(root.join(".ssh/id_ed25519"), root.join("link")).unwrap();
        let words = [".ssh", ".ssh/id_ed25519", "link", "/etc/shadow", ".sshrc"].map(str::to_owned);
        assert_eq!(named_paths(&words, Some(&root)), [root.join(".sshrc")]);
    }

    #[test]
    fn code_is_shown_with_what_it_loads_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let file = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let module = file("p/node_modules/@s/mail/dist/index.js");
        assert_eq!(code_root(&module, None), root.join("p/node_modules"));
        assert_eq!(npm_package_of(&module).as_deref(), Some("@s/mail"));
        let script = file("q/src/deep/server.js");
        file("q/package.json");
        assert_eq!(code_root(&script, None), root.join("q"));
        assert_eq!(npm_package_of(&script), None);
        let alone = file("r/server.py");
        assert_eq!(code_root(&alone, None), root.join("r"));
        assert_eq!(code_root(&alone, Some(&root.join("r"))), alone);
        file("package.json");
        assert_eq!(code_root(&alone, Some(&root.join("r/home"))), alone);
    }
}

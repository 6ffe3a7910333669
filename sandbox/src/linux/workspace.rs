//! Writable folders: which folders may be made writable, and which parts of them stay read-only
//! because other programs run them.

use super::plan::{Node, NodeAccess, NodeKind};
use super::repository::{RunByGit, run_by_git};
use crate::refusal::Refusal;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The subfolder of Holdpoint's home with the homes and packages of servers, which may be shown to
/// them.
const LENT_FOLDER: &str = "sandbox";

/// Folders in a workspace whose files other programs run without asking.
const PROTECTED_FOLDERS: [&str; 4] = [".claude", ".cursor", ".idea", ".vscode"];
/// Further items of this kind, which are protected if they exist: shell start files, git settings,
/// and the project files in which MCP hosts configure what they start.
const PROTECTED_IF_THERE: [&str; 24] = [
    ".amazonq",
    ".bash_profile",
    ".bashrc",
    ".codex",
    ".continue",
    ".envrc",
    ".gemini",
    ".github/mcp.json",
    ".gitmodules",
    ".husky",
    ".junie",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".profile",
    ".qwen",
    ".roo",
    ".warp",
    ".zed",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "opencode.json",
    "opencode.jsonc",
];
/// The parts of a writable repository that name programs for git to run.
const PROTECTED_OF_GIT: [&str; 2] = ["config", "hooks"];

/// System folders that no profile may make writable.
const OF_THE_SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/var/run",
];

/// Resolves a folder or file to be shown, and refuses one that would expose too much.
pub(super) fn resolve(path: &Path, never_visible: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let refused = |why: &str| Refusal::Path { path: path.to_owned(), why: why.to_owned() };
    if !path.is_absolute() {
        return Err(refused("its path is not absolute"));
    }
    let real = fs::canonicalize(path).map_err(|error| refused(&error.to_string()))?;
    if real == Path::new("/") {
        return Err(refused("it is the whole file system"));
    }
    let is_a_home = ["/home", "/root"].iter().any(|home| real == Path::new(home))
        || real.parent() == Some(Path::new("/home"));
    if is_a_home || home().is_some_and(|home| home.starts_with(&real)) {
        return Err(refused("it is a home of a user, or holds one"));
    }
    for hidden in never_visible.iter().filter_map(|hidden| fs::canonicalize(hidden).ok()) {
        let is_lent =
            real.starts_with(hidden.join(LENT_FOLDER)) && real != hidden.join(LENT_FOLDER);
        if hidden.starts_with(&real) || (real.starts_with(&hidden) && !is_lent) {
            return Err(refused("it is the home of Holdpoint, or holds it"));
        }
    }
    Ok(real)
}

/// Like [`resolve`], for a path that is to be writable.
pub(super) fn resolve_writable(path: &Path, never_visible: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let real = resolve(path, never_visible)?;
    let is_of_the_system = OF_THE_SYSTEM.iter().any(|folder| real.starts_with(folder));
    let holds_system = OF_THE_SYSTEM.iter().any(|folder| Path::new(folder).starts_with(&real));
    if is_of_the_system || holds_system {
        return Err(Refusal::Path {
            path: path.to_owned(),
            why: "it belongs to the system".to_owned(),
        });
    }
    Ok(real)
}

/// The home of the user who runs Holdpoint.
fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    fs::canonicalize(home).ok()
}

/// Folders created to prevent the program from creating them. Each is removed once no sandbox needs
/// it anymore.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    held: Vec<(PathBuf, File)>,
}

impl Placeholders {
    /// Creates an empty folder, or shares an existing one with other holders. A leftover folder is
    /// removed along with the others.
    fn hold(&mut self, path: &Path) -> std::io::Result<()> {
        match fs::create_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let folder = File::open(path)?;
        folder.lock_shared()?;
        self.held.push((path.to_owned(), folder));
        Ok(())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (path, folder) in self.held.drain(..) {
            // If another sandbox holds it, that one removes it. A folder with contents belongs to
            // the user by now, and stays.
            if folder.try_lock().is_ok() {
                let _ = fs::remove_dir(path);
            }
        }
    }
}

/// The nodes that keep parts of a writable folder read-only. With `placeholders`, missing folders
/// are created, so that the program cannot create them.
///
/// A whole repository is read-only: a program that can write its index, or a file `commondir`, can
/// make git run any program at the next `git status`. It is writable only if the profile names
/// `.git` itself.
pub(super) fn protect(
    folder: &Path,
    owned: bool,
    mut placeholders: Option<&mut Placeholders>,
) -> Result<Vec<Node>, Refusal> {
    if is_repository(folder) {
        return protect_repository(folder, owned, placeholders);
    }
    let mut nodes = Vec::new();
    let bind = |path: PathBuf, access| {
        let kind = NodeKind::Bind { source: path.clone(), access, owned, optional: false };
        Node::new(path, kind)
    };
    for name in PROTECTED_FOLDERS.iter().chain(&PROTECTED_IF_THERE) {
        let path = folder.join(name);
        let is_there = is_there_without_links(folder, &path)?;
        if let Some(placeholders) = placeholders.as_deref_mut()
            && PROTECTED_FOLDERS.contains(name)
            && (!is_there || is_empty(&path))
        {
            placeholders.hold(&path).map_err(failed(&path))?;
            nodes.push(bind(path, NodeAccess::Read));
        } else if is_there {
            nodes.push(bind(path, NodeAccess::Read));
        }
    }
    let git = folder.join(".git");
    if is_protectable(&git)? && !is_empty(&git) {
        // A folder, or the file that links a work tree to its repository.
        nodes.push(bind(git, NodeAccess::Read));
    } else if let Some(placeholders) = placeholders.as_deref_mut() {
        // Without a repository, git would treat the folder itself as one if it had a file `HEAD`
        // and two folders.
        for path in [git, folder.join("HEAD")] {
            if is_protectable(&path)? && !path.is_dir() {
                nodes.push(bind(path, NodeAccess::Read));
                continue;
            }
            placeholders.hold(&path).map_err(failed(&path))?;
            nodes.push(bind(path, NodeAccess::Read));
        }
    }
    let RunByGit { kept, empty } = run_by_git(folder)?;
    for path in kept {
        if is_there_without_links(folder, &path)? {
            nodes.push(bind(path, NodeAccess::Read));
        }
    }
    for path in empty {
        if is_there_without_links(folder, &path)? {
            nodes.push(bind(path, NodeAccess::Read));
        } else if let Some(placeholders) = placeholders.as_deref_mut() {
            let missing = first_missing(folder, &path);
            placeholders.hold(&missing).map_err(failed(&missing))?;
            nodes.push(bind(missing, NodeAccess::Read));
        }
    }
    Ok(nodes)
}

/// The paths from just below a folder down to a path, inclusive.
fn way(folder: &Path, path: &Path) -> Vec<PathBuf> {
    let mut way: Vec<PathBuf> =
        path.ancestors().take_while(|part| *part != folder).map(Path::to_owned).collect();
    way.reverse();
    way
}

/// Whether a path exists. A link on the way to it is refused, because the program could replace it
/// with a folder.
fn is_there_without_links(folder: &Path, path: &Path) -> Result<bool, Refusal> {
    for part in way(folder, path) {
        if !is_protectable(&part)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn first_missing(folder: &Path, path: &Path) -> PathBuf {
    let missing = way(folder, path).into_iter().find(|part| fs::symlink_metadata(part).is_err());
    missing.unwrap_or_else(|| path.to_owned())
}

/// Whether git stores a repository in a folder: `.git`, or a bare one.
pub(super) fn is_repository(folder: &Path) -> bool {
    let is_bare = || folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    folder.file_name().is_some_and(|name| name == ".git") || is_bare()
}

/// The nodes that keep parts of an otherwise writable repository read-only.
fn protect_repository(
    git: &Path,
    owned: bool,
    mut placeholders: Option<&mut Placeholders>,
) -> Result<Vec<Node>, Refusal> {
    let mut nodes = Vec::new();
    for name in PROTECTED_OF_GIT {
        let path = git.join(name);
        let mut is_there = is_protectable(&path)?;
        if !is_there
            && name == "hooks"
            && let Some(placeholders) = placeholders.as_deref_mut()
        {
            placeholders.hold(&path).map_err(failed(&path))?;
            is_there = true;
        }
        if is_there {
            let (source, access) = (path.clone(), NodeAccess::Read);
            let kind = NodeKind::Bind { source, access, owned, optional: false };
            nodes.push(Node::new(path, kind));
        }
    }
    Ok(nodes)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Refusal {
    let path = path.to_owned();
    move |error| Refusal::Path { path, why: error.to_string() }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether something exists that a mount can protect. A link cannot be protected: the program could
/// replace it.
fn is_protectable(path: &Path) -> Result<bool, Refusal> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(Refusal::Path {
            path: path.to_owned(),
            why: "it is a symbolic link, which cannot be kept read-only; put the file itself there"
                .to_owned(),
        }),
        Ok(_) => Ok(true),
        Err(_) => Ok(false),
    }
}

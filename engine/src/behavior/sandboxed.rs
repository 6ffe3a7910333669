//! The server of the sandbox leg: started without network access and without credentials, it sees
//! only a folder made for it and the files that it needs to run.

use super::snapshot::Snapshot;
use super::{Confined, Isolation, Watch};
use gate::behavior::Sighting;
use sandbox::{
    Access, AccessKind, Blocked, Embedder, Event, Events, FilePolicy, Launch, Level, Limits,
    NetworkPolicy, Outcome, Profile,
};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use wire::StdioLaunch;

/// The server's resource limits during a test.
const LIMITS: Limits = Limits {
    processes: 64,
    memory_bytes: 2 << 30,
    temporary_bytes: 64 << 20,
    file_bytes: 64 << 20,
    open_files: 1_024,
    connections: 8,
};
/// The variables of our environment that the server gets. None of them usually holds a credential.
const VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM"];
/// The most observations kept per program. In a flood, the first ones are enough.
const MAX_SEEN: usize = 100;
/// Files and folders that mark the folder of a package.
const PACKAGES: [&str; 3] = ["package.json", "node_modules", "pyproject.toml"];
/// How many parent folders of a script are searched for installed packages, and for the package it
/// belongs to.
const MAX_LEVELS: usize = 12;
const MAX_PACKAGE_LEVELS: usize = 3;
/// Folders that a program may write to whatever it claims, because their contents are discarded.
const OWN: [&str; 3] = ["/tmp", "/dev", "/proc"];
/// Entries in a procfs process folder that lead elsewhere.
const LEADING_ON: [&str; 5] = ["cwd", "fd", "map_files", "root", "task"];
/// The home, as a confined program sees it.
const HOME: &str = "/home/server";

/// Confines servers with the `sandbox` crate.
#[derive(Debug)]
pub struct SandboxIsolation {
    /// The path of this program, which acts as the helper.
    helper: PathBuf,
    /// Holdpoint's own home, which no server sees.
    home: PathBuf,
}

impl SandboxIsolation {
    pub fn new(helper: PathBuf, home: PathBuf) -> SandboxIsolation {
        SandboxIsolation { helper, home }
    }

    /// What a server that runs from this path needs: the folder in which its packages were
    /// installed, the package that a script belongs to, or else the path itself.
    fn tree_of(&self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        if path.is_dir() {
            return Some(path);
        }
        let folders = || path.ancestors().skip(1).take(MAX_LEVELS).filter(|it| self.may_show(it));
        let is_package = |folder: &&Path| PACKAGES.iter().any(|name| folder.join(name).exists());
        // Neighboring packages may be needed, and one may be installed inside another.
        let installed = folders().filter(|folder| folder.ends_with("node_modules")).last();
        let tree = installed.and_then(Path::parent).filter(|tree| self.may_show(tree));
        let tree = tree.or_else(|| folders().take(MAX_PACKAGE_LEVELS).find(is_package));
        Some(tree.map_or_else(|| path.clone(), Path::to_owned))
    }

    fn may_show(&self, folder: &Path) -> bool {
        let is_home = std::env::home_dir().is_some_and(|home| home.starts_with(folder));
        !is_home && !self.home.starts_with(folder) && folder.parent().is_some()
    }
}

impl Isolation for SandboxIsolation {
    fn confine(&self, launch: &StdioLaunch) -> Result<Confined, String> {
        let scratch = TempDir::with_prefix("holdpoint-behavior-")
            .map_err(|error| format!("no folder could be made for it: {error}"))?;
        let [work, home] = ["work", "home"].map(|name| scratch.path().join(name));
        for folder in [&work, &home] {
            std::fs::create_dir(folder)
                .map_err(|error| format!("no folder could be made for it: {error}"))?;
        }
        let seen = Arc::new(Seen::default());
        let words: Vec<Option<PathBuf>> =
            launch.arguments.iter().map(|word| existing(launch, word)).collect();
        let read: Vec<PathBuf> =
            words.iter().filter_map(|word| self.tree_of(word.as_ref()?)).collect();
        // The paths shown to it may be below `/tmp` too, but do not belong to it.
        let shown = read.iter().cloned().chain([work.clone()]).collect();
        let profile = Profile {
            files: FilePolicy::WorkspaceOnly,
            network: NetworkPolicy::BlockAll,
            workspace: Some(work.clone()),
            home: Some(home.clone()),
            read,
            limits: LIMITS,
            observe: true,
            minimum: Level::Full,
            ..Profile::default()
        };
        let embedder = Embedder {
            helper: self.helper.clone(),
            never_visible: vec![self.home.clone()],
            reach: crate::egress_reach,
            events: Seen::events(&seen, shown),
            switch: sandbox::EgressSwitch::default(),
        };
        let start = Launch {
            program: launch.program.clone(),
            arguments: words.iter().zip(&launch.arguments).map(absolute).collect(),
            environment: environment(),
            directory: None,
        };
        let confined = sandbox::confine(&profile, &start, &embedder)
            .map_err(|refusal| format!("it cannot be confined here: {refusal}"))?;
        let before = Mutex::new(Snapshot::default());
        let folders = [(work.clone(), work), (home, PathBuf::from(HOME))];
        let watch = Watched { watch: confined.watch, seen, folders, before, _scratch: scratch };
        Ok(Confined { command: confined.command, watch: Box::new(watch) })
    }
}

/// The existing path that a word of the launch names. It is made absolute, because the program
/// starts in another folder.
fn existing(launch: &StdioLaunch, word: &OsStr) -> Option<PathBuf> {
    let directory = launch.directory.clone().or_else(|| std::env::current_dir().ok())?;
    let path = directory.join(word);
    let is_option = word.as_encoded_bytes().first() == Some(&b'-');
    (!is_option && !word.is_empty() && path.exists()).then_some(path)
}

fn absolute((path, word): (&Option<PathBuf>, &OsString)) -> OsString {
    path.as_ref().map_or_else(|| word.clone(), |path| path.clone().into_os_string())
}

fn environment() -> Vec<(OsString, OsString)> {
    let known = VARIABLES.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    // Importing a module late must not count as a write by the tool.
    known.chain([("PYTHONDONTWRITEBYTECODE".into(), "1".into())]).collect()
}

/// The observations so far.
#[derive(Debug, Default)]
struct Seen {
    sighting: Mutex<Sighting>,
    failure: Mutex<Option<String>>,
}

impl Seen {
    fn events(seen: &Arc<Seen>, shown: Vec<PathBuf>) -> Events {
        let seen = Arc::clone(seen);
        Arc::new(move |event| match event {
            Event::Blocked(Blocked { host, port, .. }) => seen.change(|sighting| {
                let address = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
                push(&mut sighting.sockets, address);
            }),
            Event::Access(access) if is_write(&access, &shown) => seen.change(|sighting| {
                push(&mut sighting.written, access.path.to_string_lossy().into_owned());
            }),
            Event::Failed(why) => {
                *seen.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
            Event::Access(_) | Event::Connected { .. } | Event::Ended { .. } => {}
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Sighting) -> T) -> T {
        change(&mut self.sighting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn push(list: &mut Vec<String>, what: String) {
    if list.len() < MAX_SEEN {
        list.push(what);
    }
}

/// Whether a program wrote, or tried to write, outside the folders whose contents are discarded.
fn is_write(access: &Access, shown: &[PathBuf]) -> bool {
    let is_in = |folder: &Path| access.path.starts_with(folder);
    let is_own = !shown.iter().any(|folder| is_in(folder))
        && OWN.iter().any(|own| is_in(own.as_ref()))
        && !leads_on(&access.path);
    let is_tried = match access.outcome {
        Outcome::Allowed | Outcome::Denied => true,
        Outcome::NotThere => false,
    };
    match access.kind {
        AccessKind::Write => is_tried && !is_own,
        AccessKind::Read | AccessKind::Execute | AccessKind::Connect => false,
    }
}

/// Whether a procfs path leads to a file that cannot be identified. The program's own streams are
/// identified by their kind.
fn leads_on(path: &Path) -> bool {
    let parts: Vec<&OsStr> = path.iter().collect();
    let [_, first, _, kind, rest @ ..] = parts.as_slice() else { return false };
    let is_stream = matches!(rest, [name]
        if [&b"pipe:["[..], b"socket:["].iter().any(|kind| name.as_encoded_bytes().starts_with(kind)));
    *first == "proc" && LEADING_ON.iter().any(|name| kind == name) && !is_stream
}

struct Watched {
    watch: sandbox::Watch,
    seen: Arc<Seen>,
    /// The writable folders, each with its name inside.
    folders: [(PathBuf, PathBuf); 2],
    /// Their contents before the first call. A file that was already open can be written to without
    /// another event.
    before: Mutex<Snapshot>,
    _scratch: TempDir,
}

impl Watch for Watched {
    fn begin(&self) {
        self.seen.change(|sighting| *sighting = Sighting::default());
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Snapshot::of(&self.folders);
    }

    fn failure(&self) -> Option<String> {
        let failure = self.seen.failure.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(format!("it cannot be confined here: {failure}"))
    }

    fn sighting(self: Box<Self>) -> Sighting {
        let Watched { watch, seen, folders, before, _scratch } = *self;
        // Ends leftover processes, so that there can be no further events.
        drop(watch);
        let before = before.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut sighting = seen.change(std::mem::take);
        for path in before.changed(&Snapshot::of(&folders)) {
            push(&mut sighting.written, path.to_string_lossy().into_owned());
        }
        sighting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_counts_anywhere_but_in_what_is_thrown_away() {
        let shown = [PathBuf::from("/tmp/project"), PathBuf::from("/srv/work")];
        let counts = |path: &str, kind, outcome| {
            is_write(&Access { path: path.into(), kind, outcome }, &shown)
        };
        let writes = |path, outcome| counts(path, AccessKind::Write, outcome);
        assert!(writes("/home/server/x", Outcome::Allowed));
        assert!(writes("/srv/work/x", Outcome::Denied), "an attempt counts");
        assert!(writes("/tmp/project/x", Outcome::Denied), "what it is shown is not its own");
        assert!(!writes("/tmp/x", Outcome::Allowed) && !writes("/dev/null", Outcome::Allowed));
        assert!(!writes("/nowhere/x", Outcome::NotThere));
        assert!(!counts("/home/server/x", AccessKind::Read, Outcome::Allowed));
        assert!(!writes("/proc/7/fd/pipe:[12]", Outcome::Allowed), "its own output");
        assert!(!writes("/proc/7/oom_score_adj", Outcome::Denied));
        assert!(writes("/proc/7/cwd/x", Outcome::Denied), "it leads elsewhere");
        assert!(writes("/proc/7/fd/3", Outcome::Allowed));
        assert!(writes("(unreadable)", Outcome::Allowed));
    }

    #[test]
    fn a_script_is_shown_with_the_packages_that_are_installed_beside_it() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let isolation = |home: &str| SandboxIsolation::new("holdpoint".into(), root.join(home));
        let elsewhere = isolation("elsewhere/home");
        let script = make("app/node_modules/@scope/server/node_modules/dep/index.js");
        assert_eq!(elsewhere.tree_of(&script), Some(root.join("app")));
        make("own/package.json");
        let script = make("own/dist/index.js");
        assert_eq!(elsewhere.tree_of(&script), Some(root.join("own")));
        // Never a folder that contains Holdpoint's own home.
        assert_eq!(isolation("own/home").tree_of(&script), Some(script.clone()));
        let alone = make("alone/server.py");
        assert_eq!(elsewhere.tree_of(&alone), Some(alone));
    }
}

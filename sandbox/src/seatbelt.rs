//! Confinement on macOS with the system's `sandbox-exec`. Not tested. Its level is `partial`: no
//! process of ours wraps the program, and host allowlists are not supported, so a profile with one
//! is refused.

use crate::confine::{Confined, Embedder, Launch, State, Watch};
use crate::profile::{FilePolicy, Level, NetworkPolicy, Profile};
use crate::refusal::Refusal;
use crate::runtime::{DEFAULT_PATH, find_program, runtime_of};
use crate::support::Support;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

const PROGRAM: &str = "/usr/bin/sandbox-exec";
const WHY: &str = "macOS confines by sandbox-exec, without an allowlist of hosts";

/// The paths that every program may read.
const SYSTEM: [&str; 9] = [
    "/System",
    "/usr",
    "/bin",
    "/sbin",
    "/Library/Apple",
    "/private/etc/ssl",
    "/private/var/db/timezone",
    "/dev",
    "/opt/homebrew",
];

#[derive(Debug)]
pub(crate) struct Lifeline;

pub(crate) fn become_helper(_: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

pub(crate) fn confine(
    profile: &Profile,
    launch: &Launch,
    embedder: &Embedder,
) -> Result<Confined, Refusal> {
    let offered = Level::Partial;
    if profile.minimum > offered || profile.network == NetworkPolicy::Allowlist || profile.observe {
        return Err(Refusal::Level { asked: Level::Full, offered, why: WHY.to_owned() });
    }
    let search = launch.environment.iter().rev().find(|(name, _)| name == "PATH");
    let search = search.map_or_else(|| DEFAULT_PATH.into(), |(_, value)| value.clone());
    let directory = launch.directory.as_deref().or(profile.workspace.as_deref());
    let program = find_program(&launch.program, &search, directory).ok_or_else(|| {
        Refusal::ProgramNotFound { program: launch.program.to_string_lossy().into_owned() }
    })?;
    let mut command = Command::new(PROGRAM);
    command.arg("-p").arg(rules(profile, &program, &embedder.never_visible)?);
    command.arg(&program).args(&launch.arguments).env_clear();
    command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
    if let Some(home) = &profile.home {
        command.env("HOME", home).env("TMPDIR", home);
    }
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let state = Arc::new(State::default());
    state.ready();
    let level = offered.min(profile.level());
    Ok(Confined { command, watch: Watch { level, state, _lifeline: Lifeline } })
}

/// The profile in the system's language, in which later rules override earlier ones.
fn rules(profile: &Profile, program: &Path, never_visible: &[PathBuf]) -> Result<String, Refusal> {
    let mut rules = String::from(
        "(version 1)(deny default)(allow process-fork)(allow sysctl-read)(allow mach-lookup)(allow signal (target same-sandbox))",
    );
    let mut add = |what: &str, path: &Path| -> Result<(), Refusal> {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let text = real.to_str().filter(|text| !text.contains(['"', '\\', '\n']));
        let why = "its name cannot be written in a profile of sandbox-exec";
        let text = text.ok_or_else(|| Refusal::Path { path: real.clone(), why: why.to_owned() })?;
        rules.push_str(&format!("({what} (subpath \"{text}\"))"));
        Ok(())
    };
    if profile.files == FilePolicy::None {
        add("allow file* process-exec*", Path::new("/"))?;
    } else {
        let read = "allow file-read* process-exec*";
        let write = "allow file* process-exec*";
        let named = profile.read.iter().chain(&profile.packages).map(PathBuf::as_path);
        for path in SYSTEM.iter().map(Path::new).chain(named) {
            add(read, path)?;
        }
        for path in runtime_of(program, &profile.changeable()) {
            add(read, &path)?;
        }
        for path in profile.write.iter().chain(&profile.home) {
            add(write, path)?;
        }
        if let Some(workspace) = &profile.workspace {
            add(if profile.files == FilePolicy::WorkspaceOnly { write } else { read }, workspace)?;
            for name in
                [".git/hooks", ".git/config", ".vscode", ".idea", ".cursor", ".claude", ".mcp.json"]
            {
                add("deny file-write*", &workspace.join(name))?;
            }
        }
    }
    for path in never_visible {
        add("deny file*", path)?;
    }
    if profile.network == NetworkPolicy::None {
        rules.push_str("(allow network*)(allow system-socket)");
    }
    Ok(rules)
}

pub(crate) fn try_support(_: &Path) -> Support {
    let is_there = Path::new(PROGRAM).exists();
    let missing = || Some(WHY.to_owned());
    Support {
        level: if is_there { Level::Partial } else { Level::None },
        namespaces: missing(),
        landlock_abi: 0,
        seccomp: missing(),
        control_group: missing(),
    }
}

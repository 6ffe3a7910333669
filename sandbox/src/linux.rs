//! Confinement on Linux: namespaces with a separate file tree, Landlock, seccomp, limits, and an
//! egress proxy outside.

mod blocked_attempts;
mod child;
mod control;
mod control_group;
mod dns;
mod egress;
mod init;
mod layout;
mod memory;
mod network;
mod notify;
mod outer_process;
mod plan;
mod repository;
mod rules;
mod seccomp;
mod sys;
mod syscall_list;
mod tree;
mod workspace;

use crate::confine::{Confined, Embedder, Launch, State, Watch};
use crate::profile::{FilePolicy, Level, NetworkPolicy, Profile};
use crate::refusal::Refusal;
use crate::runtime::{DEFAULT_PATH, find_program, runtime_of};
use crate::support::Support;
use control::Report;
use plan::{NetworkPlan, Plan, User};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::net::SendFlags;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::AbortHandle;
use workspace::Placeholders;

/// The user that a program runs as if root starts it and no folder indicates another user.
const NOBODY: u32 = 65534;
/// How long to wait until a program and everything that it started are gone.
const END_TIMEOUT: Duration = Duration::from_secs(1);
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends the helper, and with it the program, on drop.
#[derive(Debug)]
pub(crate) struct Lifeline {
    control: OwnedFd,
    proxy: AbortHandle,
    state: Arc<State>,
    /// Must be dropped last.
    _placeholders: Placeholders,
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Write);
        // By then all of the helper's reports have been read, and nothing can write to the
        // workspace anymore, so the placeholders that protect it can be removed.
        self.state.ended_within(END_TIMEOUT);
        self.proxy.abort();
    }
}

/// Entry point for the fuzzer.
pub(crate) fn read_untrusted(bytes: &[u8]) {
    let rules = ["*.example.com".parse(), "api.example.org:8443".parse()];
    let rules: Vec<_> = rules.into_iter().flatten().collect();
    let _ = dns::answer(&rules, &mut dns::Names::default(), bytes);
    let _ = network::destination(bytes);
    for hash in [20, 32] {
        let _ = repository::index::links(bytes, hash);
    }
}

pub(crate) fn become_helper(words: impl Iterator<Item = OsString>) -> ExitCode {
    u8::try_from(outer_process::start(words)).map_or(ExitCode::FAILURE, ExitCode::from)
}

pub(crate) fn confine(
    profile: &Profile,
    launch: &Launch,
    embedder: &Embedder,
) -> Result<Confined, Refusal> {
    let level = level_for(profile, embedder)?;
    let setting = |name: &str| {
        let mut found = launch.environment.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.clone())
    };
    let search = setting("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let directory = launch.directory.as_deref().or(profile.workspace.as_deref());
    let program = find_program(&launch.program, &search, directory).ok_or_else(|| {
        Refusal::ProgramNotFound { program: launch.program.to_string_lossy().into_owned() }
    })?;
    let user = user(profile);
    let runtime = runtime_of(&program, &profile.changeable());
    let tree = layout::layout(profile, &runtime, user, &embedder.never_visible)?;
    let home = match (level, profile.files, &profile.home) {
        (Level::Full, FilePolicy::WorkspaceOnly | FilePolicy::ReadOnly, _) => layout::HOME.into(),
        (_, FilePolicy::None, _) => setting("HOME").map_or_else(|| "/".into(), PathBuf::from),
        (_, _, home) => home.clone().unwrap_or_else(|| "/".into()),
    };
    let mut arguments = vec![launch.program.clone()];
    arguments.extend(launch.arguments.iter().cloned());
    let plan = Plan {
        is_trial: false,
        level,
        files: profile.files,
        program,
        arguments,
        environment: environment(launch, &home, level, &search),
        directory: directory.map_or_else(|| home.clone(), Path::to_owned),
        nodes: tree.nodes,
        user,
        network: (profile.network != NetworkPolicy::None).then(|| NetworkPlan {
            rules: match profile.network {
                NetworkPolicy::Allowlist => profile.allow.clone(),
                NetworkPolicy::BlockAll | NetworkPolicy::None => Vec::new(),
            },
        }),
        limits: profile.limits.clone(),
        browser: profile.browser,
        observe: profile.observe,
    };
    let failed = |what| move |source| Refusal::System { what, source };
    let (control, command) = prepare(&plan, &embedder.helper).map_err(failed("its socket"))?;
    let held = control.try_clone().map_err(failed("its socket"))?;
    let state = Arc::new(State::default());
    let proxy = egress::Proxy {
        rules: plan.network.map(|network| network.rules).unwrap_or_default(),
        connections: profile.limits.connections,
        embedder: embedder.clone(),
        state: state.clone(),
        blocked: std::sync::Mutex::default(),
    };
    let proxy = egress::serve(control, proxy).map_err(failed("its proxy"))?;
    let lifeline =
        Lifeline { control: held, proxy, state: state.clone(), _placeholders: tree.placeholders };
    let watch = Watch { level: level.min(profile.level()), state, _lifeline: lifeline };
    Ok(Confined { command, watch })
}

/// Tests for namespaces only if the profile accepts running without them.
fn level_for(profile: &Profile, embedder: &Embedder) -> Result<Level, Refusal> {
    static OFFERED: OnceLock<Support> = OnceLock::new();
    let asked = profile.minimum;
    if asked == Level::Full {
        return Ok(Level::Full);
    }
    let offered = OFFERED.get_or_init(|| try_support(&embedder.helper));
    let why = || offered.namespaces.clone().unwrap_or_default();
    match offered.level {
        Level::Full => Ok(Level::Full),
        // An allowlist requires the network namespace: without it, the network is all or nothing.
        Level::Partial => Ok(Level::Partial),
        Level::None => Err(Refusal::Level { asked, offered: Level::None, why: why() }),
    }
}

fn user(profile: &Profile) -> User {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if uid != 0 {
        return User { uid, gid, is_assumed: false };
    }
    let (uid, gid) = profile.workspace.as_deref().map_or((0, 0), tree::owner);
    match uid {
        0 => User { uid: NOBODY, gid: NOBODY, is_assumed: true },
        _ => User { uid, gid: if gid == 0 { NOBODY } else { gid }, is_assumed: true },
    }
}

fn environment(
    launch: &Launch,
    home: &Path,
    level: Level,
    search: &OsStr,
) -> Vec<(OsString, OsString)> {
    let temporary = if level == Level::Full { PathBuf::from("/tmp") } else { home.to_owned() };
    let ours: [(&str, &OsStr); 5] = [
        ("HOME", home.as_os_str()),
        ("LOGNAME", OsStr::new("server")),
        ("PATH", search),
        ("TMPDIR", temporary.as_os_str()),
        ("USER", OsStr::new("server")),
    ];
    let is_ours = |name: &OsStr| ours.iter().any(|(own, _)| *own == name);
    let named = launch.environment.iter().filter(|(name, _)| !is_ours(name)).cloned();
    let ours = ours.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    ours.chain(named).collect()
}

/// Creates the socket to a helper that will follow the plan, and the command that starts the
/// helper.
fn prepare(plan: &Plan, helper: &Path) -> io::Result<(OwnedFd, Command)> {
    let (ours, theirs) = control::pair()?;
    // The plan goes through an anonymous file: its environment must stay private and may be larger
    // than a message.
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("plan", flags)?);
    serde_json::to_writer(&mut file, plan)?;
    file.flush()?;
    file.rewind()?;
    control::send(&ours, &(), Some(file.as_fd()), SendFlags::empty())?;
    let mut command = Command::new(helper);
    command.arg(crate::HELPER).arg(theirs.as_raw_fd().to_string()).env_clear();
    sys::inherit(&mut command, theirs);
    Ok((ours, command))
}

pub(crate) fn try_support(helper: &Path) -> Support {
    let failed = |reason: String| Support {
        level: Level::None,
        namespaces: Some(reason),
        landlock_abi: 0,
        seccomp: None,
        control_group: None,
    };
    run_trial(helper).unwrap_or_else(|error| failed(error.to_string()))
}

fn run_trial(helper: &Path) -> io::Result<Support> {
    let profile = Profile::default();
    let user = user(&profile);
    let nodes = layout::layout(&profile, &[], user, &[]).map_err(io::Error::other)?.nodes;
    let plan = Plan {
        is_trial: true,
        level: Level::Full,
        files: profile.files,
        program: PathBuf::new(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: PathBuf::from("/"),
        nodes,
        user,
        network: Some(NetworkPlan::default()),
        limits: profile.limits,
        browser: false,
        observe: false,
    };
    let (control, mut command) = prepare(&plan, helper)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    drop(command);
    set_socket_timeout(&control, Timeout::Recv, Some(TRIAL_TIMEOUT))?;
    let outcome = read_trial(&control);
    drop(control);
    let _ = child.wait();
    outcome
}

fn read_trial(control: &OwnedFd) -> io::Result<Support> {
    let mut support: Option<Support> = None;
    loop {
        let received = control::receive::<Report>(control)?;
        let reason = match received.map(|(report, _)| report) {
            Some(Report::Offered(offered)) => {
                support = Some(*offered);
                continue;
            }
            Some(Report::Ready) => None,
            Some(Report::Failed(reason)) => Some(reason),
            _ => Some("the helper ended before it told what it found".to_owned()),
        };
        let Some(mut support) = support else {
            return Err(io::Error::other(reason.unwrap_or_default()));
        };
        support.namespaces = reason;
        let can_restrict = support.landlock_abi >= 3 && support.seccomp.is_none();
        support.level = match (can_restrict, &support.namespaces) {
            (true, None) => Level::Full,
            (true, Some(_)) => Level::Partial,
            (false, _) => Level::None,
        };
        return Ok(support);
    }
}

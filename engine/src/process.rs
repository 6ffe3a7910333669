//! The server as a process of ours: started in a group of its own, signalled and ended as a group, and never left behind.
//!
//! The group is signalled only while its leader has not been collected, so its number cannot have come to mean another
//! group. Where there are no groups (Windows) the process itself is ended, and what it started is not.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use wire::StdioLaunch;

/// The hidden first argument of this program, by which it becomes the server that is named behind it.
pub const BECOME: &str = "__become";

/// The variables of our own environment that a server gets in a clean one. They are those that the official MCP SDKs pass
/// to a server by default, and locale, time zone and temporary folder. None of them is where a credential is put.
const CLEAN_VARIABLES: [&str; 25] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// What of the environment a server is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Ours, and the variables of its launch.
    Whole,
    /// [`CLEAN_VARIABLES`] only: for a server that is not admitted yet.
    Clean,
}

/// Signals the server's processes, as long as there are any. The default is the group of a server that was not started yet.
#[derive(Debug, Clone, Default)]
pub struct ServerGroup {
    leader: Arc<Mutex<Option<Leader>>>,
}

#[derive(Debug, Clone, Copy)]
struct Leader {
    id: u32,
    pipes: Option<Pipes>,
}

/// The numbers of the pipes that a server reads and writes, by which its processes can be told from others.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "processes are seen on Linux only"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pipes {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Pipes {
    #[cfg(unix)]
    pub(crate) fn of(input: &ChildStdin, output: &ChildStdout) -> Option<Pipes> {
        let number = |stat: rustix::io::Result<rustix::fs::Stat>| Some(stat.ok()?.st_ino);
        let (input, output) = (rustix::fs::fstat(input), rustix::fs::fstat(output));
        Some(Pipes { input: number(input)?, output: number(output)? })
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &ChildStdin, _: &ChildStdout) -> Option<Pipes> {
        None
    }
}

/// A server that was started.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    group: ServerGroup,
}

impl ServerProcess {
    /// Starts the server. `become_with` is this program: where it is known, the server is started through it, so that
    /// it ends with us however we end.
    pub fn start(
        launch: &StdioLaunch,
        become_with: Option<PathBuf>,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
        ServerProcess::start_in(&ServerGroup::default(), launch, become_with, Environment::Whole)
    }

    /// Starts the server as the processes of this group, which has none yet.
    pub fn start_in(
        group: &ServerGroup,
        launch: &StdioLaunch,
        become_with: Option<PathBuf>,
        environment: Environment,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
        let mut command = match become_with.filter(|_| cfg!(target_os = "linux")) {
            Some(program) => {
                let mut command = Command::new(program);
                command.arg(BECOME).arg(std::process::id().to_string()).arg(&launch.program);
                command
            }
            None => Command::new(&launch.program),
        };
        command.args(&launch.arguments);
        match environment {
            Environment::Whole => {
                command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
            }
            Environment::Clean => {
                let clean = CLEAN_VARIABLES.iter();
                let clean = clean.filter_map(|name| Some((name, std::env::var_os(name)?)));
                command.env_clear().envs(clean);
                hide_own_memory();
            }
        }
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(io::Error::other("the server has no pipes"));
        };
        let pipes = Pipes::of(&input, &output);
        group.lead(Some(Leader { id: child.id(), pipes }));
        Ok((ServerProcess { child, group: group.clone() }, input, output))
    }

    pub fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// Waits until the server has ended, ends what it left behind, and collects it.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        wait_for_leader(self.child.id());
        self.group.kill();
        // From here on the number may come to mean something else.
        self.group.lead(None);
        self.child.wait()
    }
}

impl ServerGroup {
    fn lead(&self, leader: Option<Leader>) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = leader;
    }

    /// Whether there is a process to signal.
    pub fn is_running(&self) -> bool {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The number of the group, as long as it cannot have come to mean another one, and its pipes.
    pub(crate) fn leader_and_pipes(&self) -> Option<(u32, Pipes)> {
        let leader = *self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let Leader { id, pipes } = leader?;
        Some((id, pipes?))
    }

    #[cfg(all(test, unix))]
    pub(crate) fn of(leader: u32, pipes: Option<Pipes>) -> ServerGroup {
        let group = ServerGroup::default();
        group.lead(Some(Leader { id: leader, pipes }));
        group
    }

    pub fn terminate(&self) {
        self.signal(TERMINATE);
    }

    pub fn kill(&self) {
        self.signal(KILL);
    }

    /// Passes a signal on, by its number.
    #[cfg(unix)]
    pub fn signal(&self, number: i32) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let group = leader.and_then(|leader| Pid::from_raw(i32::try_from(leader.id).ok()?));
        if let (Some(group), Some(signal)) = (group, Signal::from_named_raw(number)) {
            // The only failure is that nobody is left in it, which is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    pub fn signal(&self, _: i32) {}
}

const TERMINATE: i32 = 15;
const KILL: i32 = 9;

/// Waits until the leader has ended, and leaves it to be collected.
#[cfg(unix)]
fn wait_for_leader(id: u32) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(leader) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = waitid(WaitId::Pid(leader), options) {
        if error != rustix::io::Errno::INTR {
            return;
        }
    }
}

/// Becomes the server: from now on the system ends this process when the gate ends, however that happens.
///
/// `words` are those behind [`BECOME`]: the gate's number, the program and its arguments. Returns only on a failure.
#[cfg(target_os = "linux")]
pub fn become_server(mut words: impl Iterator<Item = OsString>) -> io::Error {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;
    let gate = words.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let Some(program) = words.next() else { return io::ErrorKind::InvalidInput.into() };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The gate may have ended before it was asked to be told.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != gate {
        return io::Error::other("the gate has ended");
    }
    Command::new(program).args(words).exec()
}

#[cfg(not(target_os = "linux"))]
pub fn become_server(_: impl Iterator<Item = OsString>) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
/// Keeps processes of the same user from reading this process: its environment is the operator's. A privileged process can
/// all the same, and so can any process read that of the client, whose environment this one inherited.
fn hide_own_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses leaves it as it was; docs/limits.md says what that means.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

//! The server as a child process: started in its own process group, signalled and ended as a group,
//! and never left behind.
//!
//! The group is signalled only until its leader has been reaped, so the group id cannot have been
//! reused. Without process groups (Windows), only the process itself is ended, not what it started.
//! A launch with a confinement is started by the command that its confinement builds, or not at
//! all.

use crate::confinement::{ConfinedStart, Guard};
use crate::limits::{COLLECT_TIMEOUT, TERMINATE_GRACE};
use crate::upstream::StdioLaunch;
#[cfg(unix)]
use rustix::process::{Pid, WaitIdOptions};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The hidden first argument that makes this program turn into the server named after it.
pub const BECOME: &str = "__become";

/// The variables of our environment that a server gets in a clean one: those that the official MCP
/// SDKs pass to a server by default, plus locale, time zone and temporary folder. None of them
/// usually holds a credential.
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

/// The environment that a server is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Our environment, plus the variables of the launch.
    Whole,
    /// [`CLEAN_VARIABLES`] only: for a server that has not been admitted yet.
    Clean,
    /// [`CLEAN_VARIABLES`] plus the variables of the launch: for a server that must not see other
    /// servers' variables.
    Named,
}

/// The interval for checking whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How to start a server.
#[derive(Debug)]
pub struct ServerStart {
    /// Will contain the server's processes; it has none yet.
    pub group: ServerGroup,
    /// The path of this program. On Linux the server is started through it, so that it ends with us
    /// even if we are killed.
    pub become_with: Option<PathBuf>,
    pub environment: Environment,
    pub stderr: StandardError,
}

/// The destination of a server's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardError {
    /// To ours. For a confined server the output is still copied from a pipe: given our descriptor,
    /// the server could read and truncate the file behind it.
    Ours,
    /// Into a pipe, for [`ServerProcess::take_stderr`].
    Piped,
}

/// Signals the server's processes while there are any. The default value is the group of a server
/// not started yet.
#[derive(Debug, Clone, Default)]
pub struct ServerGroup {
    leader: Arc<Mutex<Option<Leader>>>,
}

#[derive(Debug, Clone)]
struct Leader {
    id: u32,
    pipes: Option<Pipes>,
    /// Without process groups, the process itself is signalled.
    #[cfg(not(unix))]
    child: Arc<Mutex<Child>>,
}

/// The identifiers of the pipes that a server reads and writes, which distinguish its processes
/// from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipes {
    pub input: u64,
    pub output: u64,
}

impl Pipes {
    #[cfg(unix)]
    pub fn of(input: &ChildStdin, output: &ChildStdout) -> Option<Pipes> {
        let number = |stat: rustix::io::Result<rustix::fs::Stat>| Some(stat.ok()?.st_ino);
        let (input, output) = (rustix::fs::fstat(input), rustix::fs::fstat(output));
        Some(Pipes { input: number(input)?, output: number(output)? })
    }

    #[cfg(not(unix))]
    pub fn of(_: &ChildStdin, _: &ChildStdout) -> Option<Pipes> {
        None
    }
}

/// A started server. Dropping it kills the server and everything that it started.
#[derive(Debug)]
pub struct ServerProcess {
    child: Arc<Mutex<Child>>,
    group: ServerGroup,
    /// Watches over a confined server.
    _guard: Option<Guard>,
}

/// Clears a command's environment except for the variables that every program needs.
fn clear(command: &mut Command) {
    let clean = CLEAN_VARIABLES.iter();
    let clean = clean.filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(clean);
}

/// The command of a launch without confinement.
fn unconfined(
    launch: &StdioLaunch,
    become_with: Option<PathBuf>,
    environment: Environment,
) -> Command {
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
        Environment::Whole => {}
        Environment::Clean | Environment::Named => clear(&mut command),
    }
    match environment {
        Environment::Whole | Environment::Named => {
            command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        }
        Environment::Clean => {}
    }
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    command
}

/// Copies a confined program's output to our standard error until it ends.
pub fn copy_to_errors(mut output: impl io::Read + Send + 'static) {
    let copy = move || {
        let _ = io::copy(&mut output, &mut io::stderr());
    };
    // If the thread cannot be started, the pipe closes: the program's messages are lost, but it
    // keeps running.
    let _ = std::thread::Builder::new().name("standard error".to_owned()).spawn(copy);
}

impl ServerProcess {
    /// Starts a server with our environment and our standard error.
    pub fn start(
        launch: &StdioLaunch,
        become_with: Option<PathBuf>,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
        let start = ServerStart {
            group: ServerGroup::default(),
            become_with,
            environment: Environment::Whole,
            stderr: StandardError::Ours,
        };
        ServerProcess::start_as(launch, start)
    }

    pub fn start_as(
        launch: &StdioLaunch,
        start: ServerStart,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
        let ServerStart { group, become_with, environment, stderr } = start;
        let (command, guard) = match &launch.confinement {
            Some(confinement) => {
                let ConfinedStart { command, guard } = confinement.confine(launch, environment)?;
                (command, Some(guard))
            }
            None => (unconfined(launch, become_with, environment), None),
        };
        if environment != Environment::Whole {
            hide_own_memory();
        }
        let is_inherited = guard.is_none() && stderr == StandardError::Ours;
        let errors = if is_inherited { Stdio::inherit() } else { Stdio::piped() };
        let (mut process, input, output) = ServerProcess::start_command(command, group, errors)?;
        process._guard = guard;
        if stderr == StandardError::Ours
            && let Some(errors) = process.take_stderr()
        {
            copy_to_errors(errors);
        }
        Ok((process, input, output))
    }

    /// Starts a server by a command that is complete except for its pipes.
    pub fn start_command(
        mut command: Command,
        group: ServerGroup,
        stderr: Stdio,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        // The command holds a confined server's end of a socket.
        drop(command);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let pipes = input.as_ref().zip(output.as_ref());
        let (id, pipes) = (child.id(), pipes.and_then(|(input, output)| Pipes::of(input, output)));
        let child = Arc::new(Mutex::new(child));
        group.lead(Some(Leader {
            id,
            pipes,
            #[cfg(not(unix))]
            child: child.clone(),
        }));
        let process = ServerProcess { child, group, _guard: None };
        match (input, output) {
            (Some(input), Some(output)) => Ok((process, input, output)),
            _ => Err(io::Error::other("the server has no pipes")),
        }
    }

    pub fn group(&self) -> ServerGroup {
        self.group.clone()
    }

    /// The server's standard error, if it was started with a pipe for it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child().stderr.take()
    }

    /// Waits until the server has exited, kills the processes it left behind, and reaps it.
    pub fn wait(self) -> io::Result<ExitStatus> {
        #[cfg(unix)]
        {
            let id = self.child().id();
            wait_for_leader(id, WaitIdOptions::empty());
        }
        #[cfg(not(unix))]
        while !self.has_ended() {
            std::thread::sleep(LOOK);
        }
        self.collect()
    }

    /// Ends a server whose input is closed: it may exit by itself, is then sent a signal, and is
    /// finally killed. Returns its status if it exited by itself. Blocks.
    pub fn end(self, grace: Duration) -> Option<ExitStatus> {
        if self.ends_within(grace) {
            return self.collect().ok();
        }
        self.group.terminate();
        if !self.ends_within(TERMINATE_GRACE) {
            self.group.kill();
        }
        None
    }

    /// Kills the processes that the server left behind, and reaps a server that has exited.
    fn collect(&self) -> io::Result<ExitStatus> {
        self.group.kill();
        // After this the process id may be reused.
        self.group.lead(None);
        self.child().wait()
    }

    /// Waits until the server has exited, without reaping it.
    fn ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.has_ended() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    #[cfg(unix)]
    fn has_ended(&self) -> bool {
        let id = self.child().id();
        wait_for_leader(id, WaitIdOptions::NOHANG)
    }

    #[cfg(not(unix))]
    fn has_ended(&self) -> bool {
        !matches!(self.child().try_wait(), Ok(None))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.group.is_running() {
            return;
        }
        self.group.kill();
        // A process in an uninterruptible sleep can exceed the time limit.
        if self.ends_within(COLLECT_TIMEOUT) {
            let _ = self.collect();
        }
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

    /// The id of the group and its pipes, while the id cannot have been reused.
    pub fn leader_and_pipes(&self) -> Option<(u32, Pipes)> {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let Leader { id, pipes, .. } = leader.as_ref()?;
        Some((*id, (*pipes)?))
    }

    /// The group of a process started elsewhere, for tests.
    #[cfg(unix)]
    pub fn of(leader: u32, pipes: Option<Pipes>) -> ServerGroup {
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

    /// Forwards a signal, by number.
    #[cfg(unix)]
    pub fn signal(&self, number: i32) {
        use rustix::process::{Signal, kill_process_group};
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let group = leader.as_ref().and_then(|leader| pid(leader.id));
        if let (Some(group), Some(signal)) = (group, Signal::from_named_raw(number)) {
            // The only failure is an empty process group, which is the goal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// There is no gentler way here than to kill.
    #[cfg(not(unix))]
    pub fn signal(&self, number: i32) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(leader), TERMINATE | KILL) = (leader.as_ref(), number) {
            let _ = leader.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
    }
}

const TERMINATE: i32 = 15;
const KILL: i32 = 9;

/// Waits until the leader has exited, without reaping it. Returns whether it has exited.
#[cfg(unix)]
fn wait_for_leader(id: u32, options: WaitIdOptions) -> bool {
    use rustix::process::{WaitId, waitid};
    let Some(leader) = pid(id) else { return true };
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(leader), options) {
            Ok(status) => return status.is_some(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

#[cfg(unix)]
fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Turns this process into the server. From then on the system kills it when the gate ends, for
/// whatever reason.
///
/// `words` are those after [`BECOME`]: the gate's process id, the program and its arguments.
/// Returns only on failure.
#[cfg(target_os = "linux")]
pub fn become_server(mut words: impl Iterator<Item = OsString>) -> io::Error {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;
    let gate = words.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let Some(program) = words.next() else { return io::ErrorKind::InvalidInput.into() };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The gate may have ended before the death signal was requested.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != gate {
        return io::Error::other("the gate has ended");
    }
    Command::new(program).args(words).exec()
}

#[cfg(not(target_os = "linux"))]
pub fn become_server(_: impl Iterator<Item = OsString>) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// Keeps other processes of the same user from reading this process's memory, since its environment
/// is the operator's. A privileged process still can, and any process can read the environment of
/// the client, from which this one inherited it.
fn hide_own_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If the kernel refuses, nothing changes; docs/limits.md explains the consequences.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

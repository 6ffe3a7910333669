//! The program itself, from the fork to its first instruction: what it holds is let go, and what it may do is restricted.

use super::control;
use super::plan::Plan;
use super::seccomp::{FilterOptions, filters};
use super::sys::{self, Side};
use super::{init, notify, rules};
use crate::profile::Level;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::SendFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A program that is being started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) process: Pid,
    /// Where its calls are observed, if they are.
    pub(super) listener: Option<OwnedFd>,
    /// Closed by the kernel when the program begins; until then it carries why it could not.
    pub(super) beginning: OwnedFd,
}

/// How far a program has come.
#[derive(Debug)]
pub(super) enum Beginning {
    Waiting,
    Begun,
    Failed(String),
}

impl Started {
    /// Call it when `beginning` is readable.
    pub(super) fn look(&self) -> Beginning {
        let mut text = [0; 4096];
        match rustix::io::read(&self.beginning, &mut text) {
            Ok(0) => Beginning::Begun,
            Ok(read) => {
                let text = text.get(..read).unwrap_or_default();
                Beginning::Failed(String::from_utf8_lossy(text).into_owned())
            }
            Err(_) => Beginning::Waiting,
        }
    }
}

pub(super) fn start(plan: &Plan) -> Result<Started, String> {
    let failed = |error: io::Error| format!("the program could not be started: {error}");
    let (beginning, failure) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
        .map_err(|error| failed(error.into()))?;
    let (ours, theirs) = control::pair().map_err(failed)?;
    match sys::fork().map_err(failed)? {
        Side::Child => {
            let reason = become_program(plan, &theirs);
            let _ = File::from(failure).write_all(reason.as_bytes());
            sys::exit(init::FAILED)
        }
        Side::Parent(process) => {
            drop((theirs, failure));
            let listener = match plan.observe {
                true => control::receive::<()>(&ours).map_err(failed)?.and_then(|(_, fd)| fd),
                false => None,
            };
            Ok(Started { process, listener, beginning })
        }
    }
}

/// Becomes the program. Returns only why it could not.
fn become_program(plan: &Plan, helper: &OwnedFd) -> String {
    match restrict(plan, helper) {
        Ok(()) => {}
        Err(reason) => return reason,
    }
    let mut arguments = plan.arguments.iter();
    let mut command = Command::new(&plan.program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env_clear();
    command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
    let error = command.exec();
    format!("`{}` could not be started: {error}", plan.program.display())
}

fn restrict(plan: &Plan, helper: &OwnedFd) -> Result<(), String> {
    begin_group(plan).map_err(|error| format!("process group: {error}"))?;
    sys::unblock_signals().map_err(|error| format!("signals: {error}"))?;
    limit(plan).map_err(|error| format!("limits: {error}"))?;
    rustix::process::chdir(&plan.directory)
        .map_err(|error| format!("the folder `{}`: {error}", plan.directory.display()))?;
    drop_privileges().map_err(|error| format!("capabilities: {error}"))?;
    let is_partial = plan.level == Level::Partial;
    let has_namespace = plan.network.is_some() && !is_partial;
    rules::restrict(plan, plan.network.is_some() && is_partial)
        .map_err(|error| error.to_string())?;
    let options = FilterOptions {
        browser: plan.browser,
        unix_sockets: !is_partial,
        internet_sockets: has_namespace || plan.network.is_none(),
    };
    for filter in filters(options).map_err(|error| error.to_string())? {
        seccompiler::apply_filter(&filter).map_err(|error| format!("seccomp: {error}"))?;
    }
    if plan.observe {
        let listener = notify::install().map_err(|error| format!("observation: {error}"))?;
        control::send(helper, &(), Some(listener.as_fd()), SendFlags::empty())
            .map_err(|error| format!("observation: {error}"))?;
    }
    Ok(())
}

/// Puts the program into a process group of its own, which signals are passed on to. It has no terminal to type into: the
/// first process of its namespaces gave it up, and elsewhere it gets a session of its own.
fn begin_group(plan: &Plan) -> io::Result<()> {
    match plan.level {
        Level::Full => rustix::process::setpgid(None, None)?,
        Level::Partial | Level::None => drop(rustix::process::setsid()?),
    }
    Ok(())
}

/// Leaves the terminal and the process group of the process that started the helper. A session of its own would do the same, but the
/// kernel schedules each session as a group, and every message between the gate and the program would cost a fifth more
/// (`docs/decisions/0245-no-session-of-its-own.md`).
pub(super) fn leave_terminal() -> io::Result<()> {
    match sys::give_up_terminal() {
        Ok(()) => rustix::process::setpgid(None, None)?,
        // Where the terminal cannot be told from none, a new session is sure to have none.
        Err(_) => drop(rustix::process::setsid()?),
    }
    Ok(())
}

/// Gives up every capability and every way to get one.
pub(super) fn drop_privileges() -> io::Result<()> {
    set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets)?;
    Ok(())
}

fn limit(plan: &Plan) -> io::Result<()> {
    let limits = &plan.limits;
    for (resource, value) in [
        (Resource::Core, 0),
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Data, limits.memory_bytes),
        (Resource::Memlock, 64 << 20),
        (Resource::Msgqueue, 1 << 20),
    ] {
        // A limit that is lower already stays.
        let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = Some(value.min(allowed));
        setrlimit(resource, Rlimit { current: value, maximum: value })?;
    }
    Ok(())
}

/// Reads a file that was written for this process.
pub(super) fn read_all(file: OwnedFd, at_most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(file).take(at_most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

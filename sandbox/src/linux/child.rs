//! The program from the fork to its first instruction: inherited resources are released, and
//! restrictions are applied.

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

/// A program that is starting.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) process: Pid,
    /// The descriptor for observing its system calls, if they are observed.
    pub(super) listener: Option<OwnedFd>,
    /// The kernel closes it when the program starts; before that it may carry an error message.
    pub(super) beginning: OwnedFd,
}

/// The progress of a starting program.
#[derive(Debug)]
pub(super) enum Beginning {
    Waiting,
    Begun,
    Failed(String),
}

impl Started {
    /// To be called when `beginning` is readable.
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

/// Turns this process into the program. Returns only the reason if that fails.
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

/// Puts the program into its own process group, to which signals are forwarded. It has no
/// controlling terminal: in the namespaces the first process gave that up, and otherwise the
/// program gets its own session.
fn begin_group(plan: &Plan) -> io::Result<()> {
    match plan.level {
        Level::Full => rustix::process::setpgid(None, None)?,
        Level::Partial | Level::None => drop(rustix::process::setsid()?),
    }
    Ok(())
}

/// Leaves the terminal and the process group of the process that started the helper. A new session
/// would have the same effect, but the kernel schedules each session as a group, which makes every
/// message between the gate and the program a fifth slower
/// (`docs/decisions/0245-no-session-of-its-own.md`).
pub(super) fn leave_terminal() -> io::Result<()> {
    match sys::give_up_terminal() {
        Ok(()) => rustix::process::setpgid(None, None)?,
        // If it is unclear whether there is a terminal, a new session certainly has none.
        Err(_) => drop(rustix::process::setsid()?),
    }
    Ok(())
}

/// Drops every capability and every way to regain one.
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
        // Keep a limit that is already lower.
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

//! The process that is started to confine a program. It is single-threaded, because a restriction
//! that a thread sets for itself does not apply to other threads.
//!
//! It forks once. This process stays outside, where the gate can wait for it and signal it. The
//! child is the first process of the new namespaces (`init.rs`) and starts the program. The program
//! can read neither process, and neither holds a capability.

use super::control::{self, Report};
use super::plan::{Plan, User};
use super::sys::{self, Side};
use super::{child, control_group, init, network, rules, seccomp, tree};
use crate::profile::Level;
use crate::support::Support;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::Gid;
use rustix::net::SendFlags;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, Uid, WaitOptions, getpid, kill_process, pidfd_open,
    set_dumpable_behavior, set_parent_process_death_signal, waitpid,
};
use rustix::thread::{UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::OsString;
use std::fs;
use std::io;

/// A plan contains an environment, whose size the kernel limits.
const MAX_PLAN_BYTES: u64 = 8 << 20;
const HOST_NAME: &[u8] = b"sandbox";

/// Follows the plan that arrives on the descriptor whose number is the first argument. Returns the
/// exit code.
pub(super) fn start(mut words: impl Iterator<Item = OsString>) -> i32 {
    let number = words.next().and_then(|word| word.to_str()?.parse().ok());
    let control = number.ok_or(io::ErrorKind::InvalidInput.into()).and_then(sys::adopt);
    // The gate did not start this process, so there is no socket to report to.
    let Ok(control) = control else { return init::FAILED };
    match run(&control) {
        Ok(code) => code,
        Err(reason) => {
            let _ = control::send(&control, &Report::Failed(reason), None, SendFlags::empty());
            init::FAILED
        }
    }
}

fn run(control: &OwnedFd) -> Result<i32, String> {
    sys::close_others(control).map_err(|error| format!("descriptors: {error}"))?;
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(format!("the helper has {threads} threads and must have one"));
    }
    let plan = read_plan(control).map_err(|error| format!("the plan: {error}"))?;
    if plan.is_trial {
        let offered = Report::Offered(Box::new(offered()));
        control::send(control, &offered, None, SendFlags::empty())
            .map_err(|error| error.to_string())?;
    }
    if !plan.is_trial {
        check_standard_streams()?;
    }
    let group = control_group::enter(&plan.limits);
    match plan.level {
        Level::Full => confine(&plan, control),
        Level::Partial if plan.is_trial => Ok(0),
        Level::Partial | Level::None => confine_without_namespaces(&plan, control),
    }
    .inspect(|_| drop(group))
}

/// Refuses to pass a host file as a standard stream: the program could truncate it and read what
/// others wrote.
fn check_standard_streams() -> Result<(), String> {
    let is_file = |stat: rustix::io::Result<rustix::fs::Stat>| {
        stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file())
    };
    let (output, error) = (rustix::stdio::stdout(), rustix::stdio::stderr());
    if is_file(rustix::fs::fstat(output)) || is_file(rustix::fs::fstat(error)) {
        return Err("standard output and error must be pipes, and one of them is a file".to_owned());
    }
    Ok(())
}

fn read_plan(control: &OwnedFd) -> io::Result<Plan> {
    let Some(((), Some(plan))) = control::receive::<()>(control)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let bytes = child::read_all(plan, MAX_PLAN_BYTES)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The facts that can be determined without trying to confine anything.
fn offered() -> Support {
    let options =
        seccomp::FilterOptions { browser: false, unix_sockets: true, internet_sockets: true };
    Support {
        level: Level::None,
        namespaces: None,
        landlock_abi: rules::interface_version(),
        seccomp: seccomp::filters(options).err().map(|error| error.to_string()),
        control_group: control_group::missing(),
    }
}

/// Uses only Landlock and seccomp. This process reaps and signals the program, but cannot end
/// processes that leave its session.
fn confine_without_namespaces(plan: &Plan, control: &OwnedFd) -> Result<i32, String> {
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    let code = init::stay(plan, control, None, None)?;
    let _ = control::send(control, &Report::Ended { code }, None, SendFlags::empty());
    Ok(code)
}

fn confine(plan: &Plan, control: &OwnedFd) -> Result<i32, String> {
    // As root, opens what the user that it switches to could not open.
    let mut nodes = None;
    if plan.user.is_assumed {
        let owners = owners(plan.user).map_err(|error| format!("owners of files: {error}"))?;
        nodes = Some(tree::open(&plan.nodes, Some(&owners)).map_err(|error| error.to_string())?);
        become_user(plan.user).map_err(|error| format!("changing the user: {error}"))?;
    }
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    let network = if plan.network.is_some() { UnshareFlags::NEWNET } else { UnshareFlags::empty() };
    sys::unshare(flags | network).map_err(|error| format!("namespaces: {error}"))?;
    map_user(plan.user).map_err(|error| format!("user namespace: {error}"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    let outer = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|error| error.to_string())?;
    match sys::fork().map_err(|error| error.to_string())? {
        Side::Parent(first) => {
            drop((nodes, outer));
            wait_outside(first)
        }
        Side::Child => {
            let outcome = be_first(plan, control, &outer, nodes);
            let (report, code) = match outcome {
                Ok(code) if plan.is_trial => (Report::Ready, code),
                Ok(code) => (Report::Ended { code }, code),
                Err(reason) => (Report::Failed(reason), init::FAILED),
            };
            let _ = control::send(control, &report, None, SendFlags::empty());
            sys::exit(code)
        }
    }
}

/// The first process of the namespaces: sets everything up, then stays.
fn be_first(
    plan: &Plan,
    control: &OwnedFd,
    outer: &OwnedFd,
    nodes: Option<Vec<tree::OpenNode>>,
) -> Result<i32, String> {
    child::leave_terminal().map_err(|error| format!("terminal: {error}"))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    rustix::system::sethostname(HOST_NAME).map_err(|error| format!("host name: {error}"))?;
    let network = match &plan.network {
        Some(network) => {
            Some(network::set_up(network).map_err(|error| format!("network: {error}"))?)
        }
        None => None,
    };
    let nodes = match nodes {
        Some(nodes) => nodes,
        None => tree::open(&plan.nodes, None).map_err(|error| error.to_string())?,
    };
    tree::enter(nodes).map_err(|error| error.to_string())?;
    if plan.is_trial {
        return Ok(0);
    }
    init::stay(plan, control, Some(outer), network)
}

/// Forwards signals to the first process until it has ended, and ends with the same code.
fn wait_outside(first: Pid) -> Result<i32, String> {
    let mut wanted = init::FORWARDED.to_vec();
    wanted.push(Signal::CHILD);
    let signals = sys::signals(&wanted).map_err(|error| error.to_string())?;
    let _ = sys::let_go_of_standard_streams();
    child::drop_privileges().map_err(|error| error.to_string())?;
    loop {
        // Also check before the first wait: if the process ended before signals were blocked, no
        // signal will arrive.
        if let Ok(Some((_, status))) = waitpid(Some(first), WaitOptions::NOHANG) {
            return Ok(status.exit_status().unwrap_or(init::FAILED));
        }
        let mut waiting = [PollFd::new(&signals, PollFlags::IN)];
        let _ = poll(&mut waiting, None);
        while let Some(signal) = sys::next_signal(&signals) {
            if signal != Signal::CHILD {
                let _ = kill_process(first, signal);
            }
        }
    }
}

fn become_user(user: User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    // The change made this process unreadable, even to itself, but it must write its own user map.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}

fn map_user(user: User) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.uid))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", user.gid))
}

/// A user namespace that maps root's files to this user. Its process is needed only until the
/// namespace is open.
fn owners(user: User) -> io::Result<OwnedFd> {
    let (ours, theirs) = control::pair()?;
    match sys::fork()? {
        Side::Child => {
            drop(ours);
            let _ = sys::unshare(UnshareFlags::NEWUSER);
            let _ = control::send(&theirs, &(), None, SendFlags::empty());
            // Wait until the other side has read the maps and closes its end.
            let _ = control::receive::<()>(&theirs);
            sys::exit(0)
        }
        Side::Parent(process) => {
            drop(theirs);
            let _ = control::receive::<()>(&ours)?;
            let folder = format!("/proc/{}", process.as_raw_nonzero());
            fs::write(format!("{folder}/uid_map"), format!("0 {} 1", user.uid))?;
            fs::write(format!("{folder}/gid_map"), format!("0 {} 1", user.gid))?;
            let namespace = fs::File::open(format!("{folder}/ns/user"))?;
            drop(ours);
            let _ = waitpid(Some(process), WaitOptions::empty());
            Ok(namespace.into())
        }
    }
}

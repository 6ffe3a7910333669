//! The system calls that a confined program may make: an allowlist per architecture. All other
//! calls appear not to exist, and calls known to be abused are refused.

use super::syscall_list::{ALLOWED, OLDER, REFUSED};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The parameters of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilterOptions {
    pub(super) browser: bool,
    /// Without a network namespace, a file system or abstract socket leads outside.
    pub(super) unix_sockets: bool,
    /// Without a network namespace, every socket leads outside.
    pub(super) internet_sockets: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error("the system calls of this architecture are not known")]
    Architecture,
    #[error("the filter of system calls could not be made: {0}")]
    Build(#[from] seccompiler::BackendError),
}

/// The filters in installation order. If two refuse a call, the one installed last determines the
/// error.
pub(super) fn filters(options: FilterOptions) -> Result<[BpfProgram; 2], FilterError> {
    let architecture: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|_| FilterError::Architecture)?;
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let allow = SeccompFilter::new(allowed(options), unknown, SeccompAction::Allow, architecture)?;
    let refuse =
        SeccompFilter::new(refusals(options)?, SeccompAction::Allow, refused, architecture)?;
    Ok([allow.try_into()?, refuse.try_into()?])
}

/// Memory that per-process limits do not count, but that browsers require.
const FOR_BROWSERS: [c_long; 5] =
    [libc::SYS_memfd_create, libc::SYS_shmat, libc::SYS_shmctl, libc::SYS_shmdt, libc::SYS_shmget];

fn allowed(options: FilterOptions) -> Rules {
    let mut rules = Rules::new();
    let everywhere = ALLOWED.iter().chain(OLDER);
    rules.extend(everywhere.map(|number| (*number, Vec::new())));
    if options.browser {
        for number in FOR_BROWSERS {
            rules.insert(number, Vec::new());
        }
    }
    rules
}

/// Calls that are always refused, and calls that are refused with certain arguments.
fn refusals(options: FilterOptions) -> Result<Rules, FilterError> {
    let mut rules = Rules::new();
    rules.extend(REFUSED.iter().map(|number| (*number, Vec::new())));
    if options.browser {
        for number in FOR_BROWSERS {
            rules.remove(&number);
        }
    }
    rules.insert(libc::SYS_socket, sockets(options)?);
    // A socket pair is only connected to itself.
    rules.insert(
        libc::SYS_socketpair,
        vec![rule(&[(0, SeccompCmpOp::Ne, unsigned(libc::AF_UNIX))])?],
    );
    let new_namespaces = unsigned(
        libc::CLONE_NEWNS
            | libc::CLONE_NEWCGROUP
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUSER
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWNET,
    );
    rules.insert(libc::SYS_clone, any_bit(0, new_namespaces)?);
    let terminal = [TIOCSTI, TIOCLINUX, TIOCSETD];
    let terminal = terminal.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, terminal.collect::<Result<_, _>>()?);
    for (number, conditions) in at_the_helper() {
        let conditions = conditions.iter().map(|conditions| rule(conditions));
        rules.insert(number, conditions.collect::<Result<_, _>>()?);
    }
    // A set-uid file in the workspace would also be one outside the sandbox.
    for (number, mode) in modes() {
        rules.insert(number, any_bit(mode, 0o6000)?);
    }
    Ok(rules)
}

/// Alternative lists of conditions, one of which is enough.
type Conditions = Vec<Vec<(u8, SeccompCmpOp, u64)>>;

/// Calls that slow down or limit the first process of the namespaces, which monitors memory use and
/// reports blocked attempts. The kernel would allow any process of the same user to make them.
fn at_the_helper() -> Vec<(c_long, Conditions)> {
    const FIRST: u64 = 1;
    let is = |argument: u8, value: u64| (argument, SeccompCmpOp::Eq, value);
    let by_process = [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ];
    let by_process = by_process.into_iter().map(|number| (number, vec![vec![is(0, FIRST)]]));
    // These can also target a process group, or all processes of a user.
    let of_user = 2;
    let of_user_io = 3;
    by_process
        .chain([
            (libc::SYS_setpriority, vec![vec![is(1, FIRST)], vec![is(0, of_user)]]),
            (libc::SYS_ioprio_set, vec![vec![is(1, FIRST)], vec![is(0, of_user_io)]]),
        ])
        .collect()
}

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const TIOCSETD: u64 = 0x5423;

/// The calls that set the mode of a file, with the index of that argument.
fn modes() -> Vec<(c_long, u8)> {
    let everywhere = [
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (libc::SYS_openat, 3),
        (libc::SYS_mkdirat, 2),
        (libc::SYS_mknodat, 2),
    ];
    #[cfg(target_arch = "x86_64")]
    let older = [
        (libc::SYS_chmod, 1),
        (libc::SYS_open, 2),
        (libc::SYS_creat, 1),
        (libc::SYS_mkdir, 1),
        (libc::SYS_mknod, 1),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let older: [(c_long, u8); 0] = [];
    everywhere.into_iter().chain(older).collect()
}

/// Refuses socket families that are not allowed, and all netlink protocols except routing.
fn sockets(options: FilterOptions) -> Result<Vec<SeccompRule>, FilterError> {
    let netlink = unsigned(libc::AF_NETLINK);
    let mut allowed = Vec::new();
    if options.unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    if options.internet_sockets {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    let others: Vec<_> =
        allowed.iter().map(|family| (0, SeccompCmpOp::Ne, unsigned(*family))).collect();
    // A rule without conditions would refuse the call with any arguments.
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut rules = vec![rule(&others)?];
    if options.internet_sockets {
        let routing = unsigned(libc::NETLINK_ROUTE);
        rules.push(rule(&[(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, routing)])?);
    }
    Ok(rules)
}

/// One rule per bit of a mask: the filter can compare masked bits with only one value.
fn any_bit(argument: u8, mask: u64) -> Result<Vec<SeccompRule>, FilterError> {
    let bits = (0..u64::BITS).map(|bit| 1_u64 << bit).filter(|bit| mask & bit != 0);
    bits.map(|bit| rule(&[(argument, SeccompCmpOp::MaskedEq(bit), bit)])).collect()
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, FilterError> {
    let conditions = conditions.iter().map(|(argument, operation, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operation.clone(), *value)
    });
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

fn unsigned(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

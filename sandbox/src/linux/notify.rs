//! Observation: the program's system calls that name files wait until the helper has recorded them,
//! and then continue normally.
//!
//! This is slow, and not a security boundary: a path can change between the recording and the call.
//! The file tree, Landlock and seccomp enforce the rules.

use super::sys::{self, Notification};
use crate::observed::{Access, AccessKind, Outcome};
use libc::c_long;
use rustix::fd::OwnedFd;
use rustix::fs::{Access as Permission, AtFlags, CWD, accessat};
use seccompiler::sock_filter;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAX_PATH_BYTES: usize = 4096;
/// Reads and executions are reported once per file and kind, up to this many. Writes are reported
/// every time.
const MAX_ACCESSES: usize = 20_000;
/// The most links followed in one path.
const MAX_LINKS: usize = 40;
/// Represents the path of a call that cannot be read: a program can make its memory unreadable,
/// even to us.
const UNREADABLE: &str = "(unreadable)";

/// A system call: where its path is, and what it does with it.
struct Call {
    number: c_long,
    /// The index of the argument with the folder that the path is relative to; `None` means the
    /// working folder.
    folder: Option<usize>,
    path: usize,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    Read,
    /// Writes to the file itself: a link at the end of the path is followed.
    Write,
    /// Writes to the entry in its folder.
    WriteEntry,
    /// Writes to an open file, whose descriptor is in the path's argument.
    WriteOpen,
    Execute,
    /// Determined by the flags in this argument.
    Open(usize),
    /// Connects to a socket, possibly one in the file system.
    Connect,
    /// Creates a socket in the file system.
    Bind,
}

const fn at(number: c_long, folder: usize, path: usize, does: Does) -> Call {
    Call { number, folder: Some(folder), path, does }
}

const fn from_working_folder(number: c_long, path: usize, does: Does) -> Call {
    Call { number, folder: None, path, does }
}

const CALLS: &[Call] = &[
    at(libc::SYS_openat, 0, 1, Does::Open(2)),
    at(libc::SYS_execveat, 0, 1, Does::Execute),
    from_working_folder(libc::SYS_execve, 0, Does::Execute),
    from_working_folder(libc::SYS_connect, 1, Does::Connect),
    from_working_folder(libc::SYS_bind, 1, Does::Bind),
    from_working_folder(libc::SYS_truncate, 0, Does::Write),
    from_working_folder(libc::SYS_setxattr, 0, Does::Write),
    from_working_folder(libc::SYS_lsetxattr, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_fsetxattr, 0, Does::WriteOpen),
    from_working_folder(libc::SYS_removexattr, 0, Does::Write),
    from_working_folder(libc::SYS_lremovexattr, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_fremovexattr, 0, Does::WriteOpen),
    from_working_folder(libc::SYS_fchmod, 0, Does::WriteOpen),
    from_working_folder(libc::SYS_fchown, 0, Does::WriteOpen),
    at(libc::SYS_newfstatat, 0, 1, Does::Read),
    at(libc::SYS_statx, 0, 1, Does::Read),
    at(libc::SYS_faccessat, 0, 1, Does::Read),
    at(libc::SYS_faccessat2, 0, 1, Does::Read),
    at(libc::SYS_readlinkat, 0, 1, Does::Read),
    at(libc::SYS_unlinkat, 0, 1, Does::WriteEntry),
    at(libc::SYS_mkdirat, 0, 1, Does::WriteEntry),
    at(libc::SYS_mknodat, 0, 1, Does::WriteEntry),
    at(libc::SYS_renameat, 0, 1, Does::WriteEntry),
    at(libc::SYS_renameat, 2, 3, Does::WriteEntry),
    at(libc::SYS_renameat2, 0, 1, Does::WriteEntry),
    at(libc::SYS_renameat2, 2, 3, Does::WriteEntry),
    at(libc::SYS_linkat, 2, 3, Does::WriteEntry),
    at(libc::SYS_symlinkat, 1, 2, Does::WriteEntry),
    at(libc::SYS_fchmodat, 0, 1, Does::Write),
    at(libc::SYS_fchownat, 0, 1, Does::Write),
    at(libc::SYS_utimensat, 0, 1, Does::Write),
];

#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: &[Call] = &[
    from_working_folder(libc::SYS_open, 0, Does::Open(1)),
    from_working_folder(libc::SYS_creat, 0, Does::Write),
    from_working_folder(libc::SYS_stat, 0, Does::Read),
    from_working_folder(libc::SYS_lstat, 0, Does::Read),
    from_working_folder(libc::SYS_access, 0, Does::Read),
    from_working_folder(libc::SYS_readlink, 0, Does::Read),
    from_working_folder(libc::SYS_unlink, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_rmdir, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_mkdir, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_mknod, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_rename, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_rename, 1, Does::WriteEntry),
    from_working_folder(libc::SYS_link, 1, Does::WriteEntry),
    from_working_folder(libc::SYS_symlink, 1, Does::WriteEntry),
    from_working_folder(libc::SYS_chmod, 0, Does::Write),
    from_working_folder(libc::SYS_chown, 0, Does::Write),
    from_working_folder(libc::SYS_lchown, 0, Does::WriteEntry),
    from_working_folder(libc::SYS_utime, 0, Does::Write),
    from_working_folder(libc::SYS_utimes, 0, Does::Write),
    at(libc::SYS_futimesat, 0, 1, Does::Write),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: &[Call] = &[];

fn calls() -> impl Iterator<Item = &'static Call> {
    CALLS.iter().chain(OLDER_CALLS)
}

/// Installs the filter that makes those calls wait. Its descriptor must be passed to the helper.
pub(super) fn install() -> std::io::Result<OwnedFd> {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let statement = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    // The system call filter has already refused other architectures, so only the number, the first
    // word, is checked.
    let mut filter = vec![statement(LOAD, 0)];
    for call in calls() {
        let number = u32::try_from(call.number).unwrap_or(u32::MAX);
        filter.push(sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: number });
        filter.push(statement(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    }
    filter.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    sys::install_notifying(&filter)
}

/// Records what the program uses.
#[derive(Debug)]
pub(super) struct Observer {
    listener: OwnedFd,
    told: HashSet<Access>,
}

impl Observer {
    pub(super) fn new(listener: OwnedFd) -> Observer {
        Observer { listener, told: HashSet::new() }
    }

    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Records one call and lets it continue. Returns accesses that were not reported before.
    pub(super) fn next(&mut self) -> Vec<Access> {
        let Ok(notification) = sys::receive_notification(&self.listener) else { return Vec::new() };
        let accesses: Vec<Access> = calls()
            .filter(|call| call.number == notification.number)
            .filter_map(|call| describe(call, &notification))
            .collect();
        sys::continue_notification(&self.listener, notification.id);
        let mut new = Vec::new();
        for access in accesses {
            let is_write = access.kind == AccessKind::Write;
            if is_write || self.told.len() < MAX_ACCESSES && self.told.insert(access.clone()) {
                new.push(access);
            }
        }
        new
    }
}

fn describe(call: &Call, notification: &Notification) -> Option<Access> {
    let argument = |index: usize| notification.arguments.get(index).copied();
    let process = notification.process;
    let address = argument(call.path)?;
    let (kind, follows) = match call.does {
        Does::Read => (AccessKind::Read, true),
        Does::Write => (AccessKind::Write, true),
        Does::WriteEntry | Does::WriteOpen | Does::Bind => (AccessKind::Write, false),
        Does::Execute => (AccessKind::Execute, true),
        Does::Connect => (AccessKind::Connect, true),
        Does::Open(flags) => {
            // The kernel ignores unknown bits.
            let flags = low_word(argument(flags)?).cast_signed();
            let writes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
            let kind = if flags & writes != 0 { AccessKind::Write } else { AccessKind::Read };
            (kind, flags & libc::O_NOFOLLOW == 0)
        }
    };
    let descriptor = |number: u64| {
        let number = low_word(number).cast_signed();
        let folder = if number >= 0 { format!("fd/{number}") } else { "cwd".to_owned() };
        std::fs::read_link(format!("/proc/{process}/{folder}")).ok()
    };
    let found = match call.does {
        Does::WriteOpen => descriptor(address),
        Does::Connect | Does::Bind => match socket_path(process, address) {
            SocketPath::Of(path) => Some(path),
            SocketPath::None => return None,
            SocketPath::Unreadable => None,
        },
        Does::Read | Does::Write | Does::WriteEntry | Does::Execute | Does::Open(_) => {
            match (address, kind) {
                // `utimensat` and similar calls may refer to the open file itself.
                (0, AccessKind::Write) => call.folder.and_then(argument).and_then(descriptor),
                _ => read_path(process, address),
            }
        }
    };
    let Some(path) = found else {
        // INVARIANT: a write is always reported, even if its path cannot be read.
        let path = PathBuf::from(UNREADABLE);
        let outcome = Outcome::Allowed;
        return (kind == AccessKind::Write).then_some(Access { path, kind, outcome });
    };
    let folder = || descriptor(call.folder.and_then(argument).unwrap_or(u64::MAX));
    let path = match (path.is_absolute(), path.as_os_str().is_empty()) {
        (true, _) => path,
        // With a certain flag, an empty path means the open file itself.
        (false, true) => folder().filter(|_| kind == AccessKind::Write)?,
        (false, false) => folder()?.join(path),
    };
    let path = resolve(process, &path, follows);
    Some(Access { outcome: outcome(&path, kind), path, kind })
}

fn low_word(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or_default()
}

/// The path as the process sees it: without `.` and `..`, and with links resolved, including those
/// to the files of the process itself (`/proc/self`). The last component is resolved only if
/// `follows` is set. Missing components are kept as named.
fn resolve(process: u32, path: &Path, follows: bool) -> PathBuf {
    let mut left: Vec<OsString> = parts(path);
    let (mut found, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            found.pop();
            continue;
        }
        found.push(&part);
        if !left.is_empty() || follows {
            let own = ["/proc/self", "/proc/thread-self"];
            let target = match own.iter().any(|own| found == Path::new(own)) {
                true => Some(PathBuf::from(format!("/proc/{process}"))),
                false => std::fs::read_link(&found).ok(),
            };
            let Some(target) = target.filter(|_| links < MAX_LINKS) else { continue };
            links += 1;
            found.pop();
            // The target of a procfs link may have no path, for example a pipe.
            if target.is_absolute() {
                found = PathBuf::from("/");
            }
            left.extend(parts(&target));
        }
    }
    found
}

/// The components of a path in reverse order.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part.to_owned()),
        std::path::Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

/// Reads a C string from the program's memory.
fn read_path(process: u32, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut bytes = vec![0; MAX_PATH_BYTES];
    let read = memory.read_at(&mut bytes, address).ok()?;
    bytes.truncate(read);
    let end = bytes.iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

enum SocketPath {
    Of(PathBuf),
    /// The address is not in the file system.
    None,
    Unreadable,
}

/// The path of a socket in the file system, from an address that starts with the family.
fn socket_path(process: u32, address: u64) -> SocketPath {
    let Ok(memory) = File::open(format!("/proc/{process}/mem")) else {
        return SocketPath::Unreadable;
    };
    let mut family = [0; 2];
    if memory.read_exact_at(&mut family, address).is_err() {
        return SocketPath::Unreadable;
    }
    if i32::from(u16::from_ne_bytes(family)) != libc::AF_UNIX {
        return SocketPath::None;
    }
    match read_path(process, address + 2) {
        // An abstract or unnamed socket.
        Some(path) if path.as_os_str().is_empty() => SocketPath::None,
        Some(path) => SocketPath::Of(path),
        None => SocketPath::Unreadable,
    }
}

/// The expected outcome of the call, judging by the file tree.
fn outcome(path: &Path, kind: AccessKind) -> Outcome {
    let may = |path: &Path, permission| accessat(CWD, path, permission, AtFlags::EACCESS).is_ok();
    let exists = path.symlink_metadata().is_ok();
    let allowed = match kind {
        AccessKind::Read => exists && may(path, Permission::READ_OK),
        AccessKind::Execute => exists && may(path, Permission::EXEC_OK),
        AccessKind::Write | AccessKind::Connect if exists => may(path, Permission::WRITE_OK),
        AccessKind::Connect => false,
        AccessKind::Write => {
            let Some(parent) = path.parent().filter(|parent| parent.is_dir()) else {
                return Outcome::NotThere;
            };
            return if may(parent, Permission::WRITE_OK) {
                Outcome::Allowed
            } else {
                Outcome::Denied
            };
        }
    };
    match (exists, allowed) {
        (_, true) => Outcome::Allowed,
        (true, false) => Outcome::Denied,
        (false, false) => Outcome::NotThere,
    }
}

//! System calls without a safe wrapper. This file contains all `unsafe` code of the product.
#![allow(
    unsafe_code,
    reason = "the kernel's interfaces below have no safe wrapper in the crates that we use"
)]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;
use seccompiler::sock_filter;
use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The side of a fork that this process is.
#[derive(Debug)]
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Forks. The calling process must be single-threaded.
pub(super) fn fork() -> io::Result<Side> {
    // SAFETY: the helper is single-threaded (`outer_process::start` refuses to continue otherwise),
    // so no lock can be held by a thread that the child lacks.
    let id = unsafe { libc::fork() };
    match id {
        0 => Ok(Side::Child),
        _ => match Pid::from_raw(id).filter(|_| id > 0) {
            Some(child) => Ok(Side::Parent(child)),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// Moves this process into new namespaces of the given kinds.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only `CLONE_FILES` and `CLONE_FS` can affect the soundness of a single-threaded
    // process, and neither is used.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Takes ownership of a descriptor that this process was started with.
pub(super) fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the borrow lasts for this one call, which fails if the descriptor is not open.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: the call above showed that it is open, and nothing else in this process owns it: this
    // is called once, first.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// Closes every descriptor from 3 on, except one.
pub(super) fn close_others(kept: &OwnedFd) -> io::Result<()> {
    let kept = kept.as_raw_fd().unsigned_abs();
    for (first, last) in [(3, kept.saturating_sub(1)), (kept.saturating_add(1), u32::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: nothing in this process owns another descriptor yet, because this is called right
        // after `adopt`.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes a command's program, and no other child of ours, inherit a descriptor under the same
/// number.
pub(super) fn inherit(command: &mut Command, descriptor: OwnedFd) {
    // SAFETY: between fork and exec the closure makes one system call on a descriptor that it owns,
    // and does not allocate.
    unsafe {
        command.pre_exec(move || {
            rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::empty()).map_err(Into::into)
        });
    }
}

/// Gives up the controlling terminal for this process and its future children. The process must not
/// be the session leader: the kernel would then hang up the terminal for all others.
pub(super) fn give_up_terminal() -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    let terminal = match open(c"/dev/tty" as &CStr, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(terminal) => terminal,
        // The kernel's response if there is no controlling terminal.
        Err(rustix::io::Errno::NXIO) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    // SAFETY: the request takes no argument, and the descriptor is open.
    let outcome = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The attributes to set on a mount.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct MountAttributes<'a> {
    pub(super) read_only: bool,
    pub(super) no_devices: bool,
    pub(super) owners: Option<BorrowedFd<'a>>,
    pub(super) recursive: bool,
}

/// Changes the attributes of an open mount. None of our mounts is shared with another namespace or
/// allows set-uid files.
pub(super) fn set_mount(mount: impl AsFd, attributes: MountAttributes<'_>) -> io::Result<()> {
    let mut set = libc::MOUNT_ATTR_NOSUID;
    if attributes.read_only {
        set |= libc::MOUNT_ATTR_RDONLY;
    }
    if attributes.no_devices {
        set |= libc::MOUNT_ATTR_NODEV;
    }
    if attributes.owners.is_some() {
        set |= libc::MOUNT_ATTR_IDMAP;
    }
    let owners = attributes.owners.map_or(0, |owners| u64::from(owners.as_raw_fd().unsigned_abs()));
    let what = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: owners,
    };
    let recursive = if attributes.recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a constant C string; the structure outlives the call, and its size is
    // passed with it.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const what,
            size_of::<libc::mount_attr>(),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Blocks signals and returns a descriptor that they can be read from.
pub(super) fn signals(wanted: &[Signal]) -> io::Result<OwnedFd> {
    // SAFETY: `sigemptyset` initializes the set before it is used, and all pointers refer to it.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for signal in wanted {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Unblocks all signals, because a program inherits the blocked ones.
pub(super) fn unblock_signals() -> io::Result<()> {
    // SAFETY: `sigemptyset` initializes the set before it is used, and the pointer refers to it.
    let outcome = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut())
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The next signal from such a descriptor.
pub(super) fn next_signal(signals: &OwnedFd) -> Option<Signal> {
    let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(signals, &mut bytes).ok()?;
    let number = bytes.get(..read)?.first_chunk::<4>()?;
    Signal::from_named_raw(i32::try_from(u32::from_ne_bytes(*number)).ok()?)
}

/// Installs a seccomp filter and returns the descriptor for its notifications.
pub(super) fn install_notifying(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
    // SAFETY: the program points to `filter`, which outlives the call; `seccompiler::sock_filter`
    // has the same layout as the kernel's type, and the kernel does not write to it.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let number = RawFd::try_from(descriptor).map_err(io::Error::other)?;
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us.
    let listener = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC)?;
    Ok(listener)
}

/// A system call that is waiting for us.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    pub(super) id: u64,
    pub(super) process: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

// `_IOWR('!', 0, struct seccomp_notif)` and `_IOWR('!', 1, struct seccomp_notif_resp)`: 80 and 24 bytes.
const NOTIFICATION_RECEIVE: libc::c_ulong = 0xc050_2100;
const NOTIFICATION_SEND: libc::c_ulong = 0xc018_2101;

pub(super) fn receive_notification(listener: &OwnedFd) -> io::Result<Notification> {
    // SAFETY: the structure contains only integers, for which zero is valid, and the kernel
    // requires it to be zeroed.
    let mut notification = unsafe { std::mem::zeroed::<libc::seccomp_notif>() };
    // SAFETY: the size in the request is that of the structure, which the kernel fills.
    let outcome = unsafe {
        libc::ioctl(listener.as_raw_fd(), NOTIFICATION_RECEIVE as _, &raw mut notification)
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Notification {
        id: notification.id,
        process: notification.pid,
        number: i64::from(notification.data.nr),
        arguments: notification.data.args,
    })
}

/// Lets the system call continue as if there had been no notification.
pub(super) fn continue_notification(listener: &OwnedFd, id: u64) {
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: the size in the request is that of the structure. The call fails only if the caller
    // is gone.
    unsafe { libc::ioctl(listener.as_raw_fd(), NOTIFICATION_SEND as _, &raw const answer) };
}

/// A socket that receives, from the IP header on, every packet of this network namespace that a
/// classic BPF program accepts.
pub(super) fn packet_socket(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    const EVERY_PROTOCOL: u16 = 3;
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: only integers are passed, and a descriptor is returned.
    let number = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(EVERY_PROTOCOL.to_be())) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
    set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
    // Otherwise each packet on the loopback interface would be seen twice, outgoing and incoming.
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
    Ok(socket)
}

/// How many packets did not fit into such a socket's buffer since the last call.
pub(super) fn dropped_packets(socket: &OwnedFd) -> u64 {
    let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let Ok(mut length) = libc::socklen_t::try_from(size_of_val(&counts)) else { return 0 };
    // SAFETY: the kernel writes at most `length` bytes, which is the size of this option's
    // structure.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counts).cast(),
            &raw mut length,
        )
    };
    if outcome == 0 { counts.tp_drops.into() } else { 0 }
}

fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the value outlives the call and its size is passed; both callers use the option's
    // type.
    let outcome = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A descriptor on whose readability a task can wait.
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, so it stays open and unchanged until the result is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(Into::into)
}

/// Replaces standard input, output and error with `/dev/null`.
pub(super) fn let_go_of_standard_streams() -> io::Result<()> {
    let null = rustix::fs::open(
        c"/dev/null" as &CStr,
        rustix::fs::OFlags::RDWR,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Ends this process immediately, without running exit handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it does not return, and there is nothing left to run.
    unsafe { libc::_exit(code) }
}

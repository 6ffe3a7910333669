//! The hostile programs' direct system calls.

use libc::c_long;
use std::io;

fn checked(outcome: c_long) -> io::Result<String> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome.to_string()) }
}

/// Makes a system call with up to four integers.
fn call(number: c_long, arguments: &[u64]) -> io::Result<String> {
    let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
    checked(unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) })
}

pub(crate) fn act(name: &str, arguments: &[&str]) -> Option<io::Result<String>> {
    let text = |text: &std::ffi::CStr| text.as_ptr() as u64;
    let here = libc::AT_FDCWD as u64;
    let mut room = [0_u64; 32];
    room[0] = 128;
    let room_at = room.as_mut_ptr() as u64;
    let pid =
        |index: usize| arguments.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    Some(match name {
        "mount" => call(libc::SYS_mount, &[text(c"tmpfs"), text(c"/tmp"), text(c"tmpfs"), 0]),
        "unmount" => {
            call(libc::SYS_umount2, &[text(c"/tmp"), u64::from(libc::MNT_DETACH.cast_unsigned())])
        }
        "remount" => {
            let flags = libc::MS_REMOUNT | libc::MS_BIND;
            call(libc::SYS_mount, &[0, text(c"/usr"), 0, flags])
        }
        "fsopen" => call(libc::SYS_fsopen, &[text(c"tmpfs"), 0]),
        "open-tree" => call(libc::SYS_open_tree, &[here, text(c"/"), 1]),
        "move-mount" => call(libc::SYS_move_mount, &[here, text(c"/tmp"), here, text(c"/run")]),
        "mount-setattr" => call(libc::SYS_mount_setattr, &[here, text(c"/usr"), 0, room_at, 32]),
        "pivot-root" => call(libc::SYS_pivot_root, &[text(c"/tmp"), text(c"/tmp")]),
        "chroot" => call(libc::SYS_chroot, &[text(c"/tmp")]),
        "name-to-handle" => {
            call(libc::SYS_name_to_handle_at, &[here, text(c"/"), room_at, room_at + 200, 0])
        }
        "open-by-handle" => call(libc::SYS_open_by_handle_at, &[here, room_at, 0]),
        "setns" => call(libc::SYS_setns, &[0, 0]),
        "unshare" => call(libc::SYS_unshare, &[u64::from(libc::CLONE_NEWUSER.cast_unsigned())]),
        "clone-user" => call(
            libc::SYS_clone,
            &[u64::from((libc::CLONE_NEWUSER | libc::SIGCHLD).cast_unsigned())],
        )
        .inspect(leave),
        "clone3" => call(libc::SYS_clone3, &[room_at, 88]).inspect(leave),
        "ptrace" => call(libc::SYS_ptrace, &[u64::from(libc::PTRACE_ATTACH), pid(0)]),
        "ptrace-self" => call(libc::SYS_ptrace, &[0]),
        "process-vm-read" | "process-vm-write" => {
            let vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: 8 };
            let vector = &raw const vector as u64;
            let number = if name == "process-vm-read" {
                libc::SYS_process_vm_readv
            } else {
                libc::SYS_process_vm_writev
            };
            call(number, &[pid(0), vector, 1, vector, 1, 0])
        }
        "pidfd-getfd" => call(libc::SYS_pidfd_open, &[pid(0), 0])
            .and_then(|fd| call(libc::SYS_pidfd_getfd, &[fd.parse().unwrap(), 0, 0])),
        "kcmp" => call(libc::SYS_kcmp, &[1, pid(0), 0]),
        "kill" => call(libc::SYS_kill, &[pid(0), u64::from(libc::SIGKILL.cast_unsigned())]),
        "kill-everything" => {
            call(libc::SYS_kill, &[u64::MAX, u64::from(libc::SIGKILL.cast_unsigned())])
        }
        "memfd" => call(libc::SYS_memfd_create, &[text(c"x"), 0]),
        "memfd-secret" => call(libc::SYS_memfd_secret, &[0]),
        "io-uring" => call(libc::SYS_io_uring_setup, &[1, room_at]),
        "userfaultfd" => call(libc::SYS_userfaultfd, &[1]),
        "bpf" => call(libc::SYS_bpf, &[0, room_at, 64]),
        "perf" => call(libc::SYS_perf_event_open, &[room_at, 0, 0, 0]),
        "add-key" => {
            call(libc::SYS_add_key, &[text(c"user"), text(c"x"), room_at, 8, (-2_i64) as u64])
        }
        "keyctl" => call(libc::SYS_keyctl, &[0, (-3_i64) as u64, 1]),
        "shared-memory" => call(libc::SYS_shmget, &[0, 4096, 0o1600]),
        "personality" => call(libc::SYS_personality, &[0x40000]),
        "kernel-log" => call(libc::SYS_syslog, &[3, room_at, 64]),
        "type-into-terminal" => call(libc::SYS_ioctl, &[0, 0x5412, text(c"x")]),
        "module" => call(libc::SYS_init_module, &[room_at, 8, text(c"")]),
        "old-architecture" => old_architecture(),
        "x32" => call(0x4000_0000 + 39, &[]),
        // Calls that would slow down or limit the monitoring process.
        "limit-process" => {
            let limit = [3_u64, 3];
            let (files, limit) = (u64::from(libc::RLIMIT_NOFILE), limit.as_ptr() as u64);
            call(libc::SYS_prlimit64, &[pid(0), files, limit, 0])
        }
        "pin-process" => call(libc::SYS_sched_setaffinity, &[pid(0), 8, [1_u64].as_ptr() as u64]),
        "idle-process" => call(libc::SYS_sched_setscheduler, &[pid(0), 5, room_at + 8]),
        "slow-process" => call(libc::SYS_setpriority, &[0, pid(0), 19]),
        "slow-group" => call(libc::SYS_setpriority, &[1, pid(0), 19]),
        "slow-user" => call(libc::SYS_setpriority, &[2, 0, 19]),
        // Calls that every program may make.
        "own-id" => call(libc::SYS_getpid, &[]),
        "limit-itself" => {
            let limit = [64_u64, 64];
            let (files, limit) = (u64::from(libc::RLIMIT_NOFILE), limit.as_ptr() as u64);
            call(libc::SYS_prlimit64, &[0, files, limit, 0])
        }
        "slow-itself" => call(libc::SYS_setpriority, &[0, 0, 19]),
        "map-memory" => call(libc::SYS_mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]),
        "fork-and-kill" => fork_and_kill(),
        "thread" => Ok(std::thread::spawn(|| "x".to_owned()).join().unwrap()),
        "pidfd" => call(libc::SYS_pidfd_open, &[u64::from(std::process::id()), 0]),
        "terminal-size" => call(libc::SYS_ioctl, &[0, u64::from(libc::FIONREAD as u32), room_at]),
        _ => return None,
    })
}

/// A child created by a call has nothing more to do.
fn leave(child: &String) {
    if child == "0" {
        unsafe { libc::_exit(0) };
    }
}

/// `getpid` as made by a 32-bit program. The kernel does not know it here, or refuses it by ending
/// us.
#[cfg(target_arch = "x86_64")]
fn old_architecture() -> io::Result<String> {
    let outcome: i32;
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") 20_i32 => outcome, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if outcome > 0 { Ok(outcome.to_string()) } else { Err(io::Error::from_raw_os_error(-outcome)) }
}

#[cfg(not(target_arch = "x86_64"))]
fn old_architecture() -> io::Result<String> {
    Err(io::Error::other("this architecture has no older one"))
}

fn fork_and_kill() -> io::Result<String> {
    let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn()?;
    child.kill()?;
    child.wait().map(|status| status.to_string())
}

/// A child process that runs a function and exits.
pub(crate) fn child(work: impl FnOnce()) -> io::Result<i32> {
    match unsafe { libc::fork() } {
        0 => {
            work();
            unsafe { libc::_exit(0) };
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}

/// Starts this many idle processes, and ends them.
pub(crate) fn fork_many(count: usize) -> io::Result<String> {
    let mut started = Vec::new();
    let mut failure = None;
    for _ in 0..count {
        match unsafe { libc::fork() } {
            0 => {
                unsafe { libc::pause() };
                unsafe { libc::_exit(0) };
            }
            -1 => {
                failure = Some(io::Error::last_os_error());
                break;
            }
            child => started.push(child),
        }
    }
    for child in &started {
        unsafe { libc::kill(*child, libc::SIGKILL) };
        unsafe { libc::waitpid(*child, std::ptr::null_mut(), 0) };
    }
    failure.map_or(Ok(started.len().to_string()), Err)
}

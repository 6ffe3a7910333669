//! The hostile programs' actions on files, processes and memory.

use super::{kernel, network};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) fn act(name: &str, arguments: &[&str]) -> io::Result<String> {
    match (name, arguments) {
        ("read", [path]) => read(path),
        ("list", [path]) => {
            let mut names: Vec<String> = fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<_>>()?;
            names.sort();
            Ok(names.join(" "))
        }
        ("process", [number]) => {
            let name = read(&format!("/proc/{number}/comm"))?;
            if name == "sleep" { Ok(name) } else { Err(io::Error::other("it is another process")) }
        }
        ("write", [path]) => fs::write(path, "hostile").map(|()| String::new()),
        ("write-with-odd-flags", [path]) => write_with_odd_flags(path),
        ("write-unreadable", [path]) => {
            // From now on no unprivileged process may read this one's memory.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
            fs::write(path, "hostile").map(|()| String::new())
        }
        ("write-after-many-names", [path]) => {
            for number in 0..21_000 {
                let _ = fs::metadata(format!("/nowhere/{number}"));
            }
            fs::write(path, "hostile").map(|()| String::new())
        }
        ("write-by-link", [link, folder, name]) => {
            symlink(folder, link)?;
            fs::write(Path::new(link).join(name), "hostile").map(|()| String::new())
        }
        ("write-by-descriptor", [path]) => {
            let open = File::open(path)?;
            let by = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
            fs::write(by, "hostile").map(|()| String::new())
        }
        ("change-open-file", [path]) => {
            File::open(path)?.set_permissions(fs::Permissions::from_mode(0o600))?;
            Ok(String::new())
        }
        ("append", [path]) => OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(b"hostile")
            .map(|()| String::new()),
        ("truncate", [path]) => {
            OpenOptions::new().write(true).open(path)?.set_len(0).map(|()| String::new())
        }
        ("write-through-link", [link, target]) => {
            symlink(target, link)?;
            fs::write(link, "hostile").map(|()| String::new())
        }
        ("hard-link", [from, to]) => fs::hard_link(from, to).map(|()| String::new()),
        ("rename", [from, to]) => fs::rename(from, to).map(|()| String::new()),
        ("make-folder", [path]) => fs::create_dir(path).map(|()| String::new()),
        ("set-uid", [path]) => {
            fs::write(path, "")?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o4755)).map(|()| String::new())
        }
        ("set-mode", [path]) => {
            fs::write(path, "")?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map(|()| String::new())
        }
        ("run", [program, arguments @ ..]) => {
            let output = std::process::Command::new(program).args(arguments).output()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() {
                Ok(text)
            } else {
                Err(io::Error::other(output.status.to_string()))
            }
        }
        ("unix", [path]) => UnixStream::connect(path).map(|_| String::new()),
        ("descriptors", []) => {
            let open = fs::read_dir("/proc/self/fd")?.count();
            // The three standard descriptors, and the one used for listing.
            if open > 4 {
                Ok(open.to_string())
            } else {
                Err(io::Error::other("only the standard ones"))
            }
        }
        ("environment", [name]) => std::env::var(name).map_err(io::Error::other),
        ("fill", [path, bytes]) => fill(Path::new(path), bytes.parse().unwrap()),
        ("memory", [bytes]) => memory(bytes.parse().unwrap()),
        ("memory-together", [count, bytes]) => {
            let bytes = bytes.parse().unwrap();
            let taking = (0..count.parse().unwrap()).map(|_| {
                kernel::child(|| {
                    let taken = vec![1_u8; bytes];
                    std::thread::sleep(std::time::Duration::from_secs(10));
                    drop(std::hint::black_box(taken));
                })
            });
            let taking: Vec<i32> = taking.collect::<io::Result<_>>()?;
            std::thread::sleep(std::time::Duration::from_secs(5));
            Ok(taking.len().to_string())
        }
        ("fork", [count]) => kernel::fork_many(count.parse().unwrap()),
        ("own-log", []) => own_log(),
        ("terminal", []) => terminal(),
        _ => match kernel::act(name, arguments) {
            Some(outcome) => outcome,
            None => network::act(name, arguments).unwrap_or_else(|| panic!("no act `{name}`")),
        },
    }
}

fn read(path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut text)?;
    if text.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    Ok(String::from_utf8_lossy(&text).trim().replace('\n', "|"))
}

fn fill(path: &Path, bytes: usize) -> io::Result<String> {
    let mut file = File::create(path)?;
    let block = vec![1_u8; 1 << 20];
    for _ in 0..bytes.div_ceil(block.len()) {
        file.write_all(&block)?;
    }
    Ok(String::new())
}

/// Opens a file for writing, with a bit set that the kernel does not know and ignores.
fn write_with_odd_flags(path: &str) -> io::Result<String> {
    let path = std::ffi::CString::new(path).unwrap();
    let flags = (libc::O_WRONLY | libc::O_CREAT) as u64 | 1 << 31;
    let here = libc::AT_FDCWD as u64;
    let opened = unsafe { libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0o600) };
    if opened < 0 { Err(io::Error::last_os_error()) } else { Ok(String::new()) }
}

/// Allocates and uses memory.
fn memory(bytes: usize) -> io::Result<String> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(io::Error::other)?;
    let taken = vec![1_u8; bytes];
    Ok(taken.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>().to_string())
}

/// Truncates and reads the file behind standard error.
fn own_log() -> io::Result<String> {
    let standard_error = io::stderr();
    let shrunk = unsafe { libc::ftruncate(std::os::fd::AsRawFd::as_raw_fd(&standard_error), 0) };
    if shrunk == 0 {
        return Ok("truncated".to_owned());
    }
    let file = OpenOptions::new().write(true).truncate(true).open("/proc/self/fd/2")?;
    if file.metadata()?.is_file() {
        Ok("opened".to_owned())
    } else {
        Err(io::Error::other("it is no file"))
    }
}

/// The controlling terminal of this process, as the kernel numbers it.
fn terminal() -> io::Result<String> {
    // The fields after the name in parentheses: state, parent, group, session, terminal.
    let text = fs::read_to_string("/proc/self/stat")?;
    let number = text.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(4));
    match number {
        Some("0") => Err(io::Error::other("there is none")),
        _ => Ok(format!("{number:?}")),
    }
}

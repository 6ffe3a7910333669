//! A separate control group for the program, if the system allows creating one: it limits total
//! memory and processes.

use crate::profile::Limits;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MOUNTED_AT: &str = "/sys/fs/cgroup";

/// A group created for one program. On drop, this process leaves it and removes it. All required
/// files are already open, because by then the process can no longer see the control groups.
#[derive(Debug)]
pub(super) struct ControlGroup {
    parent: OwnedFd,
    name: String,
    own_processes: File,
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = self.own_processes.write_all(b"0");
        let _ = unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}

/// The group that this process is in, and the group in which new ones are created.
///
/// A group that delegates controllers cannot contain processes itself. A service with a delegated
/// subtree (systemd's `Delegate=` with `DelegateSubgroup=`) runs in a subgroup of it, so new groups
/// are created next to that subgroup.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    own: PathBuf,
    parent: PathBuf,
}

/// Creates a group and moves this process into it. Without a group, only per-process limits apply.
pub(super) fn enter(limits: &Limits) -> Option<ControlGroup> {
    let place =
        place(Path::new(MOUNTED_AT), &fs::read_to_string("/proc/self/cgroup").ok()?).ok()?;
    enter_at(&place, limits, std::process::id()).ok()
}

/// Why no group can be created; `None` if one can.
pub(super) fn missing() -> Option<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let place = match place(Path::new(MOUNTED_AT), &own) {
        Ok(place) => place,
        Err(reason) => return Some(reason),
    };
    let trial = place.parent.join(format!("holdpoint-trial-{}", std::process::id()));
    match fs::create_dir(&trial) {
        Ok(()) => fs::remove_dir(&trial).err().map(|error| error.to_string()),
        Err(error) => Some(format!("`{}` cannot be changed: {error}", place.parent.display())),
    }
}

fn place(mounted_at: &Path, own: &str) -> Result<Place, String> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let own = mounted_at.join(path);
    let parent = own.parent().filter(|_| !path.is_empty()).unwrap_or(&own).to_owned();
    let Ok(controllers) = fs::read_to_string(parent.join("cgroup.subtree_control")) else {
        return Err("there is no unified hierarchy of control groups".to_owned());
    };
    let has = |name: &str| controllers.split_whitespace().any(|word| word == name);
    if has("memory") && has("pids") {
        Ok(Place { own, parent })
    } else {
        Err(format!("`{}` does not pass on memory and pids", parent.display()))
    }
}

fn enter_at(place: &Place, limits: &Limits, process: u32) -> io::Result<ControlGroup> {
    let name = format!("holdpoint-{process}");
    let own_processes = OpenOptions::new().write(true).open(place.own.join("cgroup.procs"))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, &place.parent, flags, Mode::empty())?;
    let folder = place.parent.join(&name);
    fs::create_dir(&folder)?;
    let group = ControlGroup { parent, name, own_processes };
    let write = |name: &str, value: String| fs::write(folder.join(name), value);
    write("memory.max", limits.memory_bytes.to_string())?;
    // A kernel without swap lacks this file.
    let _ = write("memory.swap.max", "0".to_owned());
    write("pids.max", limits.processes.to_string())?;
    write("cgroup.procs", process.to_string())?;
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses an ordinary folder: limits enforced by the kernel would require a delegated group.
    #[test]
    fn a_group_is_made_next_to_ours_with_the_limits_and_the_process() {
        let mounted = tempfile::tempdir().unwrap();
        let parent = mounted.path().join("holdpoint.service");
        fs::create_dir_all(parent.join("supervisor")).unwrap();
        fs::write(parent.join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        fs::write(parent.join("supervisor/cgroup.procs"), "").unwrap();
        let text = "1:cpu:/x\n0::/holdpoint.service/supervisor\n";
        let place = place(mounted.path(), text).unwrap();
        assert_eq!(place, Place { own: parent.join("supervisor"), parent: parent.clone() });
        let limits = Limits { memory_bytes: 1000, processes: 7, ..Limits::default() };
        let group = enter_at(&place, &limits, 42).unwrap();
        let read = |name: &str| fs::read_to_string(parent.join(name)).unwrap();
        assert_eq!(read("holdpoint-42/memory.max"), "1000");
        assert_eq!(read("holdpoint-42/memory.swap.max"), "0");
        assert_eq!(read("holdpoint-42/pids.max"), "7");
        assert_eq!(read("holdpoint-42/cgroup.procs"), "42");
        drop(group);
        assert_eq!(read("supervisor/cgroup.procs"), "0");
    }

    #[test]
    fn without_controllers_there_is_no_group() {
        let mounted = tempfile::tempdir().unwrap();
        assert!(place(mounted.path(), "4:memory:/a\n").is_err());
        fs::create_dir_all(mounted.path().join("a/b")).unwrap();
        fs::write(mounted.path().join("a/cgroup.subtree_control"), "cpu\n").unwrap();
        assert!(place(mounted.path(), "0::/a/b\n").unwrap_err().contains("memory and pids"));
    }
}

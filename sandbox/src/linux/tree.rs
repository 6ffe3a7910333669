//! The file tree of a confined program: assembled in memory, and made the root of its mount
//! namespace.
//!
//! Sources are opened before anything is mounted over them, and targets are opened beneath the new
//! root without following links, so that a link in a workspace cannot lead elsewhere.

use super::plan::{Node, NodeAccess, NodeKind};
use super::sys::{self, MountAttributes};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the tree is assembled. It exists on every system, and its contents are no longer needed by
/// then.
const SITE: &str = "/tmp";
/// The root contains only generated files and mount points.
const ROOT_BYTES: u64 = 1 << 20;

/// The parts of procfs that describe or change the machine. `subset=pid` would hide more, and break
/// `os.cpus()`.
const HIDDEN_OF_PROCESSES: [&str; 17] = [
    "acpi",
    "asound",
    "bus",
    "driver",
    "fs",
    "interrupts",
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "scsi",
    "sysrq-trigger",
    "timer_list",
];

/// Why the tree could not be assembled.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {doing}: {source}", path.display())]
pub(super) struct TreeError {
    path: PathBuf,
    doing: &'static str,
    source: io::Error,
}

/// A node whose source, if it has one, is an open copy of the mount.
#[derive(Debug)]
pub(super) struct OpenNode {
    node: Node,
    source: Option<OwnedFd>,
}

fn failed<E: Into<io::Error>>(path: &Path, doing: &'static str) -> impl FnOnce(E) -> TreeError {
    let path = path.to_owned();
    move |error| TreeError { path, doing, source: error.into() }
}

/// Opens the sources. `owners` determines the owner under which root's files are shown.
pub(super) fn open(nodes: &[Node], owners: Option<&OwnedFd>) -> Result<Vec<OpenNode>, TreeError> {
    let mut open = Vec::with_capacity(nodes.len());
    for node in nodes {
        let source = match &node.kind {
            NodeKind::Bind { source, access, owned, optional } => {
                let owners = owners.filter(|_| *owned).map(AsFd::as_fd);
                match open_source(source, *access, owners) {
                    Ok(source) => Some(source),
                    Err(error) if *optional && error.source.kind() == ErrorKind::NotFound => {
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            NodeKind::Temporary { .. }
            | NodeKind::File { .. }
            | NodeKind::Link { .. }
            | NodeKind::Folder
            | NodeKind::Processes
            | NodeKind::Hidden => None,
        };
        open.push(OpenNode { node: node.clone(), source });
    }
    Ok(open)
}

fn open_source(
    path: &Path,
    access: NodeAccess,
    owners: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, TreeError> {
    // The path was already resolved, so if a component is a link now, it was swapped.
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let seen = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map_err(failed(path, "cannot be opened"))?;
    let mount = open_tree(&seen, "", COPY).map_err(failed(path, "cannot be mounted"))?;
    let owner = rustix::fs::fstat(&seen).map_err(failed(path, "cannot be examined"))?.st_uid;
    if let Some(owners) = owners.filter(|_| owner == 0) {
        // Some file systems do not support owner mapping. There, root's files stay root's, and are
        // readable if everyone may read them.
        let mapped = MountAttributes { owners: Some(owners), ..MountAttributes::default() };
        let _ = sys::set_mount(&mount, mapped);
    }
    restrict(path, mount, access)
}

const COPY: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_EMPTY_PATH)
    .union(OpenTreeFlags::AT_RECURSIVE);

fn clone_mount(path: &Path, of: &OwnedFd, access: NodeAccess) -> Result<OwnedFd, TreeError> {
    let mount = open_tree(of, "", COPY).map_err(failed(path, "cannot be mounted"))?;
    restrict(path, mount, access)
}

fn restrict(path: &Path, mount: OwnedFd, access: NodeAccess) -> Result<OwnedFd, TreeError> {
    let attributes = MountAttributes {
        read_only: access == NodeAccess::Read,
        no_devices: access != NodeAccess::Device,
        recursive: true,
        owners: None,
    };
    sys::set_mount(&mount, attributes).map_err(failed(path, "cannot be restricted"))?;
    Ok(mount)
}

/// Assembles the tree and makes it the root of this mount namespace. The previous root is no longer
/// accessible.
pub(super) fn enter(nodes: Vec<OpenNode>) -> Result<(), TreeError> {
    let (root, site) = (Path::new("/"), Path::new(SITE));
    let alone = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", alone).map_err(failed(root, "cannot be made private"))?;
    let hiding = Hiding::open()?;
    let mut nodes = nodes.into_iter().peekable();
    let (base, is_made_up) = match nodes.next_if(|open| open.node.target == root) {
        Some(OpenNode { source: Some(source), .. }) => (source, false),
        _ => (memory(root, ROOT_BYTES, "0755")?, true),
    };
    attach(&base, open_beneath(CWD, site)?, root)?;
    for OpenNode { node, source } in nodes {
        place(&base, &node, source.as_ref(), &hiding)?;
    }
    if is_made_up {
        let sealed = MountAttributes { read_only: true, ..MountAttributes::default() };
        sys::set_mount(&base, sealed).map_err(failed(root, "cannot be sealed"))?;
    }
    let into = |error: rustix::io::Errno| failed(root, "cannot be entered")(error);
    rustix::process::fchdir(&base).map_err(into)?;
    rustix::process::pivot_root(".", ".").map_err(into)?;
    unmount(".", UnmountFlags::DETACH).map_err(into)?;
    rustix::process::chdir("/").map_err(into)
}

/// Mounts over files that the program must not see.
struct Hiding {
    null: OwnedFd,
}

impl Hiding {
    fn open() -> Result<Hiding, TreeError> {
        open_source(Path::new("/dev/null"), NodeAccess::Device, None).map(|null| Hiding { null })
    }

    /// Hides whatever exists at a path.
    fn hide(&self, top: &OwnedFd, path: &Path) -> Result<(), TreeError> {
        let Ok(place) = open_beneath(top, path) else { return Ok(()) };
        let metadata = rustix::fs::fstat(&place).map_err(failed(path, "cannot be examined"))?;
        if rustix::fs::FileType::from_raw_mode(metadata.st_mode).is_dir() {
            let empty = memory(path, 4096, "0555")?;
            let sealed = MountAttributes { read_only: true, ..MountAttributes::default() };
            sys::set_mount(&empty, sealed).map_err(failed(path, "cannot be sealed"))?;
            return attach(&empty, place, path);
        }
        let clone = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let null = open_tree(&self.null, "", clone).map_err(failed(path, "cannot be hidden"))?;
        attach(&null, place, path)
    }
}

fn place(
    top: &OwnedFd,
    node: &Node,
    source: Option<&OwnedFd>,
    hiding: &Hiding,
) -> Result<(), TreeError> {
    let target = &node.target;
    let Ok(inside) = target.strip_prefix("/") else {
        return Err(failed(target, "is not absolute")(io::Error::from(ErrorKind::InvalidInput)));
    };
    match &node.kind {
        NodeKind::Bind { .. } => {
            let Some(source) = source else { return Ok(()) };
            let metadata = rustix::fs::fstat(source).map_err(failed(target, "is gone"))?;
            let is_folder = rustix::fs::FileType::from_raw_mode(metadata.st_mode).is_dir();
            let place =
                if is_folder { make_folder(top, inside)? } else { make_file(top, inside, "")? };
            attach(source, place, target)
        }
        NodeKind::Temporary { bytes } => {
            attach(&memory(target, *bytes, "1777")?, make_folder(top, inside)?, target)
        }
        NodeKind::File { contents } => make_file(top, inside, contents).map(drop),
        NodeKind::Link { to } => {
            // If the link cannot be created, a shown folder already has something there, or on the
            // way to it.
            if let Ok((parent, name)) = parent_of(top, inside) {
                let _ = rustix::fs::symlinkat(to, &parent, &name);
            }
            Ok(())
        }
        NodeKind::Folder => make_folder(top, inside).map(drop),
        NodeKind::Processes => {
            let processes = new_mount(target, "proc", &[])?;
            attach(&processes, make_folder(top, inside)?, target)?;
            for name in HIDDEN_OF_PROCESSES {
                hiding.hide(top, &inside.join(name))?;
            }
            let settings = open_beneath(top, &inside.join("sys"))?;
            attach(&clone_mount(target, &settings, NodeAccess::Read)?, settings, target)
        }
        NodeKind::Hidden => hiding.hide(top, inside),
    }
}

/// An in-memory file system that is not mounted yet.
fn memory(path: &Path, bytes: u64, mode: &str) -> Result<OwnedFd, TreeError> {
    new_mount(path, "tmpfs", &[("size", &bytes.to_string()), ("mode", mode)])
}

fn new_mount(path: &Path, kind: &str, options: &[(&str, &str)]) -> Result<OwnedFd, TreeError> {
    let doing = "cannot be mounted";
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed(path, doing))?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value).map_err(failed(path, doing))?;
    }
    fsconfig_create(&context).map_err(failed(path, doing))?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(failed(path, doing))
}

/// Creates missing folders one at a time, so that no link is followed. Returns the last one.
fn make_folder(top: &OwnedFd, inside: &Path) -> Result<OwnedFd, TreeError> {
    let mut current = open_beneath(top, Path::new("."))?;
    for part in inside.components() {
        let part = Path::new(part.as_os_str());
        match rustix::fs::mkdirat(&current, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST | rustix::io::Errno::ROFS) => {}
            Err(error) => return Err(failed(inside, "cannot be made")(error)),
        }
        current = open_beneath(&current, part)?;
    }
    Ok(current)
}

/// Creates a missing file and returns it.
fn make_file(top: &OwnedFd, inside: &Path, contents: &str) -> Result<OwnedFd, TreeError> {
    let (parent, name) = parent_of(top, inside)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(0o444)) {
        Ok(file) => File::from(file)
            .write_all(contents.as_bytes())
            .map_err(failed(inside, "cannot be written"))?,
        Err(rustix::io::Errno::EXIST | rustix::io::Errno::ROFS) => {}
        Err(error) => return Err(failed(inside, "cannot be made")(error)),
    }
    open_beneath(&parent, &name)
}

fn parent_of(top: &OwnedFd, inside: &Path) -> Result<(OwnedFd, PathBuf), TreeError> {
    let parent = make_folder(top, inside.parent().unwrap_or(Path::new("")))?;
    Ok((parent, inside.file_name().map(PathBuf::from).unwrap_or_default()))
}

fn open_beneath(top: impl AsFd, path: &Path) -> Result<OwnedFd, TreeError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(top, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map_err(failed(path, "cannot be opened"))
}

fn attach(mount: &OwnedFd, to: OwnedFd, path: &Path) -> Result<(), TreeError> {
    let by_descriptor =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", to, "", by_descriptor).map_err(failed(path, "cannot be mounted"))
}

/// The owner of a folder, or root if that is unknown.
pub(super) fn owner(path: &Path) -> (u32, u32) {
    fs::metadata(path).map_or((0, 0), |metadata| (metadata.uid(), metadata.gid()))
}

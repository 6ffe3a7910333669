//! The file tree for a profile, as a list of nodes: the system folders read-only, generated files
//! in `/etc`, the program's runtime, its home, its workspace and everything else that the profile
//! names.

use super::dns::RESOLVER;
use super::plan::{Node, NodeAccess, NodeKind, User};
use super::workspace::{self, Placeholders};
use crate::profile::{FilePolicy, Profile};
use crate::refusal::Refusal;
use crate::runtime::{SYSTEM_FOLDERS, is_of_the_system};
use std::fs;
use std::path::{Path, PathBuf};

/// The home of a confined program, as the program sees it.
pub(super) const HOME: &str = "/home/server";
const SHARED_MEMORY_BYTES: u64 = 64 << 20;

/// The parts of `/etc` that are shown unchanged. Certificates are links to one another and into
/// `/usr`. Debian's start script for Chromium reads its settings there.
const OF_ETC: [&str; 19] = [
    "alternatives",
    "ca-certificates",
    "chromium",
    "chromium.d",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
];
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// The nodes to show, and the placeholders created to prevent the program from creating those
/// files.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) nodes: Vec<Node>,
    pub(super) placeholders: Placeholders,
}

/// `runtime` are the paths that the program needs to start.
pub(super) fn layout(
    profile: &Profile,
    runtime: &[PathBuf],
    user: User,
    never_visible: &[PathBuf],
) -> Result<Layout, Refusal> {
    let mut layout = Layout::default();
    if profile.files == FilePolicy::None {
        layout.nodes = everything(never_visible);
        return Ok(layout);
    }
    let nodes = &mut layout.nodes;
    nodes.extend(system());
    nodes.extend(made_up(user, profile));
    nodes.push(Node::new("/tmp", NodeKind::Temporary { bytes: profile.limits.temporary_bytes }));
    nodes.push(match &profile.home {
        Some(home) => {
            shown(&workspace::resolve_writable(home, never_visible)?, HOME, NodeAccess::Write)
        }
        None => Node::new(HOME, NodeKind::Temporary { bytes: profile.limits.temporary_bytes }),
    });
    for path in runtime {
        // Optional: a folder that must not be shown is simply left out.
        if let Ok(real) = workspace::resolve(path, never_visible) {
            show(nodes, path, &real, NodeAccess::Read);
        }
    }
    for path in profile.read.iter().chain(&profile.packages) {
        show(nodes, path, &workspace::resolve(path, never_visible)?, NodeAccess::Read);
    }
    if let Some(path) = &profile.workspace {
        let real = workspace::resolve_writable(path, never_visible)?;
        if !real.is_dir() {
            return Err(Refusal::Workspace { path: path.clone(), why: "is not a folder" });
        }
        let access = match profile.files {
            FilePolicy::WorkspaceOnly => NodeAccess::Write,
            FilePolicy::ReadOnly | FilePolicy::None => NodeAccess::Read,
        };
        show(nodes, path, &real, access);
        if access == NodeAccess::Write {
            nodes.extend(workspace::protect(&real, true, Some(&mut layout.placeholders))?);
        }
    }
    for path in &profile.write {
        let real = workspace::resolve_writable(path, never_visible)?;
        show(nodes, path, &real, NodeAccess::Write);
        let placeholders = workspace::is_repository(&real).then_some(&mut layout.placeholders);
        nodes.extend(workspace::protect(&real, true, placeholders)?);
    }
    sort(&mut layout.nodes);
    let held = held_in_place(&layout.nodes);
    layout.nodes.extend(held);
    sort(&mut layout.nodes);
    Ok(layout)
}

/// Each folder between a writable one and a mount inside it, bind-mounted on itself, because the
/// kernel does not allow moving a mount point. Otherwise a program could move such a folder away
/// together with its protected contents, and put another one in its place.
fn held_in_place(nodes: &[Node]) -> Vec<Node> {
    let mut held: Vec<Node> = Vec::new();
    for node in nodes {
        let around = nodes.iter().filter(|other| {
            other.target != node.target
                && node.target.starts_with(&other.target)
                && matches!(other.kind, NodeKind::Bind { .. } | NodeKind::Temporary { .. })
        });
        let around = around.max_by_key(|other| other.target.components().count());
        let Some(Node { target: top, kind: NodeKind::Bind { source, access, owned, .. } }) = around
        else {
            continue;
        };
        if *access != NodeAccess::Write || matches!(node.kind, NodeKind::Link { .. }) {
            continue;
        }
        for folder in node.target.ancestors().skip(1).take_while(|folder| folder != top) {
            let Ok(inner) = folder.strip_prefix(top) else { continue };
            let source = source.join(inner);
            let kind = NodeKind::Bind { source, access: *access, owned: *owned, optional: true };
            if !held.iter().any(|known| known.target == folder) {
                held.push(Node::new(folder, kind));
            }
        }
    }
    held
}

/// Sorts parents before their contents. If two nodes have the same place, the later one is kept.
fn sort(nodes: &mut Vec<Node>) {
    nodes.reverse();
    nodes.sort_by(|one, other| one.target.cmp(&other.target));
    nodes.dedup_by(|later, earlier| later.target == earlier.target);
    // A link is dropped if something else is to be shown below it.
    let targets: Vec<PathBuf> = nodes.iter().map(|node| node.target.clone()).collect();
    let holds = |path: &Path| targets.iter().any(|other| other != path && other.starts_with(path));
    nodes.retain(|node| !matches!(node.kind, NodeKind::Link { .. }) || !holds(&node.target));
}

fn shown(source: &Path, target: impl Into<PathBuf>, access: NodeAccess) -> Node {
    let source = source.to_owned();
    Node::new(target, NodeKind::Bind { source, access, owned: true, optional: false })
}

/// Shows a path under its real name, with a link from the path in the profile.
fn show(nodes: &mut Vec<Node>, path: &Path, real: &Path, access: NodeAccess) {
    if access != NodeAccess::Read || !is_of_the_system(real) {
        nodes.push(shown(real, real, access));
    }
    if path != real && !is_of_the_system(path) {
        nodes.push(Node::new(path, NodeKind::Link { to: real.to_owned() }));
    }
}

/// Everything that the user can see except Holdpoint's home, and only the processes of the sandbox.
fn everything(never_visible: &[PathBuf]) -> Vec<Node> {
    let source = PathBuf::from("/");
    let access = NodeAccess::Device;
    let mut nodes = vec![
        Node::new("/", NodeKind::Bind { source, access, owned: false, optional: false }),
        Node::new("/proc", NodeKind::Processes),
    ];
    let hidden = never_visible.iter().filter_map(|hidden| fs::canonicalize(hidden).ok());
    nodes.extend(hidden.map(|hidden| Node::new(hidden, NodeKind::Hidden)));
    sort(&mut nodes);
    nodes
}

fn system() -> Vec<Node> {
    let mut nodes = Vec::new();
    for folder in SYSTEM_FOLDERS.map(Path::new) {
        match fs::symlink_metadata(folder) {
            Ok(metadata) if metadata.is_symlink() => {
                let Ok(to) = fs::read_link(folder) else { continue };
                nodes.push(Node::new(folder, NodeKind::Link { to }));
            }
            Ok(metadata) if metadata.is_dir() => nodes.push(Node::bind(folder, NodeAccess::Read)),
            _ => {}
        }
    }
    for name in OF_ETC {
        let target = Path::new("/etc").join(name);
        // Follow the time zone's link, since its target may not be shown.
        let Ok(source) = fs::canonicalize(&target) else { continue };
        let kind =
            NodeKind::Bind { source, access: NodeAccess::Read, owned: false, optional: true };
        nodes.push(Node::new(target, kind));
    }
    nodes
}

fn made_up(user: User, profile: &Profile) -> Vec<Node> {
    let User { uid, gid, .. } = user;
    let file = |path: &str, contents: String| Node::new(path, NodeKind::File { contents });
    let link = |path: &str, to: &str| Node::new(path, NodeKind::Link { to: to.into() });
    let mut nodes = vec![
        file(
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n\
                 server:x:{uid}:{gid}:server:{HOME}:/bin/sh\n"
            ),
        ),
        file("/etc/group", format!("root:x:0:\nserver:x:{gid}:\n")),
        file("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n".to_owned()),
        file("/etc/hostname", "sandbox\n".to_owned()),
        file("/etc/host.conf", "multi on\n".to_owned()),
        file(
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
                .to_owned(),
        ),
        Node::new("/proc", NodeKind::Processes),
        Node::new("/dev", NodeKind::Folder),
        Node::new("/dev/shm", NodeKind::Temporary { bytes: SHARED_MEMORY_BYTES }),
        link("/dev/fd", "/proc/self/fd"),
        link("/dev/stdin", "/proc/self/fd/0"),
        link("/dev/stdout", "/proc/self/fd/1"),
        link("/dev/stderr", "/proc/self/fd/2"),
        Node::new("/run", NodeKind::Folder),
        Node::new("/sys", NodeKind::Folder),
        Node::new("/var", NodeKind::Folder),
        link("/var/run", "/run"),
        link("/var/tmp", "/tmp"),
    ];
    nodes.push(if profile.network == crate::profile::NetworkPolicy::None {
        let access = NodeAccess::Read;
        let source = fs::canonicalize("/etc/resolv.conf").unwrap_or_default();
        Node::new(
            "/etc/resolv.conf",
            NodeKind::Bind { source, access, owned: false, optional: true },
        )
    } else {
        file("/etc/resolv.conf", format!("nameserver {RESOLVER}\noptions timeout:2 attempts:1\n"))
    });
    nodes.extend(DEVICES.map(|name| Node::bind(&Path::new("/dev").join(name), NodeAccess::Device)));
    nodes
}

//! What the helper is told to do: all that was looked up and decided before, as data.

use crate::host_rule::HostRule;
use crate::profile::{FilePolicy, Level, Limits};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Only tries what the system offers, and starts nothing.
    pub(super) is_trial: bool,
    pub(super) level: Level,
    pub(super) files: FilePolicy,
    /// Where to find the program, as the confined program sees it.
    pub(super) program: PathBuf,
    /// With the name that the program was called by first.
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) directory: PathBuf,
    /// In the order in which they are put in place: a parent before what is inside it.
    pub(super) nodes: Vec<Node>,
    pub(super) user: User,
    /// `None` leaves the network as it is.
    pub(super) network: Option<NetworkPlan>,
    pub(super) limits: Limits,
    pub(super) browser: bool,
    pub(super) observe: bool,
}

/// Who the program runs as.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The helper was started by root, whose limit of processes the kernel does not enforce: it becomes this user first.
    pub(super) is_assumed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct NetworkPlan {
    pub(super) rules: Vec<HostRule>,
}

/// One thing in the tree that the program sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Node {
    /// As the program sees it.
    pub(super) target: PathBuf,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NodeKind {
    Bind {
        source: PathBuf,
        access: NodeAccess,
        /// Files of root in it are this user's, where the helper was started by root.
        owned: bool,
        /// What is not there is left out.
        optional: bool,
    },
    /// A file system in memory.
    Temporary {
        bytes: u64,
    },
    File {
        contents: String,
    },
    Link {
        to: PathBuf,
    },
    Folder,
    Processes,
    /// Nothing is to be seen here.
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NodeAccess {
    Read,
    Write,
    Device,
}

impl Node {
    pub(super) fn new(target: impl Into<PathBuf>, kind: NodeKind) -> Node {
        Node { target: target.into(), kind }
    }

    pub(super) fn bind(path: &Path, access: NodeAccess) -> Node {
        let kind =
            NodeKind::Bind { source: path.to_owned(), access, owned: false, optional: false };
        Node::new(path, kind)
    }
}

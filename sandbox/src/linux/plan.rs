//! Instructions for the helper: everything that was looked up and decided beforehand, as data.

use crate::host_rule::HostRule;
use crate::profile::{FilePolicy, Level, Limits};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Only test what the system offers, without starting anything.
    pub(super) is_trial: bool,
    pub(super) level: Level,
    pub(super) files: FilePolicy,
    /// The program's path, as the confined program sees it.
    pub(super) program: PathBuf,
    /// Starting with the name that the program was called by.
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) directory: PathBuf,
    /// In the order in which they are mounted: parents before their contents.
    pub(super) nodes: Vec<Node>,
    pub(super) user: User,
    /// `None` leaves the network unconfined.
    pub(super) network: Option<NetworkPlan>,
    pub(super) limits: Limits,
    pub(super) browser: bool,
    pub(super) observe: bool,
}

/// The user that the program runs as.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Root started the helper, and the kernel does not enforce root's process limit, so the helper
    /// switches to this user first.
    pub(super) is_assumed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct NetworkPlan {
    pub(super) rules: Vec<HostRule>,
}

/// One item of the file tree that the program sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Node {
    /// The path as the program sees it.
    pub(super) target: PathBuf,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NodeKind {
    Bind {
        source: PathBuf,
        access: NodeAccess,
        /// If root started the helper, root's files in it are shown as this user's.
        owned: bool,
        /// A missing source is skipped.
        optional: bool,
    },
    /// An in-memory file system.
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
    /// Nothing is visible here.
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

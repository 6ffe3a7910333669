//! What a confined program may use. Pure: paths are only values here, and nothing is looked up.

use crate::host_rule::HostRule;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which files a program sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilePolicy {
    /// Its runtime and the paths in [`Profile::read`] read-only; its workspace, its home and `/tmp`
    /// writable.
    #[default]
    WorkspaceOnly,
    /// Like `WorkspaceOnly`, but the workspace is read-only too.
    ReadOnly,
    /// Files are not confined: the program sees and changes what its user can, except the folders
    /// that are never visible.
    None,
}

/// What a program can reach on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// The hosts in [`Profile::allow`].
    Allowlist,
    /// Nothing.
    #[default]
    BlockAll,
    /// The network is not confined.
    None,
}

/// How well a program is confined, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not confined.
    None,
    /// By Landlock and seccomp only, because the kernel offers no namespaces; or only files or only
    /// network, because the profile sets the other to `none`.
    Partial,
    /// Files and network, by namespaces, Landlock and seccomp.
    #[default]
    Full,
}

/// A word that is not the name of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {expected}")]
pub struct UnknownWord {
    pub word: String,
    pub expected: &'static str,
}

macro_rules! words {
    ($type:ty, $expected:literal, $($variant:ident => $word:literal),+) => {
        impl $type {
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.word())
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { word: word.to_owned(), expected: $expected }),
                }
            }
        }
    };
}

words!(FilePolicy, "workspace_only, read_only, none",
    WorkspaceOnly => "workspace_only", ReadOnly => "read_only", None => "none");
words!(NetworkPolicy, "allowlist, block_all, none",
    Allowlist => "allowlist", BlockAll => "block_all", None => "none");
words!(Level, "full, partial, none", Full => "full", Partial => "partial", None => "none");

/// Resource limits of a confined program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The most processes and threads.
    pub processes: u64,
    /// The memory in bytes of one process or, with a control group, of all of them.
    pub memory_bytes: u64,
    /// The size in bytes of `/tmp`, and of a home that is not kept.
    pub temporary_bytes: u64,
    /// The size in bytes of one file.
    pub file_bytes: u64,
    pub open_files: u64,
    /// The most simultaneous connections through the egress proxy.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            processes: 256,
            memory_bytes: 4 << 30,
            temporary_bytes: 512 << 20,
            file_bytes: 4 << 30,
            open_files: 16_384,
            connections: 128,
        }
    }
}

/// What a program may use. By default it sees no files except its runtime, and no network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    pub files: FilePolicy,
    pub network: NetworkPolicy,
    /// The working folder, visible at the same path.
    pub workspace: Option<PathBuf>,
    /// Files and folders that the program may read and execute, visible at the same paths.
    pub read: Vec<PathBuf>,
    /// Folders with packages that a confined program installed. They are shown like `read`, but
    /// their contents do not determine what else is shown.
    pub packages: Vec<PathBuf>,
    /// Files and folders that the program may also write, visible at the same paths.
    pub write: Vec<PathBuf>,
    /// The folder that the program sees as its home. By default it gets an empty home that is
    /// discarded.
    pub home: Option<PathBuf>,
    /// The hosts that the program may reach with [`NetworkPolicy::Allowlist`].
    pub allow: Vec<HostRule>,
    pub limits: Limits,
    /// Browsers need `memfd_create` and shared memory. Both are otherwise refused, because the
    /// memory limit does not cover them.
    pub browser: bool,
    /// Report each opened file and each executed program. Slow: for testing a profile, not for
    /// regular use.
    pub observe: bool,
    /// The program is not started below this level.
    pub minimum: Level,
}

impl Profile {
    /// The folders whose files a confined program may have written.
    pub fn changeable(&self) -> Vec<PathBuf> {
        let named = self.workspace.iter().chain(&self.home);
        named.chain(&self.write).chain(&self.packages).cloned().collect()
    }

    /// The level that this profile requests, on a kernel that supports everything.
    pub fn level(&self) -> Level {
        match (self.files, self.network) {
            (FilePolicy::None, NetworkPolicy::None) => Level::None,
            (FilePolicy::None, _) | (_, NetworkPolicy::None) => Level::Partial,
            (
                FilePolicy::WorkspaceOnly | FilePolicy::ReadOnly,
                NetworkPolicy::Allowlist | NetworkPolicy::BlockAll,
            ) => Level::Full,
        }
    }
}

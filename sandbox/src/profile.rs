//! What a confined program may use. Pure: paths are values here, nothing is looked up.

use crate::host_rule::HostRule;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which files a program sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilePolicy {
    /// Its runtime and the paths in [`Profile::read`] read-only; its workspace, its home and `/tmp` writable.
    #[default]
    WorkspaceOnly,
    /// As `WorkspaceOnly`, but the workspace is read-only too.
    ReadOnly,
    /// Files are not confined: it sees and changes what its user can, except the folders that are never visible.
    None,
}

/// What of the network a program reaches.
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

/// How well a program is confined. A higher level is a greater value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not at all.
    None,
    /// By Landlock and seccomp only, because the kernel gives no namespaces; or in files or network only, because the
    /// profile says `none` for the other.
    Partial,
    /// Files and network, by namespaces, Landlock and seccomp.
    #[default]
    Full,
}

/// A word that names no policy.
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

/// What a confined program may use of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Processes and threads.
    pub processes: u64,
    /// Bytes of memory of one process, and with a control group of all of them.
    pub memory_bytes: u64,
    /// Bytes in `/tmp`, and in a home that is not kept.
    pub temporary_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    pub open_files: u64,
    /// Connections through the egress proxy at a time.
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

/// What a program may use. The default shows it no files but its runtime, and no network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    pub files: FilePolicy,
    pub network: NetworkPolicy,
    /// The folder that it works in, seen at the same path.
    pub workspace: Option<PathBuf>,
    /// Files and folders that it may read and run, seen at the same paths.
    pub read: Vec<PathBuf>,
    /// Folders with packages that a confined program installed. They are shown as `read` is, but the files in them do not
    /// decide what else is shown.
    pub packages: Vec<PathBuf>,
    /// Files and folders that it may also write, seen at the same paths.
    pub write: Vec<PathBuf>,
    /// The folder that it sees as its home. Without one it gets an empty home that is thrown away.
    pub home: Option<PathBuf>,
    /// The hosts that it may reach, with [`NetworkPolicy::Allowlist`].
    pub allow: Vec<HostRule>,
    pub limits: Limits,
    /// A browser needs `memfd_create` and shared memory, which are refused otherwise: they are not bounded by the limit of
    /// memory.
    pub browser: bool,
    /// Report each file that is opened and each program that is run. Slow: for trying a profile, not for use.
    pub observe: bool,
    /// The program does not start below this level.
    pub minimum: Level,
}

impl Profile {
    /// The folders whose files a confined program may have written.
    pub fn changeable(&self) -> Vec<PathBuf> {
        let named = self.workspace.iter().chain(&self.home);
        named.chain(&self.write).chain(&self.packages).cloned().collect()
    }

    /// The level that this profile asks for, on a kernel that offers everything.
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

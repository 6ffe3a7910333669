//! What a program does with files, where a profile says `observe`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file that the program asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access {
    /// As the program sees it. A path that it changes while it is read can be reported wrongly; that it wrote, and how
    /// often, cannot.
    pub path: PathBuf,
    pub kind: AccessKind,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    Read,
    /// Opened for writing, created, renamed, removed, or its attributes changed.
    Write,
    Execute,
    /// A socket in the file system was connected to.
    Connect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allowed,
    /// The profile shows the program no such file. Whether there is one outside is not looked at here.
    NotThere,
    /// The profile shows it read-only, or not to be run.
    Denied,
}

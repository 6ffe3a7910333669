//! The file accesses of a program, if its profile has `observe`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file that the program used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access {
    /// The path as the program sees it. If the program changes the path while it is being read, the
    /// report can be wrong. The fact that it wrote, and how often, is always right.
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
    /// The profile does not show the program such a file. Whether it exists outside is not checked
    /// here.
    NotThere,
    /// The profile shows it read-only, or forbids executing it.
    Denied,
}

//! What this system offers for confinement, determined by trying it.

use crate::profile::Level;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What the kernel offers. Each `Option` is `None` if the feature works, and otherwise says why it
/// does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The highest level that a program can be started at.
    pub level: Level,
    /// User, mount, pid, ipc, uts and network namespaces with a separate file tree.
    pub namespaces: Option<String>,
    /// The version of Landlock's interface; 0 if there is none.
    pub landlock_abi: u32,
    pub seccomp: Option<String>,
    /// A control group that limits total memory and processes. Its absence does not lower the
    /// level.
    pub control_group: Option<String>,
}

/// Tests in a separate process what this system offers. Takes some milliseconds; the result may be
/// cached.
pub fn support(helper: &Path) -> Support {
    crate::system::try_support(helper)
}

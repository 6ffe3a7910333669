//! What this system offers for confinement, found by trying it.

use crate::profile::Level;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What the kernel offers. Each `Option` is `None` where it works, and otherwise why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The highest level that a program can be started at.
    pub level: Level,
    /// User, mount, pid, ipc, uts and network namespaces with a tree of their own.
    pub namespaces: Option<String>,
    /// The version of Landlock's interface; 0 where there is none.
    pub landlock_abi: u32,
    pub seccomp: Option<String>,
    /// A control group that limits memory and processes together. Its absence lowers no level.
    pub control_group: Option<String>,
}

/// Tries in a process of its own what this system offers. Takes some milliseconds; the result may be kept.
pub fn support(helper: &Path) -> Support {
    crate::system::try_support(helper)
}

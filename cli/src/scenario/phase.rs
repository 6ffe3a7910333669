//! Which of its two surfaces a scenario shows. The phase is kept in a file, so that it can be
//! switched from outside and survives a restart.

use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file content that is read.
const MAX_STATE_BYTES: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Before,
    After,
}

impl Phase {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::After => "after",
        }
    }
}

/// The file that holds the phase.
#[derive(Debug)]
pub(crate) struct Stage {
    path: PathBuf,
}

impl Stage {
    pub(crate) fn new(path: &Path) -> Stage {
        Stage { path: path.to_owned() }
    }

    /// The phase in the file; `None` if the file is missing or half written.
    pub(crate) fn phase(&self) -> Option<Phase> {
        let file = std::fs::File::open(&self.path).ok()?;
        let mut text = String::new();
        file.take(MAX_STATE_BYTES).read_to_string(&mut text).ok()?;
        [Phase::Before, Phase::After].into_iter().find(|phase| phase.as_str() == text.trim())
    }

    pub(crate) fn set(&self, phase: Phase) -> std::io::Result<()> {
        std::fs::write(&self.path, phase.as_str())
    }
}

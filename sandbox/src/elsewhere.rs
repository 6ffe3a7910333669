//! Systems without support for confinement: every launch is refused.

use crate::confine::{Confined, Embedder, Launch};
use crate::profile::{Level, Profile};
use crate::refusal::Refusal;
use crate::support::Support;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const WHY: &str = "programs are confined on Linux and macOS only";

#[derive(Debug)]
pub(crate) struct Lifeline;

pub(crate) fn confine(profile: &Profile, _: &Launch, _: &Embedder) -> Result<Confined, Refusal> {
    let (asked, offered) = (profile.minimum, Level::None);
    Err(Refusal::Level { asked, offered, why: WHY.to_owned() })
}

/// The files that a program needs to run. Empty here, since no program is started.
pub fn runtime_of(_: &Path, _: &[PathBuf]) -> Vec<PathBuf> {
    Vec::new()
}

pub(crate) fn become_helper(_: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

pub(crate) fn try_support(_: &Path) -> Support {
    let missing = || Some(WHY.to_owned());
    Support {
        level: Level::None,
        namespaces: missing(),
        landlock_abi: 0,
        seccomp: missing(),
        control_group: missing(),
    }
}

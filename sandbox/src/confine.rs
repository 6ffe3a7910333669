//! Turns a profile and a launch into a command that can be spawned, and a watch over what it
//! starts.

use crate::event::Events;
use crate::host_rule::Reach;
use crate::profile::{Level, Profile};
use crate::refusal::Refusal;
use crate::switch::EgressSwitch;
use crate::system;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The program to start.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The complete environment, except for `HOME`, `TMPDIR`, `USER` and `LOGNAME`, which the
    /// sandbox sets, and `PATH`, which it sets if missing.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder to start in; by default the workspace, or else the home.
    pub directory: Option<PathBuf>,
}

/// What the embedding program provides to this crate.
#[derive(Clone)]
pub struct Embedder {
    /// The path of this program, which must call [`crate::helper_main`] at the start of its `main`.
    pub helper: PathBuf,
    /// Folders that no confined program sees, whatever its profile says: Holdpoint's home. The
    /// contents of their subfolder `sandbox` (homes and packages of servers) may be shown.
    pub never_visible: Vec<PathBuf>,
    /// Decides which addresses may be reached.
    pub reach: fn(IpAddr) -> Reach,
    pub events: Events,
    pub switch: EgressSwitch,
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Embedder").field("helper", &self.helper).finish_non_exhaustive()
    }
}

/// A command that starts a program confined.
#[derive(Debug)]
pub struct Confined {
    /// Must be spawned once, with standard input, output and error set by the caller, and then
    /// dropped.
    pub command: Command,
    pub watch: Watch,
}

/// Watches over a confined program. Dropping it ends the program and everything that it started.
#[derive(Debug)]
pub struct Watch {
    pub(crate) level: Level,
    pub(crate) state: Arc<State>,
    /// Ends the program on drop.
    pub(crate) _lifeline: system::Lifeline,
}

impl Watch {
    /// The level at which the program runs.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Waits until the program was started confined, or failed to start. Blocks.
    pub fn ready(&self, within: Duration) -> Result<Level, Refusal> {
        let mut progress = self.state.progress();
        let until = Instant::now() + within;
        loop {
            if progress.was_ready {
                return Ok(self.level);
            }
            if let Some(ended) = &progress.ended {
                let silent = || "the program ended before it began".to_owned();
                return Err(Refusal::Setup(ended.clone().unwrap_or_else(silent)));
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Err(Refusal::TimedOut);
            };
            progress = self.state.wait(progress, left);
        }
    }
}

/// The progress of a confined program.
#[derive(Debug, Default)]
pub(crate) struct State {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    was_ready: bool,
    /// Set once it ended, with the reason if there is one.
    ended: Option<Option<String>>,
}

#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only Linux has a helper that tells how far it has come")
)]
impl State {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &'a self,
        progress: MutexGuard<'a, Progress>,
        left: Duration,
    ) -> MutexGuard<'a, Progress> {
        let waited = self.changed.wait_timeout(progress, left);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn ready(&self) {
        self.progress().was_ready = true;
        self.changed.notify_all();
    }

    /// Records the end. The first reason is kept.
    pub(crate) fn end(&self, reason: Option<String>) {
        let mut progress = self.progress();
        if !matches!(progress.ended, Some(Some(_))) {
            progress.ended = Some(reason);
        }
        self.changed.notify_all();
    }

    /// Waits until the program and everything that it started are gone.
    pub(crate) fn ended_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut progress = self.progress();
        while progress.ended.is_none() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            progress = self.wait(progress, left);
        }
        true
    }
}

/// Prepares a program to be started confined. Nothing is started yet.
pub fn confine(
    profile: &Profile,
    launch: &Launch,
    embedder: &Embedder,
) -> Result<Confined, Refusal> {
    system::confine(profile, launch, embedder)
}

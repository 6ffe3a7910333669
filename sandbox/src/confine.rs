//! From a profile and a launch to a command that can be spawned, and a watch over what it starts.

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
    /// All of its environment, but for `HOME`, `TMPDIR`, `USER` and `LOGNAME`, which are those of the sandbox, and `PATH`
    /// where it is missing.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it starts in; without one its workspace, or its home.
    pub directory: Option<PathBuf>,
}

/// What the program around this crate gives it.
#[derive(Clone)]
pub struct Embedder {
    /// This program, which calls [`crate::helper_main`] first in its `main`.
    pub helper: PathBuf,
    /// Folders that no confined program sees, whatever its profile says: Holdpoint's home. What is inside their folder
    /// `sandbox` (homes and packages of servers) may be shown.
    pub never_visible: Vec<PathBuf>,
    /// The address table of the embedder.
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
    /// To be spawned once, with standard input, output and error as the caller sets them, then dropped.
    pub command: Command,
    pub watch: Watch,
}

/// Watches over a confined program. Dropped, it ends the program and everything that it started.
#[derive(Debug)]
pub struct Watch {
    pub(crate) level: Level,
    pub(crate) state: Arc<State>,
    /// Ends the program when it is dropped.
    pub(crate) _lifeline: system::Lifeline,
}

impl Watch {
    /// The level that the program runs at.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Waits until the program was started confined, or could not be. Blocks.
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

/// How far a confined program has come.
#[derive(Debug, Default)]
pub(crate) struct State {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    was_ready: bool,
    /// Why it ended, where there is something to say.
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

    /// The first reason counts.
    pub(crate) fn end(&self, reason: Option<String>) {
        let mut progress = self.progress();
        if !matches!(progress.ended, Some(Some(_))) {
            progress.ended = Some(reason);
        }
        self.changed.notify_all();
    }

    /// Waits until everything of the program is gone.
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

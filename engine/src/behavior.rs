//! The active part of tier 3 of the ladder: starts or reaches a server separately from the session,
//! sends it a battery, and remembers the result for this process.
//!
//! Nothing here runs on a thread that handles calls. Every fault of a probe results in UNAVAILABLE.

mod memory;
mod sandboxed;
mod snapshot;

pub use memory::{MAX_REMEMBERED, Observable, ObservedBehavior, Unobserved};
pub use sandboxed::SandboxIsolation;

use contract::client::ClientCapabilities;
use contract::surface::{Entry, ListKind, SurfaceReader};
use gate::behavior::{Assessment, Battery, Leg, Outcome, Sighting};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wire::listing::ListOutcome;
use wire::{
    Answer, CallOutcome, ObserveError, ObserveLimits, StdioLaunch, Trial, TriedServer, Upstream,
    try_calls,
};

/// The timeout for one call of a battery.
pub const CALL_PATIENCE: Duration = Duration::from_secs(5);
/// The timeout for all of its calls.
pub const BATTERY_PATIENCE: Duration = Duration::from_secs(30);
/// How long to keep watching after the last call, because something that a tool started may act a
/// little later.
pub const SETTLING: Duration = Duration::from_millis(250);
/// How long a server may take to start for a battery and list its tools.
pub const START_PATIENCE: Duration = Duration::from_secs(20);
/// The largest response to a call of a battery.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Starts programs without network access.
pub trait Isolation: Send + Sync {
    /// The command that starts a program confined, with its watch. An error says why the program
    /// cannot be confined.
    fn confine(&self, launch: &StdioLaunch) -> Result<Confined, String>;
}

/// A confined program that has not been started yet.
pub struct Confined {
    pub command: Command,
    pub watch: Box<dyn Watch>,
}

impl std::fmt::Debug for Confined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Confined").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Observes a confined program. Dropping it ends the program and everything that it started.
pub trait Watch: Send + Sync {
    /// Marks the end of the startup phase, whose observations do not count.
    fn begin(&self);
    /// The reason, if the program was not started because it could not be confined.
    fn failure(&self) -> Option<String>;
    /// The observations after startup. Called once the program has ended.
    fn sighting(self: Box<Self>) -> Sighting;
}

/// Tests the behavior of one tool. Blocks.
pub trait Probe: Send {
    fn probe(&self, tool: &Entry) -> Assessment;
}

/// Tests the tools of one server.
pub struct Prober {
    leg: Leg,
    upstream: Upstream,
    client: ClientCapabilities,
    isolation: Option<Box<dyn Isolation>>,
    /// The path of this program, through which an unconfined server is started so that it ends with
    /// us.
    become_with: Option<PathBuf>,
}

impl std::fmt::Debug for Prober {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Prober").field("leg", &self.leg).finish_non_exhaustive()
    }
}

impl Prober {
    /// `isolation` confines the server in the sandbox leg.
    pub fn new(leg: Leg, upstream: Upstream, isolation: Option<Box<dyn Isolation>>) -> Prober {
        let become_with = std::env::current_exe().ok();
        let client = ClientCapabilities::default();
        Prober { leg, upstream, client, isolation, become_with }
    }

    /// Declares the capabilities of a given client: some servers offer different tools depending on
    /// them.
    #[must_use]
    pub fn for_client(self, client: ClientCapabilities) -> Prober {
        Prober { client, ..self }
    }

    pub fn leg(&self) -> Leg {
        self.leg
    }

    /// The confined server of the sandbox leg. The read-only leg uses the server unconfined.
    fn confined(&self) -> Result<Option<Confined>, String> {
        match (self.leg, &self.upstream, &self.isolation) {
            (Leg::ReadOnly, ..) => Ok(None),
            (Leg::Sandbox, Upstream::Http(_), _) => Err(
                "a remote server cannot be started in a sandbox; one of your own can be probed with \
                 `mode = \"read-only\"` and `owner = true`"
                    .to_owned(),
            ),
            (Leg::Sandbox, Upstream::Stdio(_), None) => Err("there is no sandbox here".to_owned()),
            (Leg::Sandbox, Upstream::Stdio(launch), Some(isolation)) => {
                isolation.confine(launch).map(Some)
            }
        }
    }
}

impl Probe for Prober {
    /// Tests one tool with this definition, within the sum of the timeouts above.
    fn probe(&self, tool: &Entry) -> Assessment {
        let battery = match Battery::of(tool, self.leg) {
            Ok(battery) => battery,
            Err(why) => return Assessment::not_tried(why),
        };
        let confined = match self.confined() {
            Ok(confined) => confined,
            Err(why) => return Assessment::not_tried(why),
        };
        let (server, watch) = match confined {
            Some(Confined { command, watch }) => {
                (TriedServer::Command(Box::new(command)), Some(watch))
            }
            None => (TriedServer::Upstream(&self.upstream, self.become_with.clone()), None),
        };
        let is_same = AtomicBool::new(false);
        let begin = |lists: &[(ListKind, ListOutcome)]| {
            is_same.store(lists_tool(lists, tool), Ordering::Relaxed);
            watch.iter().for_each(|watch| watch.begin());
            is_same.load(Ordering::Relaxed)
        };
        let calls: Vec<String> =
            battery.probes.iter().map(|probe| probe.arguments.to_string()).collect();
        let trial = Trial {
            tool: tool.key(),
            calls: &calls,
            client: &self.client,
            call_patience: CALL_PATIENCE,
            patience: BATTERY_PATIENCE,
            settling: SETTLING,
            begin: &begin,
        };
        let tried = match run(server, &trial) {
            Ok(tried) => tried,
            Err(why) => {
                let failure = watch.as_ref().and_then(|watch| watch.failure());
                return Assessment::not_tried(failure.unwrap_or(why));
            }
        };
        if !is_same.load(Ordering::Relaxed) {
            let why = "started again, the server does not list the tool as it is defined here";
            return Assessment::not_tried(why);
        }
        let mut sighting = watch.map(Watch::sighting).unwrap_or_default();
        sighting.stray_answers = tried.stray_answers;
        let outcomes: Vec<Outcome> = tried.outcomes.into_iter().map(outcome).collect();
        Assessment::of(&battery, &outcomes, &sighting)
    }
}

fn run(server: TriedServer<'_>, trial: &Trial<'_>) -> Result<wire::Tried, String> {
    let limits = ObserveLimits {
        start_timeout: START_PATIENCE,
        list_timeout: START_PATIENCE,
        frame_bytes: MAX_ANSWER_BYTES,
        ..ObserveLimits::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(try_calls(server, &limits, trial)).map_err(|error| untried(&error).to_owned())
}

/// Whether the server lists exactly this definition.
fn lists_tool(lists: &[(ListKind, ListOutcome)], tool: &Entry) -> bool {
    let mut reader = SurfaceReader::default();
    for (list, outcome) in lists {
        outcome.read_into(*list, &mut reader);
    }
    let surface = reader.finish();
    surface.entry(tool.id()).is_some_and(|listed| listed.entry_hash() == tool.entry_hash())
}

fn outcome(outcome: CallOutcome) -> Outcome {
    match outcome {
        CallOutcome::Answer(Answer::Result(result)) => Outcome::Result(result.to_string()),
        CallOutcome::Answer(Answer::Error { code, .. }) => Outcome::Error { code },
        CallOutcome::Answer(Answer::Unreadable(_)) => Outcome::Unreadable,
        CallOutcome::Nothing { is_alive: true } => Outcome::Slow,
        CallOutcome::Nothing { is_alive: false } => Outcome::NoAnswer,
        CallOutcome::Ended => Outcome::Ended,
    }
}

/// Why no session with a server could be established, without any text from the server, since an
/// agent may read this.
fn untried(error: &ObserveError) -> &'static str {
    match error {
        ObserveError::TimedOut { .. } => {
            "the server did not answer in time when it was started for it"
        }
        ObserveError::Exited { .. } | ObserveError::ClosedOutput { .. } => {
            "the server ended when it was started for it; credentials are not given to it, and the network is closed"
        }
        ObserveError::NeedsSignIn { .. } => "the server asks for a sign-in",
        _ => "the server could not be started or reached for it",
    }
}

//! A trial: starts or reaches a server, observes it, calls a tool a number of times, and ends the
//! server.
//!
//! It decides nothing: the caller chooses the calls and interprets their outcomes.

use super::handshake::stateless_meta;
use super::{Progress, Session};
use crate::Answer;
use crate::client::{Asked, Client, Correlator, StdioTransport, Stop};
use crate::error::{Awaited, ObserveError};
use crate::limits::ObserveLimits;
use crate::listing::ListOutcome;
use crate::process::{Environment, ServerGroup, ServerStart, StandardError};
use crate::revision::{Era, Revision};
use crate::upstream::Upstream;
use contract::client::ClientCapabilities;
use contract::surface::ListKind;
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may take to answer a `ping`.
const PING_PATIENCE: Duration = Duration::from_secs(2);

/// The server to try.
#[derive(Debug)]
pub enum TriedServer<'a> {
    /// A program given as a command that is complete except for its pipes.
    Command(Box<Command>),
    /// An upstream as configured. If a path is given, the program is started through that one, so
    /// that it ends with us.
    Upstream(&'a Upstream, Option<PathBuf>),
}

/// Examines what a server listed and returns whether to call it.
pub type BeforeCalls<'a> = dyn Fn(&[(ListKind, ListOutcome)]) -> bool + Sync + 'a;

/// The calls of one tool.
pub struct Trial<'a> {
    pub tool: &'a str,
    /// The arguments of each call, as JSON.
    pub calls: &'a [String],
    /// The client capabilities to declare.
    pub client: &'a ClientCapabilities,
    /// The time limits for one call and for all of them.
    pub call_patience: Duration,
    pub patience: Duration,
    /// How long to wait after the last call, to see what the server does later.
    pub settling: Duration,
    /// Receives what the server listed, before the first call. If it returns false, no call is
    /// made.
    pub begin: &'a BeforeCalls<'a>,
}

impl std::fmt::Debug for Trial<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Trial").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The outcome of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    Answer(Answer),
    /// No answer in time, and no further calls were made. `is_alive` is set if the server still
    /// answers a `ping`.
    Nothing {
        is_alive: bool,
    },
    /// The server ended. No further requests were sent.
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tried {
    /// The outcomes of the calls that were made, in order.
    pub outcomes: Vec<CallOutcome>,
    /// How many answers arrived for requests that were not waiting for one.
    pub stray_answers: u64,
}

/// Tries a server. An error means that no session could be established and no call was made.
///
/// Dropping the future kills a started server and everything that it started.
pub async fn try_calls(
    server: TriedServer<'_>,
    limits: &ObserveLimits,
    trial: &Trial<'_>,
) -> Result<Tried, ObserveError> {
    let client = trial.client;
    let server = open(server, client, limits).await?;
    let progress = &|_: Progress| {};
    let mut session = Session { server, client, limits, progress, notes: Vec::new() };
    let outcome = session.try_calls(trial).await;
    let stray_answers = session.server.stray_answers();
    let left = session.server.close().await;
    match outcome {
        Ok(outcomes) => Ok(Tried { outcomes, stray_answers }),
        Err(Stop::Error(error)) => Err(error),
        Err(Stop::Ended(awaited)) => Err(match left.status {
            Some(status) => ObserveError::Exited { awaited, status, stderr: left.stderr },
            None => ObserveError::ClosedOutput { awaited, stderr: left.stderr },
        }),
    }
}

async fn open(
    server: TriedServer<'_>,
    client: &ClientCapabilities,
    limits: &ObserveLimits,
) -> Result<Client, ObserveError> {
    match server {
        TriedServer::Upstream(Upstream::Stdio(launch), become_with) => {
            let start = ServerStart {
                group: ServerGroup::default(),
                become_with,
                environment: Environment::Whole,
                stderr: StandardError::Piped,
            };
            let started = StdioTransport::start_as(launch, start, limits);
            over_stdio(started, launch.program.clone(), client)
        }
        TriedServer::Upstream(upstream, _) => Client::open(upstream, client, limits).await,
        TriedServer::Command(command) => {
            let program = command.get_program().to_owned();
            over_stdio(StdioTransport::start_command(*command, limits), program, client)
        }
    }
}

fn over_stdio(
    started: io::Result<StdioTransport>,
    program: OsString,
    client: &ClientCapabilities,
) -> Result<Client, ObserveError> {
    match started {
        Ok(transport) => Ok(Client::over_stdio(transport, Correlator::new(client))),
        Err(source) => Err(ObserveError::CannotStart { program, source }),
    }
}

impl Session<'_> {
    /// Whether the server still responds: a tool may be slow, but a server must not be.
    async fn is_alive(&mut self, stateless: Option<Revision>) -> bool {
        let meta = stateless
            .map_or_else(String::new, |_| format!(r#""_meta":{}"#, stateless_meta(self.client)));
        let deadline = Instant::now() + PING_PATIENCE;
        let params = format!("{{{meta}}}");
        let asked = self.server.ask("ping", &params, stateless, Awaited::Call, deadline).await;
        matches!(asked, Ok(Asked::Answer(_) | Asked::Status(_)))
    }

    async fn try_calls(&mut self, trial: &Trial<'_>) -> Result<Vec<CallOutcome>, Stop> {
        let (era, handshake) = self.shake_hands().await?;
        let lists = self.list_all(era, &handshake).await?;
        let mut outcomes = Vec::new();
        if !(trial.begin)(&lists) {
            return Ok(outcomes);
        }
        let end = Instant::now() + trial.patience;
        for arguments in trial.calls {
            let deadline = end.min(Instant::now() + trial.call_patience);
            let outcome = self.call(era, trial.tool, arguments, deadline).await;
            let is_over = !matches!(outcome, CallOutcome::Answer(_));
            outcomes.push(outcome);
            if is_over {
                return Ok(outcomes);
            }
        }
        tokio::time::sleep(trial.settling).await;
        Ok(outcomes)
    }

    async fn call(
        &mut self,
        era: Era,
        tool: &str,
        arguments: &str,
        deadline: Instant,
    ) -> CallOutcome {
        let stateless = era.stateless();
        let meta = match stateless {
            Some(_) => format!(r#","_meta":{}"#, stateless_meta(self.client)),
            None => String::new(),
        };
        let params = format!(r#"{{"name":{},"arguments":{arguments}{meta}}}"#, Value::from(tool));
        let (name, method, awaited) = (Some(tool), "tools/call", Awaited::Call);
        let asked = self.server.ask_about(name, method, &params, stateless, awaited, deadline);
        match asked.await {
            Ok(Asked::Answer(answer)) => CallOutcome::Answer(answer),
            Ok(Asked::Nothing) => CallOutcome::Nothing { is_alive: self.is_alive(stateless).await },
            // An HTTP error status refuses the call just as an error does.
            Ok(Asked::Status(status)) => CallOutcome::Answer(Answer::Error {
                code: -i64::from(status.as_u16()),
                message: crate::ServerText::default(),
            }),
            Err(Stop::Ended(_) | Stop::Error(_)) => CallOutcome::Ended,
        }
    }
}

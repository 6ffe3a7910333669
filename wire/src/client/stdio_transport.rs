//! A server run as a child process: exchanges lines over its pipes, keeps the end of its standard
//! error, and ends it.

use super::correlate::{Correlator, Heard};
use super::stderr::StderrTail;
use super::{Asked, Stop};
use crate::Answer;
use crate::ServerText;
use crate::error::{Awaited, ObserveError};
use crate::limits::{ObserveLimits, TERMINATE_GRACE};
use crate::lines::{Line, LineReader};
use crate::message::Request;
use crate::process::{Environment, ServerGroup, ServerProcess, ServerStart, StandardError};
use crate::upstream::StdioLaunch;
use std::io;
use std::process::{
    ChildStdin as StdChildStdin, ChildStdout as StdChildStdout, Command, ExitStatus, Stdio,
};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout, timeout_at};

/// A running server. Dropping it kills the server and everything that the server started.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    process: ServerProcess,
    input: Option<ChildStdin>,
    lines: LineReader<ChildStdout>,
    /// `None` if the server shares our standard error.
    stderr: Option<StderrTail>,
    frame_bytes: usize,
    grace: Duration,
}

impl StdioTransport {
    /// Starts a program with our environment, and keeps the end of its standard error.
    pub(crate) fn start(
        launch: &StdioLaunch,
        limits: &ObserveLimits,
    ) -> Result<StdioTransport, ObserveError> {
        if let Some(directory) = &launch.directory
            && !directory.is_dir()
        {
            return Err(ObserveError::DirectoryNotFound { directory: directory.clone() });
        }
        let start = ServerStart {
            group: ServerGroup::default(),
            become_with: None,
            environment: Environment::Whole,
            stderr: StandardError::Piped,
        };
        StdioTransport::start_as(launch, start, limits).map_err(|source| {
            let program = launch.program.clone();
            match source.kind() {
                io::ErrorKind::NotFound => ObserveError::ProgramNotFound { program },
                _ => ObserveError::CannotStart { program, source },
            }
        })
    }

    pub(crate) fn start_as(
        launch: &StdioLaunch,
        start: ServerStart,
        limits: &ObserveLimits,
    ) -> io::Result<StdioTransport> {
        StdioTransport::over(ServerProcess::start_as(launch, start)?, limits)
    }

    /// Starts a program by a command that is complete except for its pipes, and keeps the end of
    /// its standard error.
    pub(crate) fn start_command(
        command: Command,
        limits: &ObserveLimits,
    ) -> io::Result<StdioTransport> {
        let group = ServerGroup::default();
        let started = ServerProcess::start_command(command, group, Stdio::piped())?;
        StdioTransport::over(started, limits)
    }

    fn over(
        (mut process, input, output): (ServerProcess, StdChildStdin, StdChildStdout),
        limits: &ObserveLimits,
    ) -> io::Result<StdioTransport> {
        let stderr = match process.take_stderr() {
            Some(stderr) => Some(StderrTail::follow(ChildStderr::from_std(stderr)?)),
            None => None,
        };
        Ok(StdioTransport {
            process,
            input: Some(ChildStdin::from_std(input)?),
            lines: LineReader::new(ChildStdout::from_std(output)?, limits.frame_bytes),
            stderr,
            frame_bytes: limits.frame_bytes,
            grace: limits.shutdown_grace,
        })
    }

    pub(super) async fn ask(
        &mut self,
        request: &Request,
        awaited: Awaited,
        deadline: Instant,
        correlator: &mut Correlator,
    ) -> Result<Asked, Stop> {
        match timeout_at(deadline, self.converse(request, correlator)).await {
            Ok(Some(answer)) => Ok(Asked::Answer(answer)),
            Ok(None) => Err(Stop::Ended(awaited)),
            Err(_) => Ok(Asked::Nothing),
        }
    }

    pub(super) async fn tell(&mut self, text: &str, deadline: Instant) {
        let _ = timeout_at(deadline, self.write_line(text)).await;
    }

    /// Returns `None` if the server's output ends before the answer.
    async fn converse(&mut self, request: &Request, correlator: &mut Correlator) -> Option<Answer> {
        self.write_line(&request.text).await;
        loop {
            let heard = match self.lines.next().await.ok()? {
                Line::Frame(line) => correlator.hear(line, &request.id),
                Line::TooLong { beginning, end, .. } => {
                    correlator.hear_too_long(beginning, end, self.frame_bytes, &request.id)
                }
                Line::End { unfinished } => {
                    if !unfinished.is_empty() {
                        correlator.hear_unfinished();
                    }
                    return None;
                }
            };
            match heard {
                Heard::Answer(answer) => return Some(answer),
                Heard::Reply(text) => self.write_line(&text).await,
                Heard::Nothing => {}
            }
        }
    }

    /// Writes one line. A failed write is not an error, because a server that closed its input may
    /// still send output, and its end is noticed when the output ends. Nothing more is written
    /// after a failure.
    async fn write_line(&mut self, text: &str) {
        // Taken out during the write: if the write is cancelled halfway, nothing is appended to the
        // partial line.
        let Some(mut input) = self.input.take() else { return };
        let written = async {
            input.write_all(text.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        if written.await.is_ok() {
            self.input = Some(input);
        }
    }

    pub(super) fn stderr(&self) -> ServerText {
        self.stderr.as_ref().map(StderrTail::text).unwrap_or_default()
    }

    /// Ends the server. Returns its status if it exited by itself, and the end of its standard
    /// error.
    pub(super) async fn close(self) -> (Option<ExitStatus>, ServerText) {
        let StdioTransport { process, input, mut lines, mut stderr, grace, .. } = self;
        drop(input);
        // Keep reading its output, so that it does not block on a full pipe while it shuts down.
        let draining = tokio::spawn(async move {
            while let Ok(Line::Frame(_) | Line::TooLong { .. }) = lines.next().await {}
        });
        let ended = tokio::task::spawn_blocking(move || process.end(grace)).await;
        draining.abort();
        if let Some(stderr) = &mut stderr {
            let _ = timeout(TERMINATE_GRACE, stderr.finished()).await;
        }
        (ended.ok().flatten(), stderr.as_ref().map(StderrTail::text).unwrap_or_default())
    }
}

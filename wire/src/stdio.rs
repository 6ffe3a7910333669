//! A server as a child process: newline framing on its pipes, the end of its standard error kept, and its end.

use crate::correlate::{Answer, Correlator, Heard};
use crate::error::ObserveError;
use crate::framing::{Frame, FrameReader};
use crate::limits::{COLLECT_TIMEOUT, ObserveLimits, TERMINATE_GRACE};
use crate::message::Request;
use crate::server_text::ServerText;
use crate::upstream::StdioLaunch;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout, timeout_at};

mod child;
mod stderr;

use child::GroupedChild;
use stderr::StderrTail;

/// A running server.
#[derive(Debug)]
pub(crate) struct StdioConnection {
    child: GroupedChild,
    input: Option<ChildStdin>,
    frames: FrameReader<ChildStdout>,
    stderr: StderrTail,
    correlator: Correlator,
    frame_bytes: usize,
    grace: Duration,
}

/// Why there was no answer.
#[derive(Debug)]
pub(crate) enum Silence {
    TimedOut,
    /// Its standard output is at its end.
    Ended,
}

/// How a server ended.
#[derive(Debug)]
pub(crate) struct Ending {
    /// Its status, where it ended by itself and not by our signal.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stderr: ServerText,
    pub(crate) notes: Vec<String>,
}

impl StdioConnection {
    /// Starts the program. The child is killed with everything it started when this is dropped.
    pub(crate) fn start(
        launch: &StdioLaunch,
        correlator: Correlator,
        limits: &ObserveLimits,
    ) -> Result<StdioConnection, ObserveError> {
        if let Some(directory) = &launch.directory
            && !directory.is_dir()
        {
            return Err(ObserveError::DirectoryNotFound { directory: directory.clone() });
        }
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        let cannot_start = |source: std::io::Error| {
            let program = launch.program.clone();
            match source.kind() {
                std::io::ErrorKind::NotFound => ObserveError::ProgramNotFound { program },
                _ => ObserveError::CannotStart { program, source },
            }
        };
        let mut child = GroupedChild::spawn(command).map_err(cannot_start)?;
        let (Some(input), Some(output), Some(errors)) = child.take_pipes() else {
            return Err(cannot_start(std::io::Error::other("it has no pipes")));
        };
        Ok(StdioConnection {
            child,
            input: Some(input),
            frames: FrameReader::new(output, limits.frame_bytes),
            stderr: StderrTail::follow(errors),
            correlator,
            frame_bytes: limits.frame_bytes,
            grace: limits.shutdown_grace,
        })
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Answer, Silence> {
        match timeout_at(deadline, self.converse(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(Silence::TimedOut),
        }
    }

    /// Sends a notification.
    pub(crate) async fn tell(&mut self, text: &str, deadline: Instant) -> Result<(), Silence> {
        timeout_at(deadline, self.write_line(text)).await.map_err(|_| Silence::TimedOut)
    }

    async fn converse(&mut self, request: &Request) -> Result<Answer, Silence> {
        self.write_line(&request.text).await;
        loop {
            let heard = match self.frames.next().await {
                Ok(Frame::Line(line)) => self.hear_line(&line, request),
                Ok(Frame::TooLong { beginning }) => {
                    self.correlator.hear_too_long(&beginning, self.frame_bytes)
                }
                Ok(Frame::End { unfinished_bytes }) => {
                    if unfinished_bytes > 0 {
                        self.correlator.hear_unfinished();
                    }
                    return Err(Silence::Ended);
                }
                Err(_) => return Err(Silence::Ended),
            };
            match heard {
                Heard::Answer(answer) => return Ok(answer),
                Heard::Reply(text) => self.write_line(&text).await,
                Heard::Nothing => {}
            }
        }
    }

    fn hear_line(&mut self, line: &[u8], request: &Request) -> Heard {
        let heard = self.correlator.hear(line, &request.id);
        // INVARIANT: a reader with universal newlines would see two lines where we see one, so it is not read.
        if line.contains(&b'\r') && matches!(heard, Heard::Answer(_) | Heard::Reply(_)) {
            let reason = "a carriage return inside the line".to_owned();
            return Heard::Answer(Answer::Unreadable(reason));
        }
        heard
    }

    /// Writes one line. A server that has closed its input may still have things to say: that it has ended is seen
    /// when its output does, so a failed write is no error. After one nothing more is written.
    async fn write_line(&mut self, text: &str) {
        // Taken out while it is written to: a wait that was given up half way leaves no half line to go on after.
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

    /// What the server said last on its standard error.
    pub(crate) fn stderr(&self) -> ServerText {
        self.stderr.text()
    }

    /// Ends the server: its input is closed, then its group is asked by a signal, then killed. Collects it.
    pub(crate) async fn close(mut self) -> Ending {
        drop(self.input.take());
        let by_itself = timeout(self.grace, async {
            self.frames.drain().await;
            self.child.exited().await;
        })
        .await
        .is_ok();
        // The leader is not collected yet, so its number still means this group and no other.
        self.child.terminate();
        // A child of the server's usually has its standard error: when that is at its end they are all gone.
        let _ = timeout(TERMINATE_GRACE, async {
            self.child.exited().await;
            self.stderr.finished().await;
        })
        .await;
        self.child.kill();
        let status = timeout(COLLECT_TIMEOUT, self.child.collect()).await.ok().flatten();
        Ending {
            status: status.filter(|_| by_itself),
            stderr: self.stderr.text(),
            notes: self.correlator.notes(),
        }
    }
}

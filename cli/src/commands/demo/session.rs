//! The setup of a demonstration: its own home, the gate as a separate process, and a client that
//! speaks MCP to it.

use super::gone_wrong;
use crate::arguments::Options;
use crate::failure::Failure;
use crate::observation::now;
use crate::target::Workplace;
use engine::acts::Review;
use gate::server::ServerId;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The timeout of a response. The whole demonstration takes a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the gate may take to exit.
const ENDING: Duration = Duration::from_secs(10);
/// How often to check whether the gate has exited.
const ENDING_INTERVAL: Duration = Duration::from_millis(2);
/// The longest line that the gate may send.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// The capacity of the queue of received lines.
const MAX_LINES: usize = 64;

/// The folder of a demonstration, removed at the end.
#[derive(Debug)]
pub(super) struct Stage {
    folder: TempDir,
    options: Options,
}

impl Stage {
    pub(super) fn new(options: &Options) -> Result<Stage, Failure> {
        let folder = tempfile::Builder::new().prefix("holdpoint-demo-").tempdir()?;
        let home = Some(folder.path().join("home"));
        let options = Options { home, json: false, quiet: true, ..options.clone() };
        Ok(Stage { folder, options })
    }

    pub(super) fn workplace(&self) -> Result<Workplace, Failure> {
        Workplace::open(&self.options)
    }

    /// The review of what the gate recorded for a server.
    pub(super) fn judged(&self, id: &ServerId) -> Result<Review, Failure> {
        self.workplace()?.review(id, now())
    }

    fn file(&self, id: &ServerId, what: &str) -> PathBuf {
        self.folder.path().join(format!("{id}.{what}"))
    }

    /// Makes the server with this id show its other surface from now on.
    pub(super) fn change(&self, id: &ServerId) -> Result<(), Failure> {
        Ok(std::fs::write(self.file(id, "state"), "after")?)
    }

    /// Whether the server has received this word in any message.
    pub(super) fn has_reached(&self, id: &ServerId, word: &str) -> Result<bool, Failure> {
        let read = std::fs::read(self.file(id, "record"))?;
        Ok(String::from_utf8_lossy(&read).contains(word))
    }

    /// Starts the gate in front of a scenario's server.
    pub(super) fn start(&self, launch: &Launch<'_>) -> Result<Session, Failure> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(&program);
        command.arg("run").args(["--server", launch.id.as_str()]);
        if let Some(home) = &self.options.home {
            command.arg("--home").arg(home);
        }
        command.args(launch.gate_options).arg("--").arg(&program);
        command.args(["scenario", launch.scenario]);
        command.arg("--state").arg(self.file(launch.id, "state"));
        command.arg("--record").arg(self.file(launch.id, "record"));
        command.args(launch.server_options);
        let errors = if self.options.verbose { Stdio::inherit() } else { Stdio::null() };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        Session::begin(command.spawn()?)
    }
}

/// What to start.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) id: &'a ServerId,
    pub(super) scenario: &'a str,
    pub(super) gate_options: &'a [&'a str],
    pub(super) server_options: &'a [&'a str],
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) enum Called {
    /// Answered with this text from the server.
    Through(String),
    Held(HeldCall),
}

/// The content of a held call's refusal.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) message: String,
    pub(super) verdict: String,
    pub(super) kinds: Vec<String>,
}

/// A client with a session through the gate.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
}

impl Session {
    fn begin(mut child: Child) -> Result<Session, Failure> {
        let (sender, lines) = sync_channel(MAX_LINES);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || read_lines(output, &sender));
        }
        let input = child.stdin.take();
        let mut session = Session { child, input, lines, last_id: 0 };
        let info = json!({ "name": "holdpoint-demo", "version": env!("CARGO_PKG_VERSION") });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        session.ask("initialize", &params)?;
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(session)
    }

    /// Sends a request and returns its result or error.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.last_id = self.last_id.saturating_add(1);
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        self.until(|message| message.get("id").is_some_and(|it| *it == id), method)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Called, Failure> {
        const HELD: i64 = -32010;
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let text = |path: &str| answer.pointer(path).and_then(Value::as_str).map(str::to_owned);
        if let Some(text) = text("/result/content/0/text") {
            return Ok(Called::Through(text));
        }
        match (answer.pointer("/error/code").and_then(Value::as_i64), text("/error/message")) {
            (Some(HELD), Some(message)) => {
                let kinds = answer.pointer("/error/data/kinds").and_then(Value::as_array);
                let kinds = kinds.into_iter().flatten().filter_map(Value::as_str);
                Ok(Called::Held(HeldCall {
                    message,
                    verdict: text("/error/data/verdict").unwrap_or_default(),
                    kinds: kinds.map(str::to_owned).collect(),
                }))
            }
            (_, message) => Err(gone_wrong(message.unwrap_or_else(|| "no answer".to_owned()))),
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let Some(input) = &mut self.input else { return Err(gone_wrong("the session is over")) };
        input.write_all(format!("{message}\n").as_bytes())?;
        Ok(input.flush()?)
    }

    fn until(&self, is_it: impl Fn(&Value) -> bool, what: &str) -> Result<Value, Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => gone_wrong(format!("nothing came for `{what}`")),
                RecvTimeoutError::Disconnected => {
                    gone_wrong(format!("the gate ended before `{what}`"))
                }
            })?;
            let message: Value = serde_json::from_str(&line)?;
            if is_it(&message) {
                return Ok(message);
            }
        }
    }

    /// Ends the session as a client does when it is done: by closing the pipe.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.input = None;
        let deadline = Instant::now() + ENDING;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                return Err(gone_wrong("the gate did not end"));
            }
            std::thread::sleep(ENDING_INTERVAL);
        }
        Ok(())
    }

    /// Kills the gate, as a power failure would.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Leave no process running, even after an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(output: ChildStdout, sender: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = String::new();
        match (&mut output).take(MAX_LINE_BYTES).read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if sender.send(line).is_err() {
            return;
        }
    }
}

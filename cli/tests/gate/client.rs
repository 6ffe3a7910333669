//! A client with deadlines: it talks to `holdpoint run` or directly to a server, and records every
//! line received.

use crate::bench::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A response that takes longer than this is taken as missing. Long, because machines may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The error code of a held call.
pub(crate) const HELD: i64 = -32010;
/// The error code if the server could not be reached or read.
pub(crate) const UNREACHABLE: i64 = -32011;

/// The error code of a denied call.
pub(crate) const DENIED: i64 = 1013;

pub(crate) struct Client {
    child: Child,
    /// The queue of output, written by a thread so that a gate that does not read cannot block a
    /// test past its deadline.
    input: Option<Sender<Vec<u8>>>,
    lines: Receiver<Vec<u8>>,
    errors: Receiver<Vec<u8>>,
    next_id: u64,
    /// Every line received, without its newline.
    pub(crate) heard: Vec<Vec<u8>>,
    /// How many of these lines `notice` has consumed.
    noticed: usize,
}

impl Client {
    /// `holdpoint run --server reports OPTIONS -- LAUNCH`.
    pub(crate) fn through_gate(bench: &Bench, options: &[&str], launch: &[OsString]) -> Client {
        let mut command = bench.command(["run", "--server", ID]);
        command.args(options).arg("--").args(launch);
        Client::start(command)
    }

    pub(crate) fn direct(launch: &[OsString]) -> Client {
        let mut command = Command::new(&launch[0]);
        command.args(&launch[1..]);
        Client::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Client {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(output.read_until(b'\n', &mut line), Ok(count) if count > 0) {
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let (sender, errors) = channel();
        let mut stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
        let (input, to_write) = channel::<Vec<u8>>();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::spawn(move || {
            // A gate that has exited reads nothing more, which is not an error here.
            for bytes in to_write {
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        });
        let input = Some(input);
        Client { child, input, lines, errors, next_id: 1, heard: Vec::new(), noticed: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The number of requests made with `request` and the methods based on it.
    pub(crate) fn requests(&self) -> u64 {
        self.next_id - 1
    }

    /// Sends bytes and a newline.
    pub(crate) fn send_line(&mut self, line: impl AsRef<[u8]>) {
        let _ = self.input.as_ref().unwrap().send([line.as_ref(), b"\n"].concat());
    }

    #[track_caller]
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string());
    }

    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }));
    }

    /// Sends a request without waiting for the response.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer_to(&json!(id))
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits for the response to an earlier request.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == *id;
        self.until(is_answer, &format!("the answer to {id}"))
    }

    /// The same if responses may arrive in any order.
    #[track_caller]
    pub(crate) fn answer_to_any(&mut self, id: &Value) -> Value {
        let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == *id;
        let known = self.messages().into_iter().find(is_answer);
        known.unwrap_or_else(|| self.answer_to(id))
    }

    /// Waits for a notification of this method that was not yet consumed.
    #[track_caller]
    pub(crate) fn notice(&mut self, method: &str) -> Value {
        let known: Vec<Vec<u8>> = self.heard[self.noticed..].to_vec();
        for line in known {
            self.noticed += 1;
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            if message["method"] == method {
                return message;
            }
        }
        let found = self.until(|message| message["method"] == method, method);
        self.noticed = self.heard.len();
        found
    }

    #[track_caller]
    fn until(&mut self, is_it: impl Fn(&Value) -> bool, what: &str) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let message: Value = serde_json::from_slice(&line).unwrap_or_default();
                    self.heard.push(line);
                    if is_it(&message) {
                        return message;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let errors = self.errors.recv_timeout(DEADLINE).unwrap_or_default();
                    let errors = String::from_utf8_lossy(&errors).into_owned();
                    panic!("the pipe was closed before {what}; heard {:?}\n{errors}", self.texts())
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {what} within {DEADLINE:?}; heard {:?}", self.texts())
                }
            }
        }
    }

    /// The next message of any kind.
    #[track_caller]
    pub(crate) fn any_line(&mut self) -> Value {
        self.until(|_| true, "a line")
    }

    /// Waits for an object with this member, and returns the member.
    #[track_caller]
    pub(crate) fn line(&mut self, member: &str) -> Value {
        self.until(|line| line.get(member).is_some(), member)[member].take()
    }

    /// Waits for an error response to any request.
    #[track_caller]
    pub(crate) fn until_refused(&mut self, what: &str) -> Value {
        self.until(|message| message.get("error").is_some(), &format!("refusal of {what}"))
    }

    /// Waits for the responses to the requests of a batch, which may arrive in batches or alone, in
    /// any order.
    #[track_caller]
    pub(crate) fn batch_answers(&mut self, ids: &[u64]) -> Vec<Value> {
        let mut answers = vec![Value::Null; ids.len()];
        while answers.contains(&Value::Null) {
            let heard = self.until(|_| true, "the rest of the answers of a batch");
            let messages = match heard {
                Value::Array(messages) => messages,
                message => vec![message],
            };
            for message in messages {
                if let Some(at) = ids.iter().position(|id| message["id"] == *id) {
                    assert_eq!(answers[at], Value::Null, "answered twice: {message}");
                    answers[at] = message;
                }
            }
        }
        answers
    }

    fn texts(&self) -> Vec<String> {
        let shorten = |line: &Vec<u8>| String::from_utf8_lossy(line).chars().take(600).collect();
        self.heard.iter().map(shorten).collect()
    }

    /// Every message received so far, without lines that are not messages.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.heard.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Performs the handshake of the era with sessions.
    #[track_caller]
    pub(crate) fn begin(&mut self) -> Value {
        self.begin_at("2025-06-18")
    }

    #[track_caller]
    pub(crate) fn begin_at(&mut self, version: &str) -> Value {
        self.begin_with(version, &json!({}))
    }

    #[track_caller]
    pub(crate) fn begin_with(&mut self, version: &str, capabilities: &Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let answer = self.ask("initialize", &params);
        self.notify("notifications/initialized");
        answer
    }

    /// The names of the tools that the client sees.
    #[track_caller]
    pub(crate) fn tool_names(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("no list: {answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Reads until the pipe is closed.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("the pipe is open after {DEADLINE:?}"),
            }
        }
    }

    /// Closes the input, and waits for the exit.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.close_input();
        self.ended()
    }

    /// Waits for the exit.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ended {
        self.read_to_end();
        let errors = self.errors.recv_timeout(DEADLINE);
        let errors = errors.unwrap_or_else(|_| panic!("standard error is open after {DEADLINE:?}"));
        let status = self.wait();
        let errors = String::from_utf8_lossy(&errors).into_owned();
        Ended { status, errors, heard: std::mem::take(&mut self.heard) }
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        testing::wait_for("the process to end", || self.child.try_wait().unwrap())
    }

    /// Kills the process, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a session.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) errors: String,
    pub(crate) heard: Vec<Vec<u8>>,
}

impl Ended {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ended {
        assert_eq!(self.status.code(), Some(code), "{:?} {}", self.status, self.errors);
        self
    }
}

/// The text returned by a call that went through.
#[track_caller]
pub(crate) fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("the call did not go through: {answer}"))
}

/// The data of a call that was refused with this code.
#[track_caller]
pub(crate) fn refused(answer: &Value, code: i64) -> &Value {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    &answer["error"]["data"]
}

/// The receipts of the client's requests, oldest first, from a ledger that verifies.
#[track_caller]
pub(crate) fn receipts(bench: &Bench) -> Vec<Value> {
    bench.run(["receipts", "verify"]).exits(0);
    let listed = bench.run(["receipts", "list", "-n", "100000", "--json"]).exits(0);
    let lines = listed.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["record"] == "receipt").collect()
}

/// Asserts that the ledger verifies, and that each request of the client has exactly one receipt.
#[track_caller]
pub(crate) fn receipts_are_complete(bench: &Bench, requests: u64) {
    let receipts = receipts(bench);
    let methods: Vec<&Value> = receipts.iter().map(|receipt| &receipt["mcp"]["method"]).collect();
    assert_eq!(receipts.len() as u64, requests, "{methods:?}");
}

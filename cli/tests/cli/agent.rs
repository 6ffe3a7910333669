//! An agent that talks to a server through the gate, one request at a time.

use crate::bench::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A response that takes longer than this is taken as missing.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Agent {
    gate: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    requests: u64,
}

impl Agent {
    /// Starts the gate in front of the server, performs the handshake and lists the tools.
    pub(crate) fn start(bench: &Bench, server: &FolderServer) -> Agent {
        Agent::begin(server.command_as(bench, ID, "run", &[]))
    }

    /// The same with a given command that starts the gate.
    pub(crate) fn begin(mut command: Command) -> Agent {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut gate = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(gate.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = gate.stdin.take().unwrap();
        let mut agent = Agent { gate, input, lines, requests: 0 };
        agent.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent.request("tools/list", &json!({}));
        agent
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    /// The response to a request; other messages of the gate are skipped.
    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Disconnects, and waits until the gate has exited.
    pub(crate) fn leave(self) {
        let Agent { mut gate, input, lines, .. } = self;
        drop(input);
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    gate.kill().unwrap();
                    panic!("the gate does not end");
                }
            }
        }
        assert!(gate.wait().unwrap().success());
    }
}

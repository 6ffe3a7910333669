//! A minimal client of the gateway over plain HTTP/1.1.
#![allow(dead_code, reason = "each test binary uses its part of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) session: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: String,
}

impl Response {
    /// The response message, which may be the last event of a stream.
    pub(crate) fn message(&self) -> Value {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = events.next_back().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }
}

impl Caller {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Caller {
        Caller { address, key: key.to_owned(), session: None }
    }

    /// A caller with a session.
    pub(crate) fn begin(address: SocketAddr, key: &str) -> Caller {
        let mut caller = Caller::new(address, key);
        let response = caller.initialize();
        assert_eq!(response.status, 200, "{}", response.body);
        caller.session = response.session;
        caller
    }

    pub(crate) fn initialize(&self) -> Response {
        self.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        )
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) -> Response {
        self.begin_to_ask(method, params).finish()
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments })).message()
    }

    /// The names of the listed tools.
    pub(crate) fn tools(&self) -> Vec<String> {
        let message = self.ask("tools/list", &json!({})).message();
        let tools = message["result"]["tools"].as_array().unwrap_or_else(|| panic!("{message}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Like a call, to a gateway that may exit meanwhile: `None` once it does not answer.
    pub(crate) fn try_call(&self, tool: &str, arguments: &Value) -> Option<()> {
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut stream = TcpStream::connect(self.address).ok()?;
        let request = self.request("POST", "/mcp", "", &body.to_string());
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.1 200").then_some(())
    }

    /// Sends a request whose response is read later.
    pub(crate) fn begin_to_ask(&self, method: &str, params: &Value) -> Asked {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send("POST", &body.to_string())
    }

    /// The stream on which the session receives unsolicited messages.
    pub(crate) fn listen(&self) -> Asked {
        self.send("GET", "")
    }

    /// The same session at another address.
    pub(crate) fn at(&self, address: SocketAddr) -> Caller {
        Caller { address, ..self.clone() }
    }

    pub(crate) fn send(&self, method: &str, body: &str) -> Asked {
        self.send_with(method, "", body)
    }

    /// Sends additional headers, each with its line ending.
    pub(crate) fn send_with(&self, method: &str, headers: &str, body: &str) -> Asked {
        self.send_to(method, "/mcp", headers, body)
    }

    pub(crate) fn send_to(&self, method: &str, path: &str, headers: &str, body: &str) -> Asked {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(self.request(method, path, headers, body).as_bytes()).unwrap();
        Asked(BufReader::new(stream))
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let session = self.session.as_ref().map(|id| format!("mcp-session-id: {id}\r\n"));
        let accept = match method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{}accept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            self.key,
            session.unwrap_or_default() + headers,
            body.len(),
        )
    }
}

/// A request whose response was not read yet.
pub(crate) struct Asked(BufReader<TcpStream>);

impl Asked {
    /// The status line and headers, in lower case.
    pub(crate) fn head(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                return lines;
            }
            lines.push(line);
        }
    }

    /// Reads to the end of the stream.
    pub(crate) fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The next message on an event stream.
    #[allow(dead_code, reason = "one of the tests that share this client has streams")]
    pub(crate) fn event(&mut self) -> Value {
        let begun = Instant::now();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            // Comments keep the stream open while there are no messages.
            assert!(begun.elapsed() < PATIENCE, "nothing came on the stream");
            if let Some(text) = line.strip_prefix("data: ") {
                return serde_json::from_str(text).unwrap();
            }
        }
    }

    pub(crate) fn finish(mut self) -> Response {
        let head = self.head();
        let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let (session, is_chunked) =
            (header("mcp-session-id"), header("transfer-encoding").is_some());
        let rest = self.rest();
        let body = if is_chunked { unchunked(&rest) } else { rest };
        Response { status, session, body }
    }
}

fn unchunked(text: &str) -> String {
    let (mut rest, mut body) = (text, String::new());
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&after[..length]);
        rest = after[length..].trim_start_matches("\r\n");
    }
    body
}

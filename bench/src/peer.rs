//! A client with minimal overhead: requests are prepared in advance, and responses are only
//! identified by their id.

use crate::server::value_after;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 64 * 1024;
/// Ids start here, so that all have the same length.
const FIRST_ID: u64 = 1_000_000_000;
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// A prepared request, except for the number in its id.
#[derive(Debug)]
pub struct Request {
    line: Vec<u8>,
}

impl Request {
    /// A call of a tool with a text of this many bytes.
    pub fn call(tool: usize, bytes: usize) -> Request {
        let text = "words and words ".repeat(bytes.div_ceil(16));
        let text = text.get(..bytes).unwrap_or_default();
        let params = format!(r#"{{"name":"tool_{tool}","arguments":{{"query":"{text}"}}}}"#);
        Request::new("tools/call", &params)
    }

    pub fn new(method: &str, params: &str) -> Request {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{params}}}"#)
                + "\n";
        Request { line: line.into_bytes() }
    }

    /// The request line with this number.
    pub fn numbered(&mut self, number: u64) -> &[u8] {
        let digits = (FIRST_ID + number).to_string();
        let place = self.line.get_mut(ANSWER.len()..ANSWER.len() + digits.len());
        if let Some(place) = place {
            place.copy_from_slice(digits.as_bytes());
        }
        &self.line
    }
}

/// The kind of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Result,
    /// The gate holds the call.
    Held,
    Error,
}

/// A session with a server, or with a program in front of one.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    sent: u64,
    answered: u64,
}

impl Peer {
    /// Starts the program. Its standard error is discarded.
    pub fn start(command: &mut Command) -> io::Result<Peer> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = BufReader::with_capacity(CHUNK_BYTES, output);
        Ok(Peer { child, input, output, line: Vec::new(), sent: 0, answered: 0 })
    }

    /// Performs the handshake and lists the tools. Returns how many there are.
    pub fn greet(&mut self) -> io::Result<usize> {
        let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        self.ask(&mut Request::new("initialize", hello))?;
        self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        self.list()
    }

    /// Lists the tools, page by page.
    pub fn list(&mut self) -> io::Result<usize> {
        let mut tools = 0;
        let mut params = "{}".to_owned();
        loop {
            self.ask(&mut Request::new("tools/list", &params))?;
            let answer: serde_json::Value = serde_json::from_slice(&self.line)?;
            let result = answer.get("result").ok_or_else(|| unexpected(&self.line))?;
            tools += result.get("tools").and_then(|tools| tools.as_array()).map_or(0, Vec::len);
            match result.get("nextCursor") {
                Some(cursor) => params = format!(r#"{{"cursor":{cursor}}}"#),
                None => return Ok(tools),
            }
        }
    }

    /// Sends a request and waits for the response.
    pub fn ask(&mut self, request: &mut Request) -> io::Result<Answer> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request that must succeed. Returns how long it took.
    pub fn time(&mut self, request: &mut Request) -> io::Result<Duration> {
        let line = request.numbered(self.sent);
        self.sent += 1;
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let start = Instant::now();
        input.write_all(line)?;
        let answer = self.receive()?;
        let took = start.elapsed();
        if answer == Answer::Result { Ok(took) } else { Err(unexpected(&self.line)) }
    }

    /// Makes `count` calls with the given number in flight, and passes on each response.
    pub fn pipeline(
        &mut self,
        request: &mut Request,
        count: u64,
        in_flight: u64,
        mut hear: impl FnMut(Answer) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut unsent = count;
        while unsent > count.saturating_sub(in_flight) {
            self.send(request)?;
            unsent -= 1;
        }
        for _ in 0..count {
            hear(self.receive()?)?;
            if unsent > 0 {
                self.send(request)?;
                unsent -= 1;
            }
        }
        Ok(())
    }

    pub fn send(&mut self, request: &mut Request) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(request.numbered(self.sent))?;
        self.sent += 1;
        Ok(())
    }

    /// Waits for the next response, and skips notifications before it.
    pub fn receive(&mut self) -> io::Result<Answer> {
        loop {
            self.line.clear();
            if self.output.read_until(b'\n', &mut self.line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some(rest) = self.line.strip_prefix(ANSWER) else { continue };
            self.answered += 1;
            let rest = rest.iter().position(|byte| *byte == b',').and_then(|at| rest.get(at..));
            return Ok(match rest.unwrap_or_default() {
                rest if rest.starts_with(br#","result""#) => Answer::Result,
                rest if rest.starts_with(br#","error":{"code":-32010,"#) => Answer::Held,
                _ => Answer::Error,
            });
        }
    }

    /// The result of the last response, if it is a number.
    pub fn number(&self) -> io::Result<u64> {
        let number = value_after(&self.line, b"\"result\":")
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        number.ok_or_else(|| unexpected(&self.line))
    }

    /// The last line received.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The numbers of requests sent and responses received.
    pub fn counts(&self) -> (u64, u64) {
        (self.sent, self.answered)
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input and waits for the process to exit.
    pub fn finish(mut self) -> io::Result<ExitStatus> {
        self.input = None;
        io::copy(&mut self.output, &mut io::sink())?;
        self.child.wait()
    }

    /// Kills the process.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes)
    }
}

/// An error for an unexpected response.
pub fn unexpected(line: &[u8]) -> io::Error {
    let beginning = line.get(..line.len().min(400)).unwrap_or_default();
    io::Error::other(format!("unexpected answer: {}", String::from_utf8_lossy(beginning)))
}

//! A session whose client and server are both in one application: the application passes the
//! messages of both sides, one per line, and receives the results (`holdpoint pins --stdio`,
//! `docs/pins-protocol.md`).
//!
//! It judges nothing: the session does that, as for every other surface.

#[cfg(test)]
mod tests;

use crate::outlet::{ClientOutlet, FreeMessage, LineOutlet, Outgoing, ServerOutlet, ToClient};
use crate::session::Session;
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::receipts::Settled;
use wire::application::{ApproveRequest, BadLine, Nothing, Open, ReviewRequest, Said};
use wire::lines::{Line, LineReader};

/// What a line may contain in addition to its message; also the limit for the first line.
const AROUND_BYTES: usize = 64 * 1024;
const CLIENT: &[u8] = br#"{"client":"#;
const SERVER: &[u8] = br#"{"server":"#;
const CLOSE: &[u8] = b"}";

/// What a person may do through the application.
pub trait Acts: Send {
    /// Returns the line that answers a request for the waiting changes.
    fn review(&mut self, request: &ReviewRequest) -> String;

    /// Approves a waiting change, if the home allows that without a person at a terminal.
    fn approve(&mut self, request: &ApproveRequest) -> String;
}

/// The application's lines, including the first one.
pub struct ApplicationInput {
    lines: LineReader<Box<dyn Read + Send>>,
}

impl std::fmt::Debug for ApplicationInput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApplicationInput").finish_non_exhaustive()
    }
}

impl ApplicationInput {
    pub fn new(input: Box<dyn Read + Send>) -> ApplicationInput {
        ApplicationInput { lines: LineReader::new(input, AROUND_BYTES) }
    }

    /// Reads the first line.
    pub fn open(&mut self) -> io::Result<Result<Open, BadLine>> {
        Ok(match self.lines.next_line()? {
            Line::Frame(line) => Said::read(line).and_then(|said| match said {
                Said::Open(open) => Open::read(open),
                Said::Client(_)
                | Said::Server(_)
                | Said::Review(_)
                | Said::Approve(_)
                | Said::Lost(_) => Err(BadLine::OutOfPlace),
            }),
            Line::TooLong { .. } => Err(BadLine::TooLong),
            Line::End { .. } => Err(BadLine::Ended),
        })
    }
}

/// The output to the application. Every line is written atomically.
#[derive(Clone)]
pub struct ApplicationOutput(Arc<Mutex<Output>>);

struct Output {
    lines: LineOutlet<Box<dyn Write + Send>>,
    /// The client's pending requests that were sent to the server, by the keys of their ids.
    sent: HashSet<Vec<u8>>,
    has_failed: bool,
}

impl std::fmt::Debug for ApplicationOutput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApplicationOutput").finish_non_exhaustive()
    }
}

impl ApplicationOutput {
    pub fn new(output: Box<dyn Write + Send>) -> ApplicationOutput {
        let lines = LineOutlet::new(output);
        ApplicationOutput(Arc::new(Mutex::new(Output {
            lines,
            sent: HashSet::new(),
            has_failed: false,
        })))
    }

    /// The session's two outlets, and a channel that signals the end of the session.
    pub fn ends(&self) -> (ClientEnd, ServerEnd, Receiver<()>) {
        let (ended, end) = channel();
        let server = ServerEnd { output: self.clone(), gathered: Vec::new(), ended: Some(ended) };
        (ClientEnd(self.clone()), server, end)
    }

    /// Writes one of our own lines.
    pub fn say(&self, line: &str) -> io::Result<()> {
        self.lock().lines.write_line(&[line.as_bytes()])
    }

    /// Reports that no further decisions will be made, and why.
    pub fn fail(&self, reason: &str, message: &str) {
        self.lock().has_failed = true;
        // Ignore a failure: the application may already be gone.
        let failed = json!({"failed": {"reason": reason, "message": message}});
        let _ = self.say(&failed.to_string());
    }

    pub fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    fn send_on(&mut self, message: &Outgoing<'_>) -> io::Result<()> {
        self.lines.write_line(&[br#"{"toServer":"#, message.frame, CLOSE])
    }
}

/// The key by which ids are compared, since a string can be spelled in several ways.
fn key_of(id: &[u8]) -> Cow<'_, [u8]> {
    if !id.contains(&b'\\') {
        return Cow::Borrowed(id);
    }
    match serde_json::from_slice::<String>(id) {
        Ok(text) => Cow::Owned(format!("\"{text}\"").into_bytes()),
        Err(_) => Cow::Borrowed(id),
    }
}

/// The outlet to the application's client.
#[derive(Debug)]
pub struct ClientEnd(ApplicationOutput);

impl ClientOutlet for ClientEnd {
    /// A response to a request that was never sent comes from the gate, and is labelled as such: a
    /// server can create an error that looks like a hold.
    fn write(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        let mut output = self.0.lock();
        let is_own = message.answers.is_some_and(|id| !output.sent.remove(&*key_of(id)));
        let beginning: &[u8] = if is_own { br#"{"answer":"# } else { br#"{"toClient":"# };
        let parts = [beginning].into_iter().chain(message.parts.iter().copied()).chain([CLOSE]);
        output.lines.write_line(&parts.collect::<Vec<_>>())
    }

    fn gather(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        self.write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The outlet to the application's server.
#[derive(Debug)]
pub struct ServerEnd {
    output: ApplicationOutput,
    /// Messages waiting to be sent together, each with the key of its id if it is a request.
    gathered: Vec<(Option<Vec<u8>>, Vec<u8>)>,
    ended: Option<Sender<()>>,
}

impl ServerEnd {
    fn open_output(&self) -> io::Result<MutexGuard<'_, Output>> {
        self.ended.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(self.output.lock())
    }
}

impl ServerOutlet for ServerEnd {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.open_output()?.send_on(message.as_outgoing())
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        let key = request.id.map(|id| key_of(id).into_owned());
        self.gathered.push((key, request.frame.to_vec()));
        true
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        self.flush_free()?;
        let Some(last) = last else { return Ok(()) };
        let mut output = self.open_output()?;
        output.sent.extend(last.id.map(|id| key_of(id).into_owned()));
        output.send_on(last)
    }

    fn flush_free(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        let mut output = self.open_output()?;
        for (key, frame) in gathered {
            output.sent.extend(key);
            output.send_on(&Outgoing { frame: &frame, ..Outgoing::default() })?;
        }
        Ok(())
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn give_up(&mut self, id: &[u8], _: Option<[u8; 16]>) {
        self.output.lock().sent.remove(&*key_of(id));
    }

    fn close(&mut self) {
        self.ended = None;
    }
}

/// Both ends of a session in an application.
pub struct Application {
    pub input: ApplicationInput,
    pub output: ApplicationOutput,
    pub acts: Box<dyn Acts>,
}

impl std::fmt::Debug for Application {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Application").finish_non_exhaustive()
    }
}

/// Whether the session continues after a line.
enum Next {
    Line,
    End,
}

impl Application {
    /// Passes every line to the session, until the input ends or a line is invalid.
    pub(crate) fn read(self, session: &Session) {
        let Application { input, output, mut acts } = self;
        let frame_bytes = session.server().settings.frame_bytes;
        let mut lines = input.lines.with_limit(frame_bytes.saturating_add(AROUND_BYTES));
        loop {
            if !lines.has_line() {
                session.client_paused();
                session.server_paused();
            }
            let taken = match lines.next_line() {
                Ok(Line::Frame(line)) => take(session, line, &output, &mut *acts),
                Ok(Line::TooLong { beginning, end, bytes }) => {
                    take_too_long(session, beginning, end, bytes)
                }
                Ok(Line::End { .. }) | Err(_) => return,
            };
            match taken {
                Ok(Next::Line) => {}
                Ok(Next::End) => return,
                Err(bad) => return output.fail(bad.reason(), &bad.to_string()),
            }
        }
    }
}

fn take(
    session: &Session,
    line: &[u8],
    output: &ApplicationOutput,
    acts: &mut dyn Acts,
) -> Result<Next, BadLine> {
    match Said::read(line)? {
        Said::Client(message) => session.client_said(message.get().as_bytes(), false),
        Said::Server(message) => session.server_said(message.get().as_bytes(), false),
        Said::Review(request) => drop(output.say(&acts.review(&request))),
        Said::Approve(request) => drop(output.say(&acts.approve(&request))),
        Said::Lost(Nothing {}) => {
            session.server_ended();
            return Ok(Next::End);
        }
        Said::Open(_) => return Err(BadLine::OutOfPlace),
    }
    Ok(Next::Line)
}

/// Refuses a message over the limit like one that arrived directly, if the line shows which side it
/// belongs to.
fn take_too_long(
    session: &Session,
    beginning: &[u8],
    end: &[u8],
    bytes: u64,
) -> Result<Next, BadLine> {
    let end = end.strip_suffix(CLOSE).ok_or(BadLine::TooLong)?;
    if let Some(beginning) = beginning.strip_prefix(CLIENT) {
        session.client_said_too_much(beginning, end, bytes);
    } else if let Some(beginning) = beginning.strip_prefix(SERVER) {
        session.server_said_too_much(beginning, end, bytes);
    } else {
        return Err(BadLine::TooLong);
    }
    Ok(Next::Line)
}

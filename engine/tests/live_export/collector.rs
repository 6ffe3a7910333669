//! An OTLP collector that stores what it receives, and responds as configured.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_for(is_true: impl FnMut() -> bool) {
    testing::wait_until("the exporter and its receiver", is_true);
}

/// A port on which nothing listens.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) authorization: String,
    pub(crate) body: Value,
    is_taken: bool,
}

impl Seen {
    pub(crate) fn records(&self) -> Vec<Value> {
        self.body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone()
    }
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    answers: Mutex<Vec<String>>,
    refused: Mutex<Option<String>>,
    is_over: AtomicBool,
}

pub(crate) struct Collector {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    pub(crate) fn start(port: u16) -> Collector {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::new(Shared::default());
        let inside = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            // A connection without a response stays open as long as the collector exists.
            let mut unanswered = Vec::new();
            while !inside.is_over.load(Ordering::SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => unanswered.extend(serve(stream, &inside)),
                    Err(_) => std::thread::sleep(LOOK_AGAIN),
                }
            }
        });
        Collector { port, shared, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends these responses instead of the usual one, one per request; an empty one means no
    /// response.
    pub(crate) fn answers(&self, answers: &[&str]) {
        *self.shared.answers.lock().unwrap() =
            answers.iter().map(|text| (*text).to_owned()).collect();
    }

    /// Refuses bodies that contain this text as unreadable.
    pub(crate) fn refuses(&self, text: &str) {
        *self.shared.refused.lock().unwrap() = Some(text.to_owned());
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The log records of all requests that were not refused.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.requests().iter().filter(|seen| seen.is_taken).flat_map(Seen::records).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Option<TcpStream> {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(testing::PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let header = |name: &str| {
        let found = lines.iter().filter_map(|line| line.split_once(": "));
        let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    let text = String::from_utf8(body).unwrap();
    let is_refused = shared.refused.lock().unwrap().as_ref().is_some_and(|bad| text.contains(bad));
    let mut answers = shared.answers.lock().unwrap();
    let mut answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned();
    if is_refused {
        answer = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned();
    } else if !answers.is_empty() {
        answer = answers.remove(0);
    }
    shared.seen.lock().unwrap().push(Seen {
        path: lines[0].split(' ').nth(1).unwrap().to_owned(),
        content_type: header("content-type"),
        authorization: header("authorization"),
        body: serde_json::from_str(&text).unwrap(),
        is_taken: !is_refused,
    });
    let _ = stream.write_all(answer.as_bytes());
    answer.is_empty().then_some(stream)
}

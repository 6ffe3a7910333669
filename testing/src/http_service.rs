//! A small HTTP service for tests, on loopback by default: it records every request byte for byte,
//! and gives the configured answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The largest accepted request.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// All bytes of the request.
    pub raw: String,
    pub method: String,
    /// Including the query.
    pub path: String,
    pub body: String,
}

/// How the service answers a request.
#[derive(Debug, Clone)]
pub enum HttpAnswer {
    /// Status 200 with JSON.
    Json(String),
    /// A status without a body, such as 204 for an accepted request.
    Status(u16),
    /// These bytes, unchanged.
    Raw(Vec<u8>),
    /// No answer until the service is dropped.
    Silence,
    /// These bytes at once, then one space every few milliseconds until the client disconnects or
    /// the service is dropped.
    Drip(&'static str),
}

/// The pause before each dripped byte.
const DRIP: Duration = Duration::from_millis(10);

type Play = dyn Fn(&HttpRequest) -> HttpAnswer + Send + Sync;

/// The service. It stops when dropped.
#[derive(Debug)]
pub struct HttpService {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    connections: Arc<Mutex<usize>>,
    is_over: Arc<AtomicBool>,
}

impl HttpService {
    pub fn start(play: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static) -> HttpService {
        HttpService::start_at((Ipv4Addr::LOCALHOST, 0).into(), play)
    }

    /// Like [`HttpService::start`], at an address other than loopback's.
    pub fn start_at(
        address: SocketAddr,
        play: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static,
    ) -> HttpService {
        HttpService::start_through(address, |stream| stream, play)
    }

    /// Like [`HttpService::start_at`], with a layer between the connection and the requests, such
    /// as TLS.
    pub fn start_through<S: Read + Write>(
        address: SocketAddr,
        open: impl Fn(TcpStream) -> S + Send + Sync + 'static,
        play: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static,
    ) -> HttpService {
        let listener = TcpListener::bind(address).unwrap();
        let service = HttpService {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            connections: Arc::default(),
            is_over: Arc::default(),
        };
        let (requests, connections) = (service.requests.clone(), service.connections.clone());
        let (is_over, play): (_, Arc<Play>) = (service.is_over.clone(), Arc::new(play));
        let open = Arc::new(open);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                *lock(&connections) += 1;
                let (requests, play, is_over) = (requests.clone(), play.clone(), is_over.clone());
                let open = open.clone();
                std::thread::spawn(move || {
                    serve(open(stream), &requests, play.as_ref(), &is_over);
                });
            }
        });
        service
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in the order in which they were read.
    pub fn requests(&self) -> Vec<HttpRequest> {
        lock(&self.requests).clone()
    }

    /// The number of requests with this method and path prefix.
    pub fn count(&self, method: &str, path: &str) -> usize {
        let requests = lock(&self.requests);
        requests.iter().filter(|it| it.method == method && it.path.starts_with(path)).count()
    }

    /// The number of connections, whether or not anything was sent.
    pub fn connections(&self) -> usize {
        *lock(&self.connections)
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wake the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    mut stream: impl Read + Write,
    requests: &Mutex<Vec<HttpRequest>>,
    play: &Play,
    is_over: &AtomicBool,
) {
    let Some(request) = read_request(&mut stream) else { return };
    lock(requests).push(request.clone());
    let bytes = match play(&request) {
        HttpAnswer::Json(body) => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
        HttpAnswer::Status(status) => {
            format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n").into_bytes()
        }
        HttpAnswer::Raw(bytes) => bytes,
        HttpAnswer::Silence => {
            while !is_over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            return;
        }
        HttpAnswer::Drip(beginning) => return drip(stream, beginning, is_over),
    };
    let _ = stream.write_all(&bytes).and_then(|()| stream.flush());
}

fn drip(mut stream: impl Write, beginning: &str, is_over: &AtomicBool) {
    let mut sent = stream.write_all(beginning.as_bytes());
    while sent.is_ok() && !is_over.load(Ordering::SeqCst) {
        std::thread::sleep(DRIP);
        sent = stream.write_all(b" ").and_then(|()| stream.flush());
    }
}

fn read_request(stream: &mut impl Read) -> Option<HttpRequest> {
    let mut raw = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&raw).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                let mut words = head.split(' ');
                return Some(HttpRequest {
                    method: words.next()?.to_owned(),
                    path: words.next()?.to_owned(),
                    body: body.to_owned(),
                    raw: text.clone(),
                });
            }
        }
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        raw.extend_from_slice(&buffer[..read]);
        if raw.len() > MAX_REQUEST_BYTES {
            return None;
        }
    }
}

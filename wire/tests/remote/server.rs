//! A scripted server on loopback, running on its own thread.

use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The timeout for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A request, or the closing of a connection by the client (`CLOSED`).
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub headers: HashMap<String, String>,
    pub body: Value,
    /// The number of the connection it came over, counted from 0.
    pub connection: usize,
}

impl Seen {
    pub fn rpc_method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Something that a server waits for until the test opens it.
#[derive(Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    pub fn new() -> Gate {
        Gate(Arc::new(Semaphore::new(0)))
    }

    pub fn open(&self) {
        self.0.add_permits(100_000);
    }

    pub fn let_through(&self, count: usize) {
        self.0.add_permits(count);
    }
}

pub enum Step {
    Write(Vec<u8>),
    Wait(Gate),
    /// Waits until the client closes the connection, and records it.
    AwaitClosing,
    Close,
}

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Play = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

impl Server {
    pub fn start(play: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Server {
        Server::start_at("127.0.0.1:0", play)
    }

    pub fn start_at(
        place: &str,
        play: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let listener = std::net::TcpListener::bind(place).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let play: Arc<Play> = Arc::new(play);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let mut connection = 0;
                while let Ok((stream, _)) = listener.accept().await {
                    let (play, record) = (Arc::clone(&play), Arc::clone(&record));
                    tokio::spawn(serve(stream, connection, play, record));
                    connection += 1;
                }
            });
        });
        Server { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp?key=1", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests that match, once there are this many.
    pub fn wait_for(&self, what: impl Fn(&Seen) -> bool, count: usize) -> Vec<Seen> {
        testing::wait_for("requests", || {
            let found: Vec<Seen> = self.seen().into_iter().filter(&what).collect();
            (found.len() >= count).then_some(found)
        })
    }
}

async fn serve(
    stream: TcpStream,
    connection: usize,
    play: Arc<Play>,
    record: Arc<Mutex<Vec<Seen>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream, connection).await {
        record.lock().unwrap().push(request.clone());
        for step in play(&request) {
            match step {
                Step::Write(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait(gate) => gate.0.acquire().await.unwrap().forget(),
                Step::AwaitClosing => {
                    let _ = stream.read_u8().await;
                    let method = "CLOSED".to_owned();
                    record.lock().unwrap().push(Seen { method, ..request });
                    return;
                }
                Step::Close => return,
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let method = first.split_whitespace().next()?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Seen { method, headers, body, connection })
}

/// A response with a status, additional header lines and a body.
pub fn respond(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
    vec![Step::Write(text.into_bytes())]
}

pub fn json(body: &str) -> Vec<Step> {
    respond("200 OK", "content-type: application/json\r\n", body)
}

pub fn accepted() -> Vec<Step> {
    respond("202 Accepted", "", "")
}

/// The head of an event stream, with additional header lines.
pub fn stream_head(headers: &str) -> Step {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
    Step::Write(format!("{head}{headers}\r\n").into_bytes())
}

/// A piece of an event stream.
pub fn chunk(text: &str) -> Step {
    Step::Write(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

pub fn event(data: &str) -> Step {
    chunk(&format!("data: {data}\n\n"))
}

pub fn event_with_id(id: &str, data: &str) -> Step {
    chunk(&format!("id: {id}\ndata: {data}\n\n"))
}

/// The regular end of an event stream.
pub fn stream_end() -> Step {
    Step::Write(b"0\r\n\r\n".to_vec())
}

/// The response to this request, as text.
pub fn result(request: &Seen, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.body["id"])
}

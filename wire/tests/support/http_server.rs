//! An HTTP server for tests: it records every request, and a function gives the bytes to respond
//! with.

use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Value,
}

impl Seen {
    pub fn rpc_method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub struct HttpServer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Answer = dyn Fn(&Seen) -> Vec<u8> + Send + Sync;

impl HttpServer {
    /// An empty response sends nothing and leaves the connection open. A response with `connection:
    /// close` closes it.
    pub async fn start(answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> HttpServer {
        HttpServer::start_at("127.0.0.1:0", answer).await
    }

    pub async fn start_at(
        place: &str,
        answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
    ) -> HttpServer {
        let listener = TcpListener::bind(place).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Answer> = Arc::new(answer);
        let record = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answer), Arc::clone(&record)));
            }
        });
        HttpServer { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp?key=1", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, answer: Arc<Answer>, record: Arc<Mutex<Vec<Seen>>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        record.lock().unwrap().push(request.clone());
        let bytes = answer(&request);
        let _ = stream.write_all(&bytes).await;
        if String::from_utf8_lossy(&bytes).contains("connection: close") {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
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
    Some(Seen { method, path, headers, body })
}

/// A response with a status, additional header lines and a body.
pub fn respond(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

pub fn json(body: &str) -> Vec<u8> {
    respond("200 OK", "content-type: application/json\r\n", body)
}

/// An event stream, split into chunks at odd places.
pub fn events(stream: &str) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in stream.as_bytes().chunks(7) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

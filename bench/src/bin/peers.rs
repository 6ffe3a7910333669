//! `peers FILE`: calls a tool through several gateways in turn within one run, and prints a table.
//!
//! `scripts/compare-gateways` starts the gateways and writes the file: a JSON array of objects with
//! `name`, `url`, `tool` and `headers`. Each gateway gets the same amount of time per round, so
//! that a slow one does not delay the others.
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use bytes::Bytes;
use holdpoint_bench::callers::Failure;
use holdpoint_bench::samples::{Round, median};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// How long each gateway is called per round.
const ROUND: Duration = Duration::from_millis(500);
const ROUNDS: usize = 8;
const SESSIONS: [usize; 2] = [1, 16];
/// The length of the text in each response.
const RESULT_BYTES: usize = 100;
/// The timeout of a call.
const PATIENCE: Duration = Duration::from_secs(20);
const VERSION: &str = "2025-06-18";

/// A gateway to measure.
struct Peer {
    name: String,
    url: Uri,
    tool: String,
    headers: HeaderMap,
}

/// A session on its own connection.
struct PeerCaller {
    authority: String,
    connection: SendRequest<Full<Bytes>>,
    path: Uri,
    headers: HeaderMap,
    call: Bytes,
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let peers: Vec<Value> = serde_json::from_slice(&std::fs::read(path)?)?;
    let peers = peers.iter().map(Peer::read).collect::<Result<Vec<Peer>, Failure>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut rows: Vec<Vec<String>> = peers.iter().map(|peer| vec![peer.name.clone()]).collect();
        for sessions in SESSIONS {
            let columns = measure_all(&peers, sessions).await;
            for (row, column) in rows.iter_mut().zip(columns) {
                row.extend(column);
            }
        }
        let heads = SESSIONS.map(|count| format!("calls a second, {count} | p50, us | p99, us"));
        println!("| gateway | {} |", heads.join(" | "));
        println!("|---{}|", "|---".repeat(3 * SESSIONS.len()));
        for row in rows {
            println!("| {} |", row.join(" | "));
        }
        Ok(())
    })
}

/// The figures of each gateway with this many sessions. If a gateway fails, the failure takes the
/// place of its figures.
async fn measure_all(peers: &[Peer], sessions: usize) -> Vec<Vec<String>> {
    let mut callers = Vec::new();
    for peer in peers {
        callers.push(peer.open(sessions).await);
    }
    let mut rates: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    let mut times: Vec<Vec<Duration>> = peers.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        for ((own, rates), times) in callers.iter_mut().zip(&mut rates).zip(&mut times) {
            let Ok(opened) = own else { continue };
            match call_for_a_while(std::mem::take(opened)).await {
                // The first round is a warm-up.
                Ok((_, _, back)) if round == 0 => *own = Ok(back),
                Ok((rate, took, back)) => {
                    rates.push(rate);
                    times.extend(took);
                    *own = Ok(back);
                }
                Err(error) => *own = Err(error),
            }
        }
    }
    let figures = callers.into_iter().zip(rates).zip(times);
    figures
        .map(|((own, rates), times)| match own {
            Ok(_) => {
                let Round { p50, p99 } = Round::of(&times);
                [median(rates), p50, p99].map(|figure| format!("{figure:.0}")).to_vec()
            }
            Err(error) => vec![format!("failed: {error}"), String::new(), String::new()],
        })
        .collect()
}

type Called = (f64, Vec<Duration>, Vec<PeerCaller>);

/// All callers make calls for one round. Returns the calls per second, the time of each call, and
/// the callers.
async fn call_for_a_while(callers: Vec<PeerCaller>) -> Result<Called, Failure> {
    let begun = Instant::now();
    let tasks: Vec<_> = callers
        .into_iter()
        .map(|mut caller| {
            tokio::spawn(async move {
                let mut times = Vec::new();
                while begun.elapsed() < ROUND {
                    times.push(caller.call().await?);
                }
                Ok::<_, Failure>((times, caller))
            })
        })
        .collect();
    let (mut times, mut callers) = (Vec::new(), Vec::new());
    for task in tasks {
        let (own, caller) = task.await??;
        times.extend(own);
        callers.push(caller);
    }
    Ok((times.len() as f64 / begun.elapsed().as_secs_f64(), times, callers))
}

impl Peer {
    fn read(peer: &Value) -> Result<Peer, Failure> {
        let text = |name: &str| peer.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (name, value) in peer.get("headers").and_then(Value::as_object).into_iter().flatten() {
            let name: HeaderName = name.parse()?;
            headers.insert(name, value.as_str().unwrap_or_default().parse()?);
        }
        let (name, tool) = (text("name").to_owned(), text("tool").to_owned());
        Ok(Peer { name, url: text("url").parse()?, tool, headers })
    }

    async fn open(&self, sessions: usize) -> Result<Vec<PeerCaller>, Failure> {
        let mut callers = Vec::new();
        for _ in 0..sessions {
            let mut caller = PeerCaller::begin(self).await?;
            caller.call().await?;
            callers.push(caller);
        }
        Ok(callers)
    }
}

impl PeerCaller {
    /// Connects and opens a session.
    async fn begin(peer: &Peer) -> Result<PeerCaller, Failure> {
        let authority = peer.url.authority().ok_or("a URL without a host")?.as_str();
        let connection = connect(authority).await?;
        let mut headers = peer.headers.clone();
        headers.insert(HOST, authority.parse()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        let tool = Value::from(peer.tool.as_str());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":{tool},"arguments":{{"query":"{RESULT_BYTES}","limit":20}}}}}}"#
        );
        let path = peer.url.path_and_query().map_or("/", |path| path.as_str()).parse()?;
        let authority = authority.to_owned();
        let mut caller = PeerCaller { authority, connection, path, headers, call: call.into() };
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let response = caller.send(hello.into()).await?;
        let session = response.headers().get("mcp-session-id").cloned();
        answer_of(response).await?;
        if let Some(session) = session {
            caller.headers.insert("mcp-session-id", session);
        }
        caller.headers.insert("mcp-protocol-version", HeaderValue::from_static(VERSION));
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let response = caller.send(ready.into()).await?;
        response.into_body().collect().await?;
        Ok(caller)
    }

    /// Calls the tool. Returns how long that took.
    async fn call(&mut self) -> Result<Duration, Failure> {
        // Some gateways close a connection after a few seconds without a request.
        if self.connection.ready().await.is_err() {
            self.connection = connect(&self.authority).await?;
        }
        let begun = Instant::now();
        let called = async {
            let response = self.send(self.call.clone()).await?;
            answer_of(response).await
        };
        let answer = tokio::time::timeout(PATIENCE, called).await.map_err(|_| "no answer")??;
        let took = begun.elapsed();
        // Gateways order the members of a response differently, and some send it as an event.
        let is_result = answer.windows(8).any(|window| window == b"\"result\"");
        if is_result && answer.len() > RESULT_BYTES {
            return Ok(took);
        }
        let text = String::from_utf8_lossy(&answer);
        Err(format!("answered `{}`", text.chars().take(200).collect::<String>()).into())
    }

    async fn send(&mut self, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        request.headers_mut().clone_from(&self.headers);
        self.connection.ready().await?;
        Ok(self.connection.send_request(request).await?)
    }
}

async fn connect(authority: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

async fn answer_of(response: Response<Incoming>) -> Result<Bytes, Failure> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    Err(format!("answered {status}: {}", String::from_utf8_lossy(&body)).into())
}

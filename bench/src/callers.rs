//! Callers of a gateway over HTTP, each with its own session and connection, optimized for low
//! overhead.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

pub type Failure = Box<dyn Error + Send + Sync>;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const VERSION: &str = "2025-06-18";
/// How many bytes of a response are inspected.
const HEAD_BYTES: usize = 128;

/// A session of a principal.
#[derive(Debug)]
pub struct HttpCaller {
    connection: SendRequest<Full<Bytes>>,
    headers: HeaderMap,
}

/// The response to a request.
#[derive(Debug)]
pub struct HttpAnswer {
    pub took: Duration,
    pub bytes: usize,
    /// The beginning of the body, or the whole body if requested.
    pub text: Vec<u8>,
}

impl HttpCaller {
    /// Connects and opens a session.
    pub async fn begin(address: SocketAddr, key: &str) -> Result<HttpCaller, Failure> {
        let mut caller = HttpCaller::connect(address, key).await?;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let response = caller.send(body.into()).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        read(response, false).await?;
        if let Some(session) = session {
            caller.headers.insert(SESSION_ID, session);
        }
        caller.headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(VERSION));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let response = caller.send(initialized.into()).await?;
        response.into_body().collect().await?;
        Ok(caller)
    }

    async fn connect(address: SocketAddr, key: &str) -> Result<HttpCaller, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.to_string().parse()?);
        headers.insert(AUTHORIZATION, format!("Bearer {key}").parse()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        Ok(HttpCaller { connection, headers })
    }

    /// The headers that identify the caller and its session.
    pub fn identity(&self) -> &HeaderMap {
        &self.headers
    }

    /// Continues as another caller over the same connection.
    pub fn take_on(&mut self, identity: &HeaderMap) {
        self.headers.clone_from(identity);
    }

    /// Calls a tool whose result is a text of this many bytes.
    pub async fn call(&mut self, tool: usize, bytes: usize) -> Result<Duration, Failure> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo__tool_{tool}","arguments":{{"query":"{bytes}","limit":20}}}}}}"#
        );
        let answer = self.ask(body, false).await?;
        let is_whole = answer.bytes > bytes && answer.bytes < bytes + HEAD_BYTES;
        if is_whole { Ok(answer.took) } else { Err(unexpected(&answer.text)) }
    }

    /// Calls a tool and returns any response; `None` if the caller is no longer authenticated.
    pub async fn try_call(&mut self, tool: usize) -> Result<Option<Vec<u8>>, Failure> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo__tool_{tool}","arguments":{{"query":"100","limit":20}}}}}}"#
        );
        let response = self.send(body.into()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            response.into_body().collect().await?;
            return Ok(None);
        }
        Ok(Some(read(response, true).await?.1))
    }

    /// Sends our own server a request that no gateway forwards.
    pub async fn ask_server(address: SocketAddr, method: &str) -> Result<u64, Failure> {
        let mut caller = HttpCaller::connect(address, "none").await?;
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}"}}"#);
        let answer = caller.ask(body, true).await?;
        let text = String::from_utf8(answer.text)?;
        let number = text.rsplit(':').next().unwrap_or_default().trim_end_matches('}');
        Ok(number.parse()?)
    }

    /// Lists the tools, and reads the whole response.
    pub async fn list(&mut self) -> Result<HttpAnswer, Failure> {
        self.ask(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#.to_owned(), true).await
    }

    async fn ask(&mut self, body: String, is_kept: bool) -> Result<HttpAnswer, Failure> {
        let begun = Instant::now();
        let response = self.send(body.into()).await?;
        let (bytes, text) = read(response, is_kept).await?;
        let took = begun.elapsed();
        if text.starts_with(br#"{"jsonrpc":"2.0","id":7,"result":"#) {
            Ok(HttpAnswer { took, bytes, text })
        } else {
            Err(unexpected(&text))
        }
    }

    async fn send(&mut self, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("/mcp");
        request.headers_mut().clone_from(&self.headers);
        self.connection.ready().await?;
        Ok(self.connection.send_request(request).await?)
    }
}

/// The length of a body, and its beginning or all of it.
async fn read(response: Response<Incoming>, is_kept: bool) -> Result<(usize, Vec<u8>), Failure> {
    let status = response.status();
    let mut body = response.into_body();
    let (mut bytes, mut text) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        bytes += data.len();
        let wanted = if is_kept { data.len() } else { HEAD_BYTES.saturating_sub(text.len()) };
        text.extend(data.iter().take(wanted));
    }
    if status == StatusCode::OK { Ok((bytes, text)) } else { Err(unexpected(&text)) }
}

fn unexpected(text: &[u8]) -> Failure {
    format!("an unexpected answer: {}", String::from_utf8_lossy(text)).into()
}

//! A small HTTP/1 server with limits on connections, headers, bodies and time. A web server in
//! front provides TLS.

pub use ::http::Method;
use ::http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use ::http::{HeaderMap, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// The most concurrent connections.
pub const MAX_CONNECTIONS: usize = 1_024;
/// How long a client may take to send its headers, and then its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long responses in progress may take when the server shuts down.
const GRACE: Duration = Duration::from_secs(5);
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 16 * 1024;

pub type Answer = Response<Full<Bytes>>;

/// A request as passed to a handler.
#[derive(Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub peer: SocketAddr,
    pub body: Bytes,
}

/// Answers requests. Called on the threads that serve connections, unless [`Handler::is_slow`]
/// moves the call to a separate thread.
pub trait Handler: Send + Sync + 'static {
    fn answer(&self, asked: &Asked) -> Answer;
    /// Whether answering reads files or the database.
    fn is_slow(&self, path: &str) -> bool;
    /// The longest request body for this path; 0 if only GET and HEAD are allowed.
    fn max_body(&self, path: &str) -> usize;
}

/// Serves until told to stop.
pub async fn serve(
    listener: TcpListener,
    handler: Arc<dyn Handler>,
    mut stop: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        // The error is either the client's, or a lack of file descriptors, which passes.
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (handler, mut stop) = (handler.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| respond(handler.clone(), request, peer));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_headers(MAX_HEADERS)
                .max_buf_size(MAX_HEADER_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => {}
                _ = stop.changed() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = tokio::time::timeout(GRACE, connection).await;
                }
            }
            drop(slot);
        });
    }
}

async fn respond(
    handler: Arc<dyn Handler>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let is_head = parts.method == Method::HEAD;
    let max_body = handler.max_body(&path);
    let body = match parts.method {
        Method::GET | Method::HEAD => Bytes::new(),
        Method::POST if max_body > 0 => {
            let read = tokio::time::timeout(PATIENCE, Limited::new(body, max_body).collect()).await;
            match read {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(_)) => {
                    return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n"));
                }
                Err(_) => return Ok(text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
            }
        }
        _ => {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Ok(answer);
        }
    };
    let asked = Asked {
        method: parts.method,
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        peer,
        body,
        path,
    };
    let mut answer = if handler.is_slow(&asked.path) {
        let answered = tokio::task::spawn_blocking(move || handler.answer(&asked)).await;
        answered.unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "an error of ours\n"))
    } else {
        handler.answer(&asked)
    };
    if is_head {
        *answer.body_mut() = Full::default();
    }
    Ok(answer)
}

pub fn text(status: StatusCode, body: &'static str) -> Answer {
    answer(status, "text/plain; charset=utf-8", Bytes::from_static(body.as_bytes()))
}

/// A response with one media type, which browsers must not second-guess.
pub fn answer(status: StatusCode, media_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    answer
}

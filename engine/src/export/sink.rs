//! Delivers batches to an OTLP collector, or to a syslog receiver over a stream or by datagrams.

use super::Pace;
use super::connect::{self, Stream};
use super::destination::{Otlp, Syslog, Transport};
use super::otlp::{self, Verdict};
use super::syslog::{MAX_DATAGRAM_BYTES, Sender, frame};
use contract::time::Timestamp;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ledger::receipt::Item;
use std::io;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The largest collector response that is read.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// The timeout for sending one batch and receiving the response.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The destination of batches.
pub(super) enum Sink {
    Otlp {
        otlp: Otlp,
        tls: TlsConnector,
    },
    Stream {
        syslog: Syslog,
        tls: TlsConnector,
        sender: Sender,
        settle: Duration,
        open: Option<Box<dyn Stream>>,
    },
    Datagrams {
        syslog: Syslog,
        sender: Sender,
        settle: Duration,
        open: Option<UdpSocket>,
    },
}

impl Sink {
    pub(super) fn otlp(otlp: Otlp, tls: &TlsConnector) -> (String, Sink) {
        (otlp.to_string(), Sink::Otlp { otlp, tls: tls.clone() })
    }

    pub(super) fn syslog(syslog: Syslog, tls: &TlsConnector, pace: Pace) -> (String, Sink) {
        let (to, sender, settle) = (syslog.to_string(), Sender::of_this_process(), pace.settle);
        let sink = match syslog.transport {
            Transport::Udp => Sink::Datagrams { syslog, sender, settle, open: None },
            Transport::Tcp | Transport::Tls => {
                Sink::Stream { syslog, tls: tls.clone(), sender, settle, open: None }
            }
        };
        (to, sink)
    }

    pub(super) async fn send(&mut self, items: &[Item]) -> Verdict {
        let work = async {
            match self {
                Sink::Otlp { otlp, tls } => post(otlp, tls, items).await,
                Sink::Stream { syslog, tls, sender, settle, open } => {
                    let tls = (syslog.transport == Transport::Tls).then_some(&*tls);
                    let sent = write_stream(syslog, tls, sender, *settle, open, items).await;
                    sent.map(|()| TAKEN)
                }
                Sink::Datagrams { syslog, sender, settle, open } => {
                    write_datagrams(syslog, sender, *settle, open, items).await.map(|()| TAKEN)
                }
            }
        };
        let sent = match timeout(SEND_TIMEOUT, work).await {
            Ok(sent) => sent,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        match sent {
            Ok(verdict) => verdict,
            Err(error) => {
                self.close();
                Verdict::Later { after: None, why: error.to_string() }
            }
        }
    }

    /// Closes a connection after a failure, so that it is not used again.
    fn close(&mut self) {
        match self {
            Sink::Otlp { .. } => {}
            Sink::Stream { open, .. } => *open = None,
            Sink::Datagrams { open, .. } => *open = None,
        }
    }
}

const TAKEN: Verdict = Verdict::Taken { rejected: 0, why: String::new() };

/// Sends one request over a new connection: batches are rare, and a kept connection could be stale.
async fn post(otlp: &Otlp, tls: &TlsConnector, items: &[Item]) -> io::Result<Verdict> {
    let now = now();
    post_body(otlp, tls, otlp::body(items, now)?, now).await
}

/// Sends given bodies to a collector, without retries.
#[derive(Debug)]
pub struct OtlpSender {
    otlp: Otlp,
    tls: OwnTls,
}

struct OwnTls(TlsConnector);

impl std::fmt::Debug for OwnTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OwnTls")
    }
}

impl OtlpSender {
    pub fn new(otlp: Otlp) -> io::Result<OtlpSender> {
        Ok(OtlpSender { otlp, tls: OwnTls(connect::connector(&[])?) })
    }

    /// Posts a body. An error describes why the collector did not accept it.
    pub async fn post(&self, body: Vec<u8>) -> Result<(), String> {
        let posted = post_body(&self.otlp, &self.tls.0, body, now());
        match timeout(SEND_TIMEOUT, posted).await {
            Ok(Ok(Verdict::Taken { .. })) => Ok(()),
            Ok(Ok(Verdict::Later { why, .. } | Verdict::Never { why })) => Err(why),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it did not answer in time".to_owned()),
        }
    }
}

async fn post_body(
    otlp: &Otlp,
    tls: &TlsConnector,
    body: Vec<u8>,
    now: Timestamp,
) -> io::Result<Verdict> {
    let request = otlp_request(otlp, body)?;
    let stream = connect::stream(&otlp.address, otlp.is_secure.then_some(tls)).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_ANSWER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (parts, body) = response.into_parts();
        // A body that is too long or incomplete is ignored; the status is enough.
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok(otlp::verdict(parts.status, &parts.headers, &body, now))
    };
    tokio::pin!(exchange);
    let driver = connection;
    tokio::pin!(driver);
    tokio::select! {
        verdict = &mut exchange => verdict,
        // The connection may end before its last response was read.
        _ = &mut driver => exchange.await,
    }
}

fn otlp_request(otlp: &Otlp, body: Vec<u8>) -> io::Result<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = otlp.path.parse().map_err(io::Error::other)?;
    let headers = request.headers_mut();
    headers.extend(otlp.headers.clone());
    let host = HeaderValue::from_str(&otlp.address.to_string()).map_err(io::Error::other)?;
    headers.insert(HOST, host);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let own = concat!("holdpoint/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(own));
    Ok(request)
}

async fn write_stream(
    syslog: &Syslog,
    tls: Option<&TlsConnector>,
    sender: &Sender,
    settle: Duration,
    open: &mut Option<Box<dyn Stream>>,
    items: &[Item],
) -> io::Result<()> {
    if let Some(stream) = open
        && !is_open(stream, Duration::ZERO).await
    {
        *open = None;
    }
    let stream = match open {
        Some(stream) => stream,
        None => open.insert(connect::stream(&syslog.address, tls).await?),
    };
    let mut bytes = Vec::new();
    for item in items {
        frame(&sender.message(item, usize::MAX), &mut bytes);
    }
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    // Receivers send no acknowledgments. A receiver that had disconnected before reading this shows
    // within a moment.
    if is_open(stream, settle).await {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the receiver closed the connection"))
    }
}

/// Whether the other side keeps the stream open for this long. What it sends is ignored.
async fn is_open(stream: &mut Box<dyn Stream>, watched: Duration) -> bool {
    let mut said = [0; 256];
    match timeout(watched, stream.read(&mut said)).await {
        Ok(Ok(0) | Err(_)) => false,
        Ok(Ok(_)) | Err(_) => true,
    }
}

async fn write_datagrams(
    syslog: &Syslog,
    sender: &Sender,
    settle: Duration,
    open: &mut Option<UdpSocket>,
    items: &[Item],
) -> io::Result<()> {
    let socket = match open {
        Some(socket) => socket,
        None => open.insert(connect::datagrams(&syslog.address).await?),
    };
    for item in items {
        socket.send(sender.message(item, MAX_DATAGRAM_BYTES).as_bytes()).await?;
    }
    // If no program listens there, the other machine may report that.
    match timeout(settle, socket.recv(&mut [0; 1])).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

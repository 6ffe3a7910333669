//! The end of a sign-in: a listener on this machine that accepts one response from the browser.
//!
//! It listens only on the loopback address, at one path, for one sign-in. A request without this
//! sign-in's `state` gets a page that says so and changes nothing: any page in the browser can send
//! such requests.

use super::page::Page;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use oauth::Pending;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

const PATH: &str = "/callback";
/// The largest request, how long one may take, and the most that are served at once and in total.
const MAX_REQUEST_BYTES: usize = 32 * 1024;
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// How long the browser may take to fetch the final page.
const PAGE_TIME: Duration = Duration::from_secs(2);
const MAX_AT_ONCE: usize = 16;
const MAX_REQUESTS: usize = 500;

/// A listener for the end of one sign-in.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

/// A request from the browser, with the channel for the page to show.
#[derive(Debug)]
pub(super) enum Brought {
    Answer {
        query: String,
        show: oneshot::Sender<Page>,
    },
    /// A request with a different `state`.
    Stray,
}

/// A running listener.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) brought: mpsc::Receiver<Brought>,
    delivered: Arc<Notify>,
    serving: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Listening {
    /// Waits until the browser has fetched the page, up to a time limit.
    pub(super) async fn deliver(self, show: oneshot::Sender<Page>, page: Page) {
        let _ = show.send(page);
        let _ = timeout(PAGE_TIME, self.delivered.notified()).await;
    }
}

impl Callback {
    /// Opens a listener. Port 0 picks any free port.
    pub(super) async fn open(port: u16) -> io::Result<Callback> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Callback { listener, port })
    }

    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Serves the browser, and forwards what it brings. Only the first response is accepted.
    pub(super) fn listen(self, pending: Pending) -> Listening {
        let (told, brought) = mpsc::channel(1);
        let delivered = Arc::new(Notify::new());
        let shared = Shared {
            pending,
            brought: told,
            delivered: delivered.clone(),
            port: self.port,
            is_taken: AtomicBool::new(false),
        };
        let serving = tokio::spawn(self.serve(Arc::new(shared)));
        Listening { brought, delivered, serving }
    }

    async fn serve(self, shared: Arc<Shared>) {
        let mut connections = JoinSet::new();
        for _ in 0..MAX_REQUESTS {
            while connections.len() >= MAX_AT_ONCE {
                connections.join_next().await;
            }
            if let Ok((stream, _)) = self.listener.accept().await {
                let shared = shared.clone();
                connections.spawn(timeout(REQUEST_TIME, shared.converse(stream)));
            }
        }
        while connections.join_next().await.is_some() {}
    }
}

struct Shared {
    pending: Pending,
    brought: mpsc::Sender<Brought>,
    delivered: Arc<Notify>,
    port: u16,
    is_taken: AtomicBool,
}

impl Shared {
    async fn converse(self: Arc<Self>, stream: TcpStream) {
        let is_answer = AtomicBool::new(false);
        let service = service_fn(|request: Request<Incoming>| {
            let (shared, is_answer) = (&self, &is_answer);
            async move { Ok::<_, Infallible>(response(&shared.page(&request, is_answer).await)) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).max_buf_size(MAX_REQUEST_BYTES).keep_alive(false);
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
        if is_answer.load(Ordering::Relaxed) {
            self.delivered.notify_one();
        }
    }

    async fn page(&self, request: &Request<Incoming>, is_answer: &AtomicBool) -> Page {
        let own = format!("127.0.0.1:{}", self.port);
        let is_own =
            request.headers().get(HOST).is_some_and(|host| host.as_bytes() == own.as_bytes());
        if request.method() != Method::GET || request.uri().path() != PATH || !is_own {
            return Page::nothing();
        }
        let query = request.uri().query().unwrap_or_default();
        if !self.pending.is_for(query) {
            let _ = self.brought.send(Brought::Stray).await;
            return Page::stray();
        }
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return Page::stray();
        }
        is_answer.store(true, Ordering::Relaxed);
        let (show, shown) = oneshot::channel();
        let _ = self.brought.send(Brought::Answer { query: query.to_owned(), show }).await;
        shown.await.unwrap_or_else(|_| Page::nothing())
    }
}

fn response(page: &Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(page.html())));
    *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or(StatusCode::BAD_REQUEST);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

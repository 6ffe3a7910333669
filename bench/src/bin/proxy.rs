//! `proxy ADDRESS`: forwards HTTP requests to a server over kept-alive connections, and does
//! nothing else. Prints its address.
//!
//! The baseline for the cost of the gateway.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Failure> {
    let server: SocketAddr = std::env::args().nth(1).ok_or("which address?")?.parse()?;
    let pool = Arc::new(Pool { server, idle: Mutex::default() });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let pool = pool.clone();
            let service = service_fn(move |request| pass_on(pool.clone(), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

async fn pass_on(
    pool: Arc<Pool>,
    request: Request<Incoming>,
) -> Result<Response<PassedBody>, Failure> {
    let mut connection = pool.take().await?;
    let response = connection.send_request(request).await?;
    Ok(response.map(|body| PassedBody { body, kept: Some((connection, pool)) }))
}

/// Idle connections to the server.
struct Pool {
    server: SocketAddr,
    idle: Mutex<Vec<SendRequest<Incoming>>>,
}

impl Pool {
    async fn take(&self) -> Result<SendRequest<Incoming>, Failure> {
        loop {
            let Some(mut connection) = self.idle().pop() else { break };
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = client::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SendRequest<Incoming>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is forwarded as it arrives. At its end, the connection returns to the pool.
struct PassedBody {
    body: Incoming,
    kept: Option<(SendRequest<Incoming>, Arc<Pool>)>,
}

impl Body for PassedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        if frame.is_none() || this.body.is_end_stream() {
            this.keep();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl PassedBody {
    fn keep(&mut self) {
        if let Some((connection, pool)) = self.kept.take() {
            pool.idle().push(connection);
        }
    }
}

impl Drop for PassedBody {
    fn drop(&mut self) {
        // A response without a body is never polled.
        if self.body.is_end_stream() {
            self.keep();
        }
    }
}

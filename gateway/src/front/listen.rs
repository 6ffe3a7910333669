//! Connections: plain or TLS, HTTP/1.1 and HTTP/2.

use crate::front_checks::FrontNames;
use crate::node::{Node, StartError};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long the headers of a request may take to arrive.
const HEADER_PATIENCE: Duration = Duration::from_secs(15);
/// The largest headers of a request.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The most connections at once.
const MAX_CONNECTIONS: usize = 20_000;
/// The most requests at once on one connection of HTTP/2.
const MAX_STREAMS: u32 = 256;

/// Listens and serves until the gateway is shut down. Returns the address that is listened on, and a task.
pub async fn serve(
    node: Arc<Node>,
    address: SocketAddr,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), StartError> {
    let wrong = |error| StartError::Listen(address, error);
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    node.names.store(Arc::new(FrontNames::new(&node.shared.settings.front, address)));
    let serving = tokio::spawn(accept(node, listener));
    Ok((address, serving))
}

async fn accept(node: Arc<Node>, listener: TcpListener) {
    let mut stop = node.stopping();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, _peer)) = accepted else {
            // Out of descriptors, most likely: others are closed meanwhile.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let node = node.clone();
        tokio::spawn(async move {
            serve_connection(node, stream).await;
            drop(place);
        });
    }
}

async fn serve_connection(node: Arc<Node>, stream: TcpStream) {
    let mut stop = node.stopping();
    let service = service_fn(move |request| {
        let node = node.clone();
        async move { Ok::<_, Infallible>(node.respond(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(MAX_HEADER_BYTES)
        .half_close(false);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.changed() => connection.as_mut().graceful_shutdown(),
        }
    }
}

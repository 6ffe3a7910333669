//! The address that accepts other nodes' requests. Callers cannot use it: a peer has to prove that
//! it holds the cluster key.

use super::{
    CONNECTION_WINDOW_BYTES, MAX_HEADER_BYTES, MAX_RELAYED, RELAY_AS, RELAY_FOR, RELAY_TO,
    RelayKind, STREAM_WINDOW_BYTES, passport,
};
use crate::front::{Identified, Route, header};
use crate::identity::{Authenticated, Unauthenticated};
use crate::node::{Node, StartError};
use crate::relay::Relayed;
use crate::reply::{self, Reply};
use engine::recorder::now;
use http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The most concurrent connections: every other node has one.
const MAX_CONNECTIONS: usize = 512;
/// How long a handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
/// How often a silent connection is pinged, and how long the response may take.
const PING: Duration = Duration::from_secs(5);

/// Listens for other nodes, and joins them. Returns the listening address.
pub async fn serve_peers(node: Arc<Node>, address: SocketAddr) -> Result<SocketAddr, StartError> {
    let wrong = |error| StartError::Listen(address, error);
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    node.join_cluster(address)?;
    if let Some(cluster) = &node.cluster {
        cluster.start_forwarding();
    }
    tokio::spawn(accept(node, listener));
    Ok(address)
}

async fn accept(node: Arc<Node>, listener: TcpListener) {
    let Some(tls) = node.cluster.as_ref().map(|cluster| cluster.tls.server.clone()) else { return };
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut stop = node.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let (node, acceptor) = (node.clone(), TlsAcceptor::from(tls.clone()));
        tokio::spawn(async move {
            serve_connection(node, acceptor, stream).await;
            drop(place);
        });
    }
}

async fn serve_connection(node: Arc<Node>, acceptor: TlsAcceptor, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let source = stream.peer_addr().ok().map(|peer| peer.ip());
    let shaken = tokio::time::timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = shaken else {
        let words = "a connection to `peer_listen` did not prove the key of the nodes";
        return node.strangers.note(&node, source, Unauthenticated::REASON, words);
    };
    let mut stop = node.stopping();
    node.connections.send_modify(|open| *open += 1);
    let answering = node.clone();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let node = answering.clone();
        async move { Ok::<_, Infallible>(node.respond_peer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(MAX_RELAYED)
        .max_header_list_size(MAX_HEADER_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            _ = connection.as_mut() => break,
            _ = stop.changed() => connection.as_mut().graceful_shutdown(),
        }
    }
    node.connections.send_modify(|open| *open = open.saturating_sub(1));
}

impl Node {
    /// Answers the request of another node.
    async fn respond_peer(self: Arc<Self>, request: http::Request<Incoming>) -> Reply {
        let begun = Instant::now();
        let (mut parts, body) = request.into_parts();
        let is_for_us = self.cluster.as_ref().is_some_and(|cluster| {
            header(&parts.headers, RELAY_TO.as_str()) == Some(cluster.id().to_string().as_str())
        });
        if !is_for_us {
            return reply::empty(StatusCode::MISDIRECTED_REQUEST);
        }
        let kind = header(&parts.headers, RELAY_AS.as_str()).and_then(RelayKind::named);
        if kind == Some(RelayKind::Told) {
            return self.take_told(&parts.headers, body).await;
        }
        let found = header(&parts.headers, RELAY_FOR.as_str()).and_then(passport::read);
        let (Some(kind), Some(found)) = (kind, found) else {
            return reply::empty(StatusCode::BAD_REQUEST);
        };
        for name in [RELAY_TO, RELAY_FOR, RELAY_AS] {
            parts.headers.remove(name);
        }
        // INVARIANT: a credential that was revoked here is refused, even if another node still
        // accepts it.
        let Some(identified) = self.still_identified(found).await else {
            let words = "the credential of a forwarded request is no longer valid";
            self.strangers.note(&self, None, Unauthenticated::REASON, words);
            return reply::empty(StatusCode::UNAUTHORIZED);
        };
        parts.extensions.insert(Relayed(kind));
        match (Route::of(parts.uri.path()), kind) {
            (Some(Route::Mcp { scope, org }), RelayKind::Session | RelayKind::Instance) => {
                self.respond_identified(identified, &parts, body, scope, org.as_deref(), begun)
                    .await
            }
            (Some(Route::Admin(path)), RelayKind::Receipts) if path == "receipts" => {
                self.respond_admin_to(identified, parts, body).await
            }
            (Some(Route::Admin(path)), RelayKind::Approvals)
                if path == "approvals" || path.starts_with("approvals/") =>
            {
                self.respond_admin_to(identified, parts, body).await
            }
            (
                _,
                RelayKind::Session
                | RelayKind::Instance
                | RelayKind::Receipts
                | RelayKind::Approvals
                | RelayKind::Told,
            ) => reply::empty(StatusCode::NOT_FOUND),
        }
    }

    /// The caller as verified by another node, if its credential is still valid here.
    async fn still_identified(&self, found: Authenticated) -> Option<Identified> {
        let now = now();
        let is_over = found.expires_at.is_some_and(|at| at <= now);
        if is_over || !self.authenticator().counts_elsewhere(&found, now).await {
            return None;
        }
        let left = found.expires_at.map(|at| u64::try_from(at.0 - now.0).unwrap_or_default());
        Some(Identified { found, expires_in: left.map(Duration::from_millis), last_id: None })
    }
}

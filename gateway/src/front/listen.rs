//! Connections: plain or TLS, HTTP/1.1 and HTTP/2, and who is at their other end.

use super::Door;
use super::tls::TlsFront;
use crate::front_checks::FrontNames;
use crate::node::{Node, StartError};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use settings::gateway::Transport;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// How long the headers of a request may take to arrive.
const HEADER_PATIENCE: Duration = Duration::from_secs(15);
/// How long a TLS handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// The largest headers of a request.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The most connections at once.
const MAX_CONNECTIONS: usize = 20_000;
/// The most TLS handshakes at once. They cost more than anything else that a stranger can ask for.
const MAX_HANDSHAKES: usize = 512;
/// The most requests at once on one connection of HTTP/2.
const MAX_STREAMS: u32 = 256;

/// The other end of a connection. Every request carries it as an extension.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Verified against `client_ca`.
    pub(crate) certificate: Option<CertificateDer<'static>>,
    pub(crate) door: Door,
}

/// Listens and serves until the gateway is shut down. Returns the address that is listened on, and a task.
pub async fn serve(
    node: Arc<Node>,
    address: SocketAddr,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), StartError> {
    let (address, listener) = bind(address).await?;
    node.names.store(Arc::new(FrontNames::new(&node.shared.settings().front, address)));
    let serving = tokio::spawn(accept(node, listener, Door::Main));
    Ok((address, serving))
}

/// The same for the admin API alone, which then is at no other address.
pub async fn serve_admin(
    node: Arc<Node>,
    address: SocketAddr,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), StartError> {
    let (address, listener) = bind(address).await?;
    let names = FrontNames::beside(&node.shared.settings().front, address);
    Ok((address, tokio::spawn(accept(node, listener, Door::Admin(Arc::new(names))))))
}

/// The same for the metrics alone, for which no identity is needed here.
pub async fn serve_metrics(
    node: Arc<Node>,
    address: SocketAddr,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), StartError> {
    let (address, listener) = bind(address).await?;
    Ok((address, tokio::spawn(accept(node, listener, Door::Metrics))))
}

async fn bind(address: SocketAddr) -> Result<(SocketAddr, TcpListener), StartError> {
    let wrong = |error| StartError::Listen(address, error);
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok((address, listener))
}

async fn accept(node: Arc<Node>, listener: TcpListener, door: Door) {
    let mut stop = node.stopping();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, most likely: others are closed meanwhile.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let address = peer.ip();
        let settings = node.shared.settings();
        if !door.is_plain() && !may_connect(&settings.front.transport, address) {
            continue;
        }
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let (node, handshakes, door) = (node.clone(), handshakes.clone(), door.clone());
        node.connections.send_modify(|open| *open += 1);
        tokio::spawn(async move {
            let peer = Peer { address, certificate: None, door };
            match node.tls.as_ref().filter(|_| !peer.door.is_plain()) {
                None => serve_connection(&node, stream, peer).await,
                Some(tls) => serve_tls(&node, tls, stream, peer, &handshakes).await,
            }
            node.connections.send_modify(|open| *open = open.saturating_sub(1));
            drop(place);
        });
    }
}

/// Whether a connection from there is read at all. Behind a proxy only the proxy connects: its word for who calls counts.
fn may_connect(transport: &Transport, address: IpAddr) -> bool {
    match transport {
        Transport::Loopback | Transport::Tls { .. } => true,
        Transport::TerminatedBy(proxies) => proxies.iter().any(|range| range.contains(address)),
    }
}

async fn serve_tls(
    node: &Arc<Node>,
    tls: &TlsFront,
    stream: TcpStream,
    peer: Peer,
    handshakes: &Semaphore,
) {
    let Ok(place) = handshakes.try_acquire() else { return };
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    let mut stop = node.stopping();
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE_PATIENCE, handshake) => shaken,
        _ = stop.changed() => return,
    };
    let Ok(Ok(stream)) = shaken else { return };
    drop(place);
    let certificates = stream.get_ref().1.peer_certificates();
    let certificate =
        certificates.and_then(|chain| chain.first()).map(|leaf| leaf.clone().into_owned());
    serve_connection(node, stream, Peer { certificate, ..peer }).await;
}

async fn serve_connection<S>(node: &Arc<Node>, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stop = node.stopping();
    let (node, peer) = (node.clone(), Arc::new(peer));
    let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        let node = node.clone();
        request.extensions_mut().insert(peer.clone());
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

#[cfg(test)]
mod tests {
    use super::may_connect;
    use settings::gateway::Transport;

    #[test]
    fn behind_a_proxy_only_the_proxy_may_connect() {
        let proxies = Transport::TerminatedBy(vec!["10.0.0.0/8".parse().unwrap()]);
        assert!(may_connect(&proxies, "10.1.2.3".parse().unwrap()));
        for other in ["127.0.0.1", "11.0.0.1", "::1"] {
            assert!(!may_connect(&proxies, other.parse().unwrap()), "{other}");
        }
        assert!(may_connect(&Transport::Loopback, "127.0.0.1".parse().unwrap()));
    }
}

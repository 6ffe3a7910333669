//! Connections: plain or TLS, HTTP/1.1 and HTTP/2, and who is at their other end.

use super::Door;
use super::eager::Eager;
use super::quiet::{OpenBody, Quiet};
use super::tls::TlsFront;
use crate::front_checks::FrontNames;
use crate::node::{Node, StartError};
use crate::reply::Reply;
use crate::sessions::LastId;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use settings::gateway::Transport;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// How long a connection may be open on which nothing is asked, from its first byte on. A request whose headers have not
/// all arrived asks nothing yet.
const QUIET_PATIENCE: Duration = Duration::from_secs(30);
/// How long such a connection may take to end.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(1);
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

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Verified against `client_ca`.
    pub(crate) certificate: Option<CertificateDer<'static>>,
    pub(crate) door: Door,
    pub(crate) last_id: Arc<LastId>,
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
            let peer = Peer { address, certificate: None, door, last_id: Arc::default() };
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
    let stop = node.stopping();
    let (node, peer) = (node.clone(), Arc::new(peer));
    let respond = move |request| node.clone().respond(peer.clone(), request);
    serve_http(stream, respond, stop, QUIET_PATIENCE).await;
}

/// Serves one connection until its other end closes it, nothing is asked on it for a while, or the gateway ends.
async fn serve_http<S, A>(
    stream: S,
    respond: impl Fn(http::Request<Incoming>) -> A + Clone,
    mut stop: watch::Receiver<bool>,
    patience: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Future<Output = Reply> + Send + 'static,
{
    let quiet = Quiet::new();
    let asked = quiet.clone();
    let service = service_fn(move |request: http::Request<Incoming>| {
        // Boxed: hyper moves what a service returns several times, and memory copied costs more than memory allocated.
        let (open, answer) = (asked.begin(), Box::pin(respond(request)));
        async move {
            let answer = answer.await;
            Ok::<_, Infallible>(answer.map(|body| OpenBody { body, _request: open }))
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    // hyper's own limit for headers would set and clear a timer for every request.
    builder.http1().header_read_timeout(None).max_buf_size(MAX_HEADER_BYTES).half_close(false);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut connection = Eager::new(connection);
    let stopped = pin!(stop.changed());
    let ended = pin!(quiet.lasts(patience));
    let (mut stopped, mut ended) = (Eager::new(stopped), Eager::new(ended));
    tokio::select! {
        biased;
        _ = &mut connection => return,
        () = &mut ended => {
            connection.inner().as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(GOODBYE_PATIENCE, connection).await;
            return;
        }
        _ = &mut stopped => connection.inner().as_mut().graceful_shutdown(),
    }
    // What is in flight is answered, for as long as something is.
    tokio::select! {
        _ = &mut connection => {}
        () = ended => {
            let _ = tokio::time::timeout(GOODBYE_PATIENCE, connection).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{may_connect, serve_http};
    use crate::reply;
    use http::StatusCode;
    use settings::gateway::Transport;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::watch;

    #[tokio::test]
    async fn a_connection_on_which_nothing_is_asked_is_closed() {
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".as_slice();
        let frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".as_slice();
        for (name, sent, is_answered) in [
            ("nothing", b"".as_slice(), false),
            ("half a preface", b"PRI * HT", false),
            ("no request", frames, false),
            ("a request", request, true),
        ] {
            let (mut client, server) = tokio::io::duplex(4096);
            let (_running, stop) = watch::channel(false);
            let answer = |_| async { reply::empty(StatusCode::OK) };
            let serving = tokio::spawn(serve_http(server, answer, stop, Duration::from_millis(50)));
            client.write_all(sent).await.unwrap();
            let mut heard = Vec::new();
            let closed = client.read_to_end(&mut heard);
            tokio::time::timeout(Duration::from_secs(10), closed).await.expect(name).unwrap();
            assert_eq!(heard.starts_with(b"HTTP/1.1 200"), is_answered, "{name}: {heard:?}");
            serving.await.unwrap();
        }
    }

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

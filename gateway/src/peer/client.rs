//! Connections to other nodes. There is one per node, opened when first needed, for all requests to
//! it.

use super::{CONNECTION_WINDOW_BYTES, MAX_HEADER_BYTES, MAX_RELAYED, PeerTls, STREAM_WINDOW_BYTES};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::NodeId;
use tokio::net::TcpStream;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// How long connecting to a node may take, including handshakes.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// How often a silent connection is pinged, and how long the response may take.
const PING: Duration = Duration::from_secs(5);
/// All nodes use the same TLS name: only the key matters.
const NAME: &str = "node.holdpoint.invalid";

/// Why another node did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RelayFault {
    #[error("the node is gone")]
    Gone,
    #[error("the node could not be reached")]
    Unreached,
    #[error("the connection to the node was lost")]
    Lost,
    #[error("too many requests are with other nodes")]
    Busy,
}

type Sender = SendRequest<Full<Bytes>>;
type Place = Arc<AsyncMutex<Option<Sender>>>;

/// The connections to other nodes.
pub(crate) struct PeerClient {
    tls: Arc<ClientConfig>,
    connections: Mutex<HashMap<NodeId, Place>>,
    room: Arc<Semaphore>,
}

impl std::fmt::Debug for PeerClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PeerClient").finish_non_exhaustive()
    }
}

impl PeerClient {
    pub(crate) fn new(tls: &PeerTls) -> PeerClient {
        PeerClient {
            tls: tls.client.clone(),
            connections: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_RELAYED as usize)),
        }
    }

    /// Sends a request to a node, and returns the head of its response. The place counts against
    /// the limit until it is dropped.
    pub(crate) async fn send(
        &self,
        (node, address): (NodeId, &str),
        request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<(Response<Incoming>, OwnedSemaphorePermit), RelayFault> {
        let place = self.room.clone().try_acquire_owned().map_err(|_| RelayFault::Busy)?;
        let mut sender = self.sender(node, address).await?;
        let sent = tokio::time::timeout(patience, sender.try_send_request(request)).await;
        let refused = match sent.map_err(|_| RelayFault::Lost)? {
            Ok(answer) => return Ok((answer, place)),
            Err(refused) => refused,
        };
        // INVARIANT: a request is only repeated if nothing of it was sent: otherwise it may have
        // been carried out.
        let mut refused = refused;
        let request = refused.take_message().ok_or(RelayFault::Lost)?;
        let mut sender = self.sender(node, address).await?;
        let sent = tokio::time::timeout(patience, sender.send_request(request)).await;
        let answer = sent.map_err(|_| RelayFault::Lost)?.map_err(|_| RelayFault::Lost)?;
        Ok((answer, place))
    }

    /// Drops the connections to nodes that are gone.
    pub(crate) fn keep_only(&self, is_there: impl Fn(NodeId) -> bool) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|node, _| is_there(*node));
    }

    async fn sender(&self, node: NodeId, address: &str) -> Result<Sender, RelayFault> {
        let place = {
            let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            connections.entry(node).or_default().clone()
        };
        // Other tasks that need the same connection wait until it is open.
        let mut place = place.lock().await;
        if let Some(sender) = place.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let opened = tokio::time::timeout(CONNECT_PATIENCE, self.connect(address)).await;
        let sender = opened.map_err(|_| RelayFault::Unreached)?.ok_or(RelayFault::Unreached)?;
        *place = Some(sender.clone());
        Ok(sender)
    }

    async fn connect(&self, address: &str) -> Option<Sender> {
        let stream = TcpStream::connect(address).await.ok()?;
        let _ = stream.set_nodelay(true);
        let name = ServerName::try_from(NAME).ok()?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await.ok()?;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_max_send_streams(MAX_RELAYED as usize)
            .max_header_list_size(MAX_HEADER_BYTES);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        Some(sender)
    }
}

//! Server messages outside of calls, for callers whose streams are open at other nodes: the node
//! that runs the caller's process receives the messages and forwards them to the others.
//!
//! INVARIANT: the node that receives a message authorizes it. The others pass it on only to that
//! caller's streams.

use super::{RELAY_AS, RELAY_TO, RelayKind};
use crate::cluster::Cluster;
use crate::frame::member;
use crate::front::header;
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::sessions::PrincipalId;
use bytes::Bytes;
use gate::server::ServerId;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::NodeId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const TOLD_FOR: HeaderName = HeaderName::from_static("holdpoint-told-for");
const TOLD_BY: HeaderName = HeaderName::from_static("holdpoint-told-by");
/// The longest message that is forwarded to other nodes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// The most queued messages. Further ones are dropped.
const MAX_WAITING: usize = 256;
const PATIENCE: Duration = Duration::from_secs(5);

/// A message and its recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) principal: PrincipalId,
    pub(crate) server: ServerId,
    pub(crate) message: Bytes,
}

impl Told {
    fn request(&self, to: NodeId) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::new(Full::new(self.message.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static("https://node.holdpoint.invalid/told");
        let headers = request.headers_mut();
        headers.insert(RELAY_TO, HeaderValue::from_str(&to.to_string()).ok()?);
        headers.insert(RELAY_AS, HeaderValue::from_static(RelayKind::Told.as_str()));
        headers.insert(TOLD_FOR, HeaderValue::from_str(&hex::encode(self.principal)).ok()?);
        headers.insert(TOLD_BY, HeaderValue::from_str(self.server.as_str()).ok()?);
        Some(request)
    }

    async fn read<B>(headers: &HeaderMap, body: B) -> Option<Told>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut principal = PrincipalId::default();
        hex::decode_to_slice(header(headers, TOLD_FOR.as_str())?, &mut principal).ok()?;
        let server = header(headers, TOLD_BY.as_str())?.parse().ok()?;
        let read = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_MESSAGE_BYTES).collect());
        let message = read.await.ok()?.ok()?.to_bytes();
        Some(Told { principal, server, message })
    }
}

/// The resource that a notification reports as changed.
pub(crate) fn updated_uri(message: &[u8]) -> Option<String> {
    let method = member(message, "method")?;
    if method != br#""notifications/resources/updated""# {
        return None;
    }
    serde_json::from_slice(member(member(message, "params")?, "uri")?).ok()
}

impl Cluster {
    /// Queues a message for all other nodes. Above the limits, it is dropped and counted.
    pub(crate) fn forward_to_nodes(&self, told: Told) {
        let is_short = told.message.len() <= MAX_MESSAGE_BYTES;
        let is_kept =
            is_short && self.telling.get().is_some_and(|telling| telling.try_send(told).is_ok());
        if !is_kept {
            self.untold.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Starts to forward messages, one after the other to keep their order.
    pub(crate) fn start_forwarding(self: &Arc<Self>) {
        let (sender, waiting) = mpsc::channel(MAX_WAITING);
        if self.telling.set(sender).is_ok() {
            tokio::spawn(forward_all(Arc::downgrade(self), waiting));
        }
    }
}

async fn forward_all(cluster: Weak<Cluster>, mut waiting: mpsc::Receiver<Told>) {
    while let Some(told) = waiting.recv().await {
        let Some(cluster) = cluster.upgrade() else { return };
        let mut sending = JoinSet::new();
        for (node, address) in &cluster.members().live {
            let Some(request) = told.request(*node) else { continue };
            let (cluster, node, address) = (cluster.clone(), *node, address.clone());
            sending.spawn(async move {
                cluster.client.send((node, &address), request, PATIENCE).await.is_ok()
            });
        }
        let failed = sending.join_all().await.into_iter().filter(|is_told| !is_told).count();
        cluster.untold.fetch_add(u64::try_from(failed).unwrap_or_default(), Ordering::Relaxed);
    }
}

impl Node {
    /// Passes on what another node received from a caller's process.
    pub(super) async fn take_told<B>(&self, headers: &HeaderMap, body: B) -> Reply
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Some(Told { principal, server, message }) = Told::read(headers, body).await else {
            return reply::empty(StatusCode::BAD_REQUEST);
        };
        self.sessions.send_to_caller(&principal, &server, &message);
        if let Some(uri) = updated_uri(&message) {
            self.sessions.notify_updated(&principal, &server, &uri);
        }
        reply::empty(StatusCode::ACCEPTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_arrives_as_it_was_told() {
        let message = Bytes::from_static(
            br#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#,
        );
        assert_eq!(updated_uri(&message).as_deref(), Some("a:b"));
        let told = Told { principal: [7; 32], server: "files".parse().unwrap(), message };
        let (parts, body) = told.request(NodeId(9)).unwrap().into_parts();
        assert_eq!(header(&parts.headers, RELAY_AS.as_str()), Some("told"));
        assert_eq!(Told::read(&parts.headers, body).await, Some(told));
    }

    #[tokio::test]
    async fn messages_that_are_too_long_or_without_recipient_are_refused() {
        let told = |length: usize| Told {
            principal: [7; 32],
            server: "files".parse().unwrap(),
            message: vec![b' '; length].into(),
        };
        let read = async |told: Told, wrong: Option<HeaderName>| {
            let (mut parts, body) = told.request(NodeId(9)).unwrap().into_parts();
            if let Some(name) = wrong {
                parts.headers.insert(name, HeaderValue::from_static("a/b"));
            }
            Told::read(&parts.headers, body).await
        };
        assert!(read(told(MAX_MESSAGE_BYTES), None).await.is_some());
        assert!(read(told(MAX_MESSAGE_BYTES + 1), None).await.is_none());
        assert!(read(told(1), Some(TOLD_FOR)).await.is_none());
        assert!(read(told(1), Some(TOLD_BY)).await.is_none());
    }
}

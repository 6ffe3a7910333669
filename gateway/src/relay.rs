//! Forwards requests to the node that has to answer them because it holds the session or runs the
//! server's process for the caller. This node has verified the caller; the other one decides on the
//! request and records it.

use crate::cluster::Cluster;
use crate::flight::InFlight;
use crate::front::Identified;
use crate::greeting::Era;
use crate::mcp::carry::cancelled;
use crate::mcp::{Asked, Visit, fault};
use crate::node::Node;
use crate::peer::{RELAY_AS, RELAY_FOR, RELAY_TO, RelayFault, RelayKind, passport};
use crate::reply::{self, Reply};
use crate::server::GatewayServer;
use crate::sessions::SessionTicket;
use crate::{frame, front};
use bytes::Bytes;
use engine::reason::ReasonCode;
use engine::server::Unlinked;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST};
use http::header::{PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use settings::gateway::{Instance, Reach};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::NodeId;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use wire::envelope::{Envelope, Kind, Scanned, scan};

/// The largest non-stream response of another node. Server messages are smaller.
const MAX_ANSWER_BYTES: usize = 17 * 1024 * 1024;
/// How much longer than the call itself another node may take to start its response.
const SLACK: Duration = Duration::from_secs(70);
/// How long another node's stream may be silent. Nodes send comments more often than that.
const STREAM_PATIENCE: Duration = Duration::from_secs(60);
/// How long notifying another node of a cancelled call may take.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);
/// The JSON-RPC error code for an unreachable server.
const UNREACHABLE: i64 = -32011;

const NODE_LOST: &str =
    "○ holdpoint — the node that had this call was lost, so its outcome is not known here";

/// Headers that are not forwarded because they concern the connection. The credential is forwarded:
/// the owner may have to exchange it, and searches messages to servers for it. The caller's
/// identity comes from this node's verification.
const NOT_FORWARDED: [HeaderName; 12] = [
    PROXY_AUTHORIZATION,
    COOKIE,
    HOST,
    CONNECTION,
    CONTENT_LENGTH,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    RELAY_TO,
    RELAY_FOR,
    RELAY_AS,
];

/// Marks a request that another node forwarded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relayed(pub(crate) RelayKind);

/// How a request reached this node.
#[derive(Debug, Clone)]
pub(crate) enum Arrival {
    /// There are no other nodes.
    Alone,
    /// Directly from its caller.
    Direct(Arc<Arrived>),
    /// From a node that does not own its session.
    BySession(Arc<Arrived>),
    /// From a node that does not own the process that it needs. It must not be forwarded again.
    Final,
}

/// The parts needed to forward a request.
#[derive(Debug)]
pub(crate) struct Arrived {
    path: String,
    headers: HeaderMap,
    passport: HeaderValue,
}

impl Arrived {
    fn request(
        &self,
        (to, kind): (NodeId, RelayKind),
        method: Method,
        body: Bytes,
    ) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = format!("https://node.holdpoint.invalid{}", self.path).parse().ok()?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.insert(RELAY_TO, HeaderValue::from_str(&to.to_string()).ok()?);
        headers.insert(RELAY_AS, HeaderValue::from_static(kind.as_str()));
        headers.insert(RELAY_FOR, self.passport.clone());
        Some(request)
    }
}

/// A call that another node is processing.
struct RelayedCall {
    node: Arc<Node>,
    to: NodeId,
    arrived: Arc<Arrived>,
    /// The raw id of the request.
    id: Vec<u8>,
    /// Notified when the client cancels the call, which the other node has to be told.
    guard: InFlight,
}

impl RelayedCall {
    /// Returns once the client has cancelled the call and the other node was notified.
    async fn cancelled(&self) {
        self.guard.cancelled().await;
        let id = String::from_utf8_lossy(&self.id);
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        let to = (self.to, RelayKind::Instance);
        let told = self.node.send(to, &self.arrived, Method::POST, message.into());
        let _ = tokio::time::timeout(CANCEL_PATIENCE, told).await;
    }
}

impl Node {
    /// How a request arrived, with the parts needed to forward it.
    pub(crate) fn arrival(&self, parts: &Parts, identified: &Identified) -> Arrival {
        if self.cluster.is_none() {
            return Arrival::Alone;
        }
        let relayed = parts.extensions.get::<Relayed>().map(|Relayed(kind)| *kind);
        match relayed {
            Some(
                RelayKind::Instance | RelayKind::Receipts | RelayKind::Approvals | RelayKind::Told,
            ) => return Arrival::Final,
            Some(RelayKind::Session) | None => {}
        }
        let Some(passport) = passport::write(&identified.found) else { return Arrival::Final };
        let mut headers = parts.headers.clone();
        for name in NOT_FORWARDED {
            headers.remove(name);
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let arrived = Arc::new(Arrived { path, headers, passport });
        match relayed {
            None => Arrival::Direct(arrived),
            Some(_) => Arrival::BySession(arrived),
        }
    }

    /// The other node that holds the session of a request. INVARIANT: a request that was forwarded
    /// is not forwarded again for its session.
    pub(crate) fn session_owner(&self, visit: &Visit, headers: &HeaderMap) -> Option<NodeId> {
        let cluster = self.cluster.as_ref()?;
        if visit.era != Era::Sessions || !matches!(visit.arrival, Arrival::Direct(_)) {
            return None;
        }
        let id = front::header(headers, front::SESSION_ID)?;
        let sealer = &self.shared.sealer;
        let last = visit.last_id.as_deref();
        let session = self.sessions.check(sealer, last, id, &visit.principal_id, &visit.scope);
        let session = session.ok()?;
        (session.node != cluster.id()).then_some(session.node)
    }

    /// Whether this process has the state of the session, or does not need it, and the session was
    /// not revoked.
    pub(crate) fn has_session(&self, visit: &Visit, id: &str, session: &SessionTicket) -> bool {
        let revoked = self.who.load().revoked();
        if revoked.ends_session(id, session.began, visit.caller.identity()) {
            return false;
        }
        match (&self.cluster, &visit.arrival) {
            (None, _) | (_, Arrival::Final) => true,
            (Some(cluster), _) => session.node == cluster.id(),
        }
    }

    /// Forwards a request to the owner of its session.
    pub(crate) async fn relay_session<B>(
        self: &Arc<Self>,
        owner: NodeId,
        visit: &Visit,
        parts: &Parts,
        body: B,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Arrival::Direct(arrived) = &visit.arrival else {
            return reply::empty(StatusCode::MISDIRECTED_REQUEST);
        };
        let body = match parts.method {
            Method::POST => match self.read_body(&parts.headers, body).await {
                Ok(body) => body,
                Err(refusal) => {
                    self.note_refused(visit, ReasonCode::PayloadTooLarge, 0);
                    return *refusal;
                }
            },
            _ => Bytes::new(),
        };
        let to = (owner, RelayKind::Session);
        match self.send(to, arrived, parts.method.clone(), body.clone()).await {
            Ok((answer, place)) => {
                let id = scanned_id(&body);
                relayed(answer, place, id, None).await
            }
            Err(fault) => self.refuse_session(visit, parts, &body, fault),
        }
    }

    /// Answers a request whose session's node did not respond.
    fn refuse_session(&self, visit: &Visit, parts: &Parts, body: &[u8], lost: RelayFault) -> Reply {
        let scanned = scan(body);
        let asked = match &scanned {
            Ok(Scanned::Message(
                envelope @ Envelope { kind: Kind::Request { id, method }, .. },
            )) => Some(Asked { envelope, id: id.raw(), method }),
            _ => None,
        };
        match asked {
            Some(asked) => drop(self.record_refusal(visit, asked, ReasonCode::UpstreamUnreachable)),
            None => self.note_refused(visit, ReasonCode::UpstreamUnreachable, body.len()),
        }
        match (lost, asked) {
            (RelayFault::Gone, _) => {
                let words = "the node that had this session is gone: begin again with `initialize`";
                fault(StatusCode::NOT_FOUND, -32001, words)
            }
            (_, Some(asked)) => {
                let words = format!("○ holdpoint — the session's node did not answer: {lost}");
                reply::json(StatusCode::OK, [frame::error(asked.id, UNREACHABLE, &words).into()])
            }
            (_, None) if parts.method == Method::POST => {
                fault(StatusCode::SERVICE_UNAVAILABLE, UNREACHABLE, &lost.to_string())
            }
            (_, None) => reply::empty(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// Forwards a request to the node that runs the caller's process of a server. Returns `None` if
    /// that is this node, or if the server has no process per caller.
    pub(crate) async fn answer_elsewhere(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        server: &Arc<GatewayServer>,
        unlinked: &Unlinked<'_>,
    ) -> Option<Reply> {
        let cluster = self.cluster.as_ref()?;
        if !has_one_owner(visit, server) {
            return None;
        }
        let refused = |refusal: Vec<u8>| Some(reply::json(StatusCode::OK, [refusal.into()]));
        let mut lost = RelayFault::Gone;
        // If a node turns out to be gone, or not to run the process, look up the owner once more.
        for _ in 0..2 {
            let owner = match cluster.known_owner(server.id(), &visit.principal_id) {
                Some(owner) => owner,
                None => {
                    // INVARIANT: a caller that may not make the call claims nothing.
                    if let Some(refusal) = server.engine.refuse_unpermitted(unlinked) {
                        return refused(refusal);
                    }
                    match Box::pin(find_owner(cluster, visit, server)).await {
                        Some(owner) => owner,
                        None => {
                            let words = "○ holdpoint — which node runs the server cannot be found out: the store does not answer";
                            return refused(server.engine.refuse_unreached(unlinked, words));
                        }
                    }
                }
            };
            if owner == cluster.id() {
                return None;
            }
            let (Arrival::Direct(arrived) | Arrival::BySession(arrived)) = &visit.arrival else {
                return Some(reply::empty(StatusCode::MISDIRECTED_REQUEST));
            };
            match Box::pin(self.relay_call(owner, visit, asked, arrived)).await {
                Ok(reply) => return Some(reply),
                Err(RelayFault::Gone) => {
                    cluster.forget_owner(server.id(), &visit.principal_id);
                }
                Err(fault) => {
                    lost = fault;
                    break;
                }
            }
        }
        let words = format!("○ holdpoint — the node that runs the server did not answer: {lost}");
        refused(server.engine.refuse_unreached(unlinked, &words))
    }

    async fn relay_call(
        self: &Arc<Self>,
        to: NodeId,
        visit: &Visit,
        asked: Asked<'_>,
        arrived: &Arc<Arrived>,
    ) -> Result<Reply, RelayFault> {
        let mut arrived = arrived.clone();
        if !visit.takes_events {
            // A message in a batch cannot be answered with a stream, whatever the batch request
            // accepts.
            let mut headers = arrived.headers.clone();
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let (path, passport) = (arrived.path.clone(), arrived.passport.clone());
            arrived = Arc::new(Arrived { path, headers, passport });
        }
        let (guard, id) = (self.in_flight(visit, asked.id), asked.id.to_vec());
        let call = RelayedCall { node: self.clone(), to, arrived: arrived.clone(), id, guard };
        let message = Bytes::copy_from_slice(asked.envelope.raw);
        let to = (to, RelayKind::Instance);
        let sending = self.send(to, &arrived, Method::POST, message);
        let (answer, place) = tokio::select! {
            sent = sending => sent?,
            () = call.cancelled() => return Ok(cancelled(asked.id)),
        };
        Ok(relayed(answer, place, Some(asked.id.to_vec()), Some(call)).await)
    }

    /// Sends a request to another node. Returns the head of its response.
    pub(crate) async fn send(
        &self,
        to: (NodeId, RelayKind),
        arrived: &Arrived,
        method: Method,
        body: Bytes,
    ) -> Result<(Response<Incoming>, OwnedSemaphorePermit), RelayFault> {
        let cluster = self.cluster.as_ref().ok_or(RelayFault::Gone)?;
        let address = cluster.find(to.0).await.ok_or(RelayFault::Gone)?;
        let request = arrived.request(to, method, body).ok_or(RelayFault::Unreached)?;
        let limits = &self.shared.settings().front.limits;
        let patience = Duration::from_secs(limits.call_max_seconds) + SLACK;
        let sent = cluster.client.send((to.0, &address), request, patience).await?;
        cluster.relayed.fetch_add(1, Ordering::Relaxed);
        match sent.0.status() {
            StatusCode::MISDIRECTED_REQUEST => Err(RelayFault::Gone),
            _ => Ok(sent),
        }
    }
}

/// Whether the server has a process per caller, which a single node runs.
pub(crate) fn has_one_owner(visit: &Visit, server: &GatewayServer) -> bool {
    match &server.settings.reach {
        Reach::Url(_) => false,
        Reach::Command(command) => match command.instance {
            Instance::Shared => false,
            Instance::Principal => true,
            // A process per session runs on the session's node.
            Instance::Session => visit.session.is_none(),
        },
    }
}

async fn find_owner(
    cluster: &Arc<Cluster>,
    visit: &Visit,
    server: &GatewayServer,
) -> Option<NodeId> {
    let (cluster, id, principal) = (cluster.clone(), server.id().clone(), visit.principal_id);
    let found = tokio::task::spawn_blocking(move || cluster.owner(&id, &principal));
    found.await.ok()?.ok()
}

/// The raw id of the request in a body.
fn scanned_id(body: &[u8]) -> Option<Vec<u8>> {
    match scan(body) {
        Ok(Scanned::Message(Envelope { kind: Kind::Request { id, .. }, .. })) => {
            Some(id.raw().to_vec())
        }
        _ => None,
    }
}

/// Converts another node's response into that for the caller.
async fn relayed(
    answer: Response<Incoming>,
    place: OwnedSemaphorePermit,
    id: Option<Vec<u8>>,
    call: Option<RelayedCall>,
) -> Reply {
    let (parts, body) = answer.into_parts();
    let media = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if media.is_some_and(|media| media.starts_with(b"text/event-stream")) {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(pass_on(body, sender, id, call, place));
        return reply::events(receiver);
    }
    let collected = Limited::new(body, MAX_ANSWER_BYTES).collect();
    match tokio::time::timeout(STREAM_PATIENCE, collected).await {
        Ok(Ok(collected)) => {
            let body = collected.to_bytes();
            let mut reply = match body.is_empty() {
                true => reply::empty(parts.status),
                false => reply::json(parts.status, [body]),
            };
            if let Some(media) = parts.headers.get(CONTENT_TYPE) {
                reply.headers_mut().insert(CONTENT_TYPE, media.clone());
            }
            reply
        }
        Ok(Err(_)) | Err(_) => match &id {
            Some(id) => {
                let lost = frame::error(id, UNREACHABLE, NODE_LOST);
                reply::json(StatusCode::OK, [lost.into()])
            }
            None => reply::empty(StatusCode::BAD_GATEWAY),
        },
    }
}

/// Forwards another node's stream until it ends, the client disconnects, or the call is cancelled.
async fn pass_on(
    mut body: Incoming,
    sender: mpsc::Sender<Bytes>,
    id: Option<Vec<u8>>,
    call: Option<RelayedCall>,
    _place: OwnedSemaphorePermit,
) {
    let cancelled = async {
        match &call {
            Some(call) => call.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(cancelled);
    loop {
        let frame = tokio::select! {
            frame = tokio::time::timeout(STREAM_PATIENCE, body.frame()) => frame,
            () = sender.closed() => return,
            () = &mut cancelled => return,
        };
        match frame {
            Ok(None) => return,
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if sender.send(data).await.is_err() {
                    return;
                }
            }
            Ok(Some(Err(_))) | Err(_) => {
                if let Some(id) = &id {
                    let lost = frame::error(id, UNREACHABLE, NODE_LOST);
                    let _ = sender.send(reply::event(&[&lost])).await;
                }
                return;
            }
        }
    }
}

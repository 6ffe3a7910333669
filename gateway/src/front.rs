//! The HTTP front: routes, identity before anything else, and bodies within their limits.

mod eager;
mod identify;
mod listen;
mod quiet;
mod tls;

use crate::catalog::Scope;
use crate::frame;
use crate::front_checks::FrontNames;
use crate::greeting::{Era, STATELESS};
use crate::identity::{Authenticated, Resource};
use crate::mcp::forward::TRACE_HEADERS;
use crate::mcp::{self, Visit, fault};
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::sessions::{LastId, NoSession, SessionTicket, StreamFilter};
use crate::sign_in::SignInRoute;
use bytes::Bytes;
use engine::lease::Lease;
use engine::principal::Principal;
use engine::reason::ReasonCode;
use engine::recorder::now;
use http::header::{ACCEPT, AsHeaderName, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use policy::Caller;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use wire::envelope::scan;

pub(crate) use listen::Peer;
pub use listen::{serve, serve_admin, serve_metrics};
pub(crate) use tls::TlsFront;

/// The listening address of the gateway that a request came in at.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    /// `listen`.
    Main,
    /// `admin_listen`, with the names that are valid there.
    Admin(Arc<FrontNames>),
    /// `metrics_listen`.
    Metrics,
}

impl Door {
    /// Whether connections use plain HTTP even if `tls` is configured.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Door::Main | Door::Admin(_) => false,
            Door::Metrics => true,
        }
    }
}

/// Looked up in every request, so parse the names only once.
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// The route of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Mcp {
        scope: Scope,
        org: Option<String>,
    },
    /// The metadata of the resource at this path.
    ResourceMetadata(String),
    /// A sign-in with a browser, or by a client.
    SignIn(SignInRoute),
    Admin(String),
    Health,
    Ready,
    Metrics,
}

impl Route {
    pub(crate) fn of(path: &str) -> Option<Route> {
        if path == "/mcp" {
            return Some(Route::Mcp { scope: Scope::All, org: None });
        }
        if let Some(rest) = path.strip_prefix("/.well-known/oauth-protected-resource") {
            let is_path = rest.is_empty() || rest.starts_with('/');
            return is_path.then(|| Route::ResourceMetadata(rest.to_owned()));
        }
        if let Some(route) = SignInRoute::of(path) {
            return Some(Route::SignIn(route));
        }
        if let Some(rest) = path.strip_prefix("/admin/v1/") {
            return Some(Route::Admin(rest.to_owned()));
        }
        match path {
            "/healthz" => return Some(Route::Health),
            "/readyz" => return Some(Route::Ready),
            "/metrics" => return Some(Route::Metrics),
            _ => {}
        }
        let (org, path) = match path.strip_prefix("/t/") {
            Some(rest) => {
                let (org, rest) = rest.split_at(rest.find('/')?);
                (Some(org.to_owned()).filter(|org| !org.is_empty())?.into(), rest)
            }
            None => (None, path),
        };
        let scope = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["", "mcp"] => Scope::All,
            ["", "servers", id, "mcp"] => Scope::Server(id.parse().ok()?),
            ["", "sets", id, "mcp"] => Scope::Set(id.parse().ok()?),
            _ => return None,
        };
        Some(Route::Mcp { scope, org })
    }
}

/// A caller with a verified identity, and how long it stays valid.
#[derive(Debug, Clone)]
pub(crate) struct Identified {
    pub(crate) found: Authenticated,
    pub(crate) expires_in: Option<Duration>,
    /// Of the connection that the request came over, where it came to this node.
    pub(crate) last_id: Option<Arc<LastId>>,
}

impl Node {
    /// Answers one HTTP request.
    pub(crate) async fn respond<B>(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: http::Request<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let begun = Instant::now();
        let (mut parts, body) = request.into_parts();
        let door = &peer.door;
        if let Err(refusal) = self.check_names(&parts, &peer) {
            return *refusal;
        }
        let route = Route::of(parts.uri.path()).filter(|route| self.is_behind(door, route));
        if let Some(Route::SignIn(_) | Route::Admin(_)) = route {
            parts.extensions.insert(peer.clone());
        }
        match route {
            Some(Route::Mcp { scope, org }) => {
                let reply =
                    self.respond_mcp(&peer, &parts, body, scope, org.as_deref(), begun).await;
                reply::with_headers_in(reply, parts.headers)
            }
            Some(Route::ResourceMetadata(path)) => self.resource_metadata(&path),
            Some(Route::Health) => reply::empty(StatusCode::OK),
            Some(Route::Ready) => self.ready(),
            // Boxed: rare routes must not enlarge the future of every call.
            Some(Route::SignIn(route)) => Box::pin(self.respond_sign_in(route, parts, body)).await,
            Some(Route::Admin(_)) => Box::pin(self.respond_admin(parts, body)).await,
            Some(Route::Metrics) => Box::pin(self.respond_metrics(&parts, &peer)).await,
            None => reply::empty(StatusCode::NOT_FOUND),
        }
    }

    /// Whether a route is served at an address: a route with its own address is only served there.
    fn is_behind(&self, door: &Door, route: &Route) -> bool {
        let front = &self.shared.glance().front;
        match (door, route) {
            (_, Route::Health | Route::Ready) => true,
            (Door::Main, Route::Admin(_)) => front.admin_listen.is_none(),
            (Door::Main, Route::Metrics) => front.metrics_listen.is_none(),
            (Door::Main, Route::Mcp { .. } | Route::ResourceMetadata(_) | Route::SignIn(_)) => true,
            (Door::Admin(_), Route::Admin(_) | Route::ResourceMetadata(_)) => true,
            (Door::Admin(_), Route::Mcp { .. } | Route::SignIn(_) | Route::Metrics) => false,
            (Door::Metrics, Route::Metrics) => true,
            (Door::Metrics, _) => false,
        }
    }

    /// The gateway's metrics. They reveal which servers exist, so remote callers need permission.
    async fn respond_metrics(self: &Arc<Self>, parts: &Parts, peer: &Peer) -> Reply {
        let is_open = matches!(peer.door, Door::Metrics)
            || self.shared.settings().front.listen.ip().is_loopback();
        if !is_open {
            match self.identify(parts, Some(peer), Resource::Admin).await {
                Ok(identified) if self.may_audit(&identified.found.caller) => {}
                Ok(_) => return reply::empty(StatusCode::FORBIDDEN),
                Err(refusal) => return *refusal,
            }
        }
        match parts.method {
            Method::GET => self.metrics(),
            _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// Whether calls can be decided: the store answers, or the lease still lets calls proceed
    /// without it.
    fn ready(&self) -> Reply {
        let lease = self.shared.lease.as_ref();
        match (lease.is_none_or(|lease| lease.check().is_ok()), lease.is_none_or(Lease::holds)) {
            (true, true) => match self.incident_words() {
                None => reply::empty(StatusCode::OK),
                Some(words) => reply::text(StatusCode::OK, words),
            },
            (true, false) => {
                let sentence = "the store does not answer; calls go on as `store_loss` says, and decisions of other nodes do not count yet";
                reply::text(StatusCode::OK, sentence.to_owned())
            }
            (false, _) => {
                let sentence = "the store does not answer, so calls are refused";
                reply::text(StatusCode::SERVICE_UNAVAILABLE, sentence.to_owned())
            }
        }
    }

    async fn respond_mcp<B>(
        self: &Arc<Self>,
        peer: &Peer,
        parts: &Parts,
        body: B,
        scope: Scope,
        org: Option<&str>,
        begun: Instant,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let resource = Resource::Mcp { path: parts.uri.path() };
        let identified = match self.identify(parts, Some(peer), resource).await {
            Ok(identified) => identified,
            Err(refusal) => return *refusal,
        };
        self.respond_identified(identified, parts, body, scope, org, begun).await
    }

    /// Answers a request whose caller was identified, here or by another node.
    pub(crate) async fn respond_identified<B>(
        self: &Arc<Self>,
        identified: Identified,
        parts: &Parts,
        body: B,
        scope: Scope,
        org: Option<&str>,
        begun: Instant,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let reply = self.respond_to(&identified, parts, body, scope, org, begun).await;
        reply::until(reply, || self.identity_ends(identified))
    }

    async fn respond_to<B>(
        self: &Arc<Self>,
        identified: &Identified,
        parts: &Parts,
        body: B,
        scope: Scope,
        org: Option<&str>,
        begun: Instant,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Identified { found: Authenticated { caller, .. }, expires_in, last_id } = identified;
        if !self.has_scope(&scope, caller)
            || org.is_some_and(|org| caller.identity().org.as_deref() != Some(org))
        {
            return reply::empty(StatusCode::NOT_FOUND);
        }
        let era = match header(&parts.headers, PROTOCOL_VERSION) {
            Some(STATELESS) => Era::Stateless,
            _ => Era::Sessions,
        };
        let principal = Arc::new(Principal::verified(caller.clone(), now()));
        // Boxed: it is passed through several functions, each of which would keep a copy in the
        // future of the call.
        let mut visit = Box::new(Visit {
            principal_id: caller.principal(),
            inbound: self.inbound(identified, &principal, &parts.headers),
            caller: caller.clone(),
            principal,
            scope,
            era,
            session: None,
            askable: Vec::new(),
            parameters: parameters(&parts.headers, era),
            asks_for_logs: false,
            takes_tasks: false,
            last_id: last_id.clone(),
            takes_events: accepts(&parts.headers, "text/event-stream"),
            trace_id: trace_id(&parts.headers),
            forwardable: self.forwardable(&parts.headers),
            span: None,
            expires: *expires_in,
            arrival: self.arrival(parts, identified),
            begun,
        });
        if let Some(owner) = self.session_owner(&visit, &parts.headers) {
            return Box::pin(self.relay_session(owner, &visit, parts, body)).await;
        }
        match (&parts.method, era) {
            (&Method::POST, _) => {
                self.trace(&mut visit, parts);
                self.post(visit, parts, body).await
            }
            (&Method::GET | &Method::DELETE, Era::Sessions) => {
                let session = match self.session_of(&visit, &parts.headers) {
                    Ok(Some(session)) => session,
                    Ok(None) => {
                        let words = "the session's id is missing";
                        return fault(StatusCode::BAD_REQUEST, mcp::INVALID_REQUEST, words);
                    }
                    Err(refusal) => return *refusal,
                };
                if parts.method == Method::DELETE {
                    self.sessions.end(session.number);
                    self.watches.end(session.number);
                    return reply::empty(StatusCode::NO_CONTENT);
                }
                visit.session = Some(session);
                match header(&parts.headers, LAST_EVENT_ID) {
                    Some(last) if visit.takes_events => self.resume_stream(&visit, last),
                    Some(_) | None => self.open_stream(&visit),
                }
            }
            _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// Starts the spans of a request, if spans are exported.
    fn trace(&self, visit: &mut Visit, parts: &Parts) {
        let Some(tracer) = &self.tracer else { return };
        let Some(span) = tracer.begin(&parts.headers, visit.begun) else { return };
        span.join(&mut visit.forwardable);
        visit.trace_id = span.trace_id();
        visit.span = Some(Arc::new(span));
    }

    /// The request headers that may be forwarded to a server.
    fn forwardable(&self, headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
        let catalog = self.catalog();
        if catalog.forward_headers.is_empty()
            && !TRACE_HEADERS.iter().any(|name| headers.contains_key(name))
        {
            return Vec::new();
        }
        let is_named = |name: &HeaderName| {
            TRACE_HEADERS.contains(name) || catalog.forward_headers.contains(name.as_str())
        };
        let named = headers.iter().filter(|(name, _)| is_named(name));
        named.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether the path exists for this caller. A server or set that it may not use looks like one
    /// that does not exist.
    fn has_scope(&self, scope: &Scope, caller: &Caller) -> bool {
        match scope {
            Scope::All => true,
            Scope::Server(_) | Scope::Set(_) => {
                self.catalog().may_find(scope, caller, &self.shared.authorizer)
            }
        }
    }

    async fn post<B>(self: &Arc<Self>, mut visit: Box<Visit>, parts: &Parts, body: B) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !is_json(&parts.headers) {
            let words = "the body has to be `application/json`";
            self.note_refused(&visit, ReasonCode::BadFrame, 0);
            return fault(StatusCode::UNSUPPORTED_MEDIA_TYPE, mcp::INVALID_REQUEST, words);
        }
        if !accepts(&parts.headers, "application/json") {
            let words = "the client has to accept `application/json`";
            self.note_refused(&visit, ReasonCode::BadFrame, 0);
            return fault(StatusCode::NOT_ACCEPTABLE, mcp::INVALID_REQUEST, words);
        }
        let body = match self.read_body(&parts.headers, body).await {
            Ok(body) => body,
            Err(refusal) => {
                self.note_refused(&visit, ReasonCode::PayloadTooLarge, 0);
                return *refusal;
            }
        };
        // Scan the body once: everything below works on the same message.
        let scanned = scan(&body);
        let named = header(&parts.headers, PROTOCOL_VERSION);
        if let Some(version) = mcp::version_in_body(&scanned)
            && named != Some(&version)
        {
            // The body decides. A header that is missing or differs is refused.
            let words = "`MCP-Protocol-Version` does not agree with `_meta` of the body";
            let refusal = frame::error(&mcp::request_id(&scanned), mcp::HEADER_MISMATCH, words);
            self.record_early(&visit, &scanned, body.len());
            return reply::json(StatusCode::BAD_REQUEST, [refusal.into()]);
        }
        if let Some(version) = named
            && version != STATELESS
            && !mcp::is_known_with_sessions(version)
        {
            self.record_early(&visit, &scanned, body.len());
            return mcp::unsupported(&mcp::request_id(&scanned), version);
        }
        if visit.era == Era::Stateless {
            if let Some(refusal) = mcp::check_headers(&parts.headers, &scanned) {
                self.record_early(&visit, &scanned, body.len());
                return refusal;
            }
            return self.answer(visit, body.len(), scanned).await;
        }
        match self.session_of(&visit, &parts.headers) {
            Ok(session) => visit.session = session,
            Err(refusal) => {
                self.record_early(&visit, &scanned, body.len());
                return *refusal;
            }
        }
        if visit.session.is_none() && !mcp::is_initialize(&scanned) {
            let words = "the session's id is missing: begin with `initialize`";
            self.record_early(&visit, &scanned, body.len());
            return fault(StatusCode::BAD_REQUEST, mcp::INVALID_REQUEST, words);
        }
        self.answer(visit, body.len(), scanned).await
    }

    fn session_of(
        &self,
        visit: &Visit,
        headers: &HeaderMap,
    ) -> Result<Option<SessionTicket>, Box<Reply>> {
        let Some(id) = header(headers, SESSION_ID) else { return Ok(None) };
        let sealer = &self.shared.sealer;
        let last = visit.last_id.as_deref();
        match self.sessions.check(sealer, last, id, &visit.principal_id, &visit.scope) {
            Ok(session) if self.has_session(visit, id, &session) => Ok(Some(session)),
            Ok(_) | Err(NoSession::Unknown | NoSession::Expired | NoSession::Ended) => {
                let words = "there is no such session: begin again with `initialize`";
                Err(Box::new(fault(StatusCode::NOT_FOUND, -32001, words)))
            }
        }
    }

    /// Opens the stream on which a session receives unsolicited messages.
    fn open_stream(self: &Arc<Self>, visit: &Visit) -> Reply {
        if !visit.takes_events {
            return reply::empty(StatusCode::NOT_ACCEPTABLE);
        }
        let session = visit.session.as_ref().map(|session| session.number);
        let filter = StreamFilter::default();
        match self.sessions.listen(
            (&visit.principal_id, &visit.caller),
            session,
            &visit.scope,
            filter,
        ) {
            Some((sender, receiver)) => {
                let _ = sender.try_send(reply::KEEP_ALIVE);
                self.keep_alive(&sender, visit);
                reply::events(receiver)
            }
            None => reply::empty(StatusCode::TOO_MANY_REQUESTS),
        }
    }

    pub(crate) async fn read_body<B>(
        &self,
        headers: &HeaderMap,
        body: B,
    ) -> Result<Bytes, Box<Reply>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let limit = self.shared.glance().front.limits.body_bytes;
        let too_large = || {
            let words = format!("the body is larger than {limit} bytes");
            fault(StatusCode::PAYLOAD_TOO_LARGE, mcp::INVALID_REQUEST, &words)
        };
        let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced = announced.and_then(|value| value.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(Box::new(too_large()));
        }
        let mut collected = pin!(Limited::new(body, limit).collect());
        // A body that arrived with its headers is ready when polled a second time: hyper reads it
        // in between.
        let mut is_asked = false;
        let at_once = poll_fn(|context| match collected.as_mut().poll(context) {
            Poll::Ready(collected) => Poll::Ready(Some(collected)),
            Poll::Pending if is_asked => Poll::Ready(None),
            Poll::Pending => {
                is_asked = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        });
        let collected = match at_once.await {
            Some(collected) => Ok(collected),
            None => tokio::time::timeout(BODY_PATIENCE, collected).await,
        };
        match collected {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Box::new(too_large()))
            }
            Ok(Err(_)) => Err(Box::new(reply::empty(StatusCode::BAD_REQUEST))),
            Err(_) => Err(Box::new(reply::empty(StatusCode::REQUEST_TIMEOUT))),
        }
    }
}

/// The value of a header; `None` if it is given twice.
pub(crate) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The headers into which arguments are copied.
fn parameters(headers: &HeaderMap, era: Era) -> Vec<(HeaderName, HeaderValue)> {
    if era == Era::Sessions {
        return Vec::new();
    }
    let all = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-param-"));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let mut parts = value.split(';').map(str::trim);
    let is_type = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    is_type
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

/// The `Accept` value that MCP requires, in its most common spelling.
const BOTH_MEDIA: &[u8] = b"application/json, text/event-stream";

fn accepts(headers: &HeaderMap, media: &str) -> bool {
    if headers.get(ACCEPT).is_some_and(|value| value.as_bytes() == BOTH_MEDIA) {
        return matches!(media, "application/json" | "text/event-stream");
    }
    let mut values =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if values.peek().is_none() {
        return true;
    }
    let kind = media.split('/').next().unwrap_or_default();
    values.flat_map(|value| value.split(',')).any(|accepted| {
        let accepted = accepted.split(';').next().unwrap_or_default().trim();
        accepted.eq_ignore_ascii_case(media)
            || accepted == "*/*"
            || accepted
                .strip_suffix("/*")
                .is_some_and(|accepted| accepted.eq_ignore_ascii_case(kind))
    })
}

/// The trace id in a W3C `traceparent` header.
pub(crate) fn trace_id(headers: &HeaderMap) -> Option<String> {
    let parent = header(headers, TRACEPARENT)?;
    let mut parts = parent.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_valid = is_hex(version, 2) && version != "ff" && is_hex(trace, 32);
    (is_valid && trace.bytes().any(|byte| byte != b'0')).then(|| trace.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[(&'static str, &str)]) -> HeaderMap {
        values.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).fold(
            HeaderMap::new(),
            |mut all, (name, value): (http::HeaderName, http::HeaderValue)| {
                all.append(name, value);
                all
            },
        )
    }

    #[test]
    fn a_path_leads_to_one_place() {
        let mcp = |scope| Some(Route::Mcp { scope, org: None });
        assert_eq!(Route::of("/mcp"), mcp(Scope::All));
        assert_eq!(Route::of("/servers/files/mcp"), mcp(Scope::Server("files".parse().unwrap())));
        assert_eq!(Route::of("/sets/support/mcp"), mcp(Scope::Set("support".parse().unwrap())));
        let tenant = Route::Mcp { scope: Scope::All, org: Some("acme".to_owned()) };
        assert_eq!(Route::of("/t/acme/mcp"), Some(tenant));
        for path in [
            "/mcp/",
            "/MCP",
            "/servers//mcp",
            "/servers/a__b/mcp",
            "/t//mcp",
            "/t/acme",
            "/",
            "//mcp",
        ] {
            assert_eq!(Route::of(path), None, "{path}");
        }
        assert_eq!(Route::of("/admin/v1/servers"), Some(Route::Admin("servers".to_owned())));
    }

    #[test]
    fn only_json_is_read() {
        let is = |value: &str| is_json(&headers(&[("content-type", value)]));
        assert!(is("application/json") && is("Application/JSON; charset=utf-8"));
        assert!(is("application/json;charset=\"UTF-8\""));
        for value in ["text/plain", "application/json; charset=utf-16", "application/jsonp", ""] {
            assert!(!is(value), "{value}");
        }
        assert!(!is_json(&headers(&[])));
        let twice = [("content-type", "application/json"), ("content-type", "text/plain")];
        assert!(!is_json(&headers(&twice)));
    }

    #[test]
    fn what_a_client_accepts_is_read_with_its_wildcards() {
        let both = headers(&[("accept", "application/json, text/event-stream")]);
        assert!(accepts(&both, "application/json") && accepts(&both, "text/event-stream"));
        let json = headers(&[("accept", "application/*;q=0.5")]);
        assert!(accepts(&json, "application/json") && !accepts(&json, "text/event-stream"));
        assert!(accepts(&headers(&[]), "text/event-stream"));
    }

    #[test]
    fn a_trace_is_taken_from_a_valid_parent_only() {
        let of = |value: &str| trace_id(&headers(&[("traceparent", value)]));
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(of(&format!("00-{trace}-00f067aa0ba902b7-01")).as_deref(), Some(trace));
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-1-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-x-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-x-01",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}

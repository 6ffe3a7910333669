//! The link to one server: builds the requests of this session, and sends them over shared
//! connections.

use super::budget::Budget;
use super::failure::RemoteFailure;
use super::limits::{MAX_UNFINISHED_FRAMES, RemoteLimits};
use super::pool::Pool;
use super::{Outbound, names};
use crate::authorizer::{Authorizer, Credential, CredentialRefusal, Withheld};
use crate::error::{Awaited, ObserveError};
use crate::http::connect::{Live, Origin, Refreshed};
use crate::http::headers::{self, MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use crate::http::tls::TlsKey;
use crate::upstream::HttpEndpoint;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// How many times a refused credential is replaced for one request.
const MAX_RENEWALS: usize = 2;

pub(crate) type Post = Request<Full<Bytes>>;
type Answered = (Live, Response<Incoming>);

#[derive(Debug)]
pub(crate) struct Link {
    way: Arc<Way>,
    session: Mutex<Session>,
    /// The credential that this session's requests show, for as long as its owner keeps it.
    credential: Mutex<Weak<Credential>>,
}

/// What all sessions on one server share.
#[derive(Debug)]
pub(crate) struct Way {
    origin: Origin,
    pool: Pool,
    /// Of every request.
    headers: HeaderMap,
    /// Of every POST.
    post_headers: HeaderMap,
    path: Uri,
    /// The address without its query, as proofs name it.
    url: String,
    authorizer: Option<Arc<dyn Authorizer>>,
    pub(super) limits: RemoteLimits,
    pub(super) budget: Budget,
}

impl Deref for Link {
    type Target = Way;

    fn deref(&self) -> &Way {
        &self.way
    }
}

/// What `initialize` established.
#[derive(Debug)]
struct Session {
    /// `initialize` was answered, so the server is of that era.
    has_begun: bool,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The headers of a POST in it, put together once.
    post_headers: HeaderMap,
}

impl Session {
    fn new(
        way: &Way,
        has_begun: bool,
        id: Option<HeaderValue>,
        version: Option<HeaderValue>,
    ) -> Session {
        let mut post_headers = way.post_headers.clone();
        add_session(&mut post_headers, id.as_ref(), version.as_ref());
        Session { has_begun, id, version, post_headers }
    }
}

/// Says which session a request belongs to.
fn add_session(headers: &mut HeaderMap, id: Option<&HeaderValue>, version: Option<&HeaderValue>) {
    let values = [(SESSION_ID, id), (PROTOCOL_VERSION, version)];
    for (name, value) in values {
        value.map(|value| headers.insert(name, value.clone()));
    }
}

impl Link {
    /// Resolves the name and checks the addresses. Nothing is connected yet.
    pub(crate) async fn open(
        endpoint: &HttpEndpoint,
        tls: Option<TlsConnector>,
        key: TlsKey,
        limits: RemoteLimits,
        patience: Duration,
    ) -> Result<Link, ObserveError> {
        let (url, allow_private) = (&endpoint.url, endpoint.allow_private);
        let headers = headers::of_endpoint(endpoint)?;
        let mut post_headers = headers.clone();
        post_headers.insert(ACCEPT, headers::json_or_events());
        post_headers.insert(CONTENT_TYPE, headers::json());
        let origin = Origin::resolve(url, allow_private, tls, key, patience).await?;
        let way = Way {
            origin,
            pool: Pool::new(limits.idle_connections),
            headers,
            post_headers,
            path: headers::path_of(endpoint),
            url: endpoint.url.without_query().as_str().to_owned(),
            authorizer: endpoint.authorizer.clone(),
            budget: Budget::new(limits.frame_bytes.saturating_mul(MAX_UNFINISHED_FRAMES)),
            limits,
        };
        Ok(Link::on(Arc::new(way)))
    }

    /// Another session on the same server.
    pub(super) fn another(&self) -> Link {
        Link::on(self.way.clone())
    }

    fn on(way: Arc<Way>) -> Link {
        let session = Mutex::new(Session::new(&way, false, None, None));
        Link { way, session, credential: Mutex::default() }
    }

    /// From now on requests show this credential, until it is dropped.
    pub(super) fn present(&self, credential: &Arc<Credential>) {
        let mut shown = self.credential.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Arc::downgrade(credential);
    }

    /// Whether a message that carries a protocol version itself belongs to the stateless era.
    pub(super) fn is_stateless(&self, message: &Outbound) -> bool {
        message.protocol_version.is_some() && !self.session().has_begun
    }

    pub(super) fn has_begun(&self) -> bool {
        self.session().has_begun
    }

    /// The server has accepted `initialize`, and later messages belong to this session.
    pub(super) fn enter_session(&self, id: Option<HeaderValue>) {
        *self.session() = Session::new(&self.way, false, id, None);
    }

    /// The answer to `initialize` has arrived, with the version that it names.
    pub(super) fn begin(&self, version: Option<&str>) {
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        let mut session = self.session();
        *session = Session::new(&self.way, true, session.id.take(), version);
    }

    /// The POST that carries a message.
    pub(super) fn post(&self, message: &Outbound, body: Bytes) -> Post {
        let (is_initialize, is_stateless) = (is_initialize(message), self.is_stateless(message));
        let headers = match is_initialize || is_stateless {
            true => self.post_headers.clone(),
            false => self.session().post_headers.clone(),
        };
        let mut request = self.request(Method::POST, body, headers);
        let own = request.headers_mut();
        for (name, value) in &message.headers {
            // INVARIANT: the headers that the operator configured for the endpoint, above all
            // credentials, are not replaced.
            own.entry(name).or_insert_with(|| value.clone());
        }
        if is_stateless && !is_initialize {
            let version = message.protocol_version.as_deref();
            let method = message.method.as_deref();
            let values = [
                (PROTOCOL_VERSION, version.and_then(|version| HeaderValue::from_str(version).ok())),
                (MCP_METHOD, method.and_then(names::header_value)),
                (MCP_NAME, message.name.as_deref().and_then(names::header_value)),
            ];
            for (name, value) in values {
                value.map(|value| own.insert(name, value));
            }
            for header in &message.parameters {
                own.insert(header.name.clone(), header.value.clone());
            }
        }
        request
    }

    /// The GET that opens a stream, or resumes one after the event with this id.
    pub(super) fn get(&self, last_event_id: Option<&HeaderValue>) -> Post {
        let mut headers = self.session_headers(HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        self.request(Method::GET, Bytes::new(), headers)
    }

    /// The DELETE that ends the session, if there is one.
    pub(crate) fn delete(&self) -> Option<Post> {
        self.session().id.as_ref()?;
        let headers = self.session_headers(headers::json_or_events());
        Some(self.request(Method::DELETE, Bytes::new(), headers))
    }

    /// The headers of a request of this session that has no body.
    fn session_headers(&self, accept: HeaderValue) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, accept);
        let session = self.session();
        add_session(&mut headers, session.id.as_ref(), session.version.as_ref());
        headers
    }

    fn request(&self, method: Method, body: Bytes, headers: HeaderMap) -> Post {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        if let Some(credential) = self.shown() {
            let (name, value) = (credential.name().clone(), credential.value().clone());
            request.headers_mut().insert(name, value);
        }
        request
    }

    fn shown(&self) -> Option<Arc<Credential>> {
        self.credential.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Sends a request with the session's credential, waiting at most the idle timeout. If the
    /// server refuses the credential, the request was not carried out, so it is sent again with
    /// another one if there is one.
    pub(crate) async fn send(&self, request: Post) -> Result<Answered, RemoteFailure> {
        let Some(authorizer) = &self.authorizer else {
            return match self.shown() {
                Some(credential) if credential.prover().is_some() => {
                    Box::pin(self.send_proven(request, &credential)).await
                }
                _ => self.send_once(request).await,
            };
        };
        Box::pin(self.send_authorized(request, authorizer.as_ref())).await
    }

    async fn send_authorized(
        &self,
        request: Post,
        authorizer: &dyn Authorizer,
    ) -> Result<Answered, RemoteFailure> {
        let withheld = |Withheld { words }| RemoteFailure::Withheld { words };
        let mut credential = authorizer.obtain().await.map_err(withheld)?;
        for _ in 0..MAX_RENEWALS {
            let (live, response) = self.send_shown(request.clone(), credential.as_deref()).await?;
            let Some(refusal) = CredentialRefusal::of(response.status(), response.headers()) else {
                return Ok((live, response));
            };
            let renewed = authorizer.renew(credential.as_ref(), refusal).await.map_err(withheld)?;
            if renewed.is_none() {
                return Ok((live, response));
            }
            credential = renewed;
        }
        self.send_shown(request, credential.as_deref()).await
    }

    async fn send_shown(
        &self,
        request: Post,
        credential: Option<&Credential>,
    ) -> Result<Answered, RemoteFailure> {
        match credential {
            Some(credential) => self.send_proven(request, credential).await,
            None => self.send_once(request).await,
        }
    }

    /// Sends a request with a credential, and again if the server requires its nonce in the proof.
    async fn send_proven(
        &self,
        mut request: Post,
        credential: &Credential,
    ) -> Result<Answered, RemoteFailure> {
        request.headers_mut().insert(credential.name().clone(), credential.value().clone());
        let Some(prover) = credential.prover() else { return self.send_once(request).await };
        let mut again = Some(request.clone());
        let mut nonce = prover.nonce();
        loop {
            if let Some(proof) = prover.prove(request.method(), &self.url, nonce.as_deref()) {
                request.headers_mut().insert(DPOP, proof);
            }
            let (live, response) = self.send_once(request).await?;
            let told = response.headers().get(DPOP_NONCE);
            let told = told.and_then(|told| prover.take_nonce(told));
            // Compare with this proof's nonce: another request may have stored the server's nonce
            // in the meantime.
            let is_new = told.is_some() && told != nonce;
            match again.take() {
                Some(unproven) if is_new && response.status() == StatusCode::UNAUTHORIZED => {
                    (request, nonce) = (unproven, told);
                }
                _ => return Ok((live, response)),
            }
        }
    }

    /// Sends a request once. It is repeated over another connection only if no byte of it was
    /// written.
    async fn send_once(&self, mut request: Post) -> Result<Answered, RemoteFailure> {
        let after = self.limits.idle_timeout;
        loop {
            let (mut live, is_new) = match self.pool.take() {
                Some(live) => (live, false),
                // Boxed because most requests find a connection: the code that opens one would make
                // every future larger.
                None => (Box::pin(self.connect()).await.map_err(RemoteFailure::NotReached)?, true),
            };
            let Live { line, silence } = &mut live;
            match silence.within(after, line.send(request)).await {
                Some(Ok(response)) => return Ok((live, response)),
                Some(Err(mut error)) => match error.take_message().filter(|_| !is_new) {
                    Some(unsent) => request = unsent,
                    None => return Err(self.lost(error.into_error())),
                },
                None => return Err(RemoteFailure::Silent { after }),
            }
        }
    }

    /// Connects to a known address, or else to those that the name resolves to now.
    async fn connect(&self) -> Result<Live, ObserveError> {
        match self.origin.connect(Awaited::Connection).await {
            Err(error @ ObserveError::CannotConnect { .. }) => match self.origin.refresh().await? {
                Refreshed::Changed => self.origin.connect(Awaited::Connection).await,
                Refreshed::Same => Err(error),
            },
            outcome => outcome,
        }
    }

    /// Like [`Link::send`], with the time limit covering the wait for a credential too.
    pub(super) async fn ask(&self, request: Post) -> Result<Answered, RemoteFailure> {
        if self.authorizer.is_none() {
            return self.send(request).await;
        }
        let after = self.limits.idle_timeout;
        match timeout(after, self.send(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(RemoteFailure::Silent { after }),
        }
    }

    /// Closes idle connections.
    pub(super) fn close_idle(&self) {
        self.pool.close_old();
    }

    /// Keeps a connection whose response was read completely.
    pub(super) fn keep(&self, live: Live) {
        self.pool.keep(live);
    }

    pub(super) fn lost(&self, source: hyper::Error) -> RemoteFailure {
        RemoteFailure::Lost { host: self.origin.host().to_owned(), source }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn is_initialize(message: &Outbound) -> bool {
    message.id.is_some() && message.method.as_deref() == Some("initialize")
}

//! A streamable HTTP server as a client sees it: one POST a request, answered as JSON or as an event stream.

use crate::correlate::{self, Answer, Correlator, Heard};
use crate::error::{Awaited, ObserveError};
use crate::limits::{GOODBYE_TIMEOUT, MAX_SESSION_ID_BYTES, ObserveLimits};
use crate::message::{self, Incoming, Request};
use crate::revision::Era;
use crate::server_text::ServerText;
use crate::upstream::HttpEndpoint;
use ::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use ::http::header::{HOST, WWW_AUTHENTICATE};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use contract::json::Document;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming as IncomingBody};
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) mod address;
mod connect;
mod sse;
mod tls;

use connect::Origin;
use sse::{Event, EventParser};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Headers that the protocol sets, and that would change where a request ends or what is answered.
const OWN_HEADERS: [&str; 18] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What came back for a request.
#[derive(Debug)]
pub(crate) enum Asked {
    Answer(Answer),
    /// Nothing, until the deadline.
    Nothing,
    /// An HTTP status that says no, without a JSON-RPC error in its body.
    Status(StatusCode),
}

/// A server at an address that has been checked.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    origin: Origin,
    headers: HeaderMap,
    path: Uri,
    era: Option<Era>,
    session: Option<HeaderValue>,
    correlator: Correlator,
    frame_bytes: usize,
}

impl HttpConnection {
    /// Resolves the name and checks the addresses. Nothing is sent yet.
    pub(crate) async fn open(
        endpoint: &HttpEndpoint,
        limits: &ObserveLimits,
    ) -> Result<HttpConnection, ObserveError> {
        let tls = if endpoint.url.is_secure() { Some(tls::connector()?) } else { None };
        Self::open_with(endpoint, limits, tls).await
    }

    async fn open_with(
        endpoint: &HttpEndpoint,
        limits: &ObserveLimits,
        tls: Option<tokio_rustls::TlsConnector>,
    ) -> Result<HttpConnection, ObserveError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            if OWN_HEADERS.contains(&name.as_str()) {
                return Err(ObserveError::HeaderNotAllowed { name: name.clone() });
            }
            headers.append(name, value.clone());
        }
        let own = concat!("holdpoint/", env!("CARGO_PKG_VERSION"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(own));
        let url = &endpoint.url;
        if let Ok(host) = HeaderValue::from_str(&url.authority()) {
            headers.insert(HOST, host);
        }
        let path = url.path_and_query().parse().unwrap_or_else(|_| Uri::from_static("/"));
        let origin = Origin::resolve(url, endpoint.allow_private, tls, limits).await?;
        Ok(HttpConnection {
            origin,
            headers,
            path,
            era: None,
            session: None,
            correlator: Correlator::default(),
            frame_bytes: limits.frame_bytes,
        })
    }

    pub(crate) fn settle(&mut self, era: Option<Era>) {
        self.era = era;
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
        awaited: Awaited,
        deadline: Instant,
    ) -> Result<Asked, ObserveError> {
        match timeout_at(deadline, self.exchange(request, awaited)).await {
            Ok(outcome) => outcome,
            Err(_) => Ok(Asked::Nothing),
        }
    }

    /// Sends a notification, or an answer to the server. What comes back says nothing.
    pub(crate) async fn tell(&mut self, text: String, deadline: Instant) {
        let _ = timeout_at(deadline, self.send(text)).await;
    }

    /// Ends the session where there is one, as far as the server listens. Answers the TLS key and the notes.
    pub(crate) async fn close(mut self) -> (Option<String>, Vec<String>) {
        if self.session.is_some() {
            let goodbye = self.request(Method::DELETE, String::new(), None);
            let host = Awaited::Connection;
            let _ = timeout(GOODBYE_TIMEOUT, self.origin.send(goodbye, host)).await;
        }
        let mut notes = self.correlator.notes();
        notes.extend(self.origin.take_notes());
        (self.origin.tls_key().map(str::to_owned), notes)
    }

    async fn send(&mut self, text: String) {
        let request = self.request(Method::POST, text, None);
        if let Ok((live, response)) = self.origin.send(request, Awaited::Connection).await
            && let Ok(Some(_)) = read_body(response.into_body(), self.frame_bytes).await
        {
            self.origin.keep(live);
        }
    }

    async fn exchange(
        &mut self,
        request: &Request,
        awaited: Awaited,
    ) -> Result<Asked, ObserveError> {
        let post = self.request(Method::POST, request.text.clone(), Some(request.method));
        let (live, response) = self.origin.send(post, awaited).await?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            let challenged = response.headers().contains_key(WWW_AUTHENTICATE);
            return Err(ObserveError::NeedsSignIn { challenged });
        }
        if status.is_redirection() {
            let target = redirect_target(response.headers());
            return Err(ObserveError::RedirectRefused { status, target });
        }
        if awaited == Awaited::Initialize && status.is_success() {
            self.session = session_id(response.headers());
        }
        if !plain_encoding(response.headers()) {
            return Ok(unreadable("a body in a content encoding that was not asked for"));
        }
        let is_stream = media_type(response.headers()) == "text/event-stream";
        if is_stream && status.is_success() {
            return self.read_stream(response, request, awaited).await;
        }
        let lost = |source| self.origin.lost(awaited, source);
        match read_body(response.into_body(), self.frame_bytes).await.map_err(lost)? {
            Some(body) => {
                self.origin.keep(live);
                Ok(self.read_answer(status, &body, request))
            }
            None if status.is_success() => {
                Ok(unreadable(format!("a message longer than {} bytes", self.frame_bytes)))
            }
            None => Ok(Asked::Status(status)),
        }
    }

    fn read_answer(&mut self, status: StatusCode, body: &[u8], request: &Request) -> Asked {
        if !status.is_success() {
            // An error that refuses the request before it was read has no id; it can only be about this request.
            return match refusal(body) {
                Some(answer) => Asked::Answer(answer),
                None => Asked::Status(status),
            };
        }
        match self.correlator.hear(body, &request.id) {
            Heard::Answer(answer) => Asked::Answer(answer),
            Heard::Reply(_) | Heard::Nothing => {
                unreadable(format!("status {status} with a body that is not the answer"))
            }
        }
    }

    async fn read_stream(
        &mut self,
        response: Response<IncomingBody>,
        request: &Request,
        awaited: Awaited,
    ) -> Result<Asked, ObserveError> {
        let mut body = response.into_body();
        let mut parser = EventParser::new(self.frame_bytes);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| self.origin.lost(awaited, source))?;
            let Some(chunk) = frame.data_ref() else { continue };
            let Ok(events) = parser.push(chunk) else {
                let limit = self.frame_bytes;
                return Ok(unreadable(format!("a message longer than {limit} bytes")));
            };
            for Event { data } in events {
                match self.correlator.hear(&data, &request.id) {
                    Heard::Answer(answer) => return Ok(Asked::Answer(answer)),
                    Heard::Reply(text) => self.send(text).await,
                    Heard::Nothing => {}
                }
            }
        }
        Ok(unreadable("the event stream ended before the answer"))
    }

    fn request(
        &self,
        method: Method,
        text: String,
        mcp_method: Option<&'static str>,
    ) -> ::http::Request<Full<Bytes>> {
        let mut request = ::http::Request::new(Full::new(Bytes::from(text)));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        let mut headers = self.headers.clone();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        if let Some(era) = self.era {
            let version = HeaderValue::from_static(era.protocol_version().as_str());
            headers.insert(PROTOCOL_VERSION, version);
            if let (Era::Stateless { .. }, Some(method)) = (era, mcp_method) {
                headers.insert(MCP_METHOD, HeaderValue::from_static(method));
            }
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION_ID, session.clone());
        }
        *request.headers_mut() = headers;
        request
    }
}

fn unreadable(reason: impl Into<String>) -> Asked {
    Asked::Answer(Answer::Unreadable(reason.into()))
}

/// The JSON-RPC error in the body of a refusing status.
fn refusal(body: &[u8]) -> Option<Answer> {
    let document = Document::parse_bytes(body).ok()?;
    match message::classify(document.root()) {
        Ok(Incoming::Response { outcome: outcome @ message::Outcome::Error(_), .. }) => {
            Some(correlate::answer(&outcome))
        }
        _ => None,
    }
}

/// The whole body, or nothing where it is over the limit.
async fn read_body(mut body: IncomingBody, limit: usize) -> Result<Option<Vec<u8>>, hyper::Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            if bytes.len() + data.len() > limit {
                return Ok(None);
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(Some(bytes))
}

fn session_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut id = headers.get(SESSION_ID)?.clone();
    let visible = id.as_bytes().iter().all(|byte| (0x21..=0x7e).contains(byte));
    if !visible || id.is_empty() || id.len() > MAX_SESSION_ID_BYTES {
        return None;
    }
    // It is a credential for the session.
    id.set_sensitive(true);
    Some(id)
}

fn plain_encoding(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|value| value.as_bytes() == b"identity")
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Where a redirect leads: the origin only, since the rest may hold secrets.
fn redirect_target(headers: &HeaderMap) -> ServerText {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("");
    let uri: Option<Uri> = location.parse().ok();
    let target = match uri.as_ref().map(|uri| (uri.scheme_str(), uri.authority())) {
        Some((Some(scheme), Some(authority))) => {
            let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{scheme}://{}{port}", authority.host())
        }
        _ if location.is_empty() => "nowhere".to_owned(),
        _ => "another path of the same server".to_owned(),
    };
    ServerText::line(&target)
}

#[cfg(test)]
mod tests;

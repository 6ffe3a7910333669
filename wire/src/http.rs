//! A streamable HTTP server as a client sees it: one POST a request, answered as JSON or as an event stream.

use crate::correlate::{self, Answer, Correlator, Heard};
use crate::error::{Awaited, ObserveError};
use crate::limits::{GOODBYE_TIMEOUT, ObserveLimits};
use crate::message::{self, Incoming, Request};
use crate::revision::Era;
use crate::upstream::HttpEndpoint;
use ::http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use ::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use contract::json::Document;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming as IncomingBody};
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod headers;
pub(crate) mod sse;
pub(crate) mod tls;

use connect::{Live, Origin};
use headers::{MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use sse::{Event, EventParser};
use tls::TlsKey;

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
    /// A connection whose last answer was read to its end.
    idle: Option<Live>,
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
        correlator: Correlator,
        limits: &ObserveLimits,
    ) -> Result<HttpConnection, ObserveError> {
        let tls = if endpoint.url.is_secure() { Some(tls::connector()?) } else { None };
        Self::open_with(endpoint, correlator, limits, tls).await
    }

    pub(crate) async fn open_with(
        endpoint: &HttpEndpoint,
        correlator: Correlator,
        limits: &ObserveLimits,
        tls: Option<tokio_rustls::TlsConnector>,
    ) -> Result<HttpConnection, ObserveError> {
        let headers = headers::of_endpoint(endpoint)?;
        let key = TlsKey::default();
        let patience = limits.start_timeout;
        let origin =
            Origin::resolve(&endpoint.url, endpoint.allow_private, tls, key, patience).await?;
        Ok(HttpConnection {
            origin,
            idle: None,
            headers,
            path: headers::path_of(endpoint),
            era: None,
            session: None,
            correlator,
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
            let _ = timeout(GOODBYE_TIMEOUT, self.deliver(goodbye, Awaited::Connection)).await;
        }
        let mut notes = self.correlator.notes();
        let key = self.origin.tls_key();
        if key.has_changed() {
            notes.push("the server showed different TLS keys on different connections".to_owned());
        }
        (key.known().map(str::to_owned), notes)
    }

    async fn send(&mut self, text: String) {
        let request = self.request(Method::POST, text, None);
        if let Ok((live, mut response)) = self.deliver(request, Awaited::Connection).await
            && let Ok(Some(_)) = body::read(response.body_mut(), self.frame_bytes).await
        {
            self.idle = Some(live);
        }
    }

    /// Sends a request over the connection that was kept, or over a new one.
    async fn deliver(
        &mut self,
        request: ::http::Request<Full<Bytes>>,
        awaited: Awaited,
    ) -> Result<(Live, Response<IncomingBody>), ObserveError> {
        if let Some(mut live) = self.idle.take()
            && live.sender.ready().await.is_ok()
            // The server may close a kept connection at any moment: then the request goes out anew, below. An
            // observation asks and changes nothing, so that twice is not too often.
            && let Ok(response) = live.sender.send_request(request.clone()).await
        {
            return Ok((live, response));
        }
        let mut live = self.origin.connect(awaited).await?;
        match live.sender.send_request(request).await {
            Ok(response) => Ok((live, response)),
            Err(source) => Err(self.origin.lost(awaited, source)),
        }
    }

    async fn exchange(
        &mut self,
        request: &Request,
        awaited: Awaited,
    ) -> Result<Asked, ObserveError> {
        let post = self.request(Method::POST, request.text.clone(), Some(request.method));
        let (live, mut response) = self.deliver(post, awaited).await?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            let challenged = response.headers().contains_key(WWW_AUTHENTICATE);
            return Err(ObserveError::NeedsSignIn { challenged });
        }
        if status.is_redirection() {
            let target = headers::redirect_target(response.headers());
            return Err(ObserveError::RedirectRefused { status, target });
        }
        if awaited == Awaited::Initialize && status.is_success() {
            self.session = headers::session_id(response.headers());
        }
        if !headers::plain_encoding(response.headers()) {
            return Ok(unreadable("a body in a content encoding that was not asked for"));
        }
        if headers::is_event_stream(response.headers()) && status.is_success() {
            return self.read_stream(response, request, awaited).await;
        }
        let lost = |source| self.origin.lost(awaited, source);
        match body::read(response.body_mut(), self.frame_bytes).await.map_err(lost)? {
            Some(body) => {
                self.idle = Some(live);
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
        headers.insert(CONTENT_TYPE, headers::json());
        headers.insert(ACCEPT, headers::json_or_events());
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

#[cfg(test)]
pub(crate) mod tests;

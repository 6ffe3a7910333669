//! Handles one JSON-RPC message of a caller: answers it itself, or forwards it to a server.

pub(crate) mod carry;
mod credentials;
pub(crate) mod forward;
mod given_state;
mod handshake;
mod lists;
mod resume;
mod rewrite;
mod rounds;
mod subscribe;
mod tasks;
pub(crate) mod watch;

use crate::asking::askable;
use crate::catalog::{Catalog, Scope};
use crate::frame;
use crate::greeting::{Era, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION, STATELESS};
use crate::node::Node;
use crate::relay::Arrival;
use crate::reply::{self, Reply};
use crate::sessions::{LastId, PrincipalId, SessionTicket};
use crate::traces::CallSpan;
use bytes::Bytes;
use contract::surface::ListKind;
use engine::call::{Call, Method, Subject, Target};
use engine::credentials::Inbound;
use engine::decide::{Denial, Ruling};
use engine::principal::Principal;
use engine::reason::ReasonCode;
use engine::recorder::Circumstances;
use http::StatusCode;
use ledger::record::OutcomeStatus;
use policy::Caller;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::envelope::{Batch, Element, Envelope, Kind, Params, ScanError, Scanned, scan};

/// Standard JSON-RPC error codes.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const PARSE_ERROR: i64 = -32700;
/// A header does not agree with the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The requested protocol version is not supported.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The log levels of MCP.
const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The scanned body of a POST.
pub(crate) type ScannedBody<'a> = Result<Scanned<'a>, ScanError>;

/// The only revision with batches, and the most messages in one.
const BATCHES: &str = "2025-03-26";
const MAX_BATCH: usize = 50;

/// A message's caller, and the context in which it came in.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) caller: Caller,
    pub(crate) principal: Arc<Principal>,
    pub(crate) principal_id: PrincipalId,
    /// The tokens in the request.
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) scope: Scope,
    pub(crate) era: Era,
    /// Older era only: the session, once it exists.
    pub(crate) session: Option<SessionTicket>,
    pub(crate) last_id: Option<Arc<LastId>>,
    /// Stateless era only: the client capabilities that allow a server to ask it something.
    pub(crate) askable: Vec<u8>,
    /// Stateless era only: the `Mcp-Param-…` headers.
    pub(crate) parameters: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Stateless era only: whether the client asks for log messages.
    pub(crate) asks_for_logs: bool,
    /// Stateless era only: whether the response may be a task.
    pub(crate) takes_tasks: bool,
    /// Whether the client accepts an event stream as the response.
    pub(crate) takes_events: bool,
    pub(crate) trace_id: Option<String>,
    /// The headers that may be forwarded to a server.
    pub(crate) forwardable: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Set if spans are exported.
    pub(crate) span: Option<Arc<CallSpan>>,
    /// How long the identity stays valid; streams end then.
    pub(crate) expires: Option<Duration>,
    /// How the request reached this node, and whether it may be forwarded to another one.
    pub(crate) arrival: Arrival,
    pub(crate) begun: Instant,
}

impl Visit {
    pub(crate) fn org(&self) -> Option<&str> {
        self.caller.identity().org.as_deref()
    }

    /// Describes a request of this visit to the engine.
    pub(crate) fn call<'a>(&self, asked: Asked<'a>) -> Call<'a> {
        Call { session: self.session.as_ref().map(|session| session.number), ..asked.call() }
    }

    /// Like [`Visit::call`], with the server's own name for the tool or prompt.
    pub(crate) fn call_of<'a>(&self, asked: Asked<'a>, name: Option<&'a str>) -> Call<'a> {
        let mut call = self.call(asked);
        if let (Some(target), Some(name)) = (&mut call.target, name) {
            *target = Target { key: name, ..*target };
        }
        call
    }

    /// Whether the client accepts a server message before the response: it must accept a stream
    /// and, in the stateless era, have asked for log messages.
    pub(crate) fn hears(&self, message: &[u8]) -> bool {
        if !self.takes_events || self.era == Era::Sessions || self.asks_for_logs {
            return self.takes_events;
        }
        let Ok(Scanned::Message(Envelope { kind: Kind::Notification { method }, .. })) =
            scan(message)
        else {
            return true;
        };
        method != "notifications/message"
    }
}

/// The parts of a request that the gateway uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) envelope: &'a Envelope<'a>,
    pub(crate) id: &'a [u8],
    pub(crate) method: &'a str,
}

impl<'a> Asked<'a> {
    pub(crate) fn params(&self) -> Option<&'a Params<'a>> {
        self.envelope.params.as_ref()
    }

    pub(crate) fn meta(&self) -> Option<&'a [u8]> {
        self.params().and_then(|params| params.meta)
    }

    /// Describes only the message: see [`Visit::call`].
    fn call(&self) -> Call<'a> {
        let kind = Method::of(self.method);
        let params = self.params();
        Call {
            method: self.method,
            kind,
            target: kind.target(params),
            subject: Subject::of(self.method, params.map(|params| params.raw)),
            arguments: params.and_then(|params| params.arguments),
            bytes: self.envelope.raw.len(),
            depth: self.envelope.depth,
            session: None,
        }
    }
}

impl Node {
    /// Answers a POST whose body has `bytes` bytes.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        visit: Box<Visit>,
        bytes: usize,
        scanned: ScannedBody<'_>,
    ) -> Reply {
        let envelope = match scanned {
            Ok(Scanned::Message(envelope)) => envelope,
            Ok(Scanned::Batch(batch))
                if visit.session.as_ref().is_some_and(|session| session.version == BATCHES) =>
            {
                return Box::pin(self.answer_batch(visit, &batch)).await;
            }
            Ok(Scanned::Batch(_)) => {
                self.note_refused(&visit, ReasonCode::BadFrame, bytes);
                let words = "a batch is not taken here: send one message with each request";
                return fault(StatusCode::BAD_REQUEST, INVALID_REQUEST, words);
            }
            Err(error) => {
                let reason = if error.is_ambiguous() {
                    ReasonCode::AmbiguousMessage
                } else {
                    ReasonCode::BadFrame
                };
                self.note_refused(&visit, reason, bytes);
                let code = if error.is_ambiguous() { INVALID_REQUEST } else { PARSE_ERROR };
                let id = error.id.as_ref().map_or(b"null".as_slice(), |id| id.raw());
                let words = format!("not a single, unambiguous JSON-RPC message: {error}");
                let message = frame::error(id, code, &words);
                return reply::json(StatusCode::BAD_REQUEST, [message.into()]);
            }
        };
        match &envelope.kind {
            Kind::Request { id, method } => {
                let asked = Asked { envelope: &envelope, id: id.raw(), method };
                self.answer_request(visit, asked).await
            }
            Kind::Notification { method } => {
                self.take_notification(&visit, &envelope, method);
                reply::empty(StatusCode::ACCEPTED)
            }
            Kind::Response { .. } => match visit.era {
                Era::Sessions => {
                    self.take_answer(&visit, &envelope);
                    reply::empty(StatusCode::ACCEPTED)
                }
                Era::Stateless => {
                    let words = "a response is not sent in this revision";
                    fault(StatusCode::BAD_REQUEST, INVALID_REQUEST, words)
                }
            },
        }
    }

    /// Answers the messages of a batch one by one; servers never get batches.
    async fn answer_batch(self: &Arc<Self>, visit: Box<Visit>, batch: &Batch<'_>) -> Reply {
        let begins = |element: &Element<'_>| matches!(&element.message, Ok(Envelope { kind: Kind::Request { method, .. }, .. }) if method == "initialize");
        if batch.elements.len() > MAX_BATCH || batch.elements.iter().any(begins) {
            self.note_refused(&visit, ReasonCode::BadFrame, batch.raw.len());
            let words = format!("a batch has at most {MAX_BATCH} messages, and no `initialize`");
            return fault(StatusCode::BAD_REQUEST, INVALID_REQUEST, &words);
        }
        let mut answers: Vec<Bytes> = Vec::new();
        for element in &batch.elements {
            match &element.message {
                Ok(envelope) => match &envelope.kind {
                    Kind::Request { id, method } => {
                        let asked = Asked { envelope, id: id.raw(), method };
                        // The batch has a single response body, so its messages cannot be streamed.
                        let visit = Visit { takes_events: false, ..(*visit).clone() };
                        let answered = self.answer_request(Box::new(visit), asked).await;
                        answers.push(reply::whole_body(answered));
                    }
                    Kind::Notification { method } => {
                        self.take_notification(&visit, envelope, method);
                    }
                    Kind::Response { .. } => self.take_answer(&visit, envelope),
                },
                Err(error) => {
                    self.note_refused(&visit, ReasonCode::BadFrame, element.raw.len());
                    let id = error.id.as_ref().map_or(b"null".as_slice(), |id| id.raw());
                    let words = "not a single, unambiguous JSON-RPC message";
                    answers.push(frame::error(id, INVALID_REQUEST, words).into());
                }
            }
        }
        if answers.is_empty() {
            return reply::empty(StatusCode::ACCEPTED);
        }
        let body = [b"[".as_slice(), &answers.join(&b','), b"]"].concat();
        reply::json(StatusCode::OK, [body.into()])
    }

    async fn answer_request(self: &Arc<Self>, mut visit: Box<Visit>, asked: Asked<'_>) -> Reply {
        if let Some(span) = &visit.span {
            span.asks(asked.method);
        }
        if visit.era == Era::Stateless {
            if let Some(refusal) = self.check_stateless(&visit, asked) {
                return refusal;
            }
            let given = asked.meta().and_then(|meta| frame::member(meta, META_CAPABILITIES));
            visit.askable = askable(given.unwrap_or(b"{}"));
            let level = asked.meta().and_then(|meta| frame::member(meta, META_LOG_LEVEL));
            visit.asks_for_logs = level.is_some();
            visit.takes_tasks =
                tasks::knows_tasks(given.unwrap_or(b"{}")) && tasks::may_make_task(asked);
        }
        let catalog = self.catalog();
        let list = ListKind::ALL.into_iter().find(|list| list.method() == asked.method);
        if let Some(list) = list {
            return Box::pin(self.answer_list(&visit, asked, list)).await;
        }
        match (asked.method, visit.era) {
            ("initialize", Era::Sessions) => self.answer_initialize(&visit, asked, &catalog),
            ("server/discover", Era::Stateless) => self.answer_discover(&visit, asked, &catalog),
            ("subscriptions/listen", Era::Stateless) => self.answer_listen(&visit, asked, &catalog),
            ("ping", Era::Sessions) => self.answer_own(&visit, asked, Bytes::from_static(b"{}")),
            ("logging/setLevel", Era::Sessions) => self.set_level(&visit, asked),
            ("tasks/get" | "tasks/cancel", _)
            | ("tasks/update", Era::Stateless)
            | ("tasks/result", Era::Sessions) => {
                Box::pin(self.answer_task(visit, asked, &catalog)).await
            }
            ("tools/call" | "prompts/get" | "resources/read" | "completion/complete", _)
            | ("resources/subscribe" | "resources/unsubscribe", Era::Sessions) => {
                if asked.params().is_some_and(|params| params.request_state.is_some()) {
                    Box::pin(self.await_sign_in(&visit, asked, &catalog)).await;
                }
                // The tools of a server that was never observed are unknown, so it is observed
                // first. Boxed: a rare path must not enlarge the future of every call.
                let seen = match catalog.has_unseen {
                    true => Box::pin(self.see_called(&visit, asked, &catalog)).await,
                    false => None,
                };
                self.forward(visit, asked, seen.as_ref().unwrap_or(&catalog)).await
            }
            _ => self.refuse_method(&visit, asked),
        }
    }

    /// Stores the log level of a session. Servers without sessions get it with each request.
    fn set_level(&self, visit: &Visit, asked: Asked<'_>) -> Reply {
        let level = asked.params().and_then(|params| params.level.as_deref());
        let Some(level) = level.filter(|level| LOG_LEVELS.contains(level)) else {
            let words = format!("the level has to be one of {}", LOG_LEVELS.join(", "));
            return self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, &words);
        };
        if let Some(session) = &visit.session {
            self.sessions.set_level(session.number, level);
        }
        self.answer_own(visit, asked, Bytes::from_static(b"{}"))
    }

    /// Checks what every request of the stateless era must contain.
    fn check_stateless(&self, visit: &Visit, asked: Asked<'_>) -> Option<Reply> {
        let member = |name: &str| asked.meta().and_then(|meta| frame::member(meta, name));
        let version =
            member(META_VERSION).and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        let status = StatusCode::BAD_REQUEST;
        match version.as_deref() {
            Some(STATELESS) if member(META_CAPABILITIES).is_some() => None,
            Some(STATELESS) | None => {
                let words =
                    "`_meta` has to name the protocol version and the client's capabilities";
                Some(self.refuse(visit, asked, status, INVALID_PARAMS, words))
            }
            Some(version) => {
                self.record_refusal(visit, asked, ReasonCode::BadFrame);
                Some(unsupported(asked.id, version))
            }
        }
    }

    fn take_notification(self: &Arc<Self>, visit: &Visit, envelope: &Envelope<'_>, method: &str) {
        if method == "notifications/cancelled"
            && let Some(id) = envelope.params.as_ref().and_then(|params| params.request_id)
        {
            self.cancel(visit, id);
        }
    }

    /// Answers with the gateway's own result. A decision and an outcome are recorded as for any
    /// other request.
    pub(crate) fn answer_own(&self, visit: &Visit, asked: Asked<'_>, result: Bytes) -> Reply {
        let recorded = self.record_own(visit, asked, &Ruling::Allow);
        let Some(receipt_id) = recorded else { return unrecorded(asked.id) };
        let result = match visit.era {
            Era::Sessions => result,
            Era::Stateless => with_result_type(&result),
        };
        let bytes = result.len();
        let beginning =
            [br#"{"jsonrpc":"2.0","id":"#.as_slice(), asked.id, br#","result":"#].concat();
        let reply =
            reply::json(StatusCode::OK, [beginning.into(), result, Bytes::from_static(b"}")]);
        let ours = visit.begun.elapsed();
        let recorder = &self.shared.recorder;
        recorder.outcome(receipt_id, OutcomeStatus::Success, bytes, ours, Duration::ZERO);
        reply
    }

    /// Refuses a request that concerns no server.
    pub(crate) fn refuse(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        status: StatusCode,
        code: i64,
        words: &str,
    ) -> Reply {
        if self.record_refusal(visit, asked, ReasonCode::BadFrame).is_none() {
            return unrecorded(asked.id);
        }
        reply::json(status, [frame::error(asked.id, code, words).into()])
    }

    pub(crate) fn record_refusal(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        reason: ReasonCode,
    ) -> Option<ledger::record::ReceiptId> {
        self.record_own(visit, asked, &Ruling::Deny(Denial::new(reason, "")))
    }

    /// Records the decision on a request that the gateway itself answers. Returns `None` if it
    /// cannot be recorded.
    fn record_own(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        ruling: &Ruling,
    ) -> Option<ledger::record::ReceiptId> {
        let situation = self.own_situation();
        let circumstances = Circumstances {
            situation: &situation,
            principal: &visit.principal,
            trace_id: visit.trace_id.as_deref(),
            policy_id: None,
            approval: None,
            view_age: None,
            admission_age: None,
            begun: visit.begun,
        };
        let recorder = &self.shared.recorder;
        let recorded = recorder.decision(&visit.call(asked), ruling, circumstances).ok()?;
        let _ = recorder.settle(recorded.ticket).ok()?;
        Some(recorded.receipt_id)
    }

    /// Records a message that is refused before any decision on it: every request gets a decision.
    pub(crate) fn record_early(&self, visit: &Visit, scanned: &ScannedBody<'_>, bytes: usize) {
        match scanned {
            Ok(Scanned::Message(
                envelope @ Envelope { kind: Kind::Request { id, method }, .. },
            )) => {
                let asked = Asked { envelope, id: id.raw(), method };
                let _ = self.record_refusal(visit, asked, ReasonCode::BadFrame);
            }
            Ok(_) | Err(_) => self.note_refused(visit, ReasonCode::BadFrame, bytes),
        }
    }

    pub(crate) fn note_refused(&self, visit: &Visit, reason: ReasonCode, bytes: usize) {
        let data = serde_json::json!({
            "reason": reason.as_str(),
            "size_bytes": bytes,
            "sub": visit.principal.subject,
        });
        self.shared.recorder.event("gateway", "mcp.message.dropped", None, &data);
    }
}

/// Adds the `resultType` that the stateless era requires.
pub(crate) fn with_result_type(result: &[u8]) -> Bytes {
    if frame::member(result, "resultType").is_some() {
        return Bytes::copy_from_slice(result);
    }
    let mut edits = frame::Edits::of(result);
    edits.insert(result, "resultType", br#""complete""#);
    edits.finish().into()
}

/// Refuses a protocol version that is not supported.
pub(crate) fn unsupported(id: &[u8], requested: &str) -> Reply {
    let data = serde_json::json!({"requested": requested, "supported": handshake::SUPPORTED});
    let words = "this protocol version is not spoken here";
    let message = frame::error_with(id, UNSUPPORTED_VERSION, words, Some(data));
    reply::json(StatusCode::BAD_REQUEST, [message.into()])
}

/// The raw id of the request in a body, for an error response; `null` if there is none.
pub(crate) fn request_id(body: &ScannedBody<'_>) -> Vec<u8> {
    match body {
        Ok(Scanned::Message(Envelope { kind: Kind::Request { id, .. }, .. })) => id.raw().to_vec(),
        _ => b"null".to_vec(),
    }
}

/// An error response that belongs to no request.
pub(crate) fn fault(status: StatusCode, code: i64, words: &str) -> Reply {
    reply::json(status, [frame::error(b"null", code, words).into()])
}

fn unrecorded(id: &[u8]) -> Reply {
    let words = "○ holdpoint — the request could not be recorded, so it was not made";
    let reason = ReasonCode::LedgerUnavailable;
    let data = serde_json::json!({"reason": reason.as_str()});
    let refusal = frame::error_with(id, reason.code(), words, Some(data));
    reply::json(StatusCode::OK, [refusal.into()])
}

/// The kinds of list for which a scope has entries.
pub(crate) fn offered(catalog: &Catalog, scope: &Scope) -> Vec<ListKind> {
    ListKind::ALL.into_iter().filter(|kind| catalog.offers(scope, *kind)).collect()
}

pub(crate) use handshake::is_known_with_sessions;

/// The protocol version in the body, which only requests of the stateless era have.
pub(crate) fn version_in_body(body: &ScannedBody<'_>) -> Option<String> {
    let Ok(Scanned::Message(envelope)) = body else { return None };
    let meta = envelope.params.as_ref()?.meta?;
    serde_json::from_slice(frame::member(meta, META_VERSION)?).ok()
}

/// Whether the body is an `initialize` request.
pub(crate) fn is_initialize(body: &ScannedBody<'_>) -> bool {
    match body {
        Ok(Scanned::Message(Envelope { kind: Kind::Request { method, .. }, .. })) => {
            method == "initialize"
        }
        _ => false,
    }
}

/// Checks that the headers of the stateless era agree with the body. The body is what is
/// authorized; a header that differs would mislead programs that only read headers.
pub(crate) fn check_headers(headers: &http::HeaderMap, body: &ScannedBody<'_>) -> Option<Reply> {
    let Ok(Scanned::Message(envelope)) = body else { return None };
    let (method, id) = match &envelope.kind {
        Kind::Request { id, method } => (method, id.raw()),
        Kind::Notification { method } => (method, b"null".as_slice()),
        Kind::Response { .. } => return None,
    };
    let mismatch = |what: &str| {
        let words = format!("the header `{what}` does not agree with the body, or is missing");
        Some(reply::json(
            StatusCode::BAD_REQUEST,
            [frame::error(id, HEADER_MISMATCH, &words).into()],
        ))
    };
    if crate::front::header(headers, "mcp-method") != Some(method) {
        return mismatch("Mcp-Method");
    }
    let params = envelope.params.as_ref();
    let task;
    let name = match Method::of(method) {
        Method::Other if matches!(&**method, "tasks/get" | "tasks/update" | "tasks/cancel") => {
            let raw = params.and_then(|params| frame::member(params.raw, "taskId"));
            task = raw.and_then(|raw| serde_json::from_slice::<String>(raw).ok());
            task.as_deref()
        }
        Method::Use(contract::surface::EntryType::Resource) => {
            params.and_then(|params| params.uri.as_deref())
        }
        Method::Use(_) => params.and_then(|params| params.name.as_deref()),
        Method::Handshake | Method::List(_) | Method::Ping | Method::Other => None,
    };
    if let Some(name) = name {
        let given = crate::front::header(headers, "mcp-name").and_then(decode_header);
        if given.as_deref() != Some(name) {
            return mismatch("Mcp-Name");
        }
    }
    None
}

/// The value of a header that may be encoded as `=?base64?…?=`.
pub(crate) fn decode_header(value: &str) -> Option<String> {
    use base64::Engine;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok()
        }
        None => Some(value.to_owned()),
    }
}

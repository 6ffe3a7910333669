//! What the client sends.

use super::asking::{Returned, capabilities_in};
use super::boundary::{note_decided, trip};
use super::{Met, Passage, Session};
use crate::call::{Call, Method, RequestContext, Subject};
use crate::decide::{Denial, Ruling};
use crate::outlet::FreeMessage;
use crate::reason::ReasonCode;
use crate::recorder::Recorded;
use crate::requests::{Asking, Awaited, Cancelling, ParsedRequest};
use crate::server::ViewError;
use crate::server::driver::SessionWake;
use contract::client::ClientCapabilities;
use contract::surface::ListKind;
use gate::counters::Counter;
use gate::view::Visible;
use ledger::record::OutcomeStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wire::Revision;
use wire::envelope::{
    Batch, Envelope, Id, Kind, OwnedId, Params, ScanError, ScanErrorKind, Scanned, ids_of_broken,
    key_of, members, names_protocol, read_torn, scan,
};

/// The revision that has batches.
const BATCHES: Revision = Revision::March2025;
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// What each request carries where there is no session.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

impl Session {
    /// Takes one frame of the client's. Where more of them were read already, what it leads to may wait for theirs,
    /// until [`Session::client_paused`] at the latest.
    pub fn client_said(&self, frame: &[u8], has_more: bool) {
        self.client_said_in(frame, has_more, RequestContext::default());
    }

    /// The same, where more is known of a request than its message says.
    pub fn client_said_in(&self, frame: &[u8], has_more: bool, context: RequestContext<'_>) {
        let begun = Instant::now();
        self.is_gathering.store(has_more, Ordering::SeqCst);
        if self.contain(frame.len(), || self.read_from_client(frame, begun, context)).is_none() {
            // Not even what it is could be told.
            let ids = ids_of_broken(frame);
            self.refuse_failed(ids.first().map_or(b"null", |id| id.raw()));
        }
    }

    fn read_from_client(&self, frame: &[u8], begun: Instant, context: RequestContext<'_>) {
        match scan(frame) {
            Ok(Scanned::Message(envelope)) => {
                // What passes keeps its bytes, white space around it too.
                let envelope = Envelope { raw: frame, ..envelope };
                self.take_one_from_client(&envelope, begun, context);
            }
            Ok(Scanned::Batch(batch)) => self.batch_from_client(&batch, begun),
            Err(error) => self.refuse_frame(&error, frame, begun),
        }
    }

    /// A frame over the limit was dropped.
    pub fn client_said_too_much(&self, beginning: &[u8], end: &[u8], bytes: u64) {
        self.contain(0, || self.refuse_too_much(beginning, end, bytes));
    }

    fn refuse_too_much(&self, beginning: &[u8], end: &[u8], bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let torn = read_torn(beginning, end);
        let reason = ReasonCode::PayloadTooLarge;
        match torn.id {
            Some(id) => self.deny(&id.to_owned(), "", bytes, reason, Instant::now()),
            None => {
                self.remark("a message of the client is over the limit and was dropped");
                if torn.has_method {
                    self.deny_unnamed(bytes, ReasonCode::BadFrame, Instant::now());
                } else {
                    self.note_fault(reason, bytes as u64);
                    self.record_dropped(reason, bytes);
                }
            }
        }
    }

    /// Takes one message. A panic refuses the request that it is.
    fn take_one_from_client(
        &self,
        envelope: &Envelope<'_>,
        begun: Instant,
        context: RequestContext<'_>,
    ) {
        let bytes = envelope.raw.len();
        if self.is_broken() {
            self.close_broken();
            if let Kind::Request { id, .. } = &envelope.kind {
                self.note_fault(ReasonCode::Internal, bytes as u64);
                self.refuse_failed(id.raw());
            }
            return;
        }
        let taken = self.contain(bytes, || self.take_from_client(envelope, begun, context));
        if taken.is_none()
            && let Kind::Request { id, method } = &envelope.kind
        {
            self.release_failed(&id.to_owned(), method, bytes);
        }
    }

    fn take_from_client(
        &self,
        envelope: &Envelope<'_>,
        begun: Instant,
        context: RequestContext<'_>,
    ) {
        trip("client", envelope.raw);
        match &envelope.kind {
            Kind::Request { id, method } => match self.returned(envelope) {
                None => self.request(envelope, (id, method), begun, Asking::Open, context),
                Some(returned) => self.take_returned(&returned, begun, context),
            },
            Kind::Notification { method } => self.notification(envelope, method),
            Kind::Response { id: Some(id), .. } => self.answer_of_client(envelope, id),
            // Without an id it answers no request.
            Kind::Response { id: None, .. } => {}
        }
    }

    /// A call that a client came back with after a person was asked about it.
    fn take_returned(&self, returned: &Returned, begun: Instant, context: RequestContext<'_>) {
        let Ok(Scanned::Message(envelope)) = scan(&returned.frame) else { return };
        if let Kind::Request { id, method } = &envelope.kind {
            self.request(&envelope, (id, method), begun, returned.asking, context);
        }
    }

    fn request(
        &self,
        envelope: &Envelope<'_>,
        (id, method): (&Id<'_>, &str),
        begun: Instant,
        asking: Asking,
        context: RequestContext<'_>,
    ) {
        let params = envelope.params.as_ref();
        let version = params.and_then(|params| stateless_version(params));
        let request = ParsedRequest::of(envelope, id, method, version.as_deref());
        let request = request.in_context(context);
        let (call, sort) = (request.call, request.call.kind);
        let (deadline, has_waited) = (self.deadline(&call, begun), false);
        let passage = Passage { request, begun, asking, deadline, has_waited };
        if let Err(reason) = self.prepare(&passage, params) {
            return self.deny(&id.to_owned(), method, envelope.raw.len(), reason, begun);
        }
        if version.is_some()
            && let Err(reason) = self.hear_meta(params.and_then(|params| params.meta))
        {
            return self.deny(&id.to_owned(), method, envelope.raw.len(), reason, begun);
        }
        // All that the request is decided on is taken together: each look under the lock costs as much as a check.
        let (met, is_admitted, is_fresh) = {
            let state = self.state();
            trip("state", envelope.raw);
            if let Err(refused) = state.requests.admits(self.at(id.key())) {
                drop(state);
                let reason = refused.reason();
                return self.deny(&id.to_owned(), method, envelope.raw.len(), reason, begun);
            }
            let known = state.view.known();
            let freshness = sort.list().map(|list| known.freshness(list));
            let max_age = self.server.settings.relist_max_age;
            let age = freshness.and_then(|freshness| freshness.age(begun));
            let is_admitted = self.is_admission_fresh(&state, &known, sort, begun);
            let met = Met::of(known, &state.client.principal, age);
            (met, is_admitted, freshness.is_none_or(|freshness| freshness.is_fresh(begun, max_age)))
        };
        // Policies and the allowlist come before admission: what they refuse needs neither a check nor a list.
        if matches!(sort, Method::Use(_) | Method::Other)
            && (!is_admitted || !is_fresh)
            && let Some(refusal) = self.off_list(&call, &met)
        {
            return self.carry_out(&passage, &met, &refusal);
        }
        // Skip the re-list: an unadmitted server must not be contacted.
        let is_asked = !met.situation().admission.is_closed();
        if !is_admitted {
            if self.wait_for(&passage, Awaited::Admission) {
                self.wake(SessionWake::Admit);
            }
        } else if self.answers_itself(sort, met.situation()) {
            self.answer_unadmitted(&passage, &met);
        } else if let Some(list) = sort.list()
            && !is_fresh
            && is_asked
        {
            if self.wait_for(&passage, Awaited::List(list)) {
                self.wake(SessionWake::Relist(list));
            }
        } else if self.waits_for_corpus(&call, &met) {
            if self.wait_for(&passage, Awaited::Corpus) {
                self.wake(SessionWake::AwaitsCorpus);
            }
        } else if let Method::List(list) = sort {
            self.answer_list(&passage, list, &met);
        } else {
            self.pass(&passage, &met);
        }
    }

    /// What has to be known before a request is decided on; a reason, where it cannot be.
    fn prepare(
        &self,
        passage: &Passage<'_>,
        params: Option<&Params<'_>>,
    ) -> Result<(), ReasonCode> {
        let call = &passage.request.call;
        match call.kind {
            Method::Handshake if call.method == "initialize" => self.meet(params)?,
            Method::Handshake | Method::Ping => {}
            Method::List(_) | Method::Use(_) | Method::Other => {
                if let Err(error) = self.look_for_changes(passage.begun) {
                    self.remark(&format!("the store cannot be read: {error}"));
                    // A list may be shown as it was last judged; nothing is asked of the server on that.
                    if !matches!(call.kind, Method::List(_)) {
                        return Err(ReasonCode::Internal);
                    }
                }
            }
        }
        if call.method == "logging/setLevel" {
            let level = params.and_then(|params| params.level.as_deref());
            self.state().client.log_level = level.map(str::to_owned);
        }
        Ok(())
    }

    /// Remembers who the client says it is, and what it can do.
    fn meet(&self, params: Option<&Params<'_>>) -> Result<(), ReasonCode> {
        let member = |object: &[u8], name: &str| {
            members(object).find(|(known, _)| known == name).map(|(_, value)| value.to_vec())
        };
        let Some(params) = params else { return Ok(()) };
        let name = member(params.raw, "clientInfo").and_then(|info| member(&info, "name"));
        let version = member(params.raw, "protocolVersion");
        let version = version.and_then(|version| serde_json::from_slice(&version).ok());
        let capabilities = member(params.raw, "capabilities").unwrap_or_default();
        let can_be_asked =
            member(&capabilities, "elicitation").is_some_and(|elicitation| elicitation != b"null");
        // What is too large or cannot be read in one way is not remembered: nothing is decided on it.
        let greeted_with = ClientCapabilities::read(&capabilities).ok();
        self.take_view(greeted_with)?;
        let mut state = self.state();
        let client = name.and_then(|name| serde_json::from_slice(&name).ok());
        state.client.principal = Arc::new(state.client.principal.with_client(client));
        state.client.can_be_asked = can_be_asked;
        state.client.asked_version = version;
        // One that tried without a session before begins one now.
        state.client.stateless_meta = None;
        Ok(())
    }

    /// Without a session each request says who makes it, and what its client can do.
    fn hear_meta(&self, meta: Option<&[u8]>) -> Result<(), ReasonCode> {
        if self.state().client.has_said(meta) {
            return Ok(());
        }
        self.take_view(meta.and_then(capabilities_in))?;
        self.state().client.hear(meta);
        Ok(())
    }

    /// The session is shown what clients are shown that can do this.
    fn take_view(&self, client: Option<ClientCapabilities>) -> Result<(), ReasonCode> {
        let (instance, is_same) = {
            let state = self.state();
            let known = state.view.known();
            (known.seen.instance, known.seen.client == client)
        };
        if is_same {
            return Ok(());
        }
        match self.server.view(instance, client) {
            Ok(view) => {
                let mut state = self.state();
                state.view = view;
                if let Some(handshake) = state.handshake.clone() {
                    state.take_handshake(handshake);
                }
                drop(state);
                self.wake(SessionWake::OtherView);
                Ok(())
            }
            Err(error) => {
                self.remark(&format!("a client's request was refused: {error}"));
                Err(match error {
                    ViewError::TooMany => ReasonCode::RateLimited,
                    ViewError::Store(_) => ReasonCode::Internal,
                })
            }
        }
    }

    /// Answers a list from the view. It is a request like others: it has a decision, and an outcome or a refusal.
    pub(super) fn answer_list(&self, passage: &Passage<'_>, list: ListKind, met: &Met) {
        let ParsedRequest { id, call, cursor, .. } = passage.request;
        let decided = self.decide(&call, met);
        if !matches!(decided.ruling, Ruling::Allow) {
            // Refused where calls are. It is no call: it counts as a request.
            return self.carry_out(passage, met, &decided);
        }
        let begun = passage.begun;
        note_decided();
        let circumstances = met.circumstances(begun).decided_by(decided.policy.as_deref());
        let circumstances = circumstances.traced(passage.request.trace_id);
        let recorded = self.server.recorder.decision(&call, &decided.ruling, circumstances);
        let settled = recorded.and_then(|Recorded { receipt_id, ticket, .. }| {
            self.server.recorder.settle(ticket).map(|_| receipt_id)
        });
        self.end_wait(passage);
        let Ok(receipt_id) = settled else {
            return self.refuse_sized(id.raw(), ReasonCode::LedgerUnavailable, call.bytes);
        };
        self.server.tally.add(Counter::Requests);
        let visible = self.visible(list, met);
        let view = &met.situation().view;
        let answer = gate::view::answer_list(view, list, visible.as_deref(), cursor, id.raw());
        self.answer_client_in_parts(id.raw(), &answer.parts());
        let ours = begun.elapsed();
        self.server.recorder.outcome(
            receipt_id,
            if answer.is_error { OutcomeStatus::Error } else { OutcomeStatus::Success },
            answer.bytes(),
            ours,
            Duration::ZERO,
        );
    }

    /// What of a list the principal may see; `None` if that is all of it.
    fn visible(&self, list: ListKind, met: &Met) -> Option<Arc<Visible>> {
        let authorizer = self.server.path.authorizer()?;
        let entries = met.situation().view.list(list)?;
        Some(authorizer.visible(&met.principal, &met.situation().server, list, entries))
    }

    fn notification(&self, envelope: &Envelope<'_>, method: &str) {
        // Without an id it asks for no answer; a server may carry it out all the same, without a decision.
        if !matches!(Method::of(method), Method::Other) {
            self.remark("a request of the client without an id was dropped");
            return self.record_dropped(ReasonCode::BadFrame, envelope.raw.len());
        }
        if let Err(error) = self.look_for_changes(Instant::now()) {
            self.remark(&format!("the store cannot be read: {error}"));
        }
        let is_closed = self.situation().is_closed();
        match method {
            "notifications/initialized" if !self.may_announce() => {
                return self.wake(SessionWake::Initialized);
            }
            "notifications/initialized" => {}
            "notifications/cancelled" if !self.may_cancel(envelope, is_closed) => return,
            "notifications/cancelled" => {}
            _ if is_closed => return,
            _ => {}
        }
        self.gather_for_server(&FreeMessage::notification(envelope.raw, method));
        if method == "notifications/initialized" {
            self.send_gathered();
            self.wake(SessionWake::Initialized);
        }
    }

    /// Whether a cancellation goes on at once. A request that waits here takes it along. A server of which nothing else
    /// passes is still told to end what it was asked to do.
    fn may_cancel(&self, envelope: &Envelope<'_>, is_closed: bool) -> bool {
        let Some(id) = envelope.params.as_ref().and_then(|params| params.request_id) else {
            return !is_closed;
        };
        let until = Instant::now().checked_add(self.server.settings.cancelled_patience);
        let key = key_of(id);
        self.release_from_batch(&key);
        let cancelling = self.state().requests.cancel(self.at(&key), envelope.raw, until);
        match cancelling {
            Cancelling::Goes => true,
            Cancelling::Unknown => !is_closed,
            Cancelling::Follows => false,
            Cancelling::Resumes(key) => {
                self.resume(&key);
                false
            }
        }
    }

    /// Passes an answer on only for an unanswered request of the server.
    fn answer_of_client(&self, envelope: &Envelope<'_>, id: &Id<'_>) {
        if let Err(error) = self.look_for_changes(Instant::now()) {
            self.remark(&format!("the store cannot be read: {error}"));
        }
        let (is_ours, is_expected, is_closed) = {
            let mut state = self.state();
            let is_closed = state.view.known().situation.is_closed();
            (state.asked.remove(id.key()), state.server_requests.remove(id.key()), is_closed)
        };
        if is_ours {
            self.wake(SessionWake::ClientAnswered {
                id: id.key().to_vec(),
                message: envelope.raw.to_vec(),
            });
        } else if is_expected && is_closed {
            // What a model wrote for it is kept from a server that was stopped meanwhile.
            let data = serde_json::json!({"count": 1, "reason": "server_stopped"});
            self.record_event("mcp.response.dropped", &data);
        } else if is_expected {
            self.gather_for_server(&FreeMessage::answer(envelope.raw));
        }
    }

    /// Whether the session speaks the revision that has batches.
    pub(super) fn has_batches(&self) -> bool {
        let state = self.state();
        state.client.protocol_version.as_deref() == Some(BATCHES.as_str())
    }

    /// A batch is passed element by element: what is refused or waits does not come with the others. What is answered goes
    /// back as one again.
    fn batch_from_client(&self, batch: &Batch<'_>, begun: Instant) {
        let has_batches = self.has_batches();
        if has_batches {
            self.client_side().batches.open(batch);
        }
        for element in &batch.elements {
            match &element.message {
                Ok(envelope) if has_batches => {
                    self.take_one_from_client(envelope, begun, RequestContext::default());
                }
                Ok(envelope) => {
                    if let Kind::Request { id, method } = &envelope.kind {
                        let reason = ReasonCode::BadFrame;
                        self.deny(&id.to_owned(), method, element.raw.len(), reason, begun);
                    }
                }
                Err(error) => self.refuse_frame(error, element.raw, begun),
            }
        }
    }

    /// A frame that is not one message. A request is answered and recorded: without an id where none can be read.
    fn refuse_frame(&self, error: &ScanError, frame: &[u8], begun: Instant) {
        let bytes = frame.len();
        let reason =
            if error.is_ambiguous() { ReasonCode::AmbiguousMessage } else { ReasonCode::BadFrame };
        match &error.id {
            Some(id) => self.deny(id, "", bytes, reason, begun),
            None if !error.batch.is_empty() => {
                error.batch.iter().for_each(|id| self.deny(id, "", bytes, reason, begun));
            }
            None => {
                self.remark(&format!("a message of the client was dropped: {error}"));
                if error.is_unnamed_request || is_broken_request(error, frame) {
                    self.deny_unnamed(bytes, reason, begun);
                } else {
                    self.note_fault(reason, bytes as u64);
                    self.record_dropped(reason, bytes);
                }
            }
        }
    }

    /// Refuses a request whose id cannot be read in one way.
    fn deny_unnamed(&self, bytes: usize, reason: ReasonCode, begun: Instant) {
        let reason = self.record_denial("", bytes, reason, begun);
        self.refuse_sized(b"null", reason, bytes);
    }

    fn record_dropped(&self, reason: ReasonCode, bytes: usize) {
        let data = serde_json::json!({"reason": reason.as_str(), "size_bytes": bytes});
        self.record_event("mcp.message.dropped", &data);
    }

    /// Refuses a request before the checks: recorded, answered, nothing dispatched.
    pub(crate) fn deny(
        &self,
        id: &OwnedId,
        method: &str,
        bytes: usize,
        reason: ReasonCode,
        begun: Instant,
    ) {
        let reason = self.record_denial(method, bytes, reason, begun);
        self.refuse_sized(id.raw(), reason, bytes);
    }

    /// Records a refusal. Returns the reason that the client is told.
    pub(super) fn record_denial(
        &self,
        method: &str,
        bytes: usize,
        reason: ReasonCode,
        begun: Instant,
    ) -> ReasonCode {
        let kind = Method::of(method);
        let subject = Subject::Server;
        let call = Call {
            method,
            kind,
            target: None,
            subject,
            arguments: None,
            bytes,
            depth: 0,
            session: None,
        };
        let met = {
            let state = self.state();
            let known = state.view.known();
            Met { admission_age: None, ..Met::of(known, &state.client.principal, None) }
        };
        let ruling = Ruling::Deny(Denial::new(reason, ""));
        note_decided();
        let recorded = self.server.recorder.decision(&call, &ruling, met.circumstances(begun));
        let recorded = recorded.and_then(|recorded| self.server.recorder.settle(recorded.ticket));
        self.server.tally.add(Counter::Denied);
        if recorded.is_ok() { reason } else { ReasonCode::LedgerUnavailable }
    }
}

/// Whether a line that is no JSON was meant to be a request.
fn is_broken_request(error: &ScanError, line: &[u8]) -> bool {
    let is_broken = matches!(error.kind, ScanErrorKind::NotJson | ScanErrorKind::NotUtf8);
    is_broken && names_protocol(line) && !ids_of_broken(line).is_empty()
}

/// The version that a request of the stateless era names.
fn stateless_version(params: &Params<'_>) -> Option<String> {
    version_in(params.meta?)
}

/// Who a `_meta` says that the client is.
pub(super) fn client_in(meta: &[u8]) -> Option<String> {
    let member = |object, name: &str| {
        members(object).find(|(known, _)| known == name).map(|(_, value)| value)
    };
    serde_json::from_slice(member(member(meta, META_CLIENT)?, "name")?).ok()
}

/// The version in a `_meta`.
pub(crate) fn version_in(meta: &[u8]) -> Option<String> {
    let value = members(meta).find(|(name, _)| name == META_VERSION)?.1;
    serde_json::from_slice(value).ok()
}

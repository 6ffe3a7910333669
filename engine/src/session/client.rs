//! What the client sends.

use super::boundary::{note_decided, trip};
use super::input::{Asking, Returned};
use super::state::{Cancelling, State, Waiting};
use super::{Met, Passage, Session};
use crate::call::{Call, Method};
use crate::decide::{Denial, Ruling};
use crate::errands::Errand;
use crate::outlet::Outgoing;
use crate::reason::ReasonCode;
use crate::recorder::Recorded;
use crate::server::driver::Wake;
use contract::client::ClientCapabilities;
use contract::surface::ListKind;
use gate::counters::Counter;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wire::Revision;
use wire::envelope::{
    Batch, Envelope, Id, Kind, OwnedId, Params, ScanError, ScanErrorKind, Scanned, ids_of_broken,
    members, names_protocol, read_torn, scan,
};

/// The revision that has batches.
const BATCHES: Revision = Revision::March2025;
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// What each request carries where there is no session.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    List(ListKind),
    /// That the server's admission is checked, and then its list.
    Admission(Option<ListKind>),
}

impl Awaited {
    fn list(self) -> Option<ListKind> {
        match self {
            Awaited::List(list) => Some(list),
            Awaited::Admission(list) => list,
        }
    }
}

impl Session {
    /// Takes one frame of the client's. Where more of them were read already, what it leads to may wait for theirs,
    /// until [`Session::client_paused`] at the latest.
    pub fn client_said(&self, frame: &[u8], has_more: bool) {
        let begun = Instant::now();
        self.is_gathering.store(has_more, Ordering::SeqCst);
        if self.contain(frame.len(), || self.read_from_client(frame, begun)).is_none() {
            // Not even what it is could be told.
            let ids = ids_of_broken(frame);
            self.refuse_failed(ids.first().map_or(b"null", |id| id.raw()));
        }
    }

    fn read_from_client(&self, frame: &[u8], begun: Instant) {
        match scan(frame) {
            Ok(Scanned::Message(envelope)) => {
                // What passes keeps its bytes, white space around it too.
                let envelope = Envelope { raw: frame, ..envelope };
                self.take_one_from_client(&envelope, begun);
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
    fn take_one_from_client(&self, envelope: &Envelope<'_>, begun: Instant) {
        let bytes = envelope.raw.len();
        if self.is_broken() {
            self.close_broken();
            if let Kind::Request { id, .. } = &envelope.kind {
                self.note_fault(ReasonCode::Internal, bytes as u64);
                self.refuse_failed(id.raw());
            }
            return;
        }
        let taken = self.contain(bytes, || self.take_from_client(envelope, begun));
        if taken.is_none()
            && let Kind::Request { id, method } = &envelope.kind
        {
            self.release_failed(&id.to_owned(), method, bytes);
        }
    }

    fn take_from_client(&self, envelope: &Envelope<'_>, begun: Instant) {
        trip("client", envelope.raw);
        match &envelope.kind {
            Kind::Request { id, method } => match self.returned(envelope) {
                None => self.request(envelope, id, method, begun, Asking::Open),
                Some(returned) => self.take_returned(&returned, begun),
            },
            Kind::Notification { method } => self.notification(envelope, method),
            Kind::Response { id: Some(id), .. } => self.answer_of_client(envelope, id),
            // It answers nothing that anybody could name.
            Kind::Response { id: None, .. } => {}
        }
    }

    /// A call that a client came back with after a person was asked about it.
    fn take_returned(&self, returned: &Returned, begun: Instant) {
        let Ok(Scanned::Message(envelope)) = scan(&returned.frame) else { return };
        if let Kind::Request { id, method } = &envelope.kind {
            self.request(&envelope, id, method, begun, returned.asking);
        }
    }

    fn request(
        &self,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        method: &str,
        begun: Instant,
        asking: Asking,
    ) {
        let params = envelope.params.as_ref();
        let sort = Method::of(method);
        let call = call_of(envelope, method, sort);
        let version = params.and_then(|params| stateless_version(params));
        let outgoing = Outgoing {
            frame: envelope.raw,
            method: Some(method),
            id: Some(id.raw()),
            name: call.target.map(|target| target.key),
            protocol_version: version.as_deref(),
            ..Outgoing::default()
        };
        let is_handshake = sort == Method::Handshake;
        let has_waited = false;
        let passage = Passage { id, call, outgoing, is_handshake, begun, asking, has_waited };
        if let Err(reason) = self.prepare(&passage, sort, params) {
            return self.deny(&id.to_owned(), method, envelope.raw.len(), reason, begun);
        }
        // All that the request is decided on is taken together: each look under the lock costs as much as a check.
        let (met, is_admitted, is_fresh) = {
            let mut state = self.state();
            trip("state", envelope.raw);
            if let Some(params) = params.filter(|_| version.is_some()) {
                state.client.hear(params.meta);
            }
            if let Some(reason) = state.reason_against(id.key()) {
                drop(state);
                return self.deny(&id.to_owned(), method, envelope.raw.len(), reason, begun);
            }
            let freshness = sort.list().map(|list| state.freshness(list));
            let max_age = self.settings.relist_max_age;
            let met = self.met(&state, freshness.and_then(|freshness| freshness.age(begun)));
            let is_admitted = self.is_admission_fresh(&state, sort, begun);
            (met, is_admitted, freshness.is_none_or(|freshness| freshness.is_fresh(begun, max_age)))
        };
        // Skip the re-list: an unadmitted server must not be contacted.
        let is_asked = !met.situation.admission.is_closed();
        match (sort, sort.list()) {
            // The allowlist comes before admission: what it refuses needs neither a check nor a list.
            (Method::Use(_), _) if (!is_admitted || !is_fresh) && self.is_off_list(&call, &met) => {
                self.pass(&passage, &met);
            }
            _ if !is_admitted => self.wait_for(&passage, Awaited::Admission(sort.list()), envelope),
            _ if self.answers_itself(sort, &met.situation) => {
                self.answer_unadmitted(&passage, sort, params.map(|params| params.raw), &met);
            }
            (_, Some(list)) if !is_fresh && is_asked => {
                self.wait_for(&passage, Awaited::List(list), envelope);
            }
            (Method::List(list), _) => self.answer_list(&passage, list, envelope, &met),
            _ => self.pass(&passage, &met),
        }
    }

    fn met(&self, state: &State, view_age: Option<Duration>) -> Met {
        Met {
            situation: state.situation.clone(),
            principal: state.client.principal.clone(),
            view_age,
            admission_age: self.admission_age(state),
        }
    }

    /// What has to be known before a request is decided on; a reason, where it cannot be.
    fn prepare(
        &self,
        passage: &Passage<'_>,
        sort: Method,
        params: Option<&Params<'_>>,
    ) -> Result<(), ReasonCode> {
        match sort {
            Method::Handshake if passage.call.method == "initialize" => self.meet(params),
            Method::Handshake | Method::Ping => {}
            Method::List(_) | Method::Use(_) | Method::Other => {
                if let Err(error) = self.look_for_changes(passage.begun) {
                    self.remark(&format!("the store cannot be read: {error}"));
                    // A list may be shown as it was last judged; nothing is asked of the server on that.
                    if !matches!(sort, Method::List(_)) {
                        return Err(ReasonCode::Internal);
                    }
                }
            }
        }
        if passage.call.method == "logging/setLevel" {
            let level = params.and_then(|params| params.level.as_deref());
            self.state().client.log_level = level.map(str::to_owned);
        }
        Ok(())
    }

    /// Remembers who the client says it is, and what it can do.
    fn meet(&self, params: Option<&Params<'_>>) {
        let member = |object: &[u8], name: &str| {
            members(object).find(|(known, _)| known == name).map(|(_, value)| value.to_vec())
        };
        let Some(params) = params else { return };
        let name = member(params.raw, "clientInfo").and_then(|info| member(&info, "name"));
        let version = member(params.raw, "protocolVersion");
        let version = version.and_then(|version| serde_json::from_slice(&version).ok());
        let capabilities = member(params.raw, "capabilities").unwrap_or_default();
        let can_be_asked =
            member(&capabilities, "elicitation").is_some_and(|elicitation| elicitation != b"null");
        // What is too large or cannot be read in one way is not remembered: nothing is decided on it.
        let greeted_with = ClientCapabilities::read(&capabilities).ok();
        let mut state = self.state();
        let client = name.and_then(|name| serde_json::from_slice(&name).ok());
        state.client.principal = Arc::new(state.client.principal.with_client(client));
        state.client.can_be_asked = can_be_asked;
        state.client.greeted_with = greeted_with;
        state.client.asked_version = version;
        // One that tried without a session before begins one now.
        state.client.stateless_meta = None;
    }

    fn wait_for(&self, passage: &Passage<'_>, awaited: Awaited, envelope: &Envelope<'_>) {
        let id = passage.id.to_owned();
        let has_room = {
            let mut state = self.state();
            let has_room = state.has_room_to_wait(envelope.raw.len());
            if has_room {
                state.wait(Waiting {
                    id: id.clone(),
                    frame: envelope.raw.into(),
                    list: awaited.list(),
                    is_unadmitted: matches!(awaited, Awaited::Admission(_)),
                    is_handshake: passage.is_handshake,
                    begun: passage.begun,
                    asking: passage.asking,
                    asked_about: None,
                    cancellation: None,
                    is_claimed: false,
                });
            }
            has_room
        };
        if has_room {
            self.wake(match awaited {
                Awaited::List(list) => Wake::Relist(list),
                Awaited::Admission(_) => Wake::Admit,
            });
        } else {
            let reason = ReasonCode::RateLimited;
            self.deny(&id, passage.call.method, envelope.raw.len(), reason, passage.begun);
        }
    }

    /// Goes on with a request that was released. What has to be brought to the server is brought by somebody who may wait
    /// for it; everything else is answered at once.
    pub(crate) fn resume_soon(&self, id: OwnedId) {
        let frame = self.state().released.get(id.key()).map(|waiting| waiting.frame.clone());
        if frame.is_some_and(|frame| self.goes_up(&frame)) {
            self.errand(Errand::Resume(id));
        } else {
            self.resume(&id);
        }
    }

    fn goes_up(&self, frame: &[u8]) -> bool {
        let Ok(Scanned::Message(envelope)) = scan(frame) else { return false };
        let Kind::Request { method, .. } = &envelope.kind else { return false };
        let sort = Method::of(method);
        let call = call_of(&envelope, method, sort);
        let met = self.met(&self.state(), None);
        !matches!(sort, Method::List(_))
            && !self.answers_itself(sort, &met.situation)
            && matches!(self.decide(&call, &met), Ruling::Allow)
    }

    /// Decides on a request that was released, unless somebody else does or it came to its end meanwhile.
    pub(crate) fn resume(&self, id: &OwnedId) {
        let Some(waiting) = self.state().claim(id.key()) else { return };
        let Ok(Scanned::Message(envelope)) = scan(&waiting.frame) else { return };
        let Kind::Request { id, method } = &envelope.kind else { return };
        let sort = Method::of(method);
        let call = call_of(&envelope, method, sort);
        let version = envelope.params.as_ref().and_then(|params| stateless_version(params));
        let outgoing = Outgoing {
            frame: &waiting.frame,
            method: Some(method),
            id: Some(id.raw()),
            name: call.target.map(|target| target.key),
            protocol_version: version.as_deref(),
            ..Outgoing::default()
        };
        let begun = waiting.begun;
        // About a call that nobody waits for nobody is asked.
        let asking = if waiting.cancellation.is_some() { Asking::Done } else { waiting.asking };
        let (is_handshake, has_waited) = (sort == Method::Handshake, true);
        let passage = Passage { id, call, outgoing, is_handshake, begun, asking, has_waited };
        let met = {
            let state = self.state();
            let freshness = waiting.list.map(|list| state.freshness(list));
            let age = freshness.and_then(|freshness| freshness.age(Instant::now()));
            self.met(&state, age)
        };
        match sort {
            Method::List(list) => self.answer_list(&passage, list, &envelope, &met),
            _ if self.answers_itself(sort, &met.situation) => {
                let params = envelope.params.as_ref().map(|params| params.raw);
                self.answer_unadmitted(&passage, sort, params, &met);
            }
            _ => {
                self.pass(&passage, &met);
                self.cancel_behind(id);
                self.send_gathered();
            }
        }
    }

    /// Cancels a call that was cancelled before it left. One that was refused has nothing to be cancelled.
    fn cancel_behind(&self, id: &Id<'_>) {
        let until = Instant::now().checked_add(self.settings.cancelled_patience);
        let cancellation = self.state().left(id.key(), until);
        if let Some(frame) = &cancellation {
            let method = Some("notifications/cancelled");
            self.gather_for_server(&Outgoing { frame, method, ..Outgoing::default() });
        }
    }

    /// A request that waited is answered here, so that it has come to its end.
    pub(super) fn end_wait(&self, passage: &Passage<'_>) {
        if passage.has_waited {
            self.state().released.remove(passage.id.key());
        }
    }

    /// Answers a list from the view. It is a request like others: it has a decision, and an outcome or a refusal.
    fn answer_list(
        &self,
        passage: &Passage<'_>,
        list: ListKind,
        envelope: &Envelope<'_>,
        met: &Met,
    ) {
        let ruling = self.decide(&passage.call, met);
        if !matches!(ruling, Ruling::Allow) {
            // Refused where calls are, and decided there on the same value. It is no call: it counts as a request.
            return self.pass(passage, met);
        }
        let (id, begun) = (passage.id.raw(), passage.begun);
        note_decided();
        let recorded = self.recorder.decision(&passage.call, &ruling, met.circumstances(begun));
        let settled = recorded.and_then(|Recorded { receipt_id, ticket, .. }| {
            self.recorder.settle(ticket).map(|_| receipt_id)
        });
        self.end_wait(passage);
        let Ok(receipt_id) = settled else {
            return self.refuse_sized(id, ReasonCode::LedgerUnavailable, passage.call.bytes);
        };
        self.tally.add(Counter::Requests);
        let cursor = envelope.params.as_ref().and_then(|params| params.cursor);
        let answer = crate::lists::answer(&met.situation.view, list, cursor, id);
        self.tell_client_in_parts(&answer.parts());
        let ours = begun.elapsed();
        self.recorder.outcome(receipt_id, answer.status, answer.bytes(), ours, Duration::ZERO);
    }

    fn notification(&self, envelope: &Envelope<'_>, method: &str) {
        // Without an id it asks for no answer; a server may carry it out all the same, and nobody would have decided.
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
                return self.wake(Wake::Initialized);
            }
            "notifications/initialized" => {}
            "notifications/cancelled" if !self.may_cancel(envelope, is_closed) => return,
            "notifications/cancelled" => {}
            _ if is_closed => return,
            _ => {}
        }
        let outgoing =
            Outgoing { frame: envelope.raw, method: Some(method), ..Outgoing::default() };
        self.gather_for_server(&outgoing);
        if method == "notifications/initialized" {
            self.send_gathered();
            self.wake(Wake::Initialized);
        }
    }

    /// Whether a cancellation goes on at once. A request that waits here takes it along. A server of which nothing else
    /// passes is still told to end what it was asked to do.
    fn may_cancel(&self, envelope: &Envelope<'_>, is_closed: bool) -> bool {
        let Some(id) = envelope.params.as_ref().and_then(|params| params.request_id) else {
            return !is_closed;
        };
        let until = Instant::now().checked_add(self.settings.cancelled_patience);
        let key = key_of(id);
        self.release_from_batch(&key);
        let cancelling = self.state().cancel(&key, envelope.raw, until);
        match cancelling {
            Cancelling::Goes => true,
            Cancelling::Unknown => !is_closed,
            Cancelling::Follows => false,
            Cancelling::Resumes(id) => {
                self.resume_soon(id);
                false
            }
        }
    }

    /// An answer passes only for a request that the server made and nobody answered yet.
    fn answer_of_client(&self, envelope: &Envelope<'_>, id: &Id<'_>) {
        if let Err(error) = self.look_for_changes(Instant::now()) {
            self.remark(&format!("the store cannot be read: {error}"));
        }
        let (is_ours, is_expected, is_closed) = {
            let mut state = self.state();
            let is_closed = state.situation.is_closed();
            (state.asked.remove(id.key()), state.server_requests.remove(id.key()), is_closed)
        };
        if is_ours {
            self.wake(Wake::ClientAnswered {
                id: id.key().to_vec(),
                message: envelope.raw.to_vec(),
            });
        } else if is_expected && is_closed {
            // What a model wrote for it is kept from a server that was stopped meanwhile.
            let data = serde_json::json!({"count": 1, "reason": "server_stopped"});
            self.record_event("mcp.response.dropped", &data);
        } else if is_expected {
            self.gather_for_server(&Outgoing { frame: envelope.raw, ..Outgoing::default() });
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
                Ok(envelope) if has_batches => self.take_one_from_client(envelope, begun),
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

    /// Answers what the client is told.
    pub(super) fn record_denial(
        &self,
        method: &str,
        bytes: usize,
        reason: ReasonCode,
        begun: Instant,
    ) -> ReasonCode {
        let kind = Method::of(method);
        let call = Call { method, kind, target: None, arguments: None, bytes, depth: 0 };
        let met = Met { admission_age: None, ..self.met(&self.state(), None) };
        let ruling = Ruling::Deny(Denial { reason, message: String::new() });
        note_decided();
        let recorded = self.recorder.decision(&call, &ruling, met.circumstances(begun));
        let recorded = recorded.and_then(|recorded| self.recorder.settle(recorded.ticket));
        self.tally.add(Counter::Denied);
        if recorded.is_ok() { reason } else { ReasonCode::LedgerUnavailable }
    }

    /// The same for a request that waited for a view that never came.
    pub(crate) fn refuse_unseen(&self, id: &OwnedId, reason: ReasonCode) {
        let Some(waiting) = self.state().claim(id.key()) else { return };
        let reason = self.record_unseen(&waiting, reason);
        self.state().released.remove(id.key());
        self.refuse_sized(id.raw(), reason, waiting.frame.len());
    }

    /// Answers what the client is told.
    pub(crate) fn record_unseen(&self, waiting: &Waiting, reason: ReasonCode) -> ReasonCode {
        let method = match scan(&waiting.frame) {
            Ok(Scanned::Message(Envelope { kind: Kind::Request { method, .. }, .. })) => {
                method.into_owned()
            }
            _ => String::new(),
        };
        self.record_denial(&method, waiting.frame.len(), reason, waiting.begun)
    }
}

/// Whether a line that is no JSON was meant to be a request.
fn is_broken_request(error: &ScanError, line: &[u8]) -> bool {
    let is_broken = matches!(error.kind, ScanErrorKind::NotJson | ScanErrorKind::NotUtf8);
    is_broken && names_protocol(line) && !ids_of_broken(line).is_empty()
}

fn call_of<'a>(envelope: &'a Envelope<'_>, method: &'a str, sort: Method) -> Call<'a> {
    let params = envelope.params.as_ref();
    Call {
        method,
        kind: sort,
        target: sort.target(params),
        arguments: params.and_then(|params| params.arguments),
        bytes: envelope.raw.len(),
        depth: envelope.depth,
    }
}

/// What an id in the parameters of a message is compared by, as [`Id::key`] has it.
pub(super) fn key_of(raw: &[u8]) -> Vec<u8> {
    let text: Option<String> = serde_json::from_slice(raw).ok();
    text.map_or_else(|| raw.to_vec(), |text| format!("\"{text}\"").into_bytes())
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

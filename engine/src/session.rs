//! One client and one server, with the gate between them.
//!
//! Two threads deliver messages, [`Session::client_said`] and [`Session::server_said`]; a third,
//! the keeper, maintains the view. Each thread writes what it passes on itself, so no message goes
//! through a queue.
//!
//! INVARIANT: the thread that delivers the server's messages never writes to the server. So a
//! server that stops reading until its output is read does not block the session.

mod approving;
mod asking;
pub(crate) mod boundary;
mod client;
mod corpus;
mod handshake;
mod outgoing;
mod overdue;
mod resuming;
mod server;
pub mod state;
mod stopped;
mod unadmitted;

pub(crate) use client::version_in;
pub use resuming::DecidedRequest;
pub use server::OwnAnswer;
pub(crate) use unadmitted::LateGreeting;

use crate::batches::OpenBatches;
use crate::call::{Call, Method};
use crate::decide::{ApprovalGrant, Decided, Ruling};
use crate::errands::Errand;
use crate::judge::Instance;
use crate::outlet::{ClientOutlet, Outgoing, ServerOutlet};
use crate::principal::Principal;
use crate::reason::ReasonCode;
use crate::recorder::{Circumstances, Recorded};
use crate::refusal::Refusal;
use crate::requests::{
    Asked, Asking, Awaited, Dispatched, DispatchedKind, EndedRequests, OwnedRequest, ParsedRequest,
    Refused, RequestRef, SessionKey,
};
use crate::server::driver::{SessionWake, Wake};
use crate::server::{Known, Server, ServerView, ViewError};
use crate::situation::Situation;
use arc_swap::Guard;
use boundary::Faults;
use contract::surface::EntryId;
use gate::counters::Counter;
use gate::reason::Reason;
use gate::view::{HeldTools, Standing};
use ledger::record::{OutcomeStatus, ReceiptId};
use outgoing::{ClientSide, Last, ServerSide, with};
use serde_json::json;
use state::SessionState;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use store::receipts::Ticket;
use wire::remote::ParameterHeader;

/// Has something sent to the server by a thread or task that may block there.
pub type Errands = dyn Fn(SessionKey, Errand) + Send + Sync;

pub struct Session {
    key: SessionKey,
    pub(crate) server: Arc<Server>,
    faults: Faults,
    state: Mutex<SessionState>,
    to_client: Mutex<ClientSide>,
    to_server: Mutex<ServerSide>,
    /// Whether the store was checked since the session last waited for the client.
    is_current: AtomicBool,
    /// Whether more of the client's messages have already been read.
    is_gathering: AtomicBool,
    /// Whether there may be outcomes that are not written yet.
    has_unsettled: AtomicBool,
    /// Whether the client has ended, so that no further requests are sent to the server.
    is_closing: AtomicBool,
    /// How many threads are resuming a request that waited.
    resuming: AtomicUsize,
    /// The tools that had a call held by the call.
    held_tools: HeldTools,
    errands: Arc<Errands>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The parts of a session.
pub struct Parts {
    pub server: Arc<Server>,
    /// Sessions whose requests go to the same process or endpoint share its lists.
    pub instance: Instance,
    pub principal: Principal,
    /// If several sessions share a server, writing to a client must not block, because the server's
    /// driver does it too.
    pub to_client: Box<dyn ClientOutlet>,
    pub to_server: Box<dyn ServerOutlet>,
    pub errands: Arc<Errands>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A request on its way through the gate.
#[derive(Clone, Copy)]
struct Passage<'a> {
    request: ParsedRequest<'a>,
    begun: Instant,
    asking: Asking,
    /// When it times out. A handshake has a separate limit, counted from when it is sent.
    deadline: Option<Instant>,
    /// Whether it waited; if so, this thread has claimed its entry in the table.
    has_waited: bool,
}

/// A consistent snapshot of what a request is decided on.
#[derive(Debug)]
pub(crate) struct Met {
    /// Not a counted reference, because threads that share it would contend for the counter.
    known: Guard<Arc<Known>>,
    principal: Arc<Principal>,
    view_age: Option<Duration>,
    admission_age: Option<Duration>,
}

impl Met {
    fn of(known: Guard<Arc<Known>>, principal: &Arc<Principal>, view_age: Option<Duration>) -> Met {
        let admission_age = known.checked.as_ref().map(|checked| checked.began.elapsed());
        Met { known, principal: principal.clone(), view_age, admission_age }
    }

    fn situation(&self) -> &Arc<Situation> {
        &self.known.situation
    }

    /// Converts to a counted reference, for longer use: each thread has only a few slots for the
    /// other kind.
    fn kept(self) -> Met {
        Met { known: Guard::from_inner(Guard::into_inner(self.known)), ..self }
    }

    fn circumstances(&self, begun: Instant) -> Circumstances<'_> {
        Circumstances {
            situation: self.situation(),
            principal: &self.principal,
            trace_id: None,
            policy_id: None,
            approval: None,
            view_age: self.view_age,
            admission_age: self.admission_age,
            begun,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.server.remove_session(self.key);
    }
}

impl Session {
    /// Opens a session on a server.
    pub fn open(parts: Parts) -> Result<Arc<Session>, ViewError> {
        let Parts { server, instance, principal, to_client, to_server, errands } = parts;
        let view = server.view(instance, None)?;
        Ok(server.clone().add_session(|key| Session {
            key,
            server,
            faults: Faults::default(),
            state: Mutex::new(SessionState::new(view, principal)),
            to_client: Mutex::new(ClientSide {
                outlet: to_client,
                batches: OpenBatches::default(),
            }),
            to_server: Mutex::new(ServerSide {
                outlet: to_server,
                gathered: Vec::new(),
                ticket: None,
            }),
            is_current: AtomicBool::new(false),
            is_gathering: AtomicBool::new(false),
            has_unsettled: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            resuming: AtomicUsize::new(0),
            held_tools: HeldTools::default(),
            errands,
        }))
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Whether one of the gate's own requests with this raw id is pending.
    pub fn expects(&self, id: &[u8]) -> bool {
        self.state().requests.has_own(id)
    }

    pub fn key(&self) -> SessionKey {
        self.key
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.lock(&self.state)
    }

    /// The key for looking up a request of this session.
    pub(crate) fn at<'a>(&self, id: &'a [u8]) -> RequestRef<'a> {
        RequestRef { session: self.key, id }
    }

    pub(crate) fn wake(&self, wake: SessionWake) {
        self.server.wake(Wake::Session(self.key, wake));
    }

    /// Has something sent to the server by a thread that may block there.
    pub(crate) fn errand(&self, errand: Errand) {
        (self.errands)(self.key, errand);
    }

    pub(crate) fn remark(&self, sentence: &str) {
        self.server.remark(sentence);
    }

    /// The view that this session is shown.
    pub(crate) fn view(&self) -> Arc<ServerView> {
        self.state().view.clone()
    }

    pub(crate) fn has_view(&self, view: &Arc<ServerView>) -> bool {
        self.state.lock().is_ok_and(|state| Arc::ptr_eq(&state.view, view))
    }

    /// Sends a note to the person behind the client: as a log message if the client requested
    /// those, otherwise as a remark.
    pub(crate) fn note(&self, sentence: &str) {
        let is_listening = {
            let state = self.state();
            let level = state.client.log_level.as_deref();
            level.is_some_and(|level| matches!(level, "debug" | "info" | "notice" | "warning"))
        };
        if is_listening {
            let params = json!({"level": "warning", "logger": "holdpoint", "data": sentence});
            let message = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#
            );
            self.tell_client(message.as_bytes());
        } else {
            self.remark(sentence);
        }
    }

    /// Records an event that is not a request.
    pub(crate) fn record_event(&self, name: &str, data: &serde_json::Value) {
        self.server.recorder.event(self.server.id.as_str(), name, None, data);
    }

    pub(crate) fn situation(&self) -> Arc<Situation> {
        self.state().view.known().situation.clone()
    }

    fn look_for_changes(&self, begun: Instant) -> Result<(), store::StoreError> {
        self.server.look_for_changes(&self.is_current, begun)
    }

    fn decide(&self, call: &Call<'_>, met: &Met) -> Decided {
        let (principal, situation) = (&met.principal, met.situation());
        self.server.path.decide(call, principal, situation, &self.held_tools, Instant::now())
    }

    /// Like [`Self::decide`], for a call that was already counted when it arrived.
    fn decide_again(&self, call: &Call<'_>, met: &Met) -> Decided {
        let (principal, situation) = (&met.principal, met.situation());
        self.server.path.foresee(call, principal, situation, &self.held_tools, Instant::now())
    }

    /// Decides on a request, records the decision, and forwards or refuses the request.
    fn pass(&self, passage: &Passage<'_>, met: &Met) {
        let decided = self.decide_approved(passage, met);
        self.carry_out(passage, met, &decided);
    }

    /// Records the decision on a request, and forwards or refuses the request.
    fn carry_out(&self, passage: &Passage<'_>, met: &Met, decided: &Decided) {
        let Decided { ruling, policy, grant, parked, .. } = decided;
        let situation = met.situation();
        let (begun, call, id) = (passage.begun, passage.request.call, passage.request.id);
        self.remember_hold(&call, ruling);
        if let Ruling::Hold(standing) = ruling
            && self.may_ask(passage, standing)
            && self.ask(passage, standing)
        {
            return;
        }
        if let Some(id) = parked
            && self.park(passage, id)
        {
            return;
        }
        boundary::note_decided();
        let circumstances = met.circumstances(begun).decided_by(policy.as_deref());
        let circumstances = circumstances.traced(passage.request.trace_id);
        let circumstances = circumstances.approved(grant.as_deref(), ruling);
        let recorded = match self.server.recorder.decision(&call, ruling, circumstances) {
            Ok(recorded) => recorded,
            Err(error) => {
                self.remark(&format!("a call was refused because it cannot be recorded: {error}"));
                self.server.tally.add(Counter::Failed);
                self.end_wait(passage);
                return self.refuse_sized(id.raw(), ReasonCode::LedgerUnavailable, call.bytes);
            }
        };
        let Recorded { receipt_id, ticket, decided } = recorded;
        match ruling {
            Ruling::Allow => {
                let dispatched = self.dispatched(passage, receipt_id, decided);
                let parameters = parameter_headers(&call, situation);
                let mark = Some(receipt_id.0);
                let outgoing =
                    Outgoing { parameters: &parameters, mark, ..passage.request.outgoing() };
                self.dispatch(passage, &outgoing, dispatched, grant.as_deref(), ticket);
            }
            Ruling::Hold(standing) => {
                if !self.settle_refusal(passage, ticket) {
                    return;
                }
                self.server.alarm_once();
                let message = self.input_required(passage, standing).unwrap_or_else(|| {
                    let tool = call.target.map(|target| target.key);
                    let server = situation.server.as_str();
                    let refusal = Refusal::held(standing, server, tool, &receipt_id.to_string());
                    refusal.to_message(id.raw())
                });
                self.answer_client(id.raw(), &message);
            }
            Ruling::Deny(denial) => {
                if !self.settle_refusal(passage, ticket) {
                    return;
                }
                let server = situation.server.as_str();
                self.record_tool_denial(&call, denial, server, receipt_id);
                let asked = self.allowance_required(passage, parked.as_ref());
                let message = asked.unwrap_or_else(|| {
                    let refusal = Refusal::denied(denial, server, &receipt_id.to_string());
                    refusal.to_message(id.raw())
                });
                self.answer_client(id.raw(), &message);
            }
        }
        if let Some(target) = call.target {
            let ours = decided.saturating_duration_since(begun);
            self.server.tally.call(&call, ruling, Some(situation.view.find(target)), ours);
        } else {
            self.server.tally.add(Counter::Requests);
        }
    }

    /// After a call was held by the call, every call of its tool is held for the rest of the
    /// session.
    fn remember_hold(&self, call: &Call<'_>, ruling: &Ruling) {
        let Ruling::Hold(standing) = ruling else { return };
        if let Some(target) = call.target {
            self.held_tools.note(target, standing);
        }
    }

    /// Writes the decision on a refused request before the client gets the refusal. Returns whether
    /// it was written; if not, the request has been answered with a fault.
    fn settle_refusal(&self, passage: &Passage<'_>, ticket: Ticket) -> bool {
        let settled = self.server.recorder.settle(ticket);
        self.end_wait(passage);
        if settled.is_err() {
            self.server.tally.add(Counter::Failed);
            let (id, bytes) = (passage.request.id.raw(), passage.request.call.bytes);
            self.refuse_sized(id, ReasonCode::LedgerUnavailable, bytes);
        }
        settled.is_ok()
    }

    /// What the table stores for a dispatched request.
    fn dispatched(
        &self,
        passage: &Passage<'_>,
        receipt_id: ReceiptId,
        decided: Instant,
    ) -> Dispatched {
        let call = &passage.request.call;
        let kind = match (call.kind, call.target) {
            (Method::Handshake, _) => DispatchedKind::Handshake,
            (Method::Ping, _) => DispatchedKind::Ping,
            (_, Some(_)) => DispatchedKind::Call,
            (_, None) => DispatchedKind::Other,
        };
        let deadline = match kind {
            DispatchedKind::Handshake => decided.checked_add(self.server.settings.start_timeout),
            DispatchedKind::Ping | DispatchedKind::Call | DispatchedKind::Other => passage.deadline,
        };
        Dispatched {
            receipt_id,
            kind,
            bytes: call.bytes,
            begun: passage.begun,
            dispatched: decided,
            deadline,
            doubted_until: None,
        }
    }

    /// Whether a person at the client may resolve it: it is about one entry, and they were not
    /// asked about this call yet.
    fn may_ask(&self, passage: &Passage<'_>, standing: &Standing) -> bool {
        self.server.settings.asks_in_client
            && is_settleable(standing)
            && passage.asking == Asking::Open
            && passage.request.call.target.is_some()
            && self.state().client.can_be_asked
    }

    /// Has the person asked about a call, which waits for the answer. Returns whether that was
    /// possible; if not, the call is refused like one that no person can be asked about.
    fn ask(&self, passage: &Passage<'_>, standing: &Standing) -> bool {
        let Some(target) = passage.request.call.target else { return false };
        let entry = EntryId::new(target.entry_type, target.key);
        if passage.has_waited {
            let at = self.at(passage.request.id.key());
            match self.state().requests.ask(at, entry.clone()) {
                Asked::Waits => {}
                Asked::Cancelled => return false,
            }
        } else if !self.wait_for(passage, Awaited::Person(entry.clone())) {
            return true;
        }
        let banner = standing.message().to_owned();
        self.wake(SessionWake::Ask { entry, banner });
        true
    }

    /// Puts a request that has not waited yet into the table to wait. Returns whether that was
    /// possible; if not, the request has been refused.
    fn wait_for(&self, passage: &Passage<'_>, awaited: Awaited) -> bool {
        // A person may take longer than a server, and a server may take longer to start than to
        // answer a call.
        let (asking, deadline) = match awaited {
            Awaited::Person(_) | Awaited::Approval => (Asking::Done, None),
            Awaited::List(_) | Awaited::Admission | Awaited::Corpus => {
                (passage.asking, passage.deadline)
            }
        };
        let waits = OwnedRequest::of(&passage.request, passage.begun)
            .ok_or(ReasonCode::Internal)
            .and_then(|request| {
                let requests = &mut self.state().requests;
                let waits = requests.wait(self.key, request, awaited, asking, deadline);
                waits.map_err(Refused::reason)
            });
        if let Err(reason) = waits {
            let (id, call) = (passage.request.id.to_owned(), &passage.request.call);
            self.deny(&id, call.method, call.bytes, reason, passage.begun);
        }
        waits.is_ok()
    }

    /// INVARIANT: a request is in the table before its first byte is written, so its answer is
    /// always expected.
    fn dispatch(
        &self,
        passage: &Passage<'_>,
        outgoing: &Outgoing<'_>,
        dispatched: Dispatched,
        grant: Option<&ApprovalGrant>,
        ticket: Ticket,
    ) {
        let id = passage.request.id;
        let entered = {
            let requests = &mut self.state().requests;
            if passage.has_waited {
                requests.leave(self.at(id.key()), dispatched)
            } else {
                requests.dispatch(self.key, id.to_owned(), dispatched)
            }
        };
        if let Err(refused) = entered {
            let (receipt_id, status) = (dispatched.receipt_id, OutcomeStatus::Error);
            self.server.recorder.outcome(receipt_id, status, 0, Duration::ZERO, Duration::ZERO);
            self.end_wait(passage);
            return self.refuse_sized(id.raw(), refused.reason(), passage.request.call.bytes);
        }
        if grant.is_none() && self.is_gathering.load(Ordering::Acquire) {
            let is_enough = {
                let mut side = self.server_side();
                side.gathered.push(id.to_owned());
                // If one decision cannot be written, none of the gathered requests is sent.
                side.ticket = Some(with(side.ticket.take(), ticket));
                side.outlet.gather(outgoing)
            };
            if is_enough {
                self.send_gathered();
            }
        } else {
            // It is the last message, or has a grant to use up: it is sent directly from the
            // reader's buffer.
            self.send_with(Some((Last { id, outgoing, grant }, ticket)));
        }
    }

    /// Removes a request without a recorded decision. It cannot have an outcome, as if it had never
    /// existed.
    fn drop_unrecorded(&self, key: &[u8]) {
        let found = self.state().requests.take_dispatched(self.at(key));
        self.server.tally.add(Counter::Failed);
        if let Some((id, dispatched)) = found {
            self.refuse_sized(id.raw(), ReasonCode::LedgerUnavailable, dispatched.bytes);
        }
    }

    /// Answers with a fault that is not about a particular message.
    pub(crate) fn refuse(&self, id: &[u8], reason: ReasonCode) {
        self.refuse_sized(id, reason, 0);
    }

    /// Answers with a fault. `bytes` is the length of the message, for the error log.
    pub(crate) fn refuse_sized(&self, id: &[u8], reason: ReasonCode, bytes: usize) {
        self.note_fault(reason, bytes as u64);
        self.refuse_with(id, reason, self.words_of(reason));
    }

    fn words_of(&self, reason: ReasonCode) -> &'static str {
        if reason == ReasonCode::LedgerUnavailable && self.server.recorder.is_disk_full() {
            WORDS_OF_FULL_DISK
        } else {
            words_of(reason)
        }
    }

    pub(crate) fn note_fault(&self, reason: ReasonCode, bytes: u64) {
        self.server.errors.note(reason, bytes);
    }

    /// Answers with a fault that was already recorded, with this message.
    fn refuse_with(&self, id: &[u8], reason: ReasonCode, words: &str) {
        let refusal = Refusal::fault(reason, words, self.server.id.as_str());
        self.answer_client(id, &refusal.to_message(id));
    }

    /// Handles the end of the client: its requests end, and the server drops the session.
    pub fn end(&self) {
        self.contain(0, || self.end_all(ReasonCode::UpstreamUnreachable));
        self.server.remove_session(self.key);
    }

    /// Handles the end of the server: every pending request is answered, and so will be all later
    /// ones.
    pub fn server_ended(&self) {
        self.contain(0, || self.end_all(ReasonCode::UpstreamUnreachable));
        self.wake(SessionWake::ServerEnded);
    }

    /// Ends the session because of its own faults.
    pub(crate) fn end_by_fault(&self) {
        self.contain(0, || self.end_all(ReasonCode::Internal));
        self.close_broken();
    }

    fn end_all(&self, reason: ReasonCode) {
        let EndedRequests { dispatched, kept } = self.state().requests.end_all();
        // Everything is recorded before the client is notified, since it may not be reading.
        for (_, dispatched) in &dispatched {
            let theirs = dispatched.dispatched.elapsed();
            let (receipt_id, status) = (dispatched.receipt_id, OutcomeStatus::Error);
            self.server.recorder.outcome(receipt_id, status, 0, Duration::ZERO, theirs);
            self.server.tally.add(Counter::Failed);
        }
        let unseen: Vec<ReasonCode> =
            kept.iter().map(|(_, request)| self.record_unseen(request, reason)).collect();
        let _ = self.server.recorder.flush();
        for (key, dispatched) in &dispatched {
            self.refuse_sized(key.id.raw(), reason, dispatched.bytes);
        }
        for ((key, request), reason) in kept.iter().zip(unseen) {
            self.refuse_sized(key.id.raw(), reason, request.bytes());
        }
        self.refuse_handshakes(reason);
    }
}

/// The arguments that are also sent as headers. The path has already checked that this is possible.
fn parameter_headers(call: &Call<'_>, situation: &Situation) -> Vec<ParameterHeader> {
    let asked = call.target.and_then(|target| situation.mirrorings.get(target));
    let asked = asked.and_then(|asked| asked.as_ref().ok());
    asked.and_then(|asked| asked.headers(call.arguments).ok()).unwrap_or_default()
}

/// Whether it is about one entry that a person may approve.
fn is_settleable(standing: &Standing) -> bool {
    matches!(
        standing.reason,
        Some(Reason::ContractDrift | Reason::NoPin | Reason::Marker | Reason::UnapprovedParameter)
    )
}

/// The message if the disk with the receipts is full.
const WORDS_OF_FULL_DISK: &str = "○ holdpoint — the disk is full: the call could not be recorded, so it was not made. \
    A person makes room on the disk that the receipts are on.";

/// The message for a fault.
fn words_of(reason: ReasonCode) -> &'static str {
    match reason {
        ReasonCode::UpstreamUnreachable => {
            "○ holdpoint — the server has ended or cannot be reached. A person restarts it, in the client or where it runs."
        }
        ReasonCode::UpstreamUnreadable => {
            "○ holdpoint — the server's answer cannot be read in exactly one way, or is too large"
        }
        ReasonCode::Timeout => "○ holdpoint — the server did not answer in time",
        ReasonCode::LedgerUnavailable => {
            "○ holdpoint — the call could not be recorded, so it was not made. A person finds out why with `holdpoint doctor`."
        }
        ReasonCode::CredentialUnavailable => {
            "○ holdpoint — the server does not accept the gateway's credential for you"
        }
        ReasonCode::ApprovalRequired => {
            "○ holdpoint — the approval of this call could not be used, so the call was not made. Make the same call again."
        }
        ReasonCode::RateLimited => "○ holdpoint — too many requests wait at once; try again",
        ReasonCode::AmbiguousMessage => {
            "○ holdpoint — two readers could take this message for different ones, so it was not passed on"
        }
        ReasonCode::BadFrame => "○ holdpoint — this is not one JSON-RPC message",
        ReasonCode::PayloadTooLarge => "○ holdpoint — the message is too large",
        ReasonCode::Drift(_)
        | ReasonCode::Admission(_)
        | ReasonCode::UnknownServer
        | ReasonCode::UnknownTool
        | ReasonCode::Unauthenticated
        | ReasonCode::NoPolicyMatch
        | ReasonCode::Forbidden
        | ReasonCode::PolicyError
        | ReasonCode::UnknownField
        | ReasonCode::SchemaViolation
        | ReasonCode::TooDeep
        | ReasonCode::PassthroughBlocked
        | ReasonCode::PathOutsideWorkspace
        | ReasonCode::EgressNotAllowed
        | ReasonCode::QuotaExceeded
        | ReasonCode::KillSwitch
        | ReasonCode::EgressBlocked
        | ReasonCode::SessionQuarantined
        | ReasonCode::Internal => {
            "○ holdpoint — something went wrong here, so the call was not made"
        }
    }
}

//! What the server sends.

use super::Session;
use super::boundary::{note_taken, trip};
use super::state::MAX_SERVER_REQUESTS;
use crate::reason::ReasonCode;
use crate::requests::{Answered, Dispatched, DispatchedKind};
use crate::server::driver::SessionWake;
use contract::surface::ListKind;
use gate::counters::Counter;
use ledger::record::OutcomeStatus;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wire::Answer;
use wire::envelope::{
    Ambiguity, Batch, Envelope, Id, Kind, Outcome, OwnedId, ScanError, ScanErrorKind, Scanned,
    ids_of_broken, key_of, names_protocol, read_torn, scan,
};
use wire::remote::{FailureKind, RemoteFailure};

/// What a person is told of a server that asks who they are.
const WORDS_OF_SIGN_IN: &str = "○ holdpoint — the server asks for a sign-in. \
    A person signs in with `holdpoint run --url URL --sign-in`, or gives it a token: \
    `holdpoint run --url URL --header Authorization=bearer-env:NAME`.";

/// How long the answer to a request is still waited for after a line that may have been it and cannot be read.
const DOUBT: Duration = Duration::from_secs(2);

/// What becomes of a message.
enum Passing {
    /// It goes to the client, as it is.
    Forward,
    Drop,
}

impl Session {
    /// Takes one frame of the server's. Where more of them were read already, it may go to the client with them, at
    /// [`Session::server_paused`] at the latest.
    pub fn server_said(&self, frame: &[u8], has_more: bool) {
        if self.is_broken() {
            return self.close_broken();
        }
        self.contain(frame.len(), || self.read_from_server(frame, has_more));
    }

    fn read_from_server(&self, frame: &[u8], has_more: bool) {
        match scan(frame) {
            Ok(Scanned::Message(envelope)) => {
                let envelope = Envelope { raw: frame, ..envelope };
                self.take_one_from_server(&envelope, has_more);
            }
            Ok(Scanned::Batch(batch)) => self.batch_from_server(&batch),
            Err(error) => self.unreadable_from_server(&error, frame),
        }
    }

    /// A frame over the limit was dropped. The client is told for the request that it was about, where that can be known.
    pub fn server_said_too_much(&self, beginning: &[u8], end: &[u8], bytes: u64) {
        self.contain(0, || self.drop_too_much(beginning, end, bytes));
    }

    fn drop_too_much(&self, beginning: &[u8], end: &[u8], bytes: u64) {
        self.remark("a message of the server is over the limit and was dropped");
        // The id of a request is the server's own, not one of the client's.
        self.note_fault(ReasonCode::UpstreamUnreadable, bytes);
        let torn = read_torn(beginning, end);
        match torn.id {
            Some(id) if !torn.has_method => {
                self.fail(id.key(), ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
            }
            Some(_) => {}
            None => {
                self.doubt(&[], names_protocol(beginning));
            }
        }
    }

    /// Notes that a line may have been the answer to a request. Returns whether it was meant for a request.
    fn doubt(&self, ids: &[Id<'_>], is_message: bool) -> bool {
        let until = Instant::now() + DOUBT;
        self.state().requests.doubt(self.key, ids, is_message, until)
    }

    /// Takes one message. A panic refuses the request whose answer it is.
    fn take_one_from_server(&self, envelope: &Envelope<'_>, has_more: bool) {
        let taken = self.contain(envelope.raw.len(), || self.take_from_server(envelope, has_more));
        if taken.is_none() {
            self.release_answered(Some(envelope));
        }
    }

    fn take_from_server(&self, envelope: &Envelope<'_>, has_more: bool) {
        trip("server", envelope.raw);
        match &envelope.kind {
            Kind::Response { id: Some(id), outcome } => {
                self.response(envelope, id, outcome, has_more);
            }
            Kind::Response { id: None, .. } => self.unnamed(envelope.raw.len()),
            Kind::Request { id, .. } => {
                if let Passing::Forward = self.request_of_server(id) {
                    self.gather_for_client(envelope.raw, None);
                }
            }
            Kind::Notification { method } => {
                if let Passing::Forward = self.notification_of_server(envelope, method) {
                    self.gather_for_client(envelope.raw, None);
                }
            }
        }
    }

    /// INVARIANT: an answer reaches the client only for a request that was dispatched and is unanswered.
    fn response(
        &self,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        outcome: &Outcome<'_>,
        has_more: bool,
    ) {
        let arrived = Instant::now();
        let (answered, stopped, greeting) = {
            let mut state = self.state();
            let known = state.view.known();
            let stopped = known.situation.is_closed().then(|| known.situation.clone());
            drop(known);
            let answered = state.requests.answer(self.at(id.key()));
            let greeting = matches!(&answered, Some(Answered::Client(_, dispatched))
                if dispatched.kind == DispatchedKind::Handshake)
            .then(|| self.take_greeting(&mut state));
            (answered, stopped, greeting)
        };
        let dispatched = match answered {
            None => return self.unsolicited(),
            Some(Answered::Own) => {
                let answer = OwnAnswer::Answer(Answer::of(*outcome).without_words());
                return self.wake(SessionWake::Answered { id: id.key().to_vec(), answer });
            }
            Some(Answered::Client(id, dispatched)) => {
                note_taken(id, dispatched.receipt_id);
                dispatched
            }
        };
        trip("answer", envelope.raw);
        let status = match outcome {
            Outcome::Result(_) => OutcomeStatus::Success,
            Outcome::Error(_) => OutcomeStatus::Error,
        };
        match (outcome, stopped) {
            (Outcome::Result(result), _) if greeting.is_some() => {
                self.answer_handshake(envelope, id, result);
            }
            (Outcome::Error(error), _) if greeting.is_some() => {
                self.answer_refused_handshake(envelope, id, error);
            }
            (_, Some(situation)) => self.answer_stopped(id, &dispatched, outcome, &situation),
            (_, None) if has_more => self.gather_for_client(envelope.raw, Some(id.raw())),
            (_, None) => self.answer_client(id.raw(), envelope.raw),
        }
        self.record_end(&dispatched, status, envelope.raw.len(), arrived);
    }

    fn record_end(
        &self,
        dispatched: &Dispatched,
        status: OutcomeStatus,
        bytes: usize,
        arrived: Instant,
    ) {
        let theirs = arrived.saturating_duration_since(dispatched.dispatched);
        let before = dispatched.dispatched.saturating_duration_since(dispatched.begun);
        let ours = before + arrived.elapsed();
        self.server.recorder.outcome(dispatched.receipt_id, status, bytes, ours, theirs);
    }

    /// An answer that names no request, as a server gives it to a request that it cannot parse. It may have been meant for
    /// the only one in flight.
    fn unnamed(&self, bytes: usize) {
        if self.doubt(&[], true) {
            self.note_fault(ReasonCode::UpstreamUnreadable, bytes as u64);
        }
        self.unsolicited();
    }

    /// Drops an answer to no request of ours.
    fn unsolicited(&self) {
        let count = {
            let mut state = self.state();
            state.unsolicited += 1;
            state.unsolicited
        };
        // A flood of them fills no ledger: powers of two are told.
        if count.is_power_of_two() {
            let data = json!({"count": count, "reason": "unsolicited_response"});
            self.record_event("mcp.response.dropped", &data);
            self.remark(&format!(
                "{count} answers of the server that belong to no request were dropped"
            ));
        }
    }

    fn request_of_server(&self, id: &Id<'_>) -> Passing {
        let mut state = self.state();
        let is_stopped = state.view.known().situation.is_closed();
        if is_stopped || state.server_requests.len() >= MAX_SERVER_REQUESTS {
            return Passing::Drop;
        }
        // One that repeats an id could not be told from the first.
        if state.server_requests.insert(id.to_owned()) { Passing::Forward } else { Passing::Drop }
    }

    fn notification_of_server(&self, envelope: &Envelope<'_>, method: &str) -> Passing {
        if method == "notifications/cancelled" {
            self.end_request_of_server(envelope);
        }
        let lists: &[ListKind] = match method {
            "notifications/tools/list_changed" => &[ListKind::Tools],
            "notifications/prompts/list_changed" => &[ListKind::Prompts],
            "notifications/resources/list_changed" => {
                &[ListKind::Resources, ListKind::ResourceTemplates]
            }
            _ => &[],
        };
        let is_stopped = self.situation().is_closed();
        if lists.is_empty() {
            return if is_stopped { Passing::Drop } else { Passing::Forward };
        }
        let (is_news, is_stateless) = {
            let state = self.state();
            let is_news = self.server.outdate(state.view.instance(), lists);
            (is_news, state.client.stateless_meta.is_some())
        };
        // Until the list was asked for, a second notification is no news: a flood wakes the keeper once.
        if is_news {
            self.wake(SessionWake::ListChanged(lists.to_vec()));
        }
        // In a session the client is told when the view is there that it will then ask for. Without one it subscribed,
        // and the message names its subscription.
        if is_stateless && !is_stopped { Passing::Forward } else { Passing::Drop }
    }

    /// The server does not wait for the client's answer any more, and few clients give one then.
    fn end_request_of_server(&self, envelope: &Envelope<'_>) {
        let id = envelope.params.as_ref().and_then(|params| params.request_id);
        if let Some(id) = id {
            self.state().server_requests.remove(key_of(id).as_slice());
        }
    }

    /// Batches are for the revision that has them; in others, what they answer is answered with a fault.
    fn batch_from_server(&self, batch: &Batch<'_>) {
        let has_batches = self.has_batches();
        for element in &batch.elements {
            match &element.message {
                Ok(envelope) if has_batches => self.take_one_from_server(envelope, true),
                Ok(Envelope { kind: Kind::Response { id: Some(id), .. }, .. }) => {
                    let bytes = element.raw.len() as u64;
                    self.note_fault(ReasonCode::UpstreamUnreadable, bytes);
                    self.fail(id.key(), ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
                }
                Ok(_) => {}
                Err(error) => self.unreadable_from_server(error, element.raw),
            }
        }
    }

    /// A line that is not one message. It is an unreadable answer if it names the protocol or an unanswered request, and
    /// anything else is a line of a log: dropped, with a note.
    fn unreadable_from_server(&self, error: &ScanError, line: &[u8]) {
        let is_log = matches!(error.kind, ScanErrorKind::NotJson | ScanErrorKind::NotUtf8);
        let count = {
            let mut state = self.state();
            state.dropped += 1;
            state.dropped
        };
        if count.is_power_of_two() {
            let what = if is_log {
                "not JSON (servers should log to standard error)".to_owned()
            } else {
                error.to_string()
            };
            self.remark(&format!("a line of the server was dropped: {what} ({count} so far)"));
        }
        // The id of a request is the server's own, not one of the client's.
        let is_request = matches!(error.kind, ScanErrorKind::Ambiguous(Ambiguity::FoldedMethod(_)));
        if is_request {
            self.note_fault(ReasonCode::AmbiguousMessage, line.len() as u64);
            return;
        }
        match &error.id {
            Some(id) if error.kind != ScanErrorKind::NotAMessage => {
                self.note_fault(ReasonCode::UpstreamUnreadable, line.len() as u64);
                self.fail(id.key(), ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
            }
            Some(_) | None => {
                // The answer itself may still come: this may have been something else that was broken.
                if self.doubt(&ids_of_broken(line), names_protocol(line)) {
                    self.note_fault(ReasonCode::UpstreamUnreadable, line.len() as u64);
                }
            }
        }
    }

    /// A remote server will not answer this request; `id` is the request's own, as it was sent.
    pub fn request_failed(&self, id: &[u8], failure: &RemoteFailure) {
        self.contain(0, || self.end_failed(id, failure));
    }

    fn end_failed(&self, id: &[u8], failure: &RemoteFailure) {
        let (reason, status) = match failure.kind() {
            FailureKind::Unreachable | FailureKind::NeedsSignIn | FailureKind::Cancelled => {
                (ReasonCode::UpstreamUnreachable, OutcomeStatus::Error)
            }
            FailureKind::CredentialRefused => {
                (ReasonCode::CredentialUnavailable, OutcomeStatus::Error)
            }
            FailureKind::Unreadable => (ReasonCode::UpstreamUnreadable, OutcomeStatus::Error),
            FailureKind::TimedOut => (ReasonCode::Timeout, OutcomeStatus::Timeout),
            FailureKind::Internal => (ReasonCode::Internal, OutcomeStatus::Error),
        };
        let key = key_of(id);
        if failure.kind() == FailureKind::Cancelled {
            let cancelled = self.state().requests.take_cancelled(self.at(&key));
            if let Some((_, dispatched)) = cancelled {
                self.forget_unanswered(&dispatched);
                self.record_failure(&dispatched, OutcomeStatus::Error);
            }
            return;
        }
        self.remark(&format!("a request got no answer: {failure}"));
        if reason != ReasonCode::UpstreamUnreadable && self.own_request_failed(&key, reason) {
            return;
        }
        let words = match failure {
            RemoteFailure::NeedsSignIn { .. } => WORDS_OF_SIGN_IN,
            RemoteFailure::Withheld { words } => words,
            _ => self.words_of(reason),
        };
        if let Some((id, dispatched)) = self.end_dispatched(&key) {
            self.record_failure(&dispatched, status);
            self.note_fault(reason, dispatched.bytes as u64);
            if failure.is_panic() {
                self.count_fault();
            }
            self.refuse_with(id.raw(), reason, words);
        }
    }

    /// One of our own requests could not be sent, or got no answer. At the end of a session that says nothing of the
    /// server. Returns whether it was one of ours.
    pub(crate) fn own_request_failed(&self, id: &[u8], reason: ReasonCode) -> bool {
        let is_own = self.state().requests.end_own(id);
        if is_own && !self.is_closing.load(Ordering::Acquire) {
            let answer = OwnAnswer::Failed(reason);
            self.wake(SessionWake::Answered { id: id.to_vec(), answer });
        }
        is_own
    }

    /// Ends a dispatched request with a fault. One of our own ends as unreadable.
    pub(crate) fn fail(&self, key: &[u8], reason: ReasonCode, status: OutcomeStatus) {
        if let Some((id, dispatched)) = self.end_dispatched(key) {
            self.refuse_dispatched(&id, &dispatched, reason, status);
        }
    }

    /// Answers a dispatched request that was taken out of the table with a fault.
    pub(super) fn refuse_dispatched(
        &self,
        id: &OwnedId,
        dispatched: &Dispatched,
        reason: ReasonCode,
        status: OutcomeStatus,
    ) {
        self.record_failure(dispatched, status);
        // A frame that cannot be read was noted when it came, with its own length.
        if reason != ReasonCode::UpstreamUnreadable {
            self.note_fault(reason, dispatched.bytes as u64);
        }
        self.refuse_with(id.raw(), reason, self.words_of(reason));
    }

    /// What a person is told of a server that says nothing.
    pub(crate) fn words_of_no_start(&self) -> String {
        format!(
            "the server did not answer its first request within {} s; what it wrote to standard error may say why. \
             It may take longer with `limits.start_timeout_seconds` in holdpoint.toml, or `holdpoint run --start-timeout SECONDS`",
            self.server.settings.start_timeout.as_secs()
        )
    }

    /// Takes out a request that gets no answer. One of our own ends as unreadable.
    fn end_dispatched(&self, key: &[u8]) -> Option<(OwnedId, Dispatched)> {
        let answered = self.state().requests.answer(self.at(key));
        match answered? {
            Answered::Own => {
                self.own_unreadable(key.to_vec());
                None
            }
            Answered::Client(id, dispatched) => {
                self.forget_unanswered(&dispatched);
                Some((id, dispatched))
            }
        }
    }

    /// What a server said in an earlier handshake does not count after one that got no answer.
    pub(super) fn forget_unanswered(&self, dispatched: &Dispatched) {
        if dispatched.kind == DispatchedKind::Handshake {
            self.forget_greeting(&mut self.state());
        }
    }

    /// The answer to one of our own requests cannot be read.
    pub(crate) fn own_unreadable(&self, id: Vec<u8>) {
        let why = "it cannot be read in exactly one way".to_owned();
        let answer = OwnAnswer::Answer(Answer::Unreadable(why));
        self.wake(SessionWake::Answered { id, answer });
    }

    pub(super) fn record_failure(&self, dispatched: &Dispatched, status: OutcomeStatus) {
        let theirs = dispatched.dispatched.elapsed();
        self.server.recorder.outcome(dispatched.receipt_id, status, 0, Duration::ZERO, theirs);
        if dispatched.kind == DispatchedKind::Call {
            self.server.tally.add(Counter::Failed);
        }
    }
}

/// What came of a request of the gate's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnAnswer {
    Answer(Answer),
    /// There is no answer: the server could not be reached, or did not answer in time.
    Failed(ReasonCode),
}

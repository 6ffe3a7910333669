//! How a session deals with the admission check of its server: what waits for it, and what applies
//! afterwards.

use super::state::{KeptGreeting, KeptHandshake, SessionState};
use super::{Met, Passage, Session};
use crate::call::{Call, Method};
use crate::decide::{Decided, Denial, Ruling};
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::recorder::Recorded;
use crate::requests::{Awaited, ParsedRequest, RequestKey};
use crate::server::Known;
use crate::server::driver::SessionWake;
use crate::situation::Situation;
use attest::{Reason, TOOL_DENIED_EVENT};
use contract::hash::sha256_hex;
use gate::counters::Counter;
use gate::naming::shown_name;
use gate::view::handshake_surface;
use ledger::record::{OutcomeStatus, ReceiptId};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Revision;
use wire::attestation::Greeting;
use wire::envelope::{Kind, Outcome, Scanned, scan};

/// How to handle a handshake response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Forward it to the client: admission is not configured, or the last check covers the
    /// response.
    NotNeeded,
    Kept,
    /// There will be no further check, or too many responses are already stored.
    Refused(ReasonCode),
}

/// The result of a delayed handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateGreeting {
    /// The handshake is complete.
    Done,
    /// The response contains a document that must be checked first.
    Unchecked,
    /// The response is unreadable.
    Unreadable,
    /// It uses a protocol version different from the one the client was given.
    OtherVersion,
}

impl Session {
    /// Whether the gate answers in place of the server, which is not admitted and gets no messages.
    pub(super) fn answers_itself(&self, sort: Method, situation: &Situation) -> bool {
        let is_answered = match sort {
            Method::Handshake => !self.server.settings.greets_before_check,
            Method::Ping => true,
            Method::List(_) | Method::Use(_) | Method::Other => false,
        };
        is_answered && situation.admission.is_closed()
    }

    /// Whether a request may be decided on the current admission state. `ping` needs no check: the
    /// gate answers it while the server is not admitted.
    pub(super) fn is_admission_fresh(
        &self,
        state: &SessionState,
        known: &Known,
        sort: Method,
        begun: Instant,
    ) -> bool {
        let Some(max_age) = self.server.settings.admission_max_age else { return true };
        let is_fresh = || {
            known.checked.as_ref().is_some_and(|checked| checked.is_fresh(begun, max_age))
                && state.is_covered
        };
        // A server that was admitted late gets its handshake before anything else.
        let is_greeted = || state.kept_greeting.is_none() || known.situation.admission.is_closed();
        match sort {
            Method::Ping => true,
            Method::Handshake => self.server.settings.greets_before_check || is_fresh(),
            Method::List(_) | Method::Use(_) | Method::Other => is_fresh() && is_greeted(),
        }
    }

    /// The refusal of a call by a policy or the allowlist, regardless of the server's state.
    pub(super) fn off_list(&self, call: &Call<'_>, met: &Met) -> Option<Decided> {
        // A call that proceeds is counted when it is decided on.
        let decided = self.decide_again(call, met);
        // An approval is requested only after everything else is known.
        let is_off = decided.needs_approval.is_none()
            && decided.ruling.reason().is_some_and(ReasonCode::is_about_caller);
        is_off.then_some(decided)
    }

    /// Answers a handshake or `ping` in place of an unadmitted server. Nothing is sent to the
    /// server; the client's `initialize` is stored until the server is admitted.
    pub(super) fn answer_unadmitted(&self, passage: &Passage<'_>, met: &Met) {
        let ParsedRequest { id, call, params, .. } = passage.request;
        let begun = passage.begun;
        let recorded =
            self.server.recorder.decision(&call, &Ruling::Allow, met.circumstances(begun));
        let settled = recorded.and_then(|Recorded { receipt_id, ticket, .. }| {
            self.server.recorder.settle(ticket).map(|_| receipt_id)
        });
        self.end_wait(passage);
        let Ok(receipt_id) = settled else {
            return self.refuse(id.raw(), ReasonCode::LedgerUnavailable);
        };
        self.server.tally.add(Counter::Requests);
        let result = match call.kind {
            Method::Handshake => self.own_handshake(),
            Method::Ping | Method::List(_) | Method::Use(_) | Method::Other => "{}".to_owned(),
        };
        if call.method == "initialize" {
            let mut state = self.state();
            let version = own_version(state.client.asked_version.as_deref()).to_string();
            state.client.protocol_version = Some(version.clone());
            // A server that completed a handshake before and is now denied does not get a second
            // one.
            let is_new = state.handshake.is_none();
            let params = params.unwrap_or(b"{}").to_vec();
            state.kept_greeting = is_new.then_some(KeptGreeting { params, version });
        }
        let message = [
            br#"{"jsonrpc":"2.0","id":"#.as_slice(),
            id.raw(),
            br#","result":"#,
            result.as_bytes(),
            b"}",
        ];
        let bytes = message.iter().map(|part| part.len()).sum();
        self.answer_client_in_parts(id.raw(), &message);
        let ours = begun.elapsed();
        self.server.recorder.outcome(
            receipt_id,
            OutcomeStatus::Success,
            bytes,
            ours,
            Duration::ZERO,
        );
    }

    /// The handshake response in place of an unadmitted server, in the client's era. It declares
    /// every list, so that the client requests them, gets the reason why there are none, and
    /// requests them again once there are.
    pub(super) fn own_handshake(&self) -> String {
        let (is_stateless, version) = {
            let state = self.state();
            let version = own_version(state.client.asked_version.as_deref());
            (state.client.stateless_meta.is_some(), version)
        };
        let list = json!({"listChanged": true});
        let capabilities = json!({"tools": list, "prompts": list, "resources": list});
        let info = json!({"name": "holdpoint", "version": env!("CARGO_PKG_VERSION")});
        let answer = if is_stateless {
            json!({
                "resultType": "complete", "supportedVersions": [Revision::NEWEST_STATELESS.as_str()],
                "capabilities": capabilities, "serverInfo": info, "ttlMs": 0, "cacheScope": "private",
            })
        } else {
            json!({"protocolVersion": version.as_str(), "capabilities": capabilities, "serverInfo": info})
        };
        answer.to_string()
    }

    /// The handshake with which the gate requests an in-band document, in the client's era.
    pub(crate) fn greeting(&self) -> Greeting {
        match self.state().client.stateless_meta {
            Some(_) => Greeting::Discover,
            None => Greeting::Initialize,
        }
    }

    /// Stores the server's response to the gate's own `server/discover`. Returns whether the last
    /// admission check covers it.
    pub(crate) fn take_discovery(&self, result: Arc<str>) -> bool {
        let mut state = self.state();
        let is_covered = state.cover(&result);
        if state.handshake.is_none() {
            state.take_handshake(result);
        }
        is_covered
    }

    /// Handles the server's response to a handshake that was stored and sent late.
    pub(crate) fn take_late_handshake(&self, text: &Arc<str>) -> LateGreeting {
        let Some(surface) = handshake_surface(text) else { return LateGreeting::Unreadable };
        let mut state = self.state();
        let told = state.kept_greeting.as_ref().map(|kept| kept.version.as_str());
        if told.is_some() && surface.protocol_version.as_deref() != told {
            return LateGreeting::OtherVersion;
        }
        state.kept_greeting = None;
        state.take_handshake(text.clone());
        state.view.change(|known| known.is_unjudged = true);
        match state.cover(text) {
            true => LateGreeting::Done,
            false => LateGreeting::Unchecked,
        }
    }

    /// Records that the client is initialized. Returns whether the server may be notified now;
    /// otherwise it is notified once it is admitted and the handshake is complete.
    pub(super) fn may_announce(&self) -> bool {
        let mut state = self.state();
        state.client.is_initialized = true;
        if self.server.settings.admission_max_age.is_none() {
            return true;
        }
        let is_closed = state.view.known().situation.admission.is_closed();
        let may = !is_closed && state.handshake.is_some();
        state.is_announced |= may;
        may
    }

    /// Sends `initialized` to a server that was admitted late.
    pub(crate) fn announce(&self) {
        {
            let mut state = self.state();
            let is_due = state.client.is_initialized
                && !state.is_announced
                && state.handshake.is_some()
                && !state.view.known().situation.admission.is_closed();
            if !is_due {
                return;
            }
            state.is_announced = true;
        }
        let method = "notifications/initialized";
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        self.errand(Errand::Send(OwnMessage { frame, method, id: None, protocol_version: None }));
    }

    /// Whether anything in this session waits for an admission check.
    pub(crate) fn waits_for_check(&self) -> bool {
        let state = self.state();
        !state.kept_handshakes.is_empty()
            || state.kept_greeting.is_some()
            || state.requests.has_unadmitted()
            || (state.client.is_initialized && !state.is_announced)
    }

    /// Records a check. Returns whether it covers the server's response over this session's
    /// connection.
    pub(crate) fn take_check(&self, covers: impl FnOnce(&Arc<str>) -> bool) -> bool {
        let mut state = self.state();
        state.is_covered = state.handshake.as_ref().is_none_or(covers);
        state.is_covered
    }

    /// Resumes a request that waited for the check. It may still have to wait for its list.
    pub(crate) fn resume_admitted(&self, key: &RequestKey) {
        let stale = {
            let mut state = self.state();
            let released = state.requests.released(key.as_ref());
            let list = released.and_then(|request| request.kind().list());
            let known = state.view.known();
            let is_closed = known.situation.admission.is_closed();
            let max_age = self.server.settings.relist_max_age;
            let now = Instant::now();
            let stale =
                list.filter(|list| !is_closed && !known.freshness(*list).is_fresh(now, max_age));
            drop(known);
            if let Some(list) = stale {
                state.requests.wait_again(key.as_ref(), Awaited::List(list));
            }
            stale
        };
        match stale {
            Some(list) => self.wake(SessionWake::Relist(list)),
            None => self.resume(key),
        }
    }

    /// Resumes a request that waited for its list. The check may have become too old in the
    /// meantime.
    pub(crate) fn resume_listed(&self, key: &RequestKey) {
        // A check made for this request is valid for it, however long its list took.
        let begun = self.state().requests.released(key.as_ref()).map(|request| request.begun());
        if self.has_fresh_check(key, begun) && !self.wait_for_corpus(key) {
            self.resume(key);
        }
    }

    /// Whether the admission check is recent enough for a released request, or was made since
    /// `since`. If not, the request waits for another check.
    pub(super) fn has_fresh_check(&self, key: &RequestKey, since: Option<Instant>) -> bool {
        let is_fresh = {
            let mut state = self.state();
            let is_fresh = self.server.settings.admission_max_age.is_none_or(|max_age| {
                let now = Instant::now();
                state.is_covered
                    && state.view.known().checked.as_ref().is_some_and(|checked| {
                        since.is_some_and(|since| checked.began >= since)
                            || checked.is_fresh(now, max_age)
                    })
            });
            if !is_fresh {
                state.requests.wait_again(key.as_ref(), Awaited::Admission);
            }
            is_fresh
        };
        if !is_fresh {
            self.wake(SessionWake::Admit);
        }
        is_fresh
    }

    /// Ends a request whose list could not be fetched. It is refused for that reason, unless it can
    /// be decided without any list: if the server may not be used, the refusal says why, and
    /// monitor stops no call.
    pub(crate) fn end_unfetched(&self, key: &RequestKey, reason: ReasonCode) {
        let request = self.state().requests.released(key.as_ref()).cloned();
        if request.is_some_and(|request| self.needs_no_list(&request.call())) {
            self.resume_listed(key);
        } else {
            self.refuse_unseen(key, reason);
        }
    }

    fn needs_no_list(&self, call: &Call<'_>) -> bool {
        let (situation, principal) = {
            let state = self.state();
            (state.view.known().situation.clone(), state.client.principal.clone())
        };
        match call.kind {
            Method::List(list) => situation.is_closed() && !situation.view.lacks(list),
            Method::Use(_) => {
                let is_stopped =
                    situation.is_closed() || situation.stopped(call, &principal).is_some();
                is_stopped || situation.revoked(&principal).is_some() || !situation.is_holding()
            }
            Method::Handshake | Method::Ping | Method::Other => false,
        }
    }

    /// Refuses what waits for the check, because it is unknown whether the server may be used.
    pub(crate) fn refuse_unadmitted(&self) {
        let waiting = self.state().requests.release_unadmitted();
        for key in waiting {
            self.refuse_unseen(&key, ReasonCode::Internal);
        }
        self.deliver_handshakes(Instant::now());
    }

    /// Whether a handshake response waits for another check, because its document differs from the
    /// checked one, or is missing. Several responses may wait at the same time.
    pub(super) fn keeps_handshake(
        &self,
        state: &mut SessionState,
        frame: &[u8],
        handshake: &str,
    ) -> Keeping {
        if self.server.settings.admission_max_age.is_none() || state.cover(handshake) {
            return Keeping::NotNeeded;
        }
        self.keep_handshake(state, frame)
    }

    /// Withholds a handshake response from the client until the server was checked again.
    pub(super) fn keep_handshake(&self, state: &mut SessionState, frame: &[u8]) -> Keeping {
        state.is_covered = false;
        if state.requests.is_ended() {
            return Keeping::Refused(ReasonCode::UpstreamUnreachable);
        }
        if !state.has_room_to_keep_handshake(frame.len()) {
            return Keeping::Refused(ReasonCode::RateLimited);
        }
        let arrived = Instant::now();
        state.kept_handshakes.push(KeptHandshake { frame: frame.to_vec(), arrived });
        Keeping::Kept
    }

    /// Sends the client the awaited responses that arrived before this time: a check that was
    /// started before a response arrived has not seen its contents.
    pub(crate) fn deliver_handshakes(&self, before: Instant) {
        let kept: Vec<KeptHandshake> =
            self.state().kept_handshakes.extract_if(.., |kept| kept.arrived <= before).collect();
        for KeptHandshake { frame, .. } in &kept {
            let Ok(Scanned::Message(envelope)) = scan(frame) else { continue };
            let Kind::Response { id: Some(id), outcome } = &envelope.kind else { continue };
            match outcome {
                Outcome::Result(result) => self.show_handshake(&envelope, id, result),
                Outcome::Error(error) => self.show_refused_handshake(&envelope, id, error),
            }
        }
    }

    /// Handles the end of the server: refuses the handshakes that still wait for a check.
    pub(super) fn refuse_handshakes(&self, reason: ReasonCode) {
        let kept = std::mem::take(&mut self.state().kept_handshakes);
        for KeptHandshake { frame, .. } in &kept {
            let Ok(Scanned::Message(envelope)) = scan(frame) else { continue };
            if let Kind::Response { id: Some(id), .. } = &envelope.kind {
                self.refuse(id.raw(), reason);
            }
        }
    }

    pub(super) fn record_tool_denial(
        &self,
        call: &Call<'_>,
        denial: &Denial,
        server: &str,
        receipt_id: ReceiptId,
    ) {
        if denial.reason != ReasonCode::Admission(Reason::ToolNotAdmitted) {
            return;
        }
        // A name may be any text, and as long as a message. One that could carry a message is
        // replaced by its hash.
        let name = call.target.map(|target| shown_name(target.key, false));
        let hash = call.target.map(|target| sha256_hex(target.key.as_bytes()));
        let data = json!({
            "bridge": server, "tool": name, "tool_hash": hash, "receipt_id": receipt_id.to_string(),
        });
        self.server.recorder.event(server, TOOL_DENIED_EVENT, None, &data);
    }
}

/// The protocol version of the gate's answer: the requested one if it exists.
fn own_version(asked: Option<&str>) -> Revision {
    let known = asked.and_then(|asked| asked.parse().ok());
    known
        .filter(|known| *known != Revision::NEWEST_STATELESS)
        .unwrap_or(Revision::NEWEST_INITIALIZE)
}

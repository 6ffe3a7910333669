//! What a session does with the check of its server's admission: who waits for it, what counts after it.

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

/// What becomes of the answer to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// It goes to the client: admission is not configured, or the last check covers what the answer carries.
    NotNeeded,
    Kept,
    /// No check will come any more, or too many answers are kept already.
    Refused(ReasonCode),
}

/// What became of the client's greeting that was sent to the server late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateGreeting {
    /// The server is greeted.
    Done,
    /// Its answer carries a document that has to be checked first.
    Unchecked,
    /// Its answer cannot be read.
    Unreadable,
    /// It speaks another protocol version than the client was told.
    OtherVersion,
}

impl Session {
    /// Whether the gate answers in place of the server, which is not admitted and hears nothing.
    pub(super) fn answers_itself(&self, sort: Method, situation: &Situation) -> bool {
        let is_answered = match sort {
            Method::Handshake => !self.server.settings.greets_before_check,
            Method::Ping => true,
            Method::List(_) | Method::Use(_) | Method::Other => false,
        };
        is_answered && situation.admission.is_closed()
    }

    /// Whether a request may be decided on what is known of the server's admission. `ping` needs no check: as long as the
    /// server is not admitted the gate answers it.
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
        // A server that was admitted late is greeted before it gets anything else.
        let is_greeted = || state.kept_greeting.is_none() || known.situation.admission.is_closed();
        match sort {
            Method::Ping => true,
            Method::Handshake => self.server.settings.greets_before_check || is_fresh(),
            Method::List(_) | Method::Use(_) | Method::Other => is_fresh() && is_greeted(),
        }
    }

    /// The refusal of a call by a policy or the allowlist, whatever is known of the server.
    pub(super) fn off_list(&self, call: &Call<'_>, met: &Met) -> Option<Decided> {
        // A call that goes on is counted when it is decided on.
        let decided = self.decide_again(call, met);
        // An approval is asked for once all else is known.
        let is_off = decided.needs_approval.is_none()
            && decided.ruling.reason().is_some_and(ReasonCode::is_about_caller);
        is_off.then_some(decided)
    }

    /// Answers a handshake or `ping` in place of a server that is not admitted. Nothing is sent to the server; the client's
    /// `initialize` is kept for when it is admitted.
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
            // A server that was greeted before, and is denied now, is not greeted twice.
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

    /// The answer to a handshake in place of a server that is not admitted, in the era that the client speaks. It declares
    /// every list, so that the client asks for them and is told why there are none, and asks again once there are.
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

    /// The handshake by which the gate asks for an in-band document: the one of the era that the client speaks.
    pub(crate) fn greeting(&self) -> Greeting {
        match self.state().client.stateless_meta {
            Some(_) => Greeting::Discover,
            None => Greeting::Initialize,
        }
    }

    /// Remembers the server's answer to the gate's own `server/discover`. Returns whether the last check of its admission
    /// counts for it.
    pub(crate) fn take_discovery(&self, result: Arc<str>) -> bool {
        let mut state = self.state();
        let is_covered = state.cover(&result);
        if state.handshake.is_none() {
            state.take_handshake(result);
        }
        is_covered
    }

    /// Takes the server's answer to a greeting that was kept and sent late.
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

    /// Notes that the client is initialized. Returns whether the server may be told now; if not, it is told once it is
    /// admitted and greeted.
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

    /// Tells a server that was admitted late that the client is initialized.
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

    /// Whether anything of this session waits for a check of the server's admission.
    pub(crate) fn waits_for_check(&self) -> bool {
        let state = self.state();
        !state.kept_handshakes.is_empty()
            || state.kept_greeting.is_some()
            || state.requests.has_unadmitted()
            || (state.client.is_initialized && !state.is_announced)
    }

    /// Takes note of a check. Returns whether it counts for what the server answered over this session's connection.
    pub(crate) fn take_check(&self, covers: impl FnOnce(&Arc<str>) -> bool) -> bool {
        let mut state = self.state();
        state.is_covered = state.handshake.as_ref().is_none_or(covers);
        state.is_covered
    }

    /// Goes on with a request that waited for the check: it may still have to wait for its list.
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

    /// Goes on with a request that waited for its list. Meanwhile the check may have grown too old.
    pub(crate) fn resume_listed(&self, key: &RequestKey) {
        // One that was made for this request counts for it, however long its list took.
        let begun = self.state().requests.released(key.as_ref()).map(|request| request.begun());
        if self.has_fresh_check(key, begun) && !self.wait_for_corpus(key) {
            self.resume(key);
        }
    }

    /// Whether the check of the server's admission is young enough for a request that was released, or was made since then.
    /// If not, the request waits for another.
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

    /// Ends a request whose list could not be fetched. It is refused for that reason, unless it is decided without any
    /// list: where nothing of the server may be used a person is told why, and monitor stops no call.
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

    /// It is not known whether the server may be used, so what waits for the check is refused.
    pub(crate) fn refuse_unadmitted(&self) {
        let waiting = self.state().requests.release_unadmitted();
        for key in waiting {
            self.refuse_unseen(&key, ReasonCode::Internal);
        }
        self.deliver_handshakes(Instant::now());
    }

    /// Whether the answer to a handshake waits for another check, because it carries another document than the one that
    /// was checked, or lacks it. Several may wait at once.
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

    /// Keeps the answer to a handshake from the client until the server was checked again.
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

    /// Sends the client the answers that it waits for, of those that came before this moment: a check that was begun
    /// before an answer did not see what is in it.
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

    /// The server has ended: refuses the handshakes that still wait for a check.
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
        // A name may be anything, and as long as a message. One that could carry a message is given by its hash alone.
        let name = call.target.map(|target| shown_name(target.key, false));
        let hash = call.target.map(|target| sha256_hex(target.key.as_bytes()));
        let data = json!({
            "bridge": server, "tool": name, "tool_hash": hash, "receipt_id": receipt_id.to_string(),
        });
        self.server.recorder.event(server, TOOL_DENIED_EVENT, None, &data);
    }
}

/// The protocol version that the gate answers with: the one that the client asked for, if there is such a version.
fn own_version(asked: Option<&str>) -> Revision {
    let known = asked.and_then(|asked| asked.parse().ok());
    known
        .filter(|known| *known != Revision::NEWEST_STATELESS)
        .unwrap_or(Revision::NEWEST_INITIALIZE)
}

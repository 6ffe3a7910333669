//! Decisions and outcomes of calls, as receipts.
//!
//! Arguments, results and credentials never come here but to be hashed and measured.

use crate::admission::{Admittance, CallRuling};
use crate::anomaly::Anomalies;
use crate::call::{Call, Subject};
use crate::credentials::TokenUse;
use crate::decide::{ApprovalGrant, Ruling};
use crate::principal::Principal;
use crate::reason::ReasonCode;
use crate::situation::Situation;
use contract::surface::EntryBody;
use contract::time::Timestamp;
use gate::naming::shown_name;
use gate::verdict::SurfacedVerdict;
use gate::view::Found;
use ledger::record::{
    self as record, Admission, AdmissionVerdict, Approval, BeforeAfter, Decision, Digest32, Drift,
    Event, Latency, Mcp, Outcome, OutcomeStatus, ReceiptId, Request, RulingResult, Text,
    TokenHandling, TokenMode, Words,
};
use policy::anomaly::Tripped;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::receipts::{Receipts, ReceiptsError, Settled, Ticket};

/// How many ids are made with one question for randomness.
const IDS_AT_ONCE: usize = 128;

/// Counts what is recorded. It is called on the way of every request, so it must not block.
pub trait RecorderWatch: std::fmt::Debug + Send + Sync {
    fn decided(&self, method: &str, ruling: &Ruling);

    /// A dispatched request ended.
    fn ended(&self, status: OutcomeStatus, ours: Duration, theirs: Duration);

    /// A receipt could not be written.
    fn failed(&self);
}

/// Writes the receipts of one session.
#[derive(Debug)]
pub struct Recorder {
    receipts: Receipts,
    watch: Option<Arc<dyn RecorderWatch>>,
    anomalies: Option<Arc<Anomalies>>,
    /// Whether the last receipt that could not be written found no room.
    is_disk_full: AtomicBool,
}

/// Why a request has no receipt, and so is not made.
#[derive(Debug, thiserror::Error)]
pub enum Unrecorded {
    #[error(transparent)]
    Receipts(#[from] ReceiptsError),
    #[error("no randomness for the receipt's id: {0}")]
    NoRandomness(getrandom::Error),
}

/// A decision that is recorded once its ticket is settled.
#[derive(Debug)]
pub struct Recorded {
    pub receipt_id: ReceiptId,
    pub ticket: Ticket,
    pub decided: Instant,
}

/// What a decision is about, apart from the call itself.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    pub situation: &'a Situation,
    pub principal: &'a Principal,
    /// The trace that the client's request belongs to, where it named one.
    pub trace_id: Option<&'a str>,
    /// The policy that decided, where there are policies.
    pub policy_id: Option<&'a str>,
    /// Who approved this very call, where one is needed.
    pub approval: Option<Approval<'a>>,
    /// How old the view was, where one was looked at.
    pub view_age: Option<Duration>,
    /// How old the check of the server's admission was, where there was one.
    pub admission_age: Option<Duration>,
    /// When the message was read.
    pub begun: Instant,
}

impl<'a> Circumstances<'a> {
    /// The same for a request that belongs to a trace.
    #[must_use]
    pub fn traced(self, trace_id: Option<&'a str>) -> Circumstances<'a> {
        Circumstances { trace_id, ..self }
    }

    /// The same, where the call needs the approval of another person.
    #[must_use]
    pub fn approved(self, grant: Option<&'a ApprovalGrant>, ruling: &Ruling) -> Circumstances<'a> {
        let is_missing = ruling.reason() == Some(ReasonCode::ApprovalRequired);
        let approval = Approval {
            approved_at: grant.map(|grant| grant.at),
            approved_by: grant.map(|grant| Text(&grant.by)),
            required: true,
            step_up: grant.map_or(record::StepUp::None, |grant| grant.step_up),
        };
        Circumstances { approval: (grant.is_some() || is_missing).then_some(approval), ..self }
    }

    /// The same, where a policy decided.
    #[must_use]
    pub fn decided_by(self, policy_id: Option<&'a str>) -> Circumstances<'a> {
        Circumstances { policy_id, ..self }
    }
}

impl Recorder {
    pub fn new(receipts: Receipts) -> Recorder {
        let is_disk_full = AtomicBool::new(false);
        Recorder { receipts, watch: None, anomalies: None, is_disk_full }
    }

    /// The same, counted.
    #[must_use]
    pub fn watched_by(self, watch: Arc<dyn RecorderWatch>) -> Recorder {
        Recorder { watch: Some(watch), ..self }
    }

    /// The same, with the signals of anomaly rules taken from what is recorded: every decision comes by here.
    #[must_use]
    pub fn signalling(self, anomalies: Option<Arc<Anomalies>>) -> Recorder {
        Recorder { anomalies, ..self }
    }

    /// Records what was decided, together with what else is settled next. Nothing of the call may be dispatched before
    /// [`Recorder::settle`] returned, nor when it failed.
    pub fn decision(
        &self,
        call: &Call<'_>,
        ruling: &Ruling,
        about: Circumstances<'_>,
    ) -> Result<Recorded, Unrecorded> {
        let receipt_id = next_id()?;
        let Circumstances { situation, principal, .. } = about;
        let profile = &situation.profile;
        let drift = Drifted::of(call, ruling, situation);
        let admission = match &situation.admission {
            Admittance::NotAsked | Admittance::Unknown => None,
            Admittance::Known(admitted) => Some(admitted.rule(call, &situation.view)),
        };
        // INVARIANT: an unaccepted name may be an argument in disguise, as the URI of a resource that no list has.
        let is_accepted = drift.as_ref().is_some_and(|drift| drift.before.is_some());
        let name = match (call.target, call.subject) {
            (Some(target), _) if is_accepted => Some(Cow::Borrowed(target.key)),
            (Some(target), _) => Some(Cow::Owned(shown_name(target.key, false))),
            // The call that made the task was allowed, so that the name was accepted.
            (None, Subject::Task { tool, .. }) => Some(Cow::Borrowed(tool)),
            (None, Subject::Server | Subject::Entry(_) | Subject::Unclear) => None,
        };
        let reasons = ruling.reason().map(ReasonCode::as_str);
        let key = self.receipts.args_key();
        let args_hash = call.arguments.map(|arguments| key.hash(arguments));
        let decided = Instant::now();
        let ours = decided.saturating_duration_since(about.begun);
        let decision = Decision {
            ts: now(),
            receipt_id,
            trace_id: about.trace_id.map(Text),
            principal: record::Principal {
                actor_type: principal.actor,
                client_id: principal.client_id.as_deref().map(Text),
                org_id: principal.org_id.as_deref().map(Text),
                sub: Text(&principal.subject),
            },
            mcp: Mcp {
                method: Text(call.method),
                server_id: Text(situation.server.as_str()),
                tool_name: name.as_deref().map(Text),
                trust_level: profile.trust,
            },
            request: Request {
                args_hash,
                args_hash_kind: key.kind(),
                size_bytes_in: call.bytes as u64,
            },
            decision: record::Ruling {
                policy_id: about.policy_id.map(Text),
                reason_codes: Words(reasons.as_slice()),
                result: match ruling {
                    Ruling::Allow => RulingResult::Allow,
                    Ruling::Hold(_) => RulingResult::RequireApproval,
                    Ruling::Deny(denial) if denial.reason == ReasonCode::ApprovalRequired => {
                        RulingResult::RequireApproval
                    }
                    Ruling::Deny(_) => RulingResult::Deny,
                },
            },
            token_handling: token_handling(ruling, &profile.token),
            sandbox: profile.sandbox,
            approval: about.approval,
            drift: drift.as_ref().map(|drift| drift.to_record(about.view_age)),
            admission: admission.map(|ruling| to_record(ruling, about.admission_age)),
            incident_mode: situation.is_incident_mode(principal),
            latency_us: Latency { ours: microseconds(ours), theirs: None },
        };
        let ticket = self.receipts.decision_later(&decision);
        let ticket = ticket.map_err(|error| self.note_failure(error))?;
        if let Some(watch) = &self.watch {
            watch.decided(call.method, ruling);
        }
        self.signal(call, ruling, about);
        Ok(Recorded { receipt_id, ticket, decided })
    }

    /// Has the anomaly rules take note. A rule that is tripped is an event.
    fn signal(&self, call: &Call<'_>, ruling: &Ruling, about: Circumstances<'_>) {
        let Some(anomalies) = &self.anomalies else { return };
        let Circumstances { situation, principal, .. } = about;
        if let Some(tripped) = anomalies.note(call, ruling, principal, now()) {
            self.anomaly(situation.server.as_str(), principal, &tripped);
        }
    }

    /// Has the anomaly rules take note that so many outgoing connections of a session's server were blocked.
    pub fn signal_egress_blocked(
        &self,
        server: &str,
        principal: &Principal,
        session: Option<u64>,
        count: u64,
    ) {
        let Some(anomalies) = &self.anomalies else { return };
        if let Some(tripped) = anomalies.note_egress_blocked(principal, session, count, now()) {
            self.anomaly(server, principal, &tripped);
        }
    }

    /// Records that a session tripped an anomaly rule.
    fn anomaly(&self, server: &str, principal: &Principal, tripped: &Tripped) {
        let data = serde_json::json!({
            "action": tripped.action.as_str(),
            "rule": tripped.rule(),
            "signal": tripped.signal.as_str(),
            "sub": Text(&principal.subject),
        });
        self.event(server, "incident.anomaly", None, &data);
    }

    /// Waits until all decisions of a ticket are written.
    pub fn settle(&self, ticket: Ticket) -> Result<Settled, Unrecorded> {
        Ok(self.receipts.settle(ticket).map_err(|error| self.note_failure(error))?)
    }

    /// Waits until all outcomes are written.
    pub fn flush(&self) -> Result<(), Unrecorded> {
        Ok(self.receipts.flush().map_err(|error| self.note_failure(error))?)
    }

    /// Has outcomes written, by this thread or by one that writes already. They are not waited for.
    pub fn write_outcomes(&self) -> Result<(), Unrecorded> {
        Ok(self.receipts.write_queued().map_err(|error| self.note_failure(error))?)
    }

    /// Whether receipts cannot be written because the disk is full.
    pub fn is_disk_full(&self) -> bool {
        self.is_disk_full.load(Ordering::Relaxed)
    }

    fn note_failure(&self, error: ReceiptsError) -> ReceiptsError {
        if let Some(watch) = &self.watch {
            watch.failed();
        }
        self.is_disk_full.store(error.is_disk_full(), Ordering::Relaxed);
        error
    }

    /// Records how a dispatched request ended, with what else is settled next. What cannot be written waits, or is
    /// reported as missing: it is too late to refuse.
    pub fn outcome(
        &self,
        receipt_id: ReceiptId,
        status: OutcomeStatus,
        bytes: usize,
        ours: Duration,
        theirs: Duration,
    ) {
        let outcome = Outcome {
            ts: now(),
            receipt_id,
            status,
            size_bytes_out: bytes as u64,
            latency_us: Latency { ours: microseconds(ours), theirs: Some(microseconds(theirs)) },
        };
        let _ = self.receipts.outcome_later(&outcome);
        if let Some(watch) = &self.watch {
            watch.ended(status, ours, theirs);
        }
    }

    /// Records what is no request.
    pub fn event(&self, server: &str, name: &str, by: Option<&str>, data: &serde_json::Value) {
        let event = Event {
            ts: now(),
            name,
            by: by.map(Text),
            server_id: Some(Text(server)),
            data: Some(data),
        };
        let _ = self.receipts.event(&event);
    }

    /// Nothing more comes: everything is signed and on disk when this returns.
    pub fn finish(&self) {
        self.receipts.finish();
    }
}

fn next_id() -> Result<ReceiptId, Unrecorded> {
    thread_local! {
        static IDS: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
    }
    IDS.with_borrow_mut(|ids| {
        if let Some(id) = ids.pop() {
            return Ok(ReceiptId(id));
        }
        let mut random = [0_u8; 16 * IDS_AT_ONCE];
        getrandom::fill(&mut random).map_err(Unrecorded::NoRandomness)?;
        ids.extend_from_slice(random.as_chunks::<16>().0);
        Ok(ReceiptId(ids.pop().unwrap_or_default()))
    })
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What becomes of tokens in a call: one that is refused is shown to no server.
fn token_handling<'a>(ruling: &Ruling, token: &'a TokenUse) -> TokenHandling<'a> {
    let nothing = TokenHandling {
        audience: None,
        mode: TokenMode::None,
        passthrough_detected: false,
        source: None,
    };
    match ruling {
        Ruling::Allow => TokenHandling {
            audience: token.audience.as_deref().map(Text),
            mode: token.mode,
            source: Some(token.source),
            ..nothing
        },
        Ruling::Deny(denial) if denial.reason == ReasonCode::PassthroughBlocked => {
            TokenHandling { mode: TokenMode::Blocked, ..nothing }
        }
        Ruling::Deny(_) | Ruling::Hold(_) => nothing,
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn to_record(ruling: CallRuling<'_>, age: Option<Duration>) -> Admission<'_> {
    Admission {
        age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        clearance: ruling.clearance.map(|clearance| Text(clearance.name())),
        note: (ruling.verdict == AdmissionVerdict::Warn).then_some(attest::WARN_ONLY),
        reason: ruling.reason.map(attest::Reason::as_str),
        signer: ruling.signer.map(|signer| Text(signer.as_str())),
        verdict: ruling.verdict,
    }
}

/// What the drift gate found, for a receipt.
struct Drifted<'a> {
    before: Option<&'a EntryBody>,
    after: Option<&'a EntryBody>,
    kinds: &'a [&'static str],
    surfaced: SurfacedVerdict,
}

impl<'a> Drifted<'a> {
    fn of(call: &Call<'_>, ruling: &'a Ruling, situation: &'a Situation) -> Option<Drifted<'a>> {
        let standing = match (ruling, call.target) {
            (Ruling::Hold(standing), _) => standing,
            (_, None) => return None,
            (_, Some(target)) => match situation.view.find(target) {
                Found::Changed(standing) => standing,
                Found::Unchanged(body) => {
                    return Some(Drifted {
                        before: Some(body),
                        after: Some(body),
                        kinds: &[],
                        surfaced: SurfacedVerdict::unchanged(),
                    });
                }
                Found::Unknown => return None,
            },
        };
        Some(Drifted {
            before: standing.before.as_ref(),
            after: standing.after.as_ref(),
            kinds: &standing.kinds,
            surfaced: standing.surfaced,
        })
    }

    fn to_record(&self, view_age: Option<Duration>) -> Drift<'_> {
        let digests = |of: fn(&EntryBody) -> Option<[u8; 32]>| BeforeAfter {
            after: self.after.and_then(of).map(Digest32),
            before: self.before.and_then(of).map(Digest32),
        };
        let age = view_age.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let provenance = self.surfaced.provenance();
        Drift {
            definition_hash: digests(|body| body.definition_hash().map(|hash| *hash.as_bytes())),
            entry_hash: digests(|body| Some(*body.entry_hash().as_bytes())),
            framing: provenance.map(|provenance| provenance.framing.as_str()),
            kinds: Words(self.kinds),
            safety_relevant: self.surfaced.is_safety_relevant(),
            tier_reached: provenance.map_or(0, |provenance| provenance.tier_reached),
            verdict: self.surfaced.verdict().as_str(),
            verdict_scope: provenance.map(|provenance| provenance.verdict_scope.as_str()),
            view_age_ms: age,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Home;
    use store::receipts::Settings;

    #[test]
    fn a_full_disk_is_told_from_other_faults_of_the_receipts() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::open(&directory.path().join("home")).expect("a home");
        let recorder = Recorder::new(Receipts::open(&home, Settings::default()).expect("receipts"));
        assert!(!recorder.is_disk_full());
        recorder.note_failure(ReceiptsError::Full { path: home.receipts_path() });
        assert!(recorder.is_disk_full());
        recorder.note_failure(ReceiptsError::Busy { seconds: 1 });
        assert!(!recorder.is_disk_full());
    }
}

//! The standing of one entry, with everything that a refusal and a receipt say about it. Made once
//! per judgement rather than per call.

use super::Materials;
use super::by_the_call::CallsOfChange;
use crate::by_the_call::{CallHold, CallRuling};
use crate::judge::{Judgement, would_hold};
use crate::method::Target;
use crate::naming::{Approved, shown_name};
use crate::pins::{EntryPins, PinBook};
use crate::reason::Reason;
use crate::tiers::Behavior;
use crate::verdict::{Provenance, SurfacedVerdict, Verdict};
use crate::words::{self, Audience, HeldCall, Reviewer, Versions, entry_name};
use contract::change::Finding;
use contract::schema::Additions;
use contract::surface::{Entry, EntryBody, EntryId, EntryType, ListKind, Surface};
use serde_json::{Value, json};
use std::sync::Arc;

/// The version of the format of a refusal's `data`.
const VERDICT_CONTRACT_VERSION: &str = "1.0.0";
/// The most findings that a refusal lists.
pub(super) const MAX_EVIDENCE: usize = 20;

/// The standing of a changed entry, or of a stopped server.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The entry, if a person can review it.
    pub id: Option<EntryId>,
    pub surfaced: SurfacedVerdict,
    /// Why a call is held; `None` if it proceeds.
    pub reason: Option<Reason>,
    pub before: Option<EntryBody>,
    pub after: Option<EntryBody>,
    pub kinds: Vec<&'static str>,
    /// Whether each posture would have held a call, in the order of [`Posture::ALL`].
    pub would_hold: [bool; 4],
    /// The answer of tier 3 of the ladder.
    pub behavior: Behavior,
    evidence: Vec<Value>,
    message: String,
    /// What only the new definition has, if the approved one continues to be served.
    additions: Additions,
    is_deferred: bool,
    /// The rules by which shield decides on single calls, whatever the actual posture is.
    calls: Option<Arc<CallsOfChange>>,
    is_by_the_call: bool,
}

impl Standing {
    pub(super) fn of(judgement: &Judgement, materials: &Materials<'_>) -> Standing {
        // A new entry that is waiting has no approved definition to continue with.
        let is_new = judgement.is_deferred && judgement.before.is_none();
        let is_by_the_call = judgement.is_by_the_call;
        let is_held = judgement.verdict.is_held() && !is_by_the_call;
        let held = is_held.then(|| judgement.reason.unwrap_or(Reason::ContractDrift));
        let reason = held.or(is_new.then_some(Reason::NoPin));
        let surfaced = match (is_new, is_by_the_call) {
            (true, _) => held_verdict(judgement.is_safety_relevant()),
            (false, true) => passing_verdict(judgement.is_safety_relevant()),
            (false, false) => judgement.surfaced(),
        };
        let approved = Approved::of(judgement.before.as_ref());
        let message = reason
            .map_or_else(String::new, |reason| message(judgement, materials, reason, &approved));
        let findings = judgement.findings.iter().take(MAX_EVIDENCE);
        let evidence = findings.map(|finding| evidence(&judgement.id, finding, &approved));
        let body = |entry: &Entry| entry.body().clone();
        let mut kinds: Vec<&'static str> =
            judgement.findings.iter().map(|finding| finding.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        Standing {
            id: Some(judgement.id.clone()),
            surfaced,
            reason,
            before: judgement.before.as_ref().map(body),
            after: judgement.after.as_ref().map(body),
            kinds,
            would_hold: would_hold(judgement, materials.book, materials.settings),
            behavior: judgement.climbed.map_or(Behavior::NotRun, |climbed| climbed.behavior),
            evidence: evidence.collect(),
            message,
            additions: additions(judgement, materials.book),
            is_deferred: judgement.is_deferred,
            calls: CallsOfChange::of(judgement, materials).map(Arc::new),
            is_by_the_call,
        }
    }

    /// A standing without a comparison: the server as a whole is stopped, or the entry is unknown.
    pub(super) fn for_server(
        reason: Reason,
        reviewer: Reviewer<'_>,
        target: Option<Target<'_>>,
    ) -> Standing {
        let name = target.map_or_else(
            || "the server".to_owned(),
            |target| {
                let audience = Audience::Model(&Approved::default());
                entry_name(target.entry_type, target.key, false, audience)
            },
        );
        Standing::without_comparison(reason, reviewer, &name)
    }

    /// The standing of all entries of a list that is held.
    pub(super) fn for_list(reason: Reason, reviewer: Reviewer<'_>, list: ListKind) -> Standing {
        Standing::without_comparison(reason, reviewer, &format!("its {}", list.member()))
    }

    fn without_comparison(reason: Reason, reviewer: Reviewer<'_>, name: &str) -> Standing {
        Standing {
            id: None,
            surfaced: held_verdict(true),
            reason: Some(reason),
            before: None,
            after: None,
            kinds: Vec::new(),
            would_hold: [reason == Reason::ServerQuarantined, true, true, true],
            behavior: Behavior::NotRun,
            evidence: Vec::new(),
            message: held_without_findings(reason, reviewer, name),
            additions: Additions::None,
            is_deferred: false,
            calls: None,
            is_by_the_call: false,
        }
    }

    /// Whether calls wait for a person's decision: all of them, or those that the change affects.
    pub fn waits_for_person(&self) -> bool {
        self.is_held() || self.is_by_the_call
    }

    /// Whether each call is decided separately, by what it uses.
    pub fn is_by_the_call(&self) -> bool {
        self.is_by_the_call
    }

    /// Shield's decision on one call. Returns `None` if it treats all calls the same.
    pub fn call_ruling(&self, arguments: Option<&[u8]>) -> Option<CallRuling> {
        self.calls.as_ref().map(|calls| calls.rules.judge(arguments))
    }

    /// The standing of the same entry for one held call.
    pub(super) fn holding_call(&self, hold: &CallHold) -> Arc<Standing> {
        let Some(calls) = &self.calls else { return Arc::new(self.clone()) };
        let (kinds, evidence, message) = calls.say(hold);
        Arc::new(Standing {
            surfaced: held_verdict(true),
            reason: Some(Reason::ContractDrift),
            kinds,
            evidence,
            message,
            ..self.clone()
        })
    }

    /// The standing of the same entry, held because an earlier call of it was held.
    pub(super) fn holding_every_call(&self) -> Arc<Standing> {
        match &self.calls {
            Some(calls) => self.holding_call(&calls.rules.held_before()),
            None => Arc::new(self.clone()),
        }
    }

    pub fn is_held(&self) -> bool {
        self.reason.is_some()
    }

    /// Whether a call with these arguments uses anything unaccepted.
    pub fn is_beyond_approved(&self, arguments: Option<&[u8]>) -> bool {
        arguments.is_some_and(|arguments| self.additions.are_used_by(arguments))
    }

    pub fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// The standing of the same entry, held for another reason.
    pub(super) fn because(
        &self,
        reason: Reason,
        target: Target<'_>,
        reviewer: Reviewer<'_>,
    ) -> Arc<Standing> {
        let audience = Audience::Model(&Approved::default());
        let name = entry_name(target.entry_type, target.key, self.before.is_some(), audience);
        Arc::new(Standing {
            surfaced: held_verdict(true),
            reason: Some(reason),
            message: held_without_findings(reason, reviewer, &name),
            ..self.clone()
        })
    }

    /// The message for the model.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The data for programs. Without a receipt there is no review command either: the application
    /// has its own way to review.
    pub fn data(&self, server: &str, tool: Option<&str>, receipt_id: Option<&str>) -> Value {
        let reason = self.reason.unwrap_or(Reason::ContractDrift);
        let command = match reason {
            Reason::ServerQuarantined => "release",
            Reason::ContractDrift
            | Reason::NoPin
            | Reason::Marker
            | Reason::SurfaceUnreadable
            | Reason::ServerChanged
            | Reason::ServerPending
            | Reason::BaselineLost
            | Reason::UnapprovedParameter => "review",
        };
        let is_accepted = self.before.is_some();
        let provenance = self.surfaced.provenance();
        let mut data = json!({
            "verdict": self.surfaced.verdict(),
            "verdict_contract_version": VERDICT_CONTRACT_VERSION,
            "safety_relevant": self.surfaced.is_safety_relevant(),
            "reason": reason,
            "server": server,
            "tool": tool.map(|tool| shown_name(tool, is_accepted)),
            "kinds": self.kinds,
            "definition_hash": self.before_after(|body| Some(body.definition_hash()?.to_string())),
            "entry_hash": self.before_after(|body| Some(body.entry_hash().to_string())),
            "tier_reached": provenance.map(|provenance| provenance.tier_reached),
            "verdict_scope": provenance.map(|provenance| provenance.verdict_scope),
            "framing": provenance.map(|provenance| provenance.framing),
            "evidence": self.evidence,
        });
        if let (Some(receipt_id), Value::Object(members)) = (receipt_id, &mut data) {
            members.insert("receipt_id".to_owned(), receipt_id.into());
            members.insert("review".to_owned(), json!(["holdpoint", command, server]));
        }
        data
    }

    fn before_after(&self, hash: fn(&EntryBody) -> Option<String>) -> Value {
        let text = |body: &Option<EntryBody>| body.as_ref().and_then(hash);
        json!({"before": text(&self.before), "after": text(&self.after)})
    }
}

/// A finding, with the accepted text that it is about. Unaccepted text of the server is left out,
/// and so is how the server is started: that describes this machine, and is not the server's text.
pub(super) fn evidence(id: &EntryId, finding: &Finding, approved: &Approved<'_>) -> Value {
    let mut evidence = json!({"kind": finding.kind.as_str(), "path": approved.pointer(finding)});
    let is_origin = id.entry_type == EntryType::Origin;
    let before = finding.before.as_deref().filter(|_| !is_origin);
    if let (Some(before), Value::Object(members)) = (before, &mut evidence) {
        members.insert("before".to_owned(), Value::from(before));
    }
    evidence
}

/// The verdict on a call that a change does not affect.
fn passing_verdict(is_safety_relevant: bool) -> SurfacedVerdict {
    let provenance = Provenance::structural(Verdict::Proceed, true);
    SurfacedVerdict::new(Verdict::Proceed, is_safety_relevant, Some(provenance))
}

/// A hold that does not come from the comparison.
fn held_verdict(is_safety_relevant: bool) -> SurfacedVerdict {
    let provenance = Provenance::structural(Verdict::Hold, true);
    SurfacedVerdict::new(Verdict::Hold, is_safety_relevant, Some(provenance))
}

/// What a call may not use while the new definition waits. The client sees the accepted definition,
/// so calls may use only that.
fn additions(judgement: &Judgement, book: &PinBook) -> Additions {
    let accepted = book.get(&judgement.id).and_then(EntryPins::accepted).map(|pin| &pin.entry);
    match (accepted, &judgement.after) {
        (Some(accepted), Some(after)) if judgement.is_deferred => {
            Additions::between(accepted, after)
        }
        _ => Additions::None,
    }
}

fn message(
    judgement: &Judgement,
    materials: &Materials<'_>,
    reason: Reason,
    approved: &Approved<'_>,
) -> String {
    let reviewer = materials.reviewer;
    if judgement.surfaced().provenance().is_none() {
        return words::held_without_provenance(reviewer);
    }
    let EntryId { entry_type, key } = &judgement.id;
    let is_accepted = judgement.before.is_some();
    let subject = entry_name(*entry_type, key, is_accepted, Audience::Model(approved));
    let (before, now) = versions(materials.book, materials.surface);
    let versions = Versions { before: before.as_deref(), now: now.as_deref() };
    let (subject, findings) = (subject.as_str(), judgement.findings.as_slice());
    let (verdict, behavior) = match judgement.climbed {
        // Whatever the ladder decided, it was consulted about an inconclusive behavioral finding.
        Some(climbed) => (Verdict::Inconclusive, climbed.behavior),
        None => (judgement.verdict, Behavior::NotRun),
    };
    let others = words::said_by_others(judgement);
    let others = others.as_str();
    let call =
        HeldCall { reviewer, subject, verdict, findings, approved, versions, behavior, others };
    words::held(reason, &call)
}

fn held_without_findings(reason: Reason, reviewer: Reviewer<'_>, subject: &str) -> String {
    let approved = Approved::default();
    let call = HeldCall {
        reviewer,
        subject,
        verdict: Verdict::Hold,
        findings: &[],
        approved: &approved,
        versions: Versions::default(),
        behavior: Behavior::NotRun,
        others: "",
    };
    words::held(reason, &call)
}

/// The package's version when it was approved and the current one, as far as the origin or the
/// server reports them.
pub(super) fn versions(book: &PinBook, surface: &Surface) -> (Option<String>, Option<String>) {
    let id = EntryId::only(EntryType::Origin);
    let version = |origin: &Entry| {
        let document = origin.document().ok()?;
        Some(document.root().get("version")?.as_str()?.into_owned())
    };
    let before = book.get(&id).and_then(EntryPins::approved).and_then(|pin| version(&pin.entry));
    let now = surface.entry(&id).and_then(version).or_else(|| surface.server_version.clone());
    (before, now)
}

//! Changes as JSON documents: what commands print with `--json` and the gateway's admin API
//! returns.

use crate::behavior::{Assessment, Departure, Leg};
use crate::judge::{Judgement, SurfaceJudgement};
use crate::posture::Posture;
use crate::reason::Reason;
use crate::server_text::{Printable, ServerText, Withheld};
use crate::tiers::Behavior;
use crate::verdict::{Provenance, SurfacedVerdict, Verdict};
use contract::change::Meaning;
use contract::hash::{DefinitionHash, EntryHash};
use contract::surface::EntryType;
use serde::Serialize;
use std::borrow::Cow;

/// `diff --json`, `check --json`.
#[derive(Debug, Serialize)]
pub struct VerdictDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    #[serde(flatten)]
    surfaced: SurfacedVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    posture: Posture,
    entries: Vec<EntryDocument<'a>>,
    /// `diff --call`: the posture's decision on each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallDocument>>,
    /// `check --behavioral`: the combined result of all tested tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavioral: Option<Behavior>,
    /// `check --behavioral`: the result of each tested tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Vec<ObservedTool>>,
}

/// The test result of one tool.
#[derive(Debug, Serialize)]
pub struct ObservedTool {
    pub tool: String,
    pub outcome: Behavior,
    pub leg: &'static str,
    /// The departures from the contract, as stable codes.
    pub departures: Vec<&'static str>,
    pub detail: String,
}

impl ObservedTool {
    pub fn of(tool: &str, leg: Leg, assessment: &Assessment) -> ObservedTool {
        let departures = match assessment {
            Assessment::Failed(departures) => departures.iter().map(Departure::code).collect(),
            Assessment::Declined | Assessment::Unavailable(_) | Assessment::Cleared(_) => {
                Vec::new()
            }
        };
        ObservedTool {
            tool: tool.to_owned(),
            outcome: assessment.behavior(),
            leg: leg.as_str(),
            departures,
            detail: assessment.words(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct EntryDocument<'a> {
    #[serde(rename = "type")]
    entry_type: EntryType,
    key: Cow<'a, str>,
    #[serde(flatten)]
    surfaced: SurfacedVerdict,
    deferred: bool,
    /// Calls are decided one by one: shield holds those that the change affects.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_the_call: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_hash: Option<Change<DefinitionHash>>,
    entry_hash: Change<EntryHash>,
    findings: Vec<FindingDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_to: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
}

/// The decision on one call. Its arguments are not repeated.
#[derive(Debug, Serialize)]
pub struct CallDocument {
    pub tool: String,
    pub verdict: Verdict,
    pub kinds: Vec<&'static str>,
    pub parameters: Vec<String>,
    #[serde(skip)]
    pub why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Change<T> {
    before: Option<T>,
    after: Option<T>,
}

#[derive(Debug, Serialize)]
struct FindingDocument<'a> {
    kind: &'static str,
    class: &'static str,
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<&'static str>,
    before: Option<&'a str>,
    after: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<Withheld>,
    say: String,
}

impl<'a> VerdictDocument<'a> {
    pub fn of(judgement: &'a SurfaceJudgement, text: ServerText) -> VerdictDocument<'a> {
        let is_unreadable = !judgement.unreadable.is_empty();
        let unreadable: Vec<Cow<'_, str>> =
            judgement.unreadable.iter().map(|words| text.unreadable(words)).collect();
        VerdictDocument {
            server: None,
            surfaced: judgement.surfaced(),
            reason: is_unreadable.then_some(Reason::SurfaceUnreadable),
            detail: is_unreadable.then(|| unreadable.join("; ")),
            posture: judgement.posture,
            entries: judgement.entries.iter().map(|entry| EntryDocument::of(entry, text)).collect(),
            calls: None,
            behavioral: None,
            observed: None,
        }
    }

    /// Marks the server as quarantined, which holds it regardless of the findings and is reported
    /// first.
    pub fn quarantined(&mut self) {
        self.reason = Some(Reason::ServerQuarantined);
        let provenance = Provenance::structural(Verdict::Hold, !self.entries.is_empty());
        let is_relevant = self.surfaced.is_safety_relevant();
        self.surfaced = SurfacedVerdict::new(Verdict::Hold, is_relevant, Some(provenance));
    }
}

impl<'a> EntryDocument<'a> {
    pub fn of(judgement: &'a Judgement, text: ServerText) -> EntryDocument<'a> {
        let printable = Printable::new(judgement, text);
        let (before, after) = (judgement.before.as_ref(), judgement.after.as_ref());
        let is_tool = judgement.id.entry_type == EntryType::Tool;
        let findings = judgement.findings.iter().map(|finding| FindingDocument {
            kind: finding.kind.as_str(),
            class: finding.class.as_str(),
            path: printable.path(finding),
            effective: finding.meaning.and_then(Meaning::effective),
            results: finding.meaning.and_then(Meaning::results),
            before: printable.before_of(finding),
            after: printable.after_of(finding),
            withheld: printable.withheld_of(finding),
            say: printable.say(finding),
        });
        EntryDocument {
            entry_type: judgement.id.entry_type,
            key: printable.key(),
            surfaced: judgement.surfaced(),
            deferred: judgement.is_deferred,
            by_the_call: judgement.is_by_the_call,
            reason: judgement.reason,
            definition_hash: is_tool.then(|| Change {
                before: before.and_then(contract::surface::Entry::definition_hash),
                after: after.and_then(contract::surface::Entry::definition_hash),
            }),
            entry_hash: Change {
                before: before.map(contract::surface::Entry::entry_hash),
                after: after.map(contract::surface::Entry::entry_hash),
            },
            findings: findings.collect(),
            renamed_to: printable.renamed_to(),
            detail: printable.details().next(),
        }
    }
}

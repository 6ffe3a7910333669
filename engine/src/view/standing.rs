//! Where one entry stands, with all that a refusal and a receipt say of it. Made once a judgement, not once a call.

use super::Materials;
use crate::call::Target;
use contract::change::{ChangeKind, Finding};
use contract::json::{Document, Node};
use contract::surface::{Entry, EntryType, ListKind};
use gate::judge::Judgement;
use gate::posture::{Posture, Settings};
use gate::reason::Reason;
use gate::unseen::judge_server_entry;
use gate::verdict::{Provenance, Verdict};
use gate::words::{self, Audience, entry_name, model_path};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most findings that a refusal lists.
const MAX_EVIDENCE: usize = 20;

/// The hashes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashes {
    pub definition: Option<[u8; 32]>,
    pub entry: [u8; 32],
}

impl Hashes {
    pub fn of(entry: &Entry) -> Hashes {
        Hashes {
            definition: entry.definition_hash().map(|hash| *hash.as_bytes()),
            entry: *entry.entry_hash().as_bytes(),
        }
    }
}

/// An entry that moved, or a server that is stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub verdict: Verdict,
    /// Why a call is held; nothing where it goes on.
    pub reason: Option<Reason>,
    pub before: Option<Hashes>,
    pub after: Option<Hashes>,
    pub kinds: Vec<&'static str>,
    pub provenance: Provenance,
    /// What each posture would have done with a call, in the order of [`Posture::ALL`].
    pub would_hold: [bool; 4],
    evidence: Vec<Value>,
    message: String,
    /// Parameters that only the new definition has, where the approved one goes on being served.
    unapproved: Vec<Box<str>>,
    is_deferred: bool,
}

impl Standing {
    pub(super) fn of(judgement: &Judgement, materials: &Materials<'_>) -> Standing {
        // A new entry that waits is nobody's yet: there is no approved definition to go on with.
        let is_new = judgement.is_deferred && judgement.before.is_none();
        let held = judgement.reason.filter(|_| judgement.verdict.is_held());
        let reason = held.or(is_new.then_some(Reason::NoPin));
        let verdict = if is_new { Verdict::Hold } else { judgement.verdict };
        let is_known = judgement.before.is_some();
        let name =
            entry_name(judgement.id.entry_type, &judgement.id.key, is_known, Audience::Model);
        let message = reason.map_or_else(String::new, |reason| {
            words::held(reason, materials.server.as_str(), &name, &judgement.findings)
        });
        let evidence = judgement.findings.iter().take(MAX_EVIDENCE).map(
            |finding| json!({"kind": finding.kind.as_str(), "path": model_path(&finding.path)}),
        );
        let mut kinds: Vec<&'static str> =
            judgement.findings.iter().map(|finding| finding.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        Standing {
            verdict,
            reason,
            before: judgement.before.as_ref().map(Hashes::of),
            after: judgement.after.as_ref().map(Hashes::of),
            kinds,
            provenance: judgement.provenance(),
            would_hold: would_hold(judgement, materials),
            evidence: evidence.collect(),
            message,
            unapproved: if judgement.is_deferred { unapproved(judgement) } else { Vec::new() },
            is_deferred: judgement.is_deferred,
        }
    }

    /// A standing that no comparison gave: the server as a whole is stopped, or the entry is known to nobody.
    pub(super) fn for_server(reason: Reason, server: &str, target: Option<Target<'_>>) -> Standing {
        let name = target.map_or_else(
            || "the server".to_owned(),
            |target| entry_name(target.entry_type, target.key, false, Audience::Model),
        );
        Standing::without_comparison(reason, server, &name)
    }

    /// All that a list carries is held.
    pub(super) fn for_list(reason: Reason, server: &str, list: ListKind) -> Standing {
        Standing::without_comparison(reason, server, &format!("its {}", list.member()))
    }

    fn without_comparison(reason: Reason, server: &str, name: &str) -> Standing {
        Standing {
            verdict: Verdict::Hold,
            reason: Some(reason),
            before: None,
            after: None,
            kinds: Vec::new(),
            provenance: Provenance::structural(Verdict::Hold, false),
            would_hold: [reason == Reason::ServerQuarantined, true, true, true],
            evidence: Vec::new(),
            message: words::held(reason, server, name, &[]),
            unapproved: Vec::new(),
            is_deferred: false,
        }
    }

    pub fn is_held(&self) -> bool {
        self.reason.is_some()
    }

    /// Parameters that a call may not use, because nobody accepted them yet.
    pub fn unapproved_parameters(&self) -> &[Box<str>] {
        &self.unapproved
    }

    pub fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// The same entry, held for another reason.
    pub fn because(&self, reason: Reason, target: Target<'_>, server: &str) -> Arc<Standing> {
        let name = entry_name(target.entry_type, target.key, true, Audience::Model);
        Arc::new(Standing {
            verdict: Verdict::Hold,
            reason: Some(reason),
            message: words::held(reason, server, &name, &[]),
            ..self.clone()
        })
    }

    /// What the model is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What a program is told.
    pub fn data(&self, server: &str, tool: Option<&str>, receipt_id: &str) -> Value {
        let reason = self.reason.unwrap_or(Reason::ContractDrift);
        let command = match reason {
            Reason::ServerQuarantined => "release",
            _ => "review",
        };
        let is_known = self.before.is_some();
        json!({
            "verdict": "HOLD",
            "reason": reason,
            "server": server,
            "tool": tool.map(|tool| words::model_name(tool, is_known)),
            "kinds": self.kinds,
            "definition_hash": before_after(self.before, self.after, |hashes| hashes.definition),
            "entry_hash": before_after(self.before, self.after, |hashes| Some(hashes.entry)),
            "tier_reached": self.provenance.tier_reached,
            "verdict_scope": self.provenance.verdict_scope,
            "framing": self.provenance.framing,
            "evidence": self.evidence,
            "receipt_id": receipt_id,
            "review": ["holdpoint", command, server],
        })
    }
}

fn before_after(
    before: Option<Hashes>,
    after: Option<Hashes>,
    of: impl Fn(Hashes) -> Option<[u8; 32]>,
) -> Value {
    let text = |hashes: Option<Hashes>| hashes.and_then(&of).map(hex::encode);
    json!({"before": text(before), "after": text(after)})
}

fn would_hold(judgement: &Judgement, materials: &Materials<'_>) -> [bool; 4] {
    Posture::ALL.map(|posture| {
        let settings = Settings { posture, ..materials.settings.clone() };
        judge_server_entry(materials.book, materials.surface, &judgement.id, &settings)
            .is_some_and(|judged| judged.verdict.is_held())
    })
}

/// The names of parameters that the new definition has and the approved one does not, and of those in which it has such
/// ones further in: arguments are not read deeper than their names, so all of one that gained something counts as new.
fn unapproved(judgement: &Judgement) -> Vec<Box<str>> {
    let before = judgement.before.as_ref().map(parameters).unwrap_or_default();
    let after = judgement.after.as_ref().map(parameters).unwrap_or_default();
    let is_added = |finding: &&Finding| finding.kind == ChangeKind::AddedOptionalParam;
    let mut gained = Vec::new();
    for finding in judgement.findings.iter().filter(is_added) {
        match outermost(&finding.path) {
            Some(name) => gained.push(name),
            // Behind a reference or a choice it may be in any of them.
            None => gained.extend(after.iter().cloned().chain(last(&finding.path))),
        }
    }
    let new = after.into_iter().filter(|name| !before.contains(name) && !gained.contains(name));
    let new: Vec<Box<str>> = new.collect();
    gained.into_iter().chain(new).collect()
}

/// The parameter that a pointer into a tool leads to, or into.
fn outermost(path: &str) -> Option<Box<str>> {
    let inside = path.strip_prefix("/inputSchema/properties/")?;
    inside.split('/').next().map(unescaped)
}

fn last(path: &str) -> Option<Box<str>> {
    path.rsplit('/').next().map(unescaped)
}

/// A name as it was before it became a part of a JSON Pointer.
fn unescaped(part: &str) -> Box<str> {
    part.replace("~1", "/").replace("~0", "~").into()
}

fn parameters(entry: &Entry) -> Vec<Box<str>> {
    let Ok(document) = Document::parse(entry.raw()) else { return Vec::new() };
    let root = document.root();
    match entry.entry_type() {
        EntryType::Tool => {
            let properties = root.get("inputSchema").and_then(|schema| schema.get("properties"));
            let names = properties.into_iter().flat_map(Node::members);
            names.filter_map(|(name, _)| Some(name.as_str()?.into())).collect()
        }
        EntryType::Prompt => {
            let arguments = root.get("arguments").into_iter().flat_map(Node::items);
            arguments.filter_map(|argument| Some(argument.get("name")?.as_str()?.into())).collect()
        }
        _ => Vec::new(),
    }
}

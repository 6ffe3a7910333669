//! Changes that are decided by the call: the explanation of a held call, and the tools that a
//! session had a held call of.

use super::standing::{MAX_EVIDENCE, evidence as evidence_of, versions};
use super::{Materials, Standing};
use crate::by_the_call::{CallHold, CallRules};
use crate::judge::{Judgement, call_rules};
use crate::method::Target;
use crate::naming::Approved;
use crate::tiers::Behavior;
use crate::verdict::Verdict;
use crate::words::{Audience, HeldCall, Reviewer, Versions, entry_name, held_by_the_call};
use contract::change::Finding;
use contract::surface::{Entry, EntryId};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The most such tools remembered per session. Beyond that, every call that is decided by the call
/// is held.
pub const MAX_HELD_TOOLS: usize = 1_000;

/// A change whose calls shield decides one by one, with everything a refusal needs to explain it.
#[derive(Debug)]
pub(super) struct CallsOfChange {
    pub(super) rules: Arc<CallRules>,
    id: EntryId,
    /// The server, if the person decides in a terminal.
    terminal: Option<String>,
    approved: Option<Entry>,
    findings: Vec<Finding>,
    versions: (Option<String>, Option<String>),
}

impl PartialEq for CallsOfChange {
    /// The cache shares rules by the hashes of their definitions, so pointer equality is enough.
    fn eq(&self, other: &CallsOfChange) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules)
    }
}

impl CallsOfChange {
    pub(super) fn of(judgement: &Judgement, materials: &Materials<'_>) -> Option<CallsOfChange> {
        let Materials { book, settings, call_rules: cache, .. } = materials;
        Some(CallsOfChange {
            rules: call_rules(judgement, book, settings, cache)?,
            id: judgement.id.clone(),
            terminal: match materials.reviewer {
                Reviewer::Terminal(server) => Some(server.to_owned()),
                Reviewer::Application => None,
            },
            approved: judgement.before.clone(),
            findings: judgement.findings.clone(),
            versions: versions(materials.book, materials.surface),
        })
    }

    /// The kinds, the evidence and the message of a held call: for the findings that hold it, or
    /// for all of them.
    pub(super) fn say(&self, hold: &CallHold) -> (Vec<&'static str>, Vec<Value>, String) {
        let approved = Approved::of(self.approved.as_ref());
        let of_call = self.findings.iter().filter(|finding| hold.kinds.contains(&finding.kind));
        let mut findings: Vec<Finding> = of_call.cloned().collect();
        if findings.is_empty() {
            findings.clone_from(&self.findings);
        }
        let mut kinds: Vec<&'static str> =
            findings.iter().map(|finding| finding.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let evidence = findings.iter().take(MAX_EVIDENCE);
        let evidence = evidence.map(|finding| evidence_of(&self.id, finding, &approved));
        let EntryId { entry_type, key } = &self.id;
        let subject = entry_name(*entry_type, key, true, Audience::Model(&approved));
        let (before, now) = &self.versions;
        let call = HeldCall {
            reviewer: self.terminal.as_deref().map_or(Reviewer::Application, Reviewer::Terminal),
            subject: &subject,
            verdict: Verdict::Hold,
            findings: &findings,
            approved: &approved,
            versions: Versions { before: before.as_deref(), now: now.as_deref() },
            behavior: Behavior::NotRun,
            others: "",
        };
        (kinds, evidence.collect(), held_by_the_call(&call, hold.cause))
    }
}

/// The tools of which a session already had a call held. Otherwise a server could change the text
/// of `dry_run` so that a call with it is held, and the agent would repeat the call without it.
#[derive(Debug, Default)]
pub struct HeldTools(Mutex<HashSet<(Box<str>, [u8; 32])>>);

impl HeldTools {
    /// Remembers the tool of a held call, if its calls are decided by the call.
    pub fn note(&self, target: Target<'_>, standing: &Standing) {
        let approved = standing.before.as_ref().filter(|_| standing.is_by_the_call());
        if let Some(approved) = approved {
            self.remember(target.key, *approved.entry_hash().as_bytes());
        }
    }

    /// Remembers a tool by its name and the hash of its approved definition, so that a new approval
    /// starts over.
    pub fn remember(&self, tool: &str, approved: [u8; 32]) {
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.len() <= MAX_HELD_TOOLS {
            tools.insert((tool.into(), approved));
        }
    }

    pub fn has(&self, tool: &str, approved: [u8; 32]) -> bool {
        let tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !tools.is_empty()
            && (tools.len() > MAX_HELD_TOOLS || tools.contains(&(tool.into(), approved)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_remembered_by_name_and_approval_and_past_the_most_every_tool_counts() {
        let held = HeldTools::default();
        assert!(!held.has("a", [1; 32]));
        held.remember("a", [1; 32]);
        assert!(held.has("a", [1; 32]));
        assert!(!held.has("a", [2; 32]) && !held.has("b", [1; 32]));
        (0..MAX_HELD_TOOLS).for_each(|n| held.remember(&n.to_string(), [1; 32]));
        assert!(held.has("never called", [1; 32]));
    }
}

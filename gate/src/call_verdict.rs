//! What a posture does with a given call, after the surface was judged: for commands that answer
//! "what if".

use crate::by_the_call::{CallHold, CallRulesCache, CallRuling};
use crate::judge::{Judgement, SurfaceJudgement, call_rules};
use crate::pins::{EntryPins, PinBook};
use crate::posture::{Posture, Settings};
use crate::verdict::Verdict;
use contract::change::{ChangeClass, ChangeKind};
use contract::json::Document;
use contract::schema::Additions;
use contract::sorted::SortedSet;
use contract::surface::{Entry, EntryId, EntryType, ListKind, Surface};

/// Everything that calls are judged by.
#[derive(Debug)]
pub struct CallCase<'a> {
    pub book: &'a PinBook,
    pub surface: &'a Surface,
    pub judgement: &'a SurfaceJudgement,
    pub settings: &'a Settings,
    pub cache: &'a CallRulesCache,
}

/// The decision on a single call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallVerdict {
    pub verdict: Verdict,
    /// The changes that hold it, sorted; empty for a call that proceeds.
    pub kinds: Vec<ChangeKind>,
    /// The affected parameters, sorted.
    pub parameters: Vec<String>,
    /// The reason in our own words, if the call itself decides.
    pub why: Option<String>,
}

impl CallVerdict {
    fn proceed() -> CallVerdict {
        let (kinds, parameters) = (Vec::new(), Vec::new());
        CallVerdict { verdict: Verdict::Proceed, kinds, parameters, why: None }
    }
}

impl CallCase<'_> {
    /// Whether the pins or the server have the tool.
    pub fn knows(&self, tool: &str) -> bool {
        let id = EntryId::new(EntryType::Tool, tool);
        self.book.get(&id).is_some() || self.surface.entry(&id).is_some()
    }

    /// The posture's decision on a call of a tool, as if it were the first one of a session.
    pub fn judge(&self, tool: &str, arguments: Option<&[u8]>) -> CallVerdict {
        if self.settings.posture == Posture::Monitor {
            return CallVerdict::proceed();
        }
        let id = EntryId::new(EntryType::Tool, tool);
        let Some(judged) = self.judgement.of(&id) else {
            let is_readable = !self.surface.unreadable().contains_key(&ListKind::Tools);
            let verdict = if is_readable { Verdict::Proceed } else { Verdict::Hold };
            return CallVerdict { verdict, ..CallVerdict::proceed() };
        };
        if judged.is_by_the_call {
            return self.by_the_call(judged, arguments);
        }
        if judged.verdict.is_held() {
            return CallVerdict { verdict: judged.verdict, ..whole(judged) };
        }
        match (&judged.before, &judged.after) {
            // A new tool that is waiting has no approved definition to continue with.
            (None, Some(_)) if judged.is_deferred => {
                CallVerdict { verdict: Verdict::Hold, ..whole(judged) }
            }
            (Some(_), Some(after)) if judged.is_deferred => {
                self.beyond_accepted(judged, after, arguments)
            }
            _ => CallVerdict::proceed(),
        }
    }

    fn by_the_call(&self, judged: &Judgement, arguments: Option<&[u8]>) -> CallVerdict {
        let rules = call_rules(judged, self.book, self.settings, self.cache);
        match rules.map(|rules| rules.judge(arguments)) {
            Some(CallRuling::Proceed) => CallVerdict::proceed(),
            Some(CallRuling::Hold(CallHold { cause, kinds, parameters })) => {
                let why = Some(cause.words());
                CallVerdict { verdict: Verdict::Hold, kinds, parameters, why }
            }
            None => CallVerdict { verdict: Verdict::Hold, ..whole(judged) },
        }
    }

    /// Holds a call that uses something only the waiting definition has.
    fn beyond_accepted(
        &self,
        judged: &Judgement,
        after: &Entry,
        arguments: Option<&[u8]>,
    ) -> CallVerdict {
        let accepted = self.book.get(&judged.id).and_then(EntryPins::accepted);
        let (Some(accepted), Some(arguments)) = (accepted, arguments) else {
            return CallVerdict::proceed();
        };
        if !Additions::between(&accepted.entry, after).are_used_by(arguments) {
            return CallVerdict::proceed();
        }
        CallVerdict {
            verdict: Verdict::Hold,
            kinds: vec![ChangeKind::AddedOptionalParam],
            parameters: undeclared(&accepted.entry, arguments),
            why: Some(
                "the call uses a parameter that the approved definition does not have".into(),
            ),
        }
    }
}

/// The verdict for a tool that is held as a whole.
fn whole(judged: &Judgement) -> CallVerdict {
    let weighs = |class: ChangeClass| class.is_safety_relevant();
    let deciding = judged.findings.iter().filter(|finding| weighs(finding.class));
    let kinds: SortedSet<ChangeKind> = match deciding.clone().next() {
        Some(_) => deciding.clone().map(|finding| finding.kind).collect(),
        None => judged.findings.iter().map(|finding| finding.kind).collect(),
    };
    let parameters: SortedSet<String> =
        deciding.filter_map(|finding| crate::by_the_call::parameter(&finding.path)).collect();
    CallVerdict {
        verdict: judged.verdict,
        kinds: kinds.into_iter().collect(),
        parameters: parameters.into_iter().collect(),
        why: None,
    }
}

/// The parameters of a call that a definition does not declare.
fn undeclared(accepted: &Entry, arguments: &[u8]) -> Vec<String> {
    let (Ok(entry), Ok(call)) = (accepted.document(), Document::parse_bytes(arguments)) else {
        return Vec::new();
    };
    let schema = entry.root().get("inputSchema");
    let properties = schema.and_then(|schema| schema.get("properties"));
    let is_new = |name: &str| properties.and_then(|all| all.get(name)).is_none();
    let names = call.root().members().filter_map(|(name, _)| name.as_str());
    let mut names: Vec<String> =
        names.filter(|name| is_new(name)).map(std::borrow::Cow::into_owned).collect();
    names.sort();
    names
}

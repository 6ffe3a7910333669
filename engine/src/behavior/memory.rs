//! The observations of a server's tools in this process. They are never stored, and each belongs to
//! one definition of a tool and one way to start the server.

use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId, EntryType, Surface};
use gate::behavior::Consent;
use gate::judge::{Judgement, SurfaceJudgement};
use gate::tiers::{Behavior, Corpus, Ladder, Miss, Reader, Verifier, is_behavioral};
use gate::verdict::Verdict;
use std::collections::HashMap;
use std::sync::Arc;

/// The most results remembered per server. Beyond that all are forgotten, which holds again what
/// they cleared.
pub const MAX_REMEMBERED: usize = 1_000;

/// What a result applies to: one definition of a tool, on a server started in one way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observable {
    pub id: EntryId,
    pub entry: EntryHash,
    /// The hash of the origin entry, which includes the program's digest and the package's version.
    pub origin: Option<EntryHash>,
}

impl Observable {
    pub fn of(tool: &Entry, origin: Option<&Entry>) -> Observable {
        Observable {
            id: tool.id().clone(),
            entry: tool.entry_hash(),
            origin: origin.map(Entry::entry_hash),
        }
    }
}

/// A change that behavior could settle, and that has not been tested yet.
#[derive(Debug, Clone)]
pub struct Unobserved {
    pub key: Observable,
    pub tool: Entry,
}

/// The results so far. Clones are cheap, because they share them.
#[derive(Debug, Clone, Default)]
pub struct ObservedBehavior(Arc<HashMap<Observable, Behavior>>);

impl ObservedBehavior {
    pub fn learn(&mut self, key: Observable, behavior: Behavior) {
        let known = Arc::make_mut(&mut self.0);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, behavior);
    }

    /// Takes a judgement up the ladder. Returns the definitions that still must be tested.
    pub fn climb(
        &self,
        corpus: &dyn Corpus,
        reader: &dyn Reader,
        consent: Consent,
        surface: &Surface,
        judgement: &mut SurfaceJudgement,
    ) -> Vec<Unobserved> {
        let origin = surface.entry(&EntryId::only(EntryType::Origin));
        let known = Known { observed: self, consent, origin };
        let ladder = Ladder { corpus, reader, verifier: &known };
        ladder.climb_all(judgement);
        if consent.refusal().is_some() {
            return Vec::new();
        }
        let entries = judgement.entries.iter();
        entries.filter_map(|entry| unobserved(entry, origin, &self.0)).collect()
    }
}

/// The change to test, if behavior could settle it and there is no result yet.
fn unobserved(
    judgement: &Judgement,
    origin: Option<&Entry>,
    known: &HashMap<Observable, Behavior>,
) -> Option<Unobserved> {
    let is_open = judgement.verdict == Verdict::Inconclusive && is_behavioral(judgement);
    let tool = judgement.after.as_ref().filter(|_| is_open)?;
    let key = Observable::of(tool, origin);
    (!known.contains_key(&key)).then(|| Unobserved { key, tool: tool.clone() })
}

/// The tier as the call path consults it: a missing result means that a test is pending or not
/// possible.
struct Known<'a> {
    observed: &'a ObservedBehavior,
    consent: Consent,
    origin: Option<&'a Entry>,
}

impl Verifier for Known<'_> {
    fn observe(&self, judgement: &Judgement) -> Result<Behavior, Miss> {
        if let Some(refusal) = self.consent.refusal() {
            return Ok(refusal);
        }
        let tool = judgement.after.as_ref().ok_or(Miss)?;
        let key = Observable::of(tool, self.origin);
        Ok(self.observed.0.get(&key).copied().unwrap_or(Behavior::NotRun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_forgotten_one_past_the_limit_and_not_at_it() {
        let key = |number: usize| {
            let raw = format!(r#"{{"name":"t","inputSchema":{{}},"title":"{number}"}}"#);
            let tool = Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw).unwrap();
            Observable::of(&tool, None)
        };
        let mut observed = ObservedBehavior::default();
        (0..MAX_REMEMBERED).for_each(|number| observed.learn(key(number), Behavior::Cleared));
        assert_eq!(observed.0.len(), MAX_REMEMBERED);
        observed.learn(key(MAX_REMEMBERED), Behavior::Cleared);
        assert_eq!(observed.0.len(), 1);
    }
}

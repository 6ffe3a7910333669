//! The tier ladder: what may be consulted when comparing the contract alone cannot settle a change.
//!
//! By default every tier is off: it answers "not run", costs nothing and sends nothing. Tiers only
//! tighten, with one exception: behavior observed on this machine may let a behavioral change
//! proceed, for this process and this definition.

use crate::judge::{Judgement, SurfaceJudgement};
use crate::reason::Reason;
use crate::verdict::{Framing, Provenance, Scope, Verdict};
use contract::change::ChangeClass;
use contract::hash::DefinitionHash;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tier 1: what a corpus of known contracts has recorded for this exact definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusAnswer {
    NotRun,
    Unknown,
    /// A hint about which local check is worth running. It never replaces one.
    Cleared,
    Dangerous,
}

impl CorpusAnswer {
    pub const ALL: [CorpusAnswer; 4] = [
        CorpusAnswer::NotRun,
        CorpusAnswer::Unknown,
        CorpusAnswer::Cleared,
        CorpusAnswer::Dangerous,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            CorpusAnswer::NotRun => "NOT_RUN",
            CorpusAnswer::Unknown => "UNKNOWN",
            CorpusAnswer::Cleared => "CLEARED",
            CorpusAnswer::Dangerous => "DANGEROUS",
        }
    }
}

/// Tier 2: the opinion of a reader of the two definitions. It is never a clearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    NotRun,
    Abstained,
    LikelyBenign,
    Suspicious,
}

impl Opinion {
    pub const ALL: [Opinion; 4] =
        [Opinion::NotRun, Opinion::Abstained, Opinion::LikelyBenign, Opinion::Suspicious];
}

/// Tier 3: whether the tool behaves as it declares.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behavior {
    NotRun,
    /// The server does not belong to the operator, so it is not tested.
    Declined,
    /// Nothing could be observed.
    Unavailable,
    /// Everything that was observed matches the contract.
    Cleared,
    /// Something that was observed departs from the contract.
    Failed,
}

impl Behavior {
    pub const ALL: [Behavior; 5] = [
        Behavior::NotRun,
        Behavior::Declined,
        Behavior::Unavailable,
        Behavior::Cleared,
        Behavior::Failed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Behavior::NotRun => "NOT_RUN",
            Behavior::Declined => "DECLINED",
            Behavior::Unavailable => "UNAVAILABLE",
            Behavior::Cleared => "CLEARED",
            Behavior::Failed => "FAILED",
        }
    }

    /// Whether a battery was completed. Only then did the tier run.
    pub const fn is_observed(self) -> bool {
        match self {
            Behavior::Cleared | Behavior::Failed => true,
            Behavior::NotRun | Behavior::Declined | Behavior::Unavailable => false,
        }
    }
}

impl fmt::Display for Behavior {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for Behavior {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A tier could not be consulted. It counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss;

pub trait Corpus {
    fn look_up(&self, definition: Option<DefinitionHash>) -> Result<CorpusAnswer, Miss> {
        let _ = definition;
        Ok(CorpusAnswer::NotRun)
    }
}

pub trait Reader {
    fn read(&self, judgement: &Judgement) -> Result<Opinion, Miss> {
        let _ = judgement;
        Ok(Opinion::NotRun)
    }
}

pub trait Verifier {
    fn observe(&self, judgement: &Judgement) -> Result<Behavior, Miss> {
        let _ = judgement;
        Ok(Behavior::NotRun)
    }
}

/// A tier that is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held;

impl Corpus for Held {}
impl Reader for Held {}
impl Verifier for Held {}

/// The tiers above the comparison, in order.
#[derive(Clone, Copy)]
pub struct Ladder<'a> {
    pub corpus: &'a dyn Corpus,
    pub reader: &'a dyn Reader,
    pub verifier: &'a dyn Verifier,
}

impl fmt::Debug for Ladder<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ladder")
    }
}

impl Default for Ladder<'static> {
    fn default() -> Self {
        Ladder { corpus: &Held, reader: &Held, verifier: &Held }
    }
}

/// The result of climbing the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Climbed {
    pub provenance: Provenance,
    /// The answers of the tiers, in order.
    pub corpus: CorpusAnswer,
    pub opinion: Opinion,
    pub behavior: Behavior,
}

impl Ladder<'_> {
    /// Takes every inconclusive judgement of a surface up the ladder.
    pub fn climb_all(&self, judgement: &mut SurfaceJudgement) {
        let mut is_moved = false;
        for entry in &mut judgement.entries {
            let before = entry.verdict;
            self.climb(entry);
            is_moved |= entry.verdict != before;
        }
        if is_moved {
            let is_served = judgement.unreadable.is_empty();
            let fault = if is_served { Verdict::Proceed } else { Verdict::Hold };
            let verdicts = judgement.entries.iter().map(|entry| entry.verdict);
            judgement.verdict = verdicts.fold(fault, Verdict::max);
        }
    }

    /// Takes an inconclusive judgement up the ladder. Other judgements are already settled.
    pub fn climb(&self, judgement: &mut Judgement) {
        if judgement.verdict != Verdict::Inconclusive {
            return;
        }
        let mut provenance = Provenance::structural(judgement.verdict, true);
        let definition =
            judgement.after.as_ref().and_then(contract::surface::Entry::definition_hash);
        let corpus = asked(CorpusAnswer::NotRun, || self.corpus.look_up(definition));
        match corpus {
            CorpusAnswer::NotRun => {}
            // INVARIANT: a cleared corpus settles nothing. The hash it knows excludes the very
            // members that a behavioral kind is about, and evidence from elsewhere is weaker than a
            // check that ran here.
            CorpusAnswer::Unknown | CorpusAnswer::Cleared => provenance.tier_reached = 1,
            CorpusAnswer::Dangerous => {
                provenance.tier_reached = 1;
                let said = (corpus, Opinion::NotRun, Behavior::NotRun);
                return hold(judgement, provenance, said);
            }
        }
        let opinion = asked(Opinion::NotRun, || self.reader.read(judgement));
        match opinion {
            Opinion::NotRun => {}
            // INVARIANT: an opinion, however benign, never turns a hold into a proceed.
            Opinion::Abstained | Opinion::LikelyBenign => {
                provenance.tier_reached = 2;
                provenance.verdict_scope = Scope::Semantic;
            }
            Opinion::Suspicious => {
                provenance.tier_reached = 2;
                provenance.verdict_scope = Scope::Semantic;
                return hold(judgement, provenance, (corpus, opinion, Behavior::NotRun));
            }
        }
        // Observed behavior answers a behavioral question. For any other question it is tested only
        // if the corpus cleared the definition.
        let behavior = match is_behavioral(judgement) || corpus == CorpusAnswer::Cleared {
            true => asked(Behavior::Unavailable, || self.verifier.observe(judgement)),
            false => Behavior::NotRun,
        };
        if behavior.is_observed() {
            provenance.tier_reached = 3;
            provenance.verdict_scope = Scope::Behavioral;
        }
        match behavior {
            Behavior::Failed => return hold(judgement, provenance, (corpus, opinion, behavior)),
            Behavior::Cleared if is_behavioral(judgement) => clear(judgement, &mut provenance),
            Behavior::Cleared | Behavior::NotRun | Behavior::Declined | Behavior::Unavailable => {}
        }
        judgement.climbed = Some(Climbed { provenance, corpus, opinion, behavior });
    }
}

/// Consults a tier. An error or a panic counts as a miss, so nothing but the tier's answer reaches
/// the gate.
fn asked<T>(miss: T, ask: impl FnOnce() -> Result<T, Miss>) -> T {
    match catch_unwind(AssertUnwindSafe(ask)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(Miss)) | Err(_) => miss,
    }
}

fn hold(
    judgement: &mut Judgement,
    provenance: Provenance,
    (corpus, opinion, behavior): (CorpusAnswer, Opinion, Behavior),
) {
    judgement.verdict = Verdict::Hold;
    judgement.reason = Some(Reason::ContractDrift);
    let provenance = Provenance { framing: Framing::ContractDiffNotSafety, ..provenance };
    judgement.climbed = Some(Climbed { provenance, corpus, opinion, behavior });
}

/// Lets the calls proceed. INVARIANT: this accepts nothing. The client continues to see the
/// approved definition, the new one waits for a person, and a call that uses something only the new
/// one has is held.
fn clear(judgement: &mut Judgement, provenance: &mut Provenance) {
    judgement.verdict = Verdict::Proceed;
    judgement.reason = None;
    judgement.is_deferred = true;
    judgement.is_accepted = false;
    provenance.framing = Framing::ContractDiffNotSafety;
}

/// Whether the change is about observable behavior, and there is an approved definition that calls
/// can continue with.
pub fn is_behavioral(judgement: &Judgement) -> bool {
    let classes = || judgement.findings.iter().map(|finding| finding.class);
    let is_settled_otherwise = |class: ChangeClass| match class {
        ChangeClass::Breaking | ChangeClass::FailSafe | ChangeClass::Marker => true,
        ChangeClass::Behavioral
        | ChangeClass::Additive
        | ChangeClass::Widening
        | ChangeClass::Metadata
        | ChangeClass::Text => false,
    };
    judgement.before.is_some()
        && judgement.after.is_some()
        && classes().any(|class| class == ChangeClass::Behavioral)
        && !classes().any(is_settled_otherwise)
}

#[cfg(test)]
mod tests;

//! The tier ladder: what may be asked when the contract's comparison alone cannot settle a change.
//!
//! Every tier is held off by default: it answers "not run", costs nothing and sends nothing. Whatever a tier says, an
//! unsettled change stays held unless behaviour itself was observed.

use crate::judge::Judgement;
use crate::reason::Reason;
use crate::verdict::{Framing, Provenance, Scope, Verdict};
use contract::change::ChangeClass;
use contract::hash::DefinitionHash;

/// Tier 1: what a corpus of known contracts has on file for this exact definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusAnswer {
    NotRun,
    Unknown,
    Cleared,
    Dangerous,
}

/// Tier 2: what a reader of the two definitions thinks. An opinion, never a clearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    NotRun,
    Abstained,
    LikelyBenign,
    Suspicious,
}

/// Tier 3: whether the tool behaves as it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    NotRun,
    /// Nothing could be observed.
    Unavailable,
    Cleared,
    Failed,
}

pub trait Corpus {
    fn look_up(&self, definition: Option<DefinitionHash>) -> CorpusAnswer {
        let _ = definition;
        CorpusAnswer::NotRun
    }
}

pub trait Reader {
    fn read(&self, judgement: &Judgement) -> Opinion {
        let _ = judgement;
        Opinion::NotRun
    }
}

pub trait Verifier {
    fn observe(&self, judgement: &Judgement) -> Behavior {
        let _ = judgement;
        Behavior::NotRun
    }
}

/// The tier that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held;

impl Corpus for Held {}
impl Reader for Held {}
impl Verifier for Held {}

/// The tiers above the comparison, in their order.
#[derive(Clone, Copy)]
pub struct Ladder<'a> {
    pub corpus: &'a dyn Corpus,
    pub reader: &'a dyn Reader,
    pub verifier: &'a dyn Verifier,
}

impl std::fmt::Debug for Ladder<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ladder")
    }
}

impl Default for Ladder<'static> {
    fn default() -> Self {
        Ladder { corpus: &Held, reader: &Held, verifier: &Held }
    }
}

impl Ladder<'_> {
    /// Takes an inconclusive judgement as far up as there are tiers to ask. Anything else is settled already.
    pub fn climb(&self, judgement: &mut Judgement) -> Provenance {
        let mut provenance = judgement.provenance();
        if judgement.verdict != Verdict::Inconclusive {
            return provenance;
        }
        let definition =
            judgement.after.as_ref().and_then(contract::surface::Entry::definition_hash);
        match self.corpus.look_up(definition) {
            CorpusAnswer::NotRun => {}
            CorpusAnswer::Unknown => provenance.tier_reached = 1,
            CorpusAnswer::Dangerous => {
                provenance.tier_reached = 1;
                return hold(judgement, provenance);
            }
            // The corpus guard: the hash it knows leaves out the very members that a behavioral kind is about.
            CorpusAnswer::Cleared => {
                provenance.tier_reached = 1;
                if !has_behavioral_kind(judgement) {
                    judgement.verdict = Verdict::Proceed;
                    judgement.reason = None;
                    provenance.framing = Framing::ContractDiffNotSafety;
                    return provenance;
                }
            }
        }
        match self.reader.read(judgement) {
            Opinion::NotRun => {}
            // The opinion guard: however benign it looks, an opinion never turns a hold into a proceed.
            Opinion::Abstained | Opinion::LikelyBenign => {
                provenance.tier_reached = 2;
                provenance.verdict_scope = Scope::Semantic;
            }
            Opinion::Suspicious => {
                provenance.tier_reached = 2;
                provenance.verdict_scope = Scope::Semantic;
                return hold(judgement, provenance);
            }
        }
        match self.verifier.observe(judgement) {
            Behavior::NotRun | Behavior::Unavailable => provenance,
            Behavior::Failed => {
                provenance.tier_reached = 3;
                provenance.verdict_scope = Scope::Behavioral;
                hold(judgement, provenance)
            }
            Behavior::Cleared => {
                judgement.verdict = Verdict::Proceed;
                judgement.reason = None;
                Provenance {
                    tier_reached: 3,
                    verdict_scope: Scope::Behavioral,
                    framing: Framing::ContractDiffNotSafety,
                }
            }
        }
    }
}

fn hold(judgement: &mut Judgement, provenance: Provenance) -> Provenance {
    judgement.verdict = Verdict::Hold;
    judgement.reason = Some(Reason::ContractDrift);
    Provenance { framing: Framing::ContractDiffNotSafety, ..provenance }
}

fn has_behavioral_kind(judgement: &Judgement) -> bool {
    judgement.findings.iter().any(|finding| finding.class == ChangeClass::Behavioral)
}

#[cfg(test)]
mod tests;

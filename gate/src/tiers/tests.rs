use super::*;
use crate::verdict::Verdict;
use contract::change::{ChangeKind, Finding};
use contract::surface::{EntryId, EntryType};

struct Says<T>(T);

impl Corpus for Says<CorpusAnswer> {
    fn look_up(&self, _: Option<DefinitionHash>) -> CorpusAnswer {
        self.0
    }
}

impl Reader for Says<Opinion> {
    fn read(&self, _: &Judgement) -> Opinion {
        self.0
    }
}

impl Verifier for Says<Behavior> {
    fn observe(&self, _: &Judgement) -> Behavior {
        self.0
    }
}

fn judgement(verdict: Verdict, kind: ChangeKind) -> Judgement {
    Judgement {
        id: EntryId::new(EntryType::Tool, "t"),
        verdict,
        reason: None,
        is_deferred: false,
        is_by_the_call: false,
        is_accepted: false,
        before: None,
        after: None,
        findings: vec![Finding::new(kind, "", None, None)],
        not_inert: None,
        renamed_to: None,
        detail: None,
    }
}

fn climb(
    corpus: CorpusAnswer,
    opinion: Opinion,
    behavior: Behavior,
    kind: ChangeKind,
) -> (Verdict, Provenance) {
    let (corpus, reader, verifier) = (Says(corpus), Says(opinion), Says(behavior));
    let mut judged = judgement(Verdict::Inconclusive, kind);
    let provenance =
        Ladder { corpus: &corpus, reader: &reader, verifier: &verifier }.climb(&mut judged);
    (judged.verdict, provenance)
}

const FLIP: ChangeKind = ChangeKind::AnnotationFlipToDestructive;

#[test]
fn tiers_that_are_not_there_change_nothing() {
    for verdict in Verdict::ALL {
        let mut judged = judgement(verdict, FLIP);
        let provenance = Ladder::default().climb(&mut judged);
        assert_eq!(
            (judged.verdict, provenance.tier_reached, provenance.verdict_scope),
            (verdict, 0, Scope::Structural)
        );
    }
}

#[test]
fn a_cleared_corpus_never_relaxes_a_behavioral_kind() {
    for kind in [FLIP, ChangeKind::OutputSchemaChanged, ChangeKind::AnnotationChanged] {
        let (verdict, provenance) =
            climb(CorpusAnswer::Cleared, Opinion::NotRun, Behavior::NotRun, kind);
        assert_eq!((verdict, provenance.tier_reached), (Verdict::Inconclusive, 1));
    }
    let (verdict, _) = climb(
        CorpusAnswer::Cleared,
        Opinion::NotRun,
        Behavior::NotRun,
        ChangeKind::DescriptionOnly,
    );
    assert_eq!(verdict, Verdict::Proceed);
}

#[test]
fn a_dangerous_corpus_holds() {
    let (verdict, provenance) =
        climb(CorpusAnswer::Dangerous, Opinion::LikelyBenign, Behavior::Cleared, FLIP);
    assert_eq!((verdict, provenance.tier_reached), (Verdict::Hold, 1));
}

#[test]
fn an_opinion_never_turns_a_hold_into_a_proceed() {
    for kind in [FLIP, ChangeKind::DescriptionOnly] {
        let (verdict, provenance) =
            climb(CorpusAnswer::Unknown, Opinion::LikelyBenign, Behavior::Unavailable, kind);
        assert_eq!(
            (verdict, provenance.tier_reached, provenance.verdict_scope),
            (Verdict::Inconclusive, 2, Scope::Semantic)
        );
    }
    let (verdict, _) = climb(CorpusAnswer::NotRun, Opinion::Suspicious, Behavior::Cleared, FLIP);
    assert_eq!(verdict, Verdict::Hold);
}

#[test]
fn only_observed_behaviour_clears_or_refutes() {
    let (verdict, provenance) =
        climb(CorpusAnswer::NotRun, Opinion::NotRun, Behavior::Cleared, FLIP);
    assert_eq!(
        (verdict, provenance.tier_reached, provenance.verdict_scope),
        (Verdict::Proceed, 3, Scope::Behavioral)
    );
    let (verdict, provenance) =
        climb(CorpusAnswer::NotRun, Opinion::NotRun, Behavior::Failed, FLIP);
    assert_eq!((verdict, provenance.tier_reached), (Verdict::Hold, 3));
    let (verdict, provenance) =
        climb(CorpusAnswer::NotRun, Opinion::NotRun, Behavior::Unavailable, FLIP);
    assert_eq!(
        (verdict, provenance.tier_reached, provenance.verdict_scope),
        (Verdict::Inconclusive, 0, Scope::Structural)
    );
}

#[test]
fn a_hold_is_settled_and_no_tier_is_asked() {
    let mut judged = judgement(Verdict::Hold, FLIP);
    let cleared = Says(Behavior::Cleared);
    let ladder = Ladder { verifier: &cleared, ..Ladder::default() };
    let provenance = ladder.climb(&mut judged);
    assert_eq!((judged.verdict, provenance.tier_reached), (Verdict::Hold, 0));
}

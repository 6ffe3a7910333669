use super::*;
use contract::change::{ChangeKind, Finding};
use contract::surface::{Entry, EntryId, EntryType};

/// A tier that returns a fixed answer, or fails in one of the possible ways.
#[derive(Clone, Copy)]
enum Says<T> {
    Answer(T),
    Miss,
    Panic,
}

impl<T: Copy> Says<T> {
    fn say(&self) -> Result<T, Miss> {
        match self {
            Says::Answer(answer) => Ok(*answer),
            Says::Miss => Err(Miss),
            Says::Panic => panic!("a bug in a tier"),
        }
    }

    /// Replaces a failure with the answer that it counts as.
    fn or_miss(self, miss: T) -> Says<T> {
        match self {
            Says::Answer(_) => self,
            Says::Miss | Says::Panic => Says::Answer(miss),
        }
    }

    fn all(answers: &[T]) -> Vec<Says<T>> {
        let answers = answers.iter().map(|answer| Says::Answer(*answer));
        answers.chain([Says::Miss, Says::Panic]).collect()
    }
}

impl Corpus for Says<CorpusAnswer> {
    fn look_up(&self, _: Option<DefinitionHash>) -> Result<CorpusAnswer, Miss> {
        self.say()
    }
}

impl Reader for Says<Opinion> {
    fn read(&self, _: &Judgement) -> Result<Opinion, Miss> {
        self.say()
    }
}

impl Verifier for Says<Behavior> {
    fn observe(&self, _: &Judgement) -> Result<Behavior, Miss> {
        self.say()
    }
}

fn entry(raw: &str) -> Option<Entry> {
    Entry::from_raw(EntryId::new(EntryType::Tool, "t"), raw).ok()
}

fn judgement(verdict: Verdict, kinds: &[ChangeKind]) -> Judgement {
    let finding = |kind: &ChangeKind| Finding::new(*kind, "", None, None);
    Judgement {
        id: EntryId::new(EntryType::Tool, "t"),
        verdict,
        reason: verdict.is_held().then_some(Reason::ContractDrift),
        is_deferred: false,
        is_by_the_call: false,
        is_accepted: false,
        before: entry(r#"{"name":"t","inputSchema":{}}"#),
        after: entry(r#"{"name":"t","inputSchema":{},"annotations":{"destructiveHint":true}}"#),
        findings: kinds.iter().map(finding).collect(),
        not_inert: None,
        renamed_to: None,
        detail: None,
        climbed: None,
        advisory: None,
    }
}

fn climbed(
    corpus: Says<CorpusAnswer>,
    reader: Says<Opinion>,
    verifier: Says<Behavior>,
    mut judged: Judgement,
) -> Judgement {
    Ladder { corpus: &corpus, reader: &reader, verifier: &verifier }.climb(&mut judged);
    judged
}

/// Returns the verdict, how far the judgement climbed, and the evidence.
fn climb(
    corpus: CorpusAnswer,
    opinion: Opinion,
    behavior: Behavior,
    kind: ChangeKind,
) -> (Verdict, u8, Scope) {
    let judged = judgement(Verdict::Inconclusive, &[kind]);
    let (corpus, opinion) = (Says::Answer(corpus), Says::Answer(opinion));
    let judged = climbed(corpus, opinion, Says::Answer(behavior), judged);
    let provenance = judged.provenance();
    (judged.verdict, provenance.tier_reached, provenance.verdict_scope)
}

const FLIP: ChangeKind = ChangeKind::AnnotationFlipToDestructive;

#[test]
fn tiers_that_are_not_there_change_nothing() {
    for verdict in Verdict::ALL {
        let mut judged = judgement(verdict, &[FLIP]);
        Ladder::default().climb(&mut judged);
        let provenance = judged.provenance();
        assert_eq!(
            (judged.verdict, provenance.tier_reached, provenance.verdict_scope),
            (verdict, 0, Scope::Structural)
        );
    }
}

/// Tests every kind of change, alone and combined with another, for a tool that exists before,
/// after or both, with every answer and every failure of every tier. Only behavior that was
/// observed to match the contract lets a call proceed, and only if the question was a behavioral
/// one.
#[test]
fn only_tier_3_clears_and_nothing_else_does_more_than_raise() {
    // The test makes tiers panic on purpose, so silence the panic messages.
    std::panic::set_hook(Box::new(|_| {}));
    for kind in ChangeKind::ALL {
        for beside in [None, Some(ChangeKind::AddedOptionalParam), Some(ChangeKind::MarkerFound)] {
            let kinds: Vec<ChangeKind> = [*kind].into_iter().chain(beside).collect();
            for verdict in Verdict::ALL {
                let both = judgement(verdict, &kinds);
                check_all_answers(&both);
                check_all_answers(&Judgement { before: None, ..both.clone() });
                check_all_answers(&Judgement { after: None, ..both });
            }
        }
    }
    drop(std::panic::take_hook());
}

/// The tiers that were consulted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Asked(std::cell::RefCell<Vec<&'static str>>);

struct Counted<'a, T>(&'a Asked, Says<T>);

impl<T> Counted<'_, T> {
    fn note(&self, tier: &'static str) {
        self.0.0.borrow_mut().push(tier);
    }
}

impl Corpus for Counted<'_, CorpusAnswer> {
    fn look_up(&self, _: Option<DefinitionHash>) -> Result<CorpusAnswer, Miss> {
        self.note("corpus");
        self.1.say()
    }
}

impl Reader for Counted<'_, Opinion> {
    fn read(&self, _: &Judgement) -> Result<Opinion, Miss> {
        self.note("reader");
        self.1.say()
    }
}

impl Verifier for Counted<'_, Behavior> {
    fn observe(&self, _: &Judgement) -> Result<Behavior, Miss> {
        self.note("verifier");
        self.1.say()
    }
}

fn check_all_answers(judged: &Judgement) {
    for corpus in Says::all(&CorpusAnswer::ALL) {
        for reader in Says::all(&Opinion::ALL) {
            for verifier in Says::all(&Behavior::ALL) {
                let asked = Asked::default();
                let ladder = Ladder {
                    corpus: &Counted(&asked, corpus),
                    reader: &Counted(&asked, reader),
                    verifier: &Counted(&asked, verifier),
                };
                let mut after = judged.clone();
                ladder.climb(&mut after);
                check_rules(judged, &after, corpus, reader, verifier);
                check_asked(judged, &asked.0.take(), corpus, reader);
                // An error or a panic in a tier is equivalent to a tier that is off or observed
                // nothing.
                let without = climbed(
                    corpus.or_miss(CorpusAnswer::NotRun),
                    reader.or_miss(Opinion::NotRun),
                    verifier.or_miss(Behavior::Unavailable),
                    judged.clone(),
                );
                assert_eq!(after, without);
            }
        }
    }
}

/// A warning ends the climb: no further tier is consulted, and no server is started to observe it.
fn check_asked(
    judged: &Judgement,
    asked: &[&str],
    corpus: Says<CorpusAnswer>,
    reader: Says<Opinion>,
) {
    let is = |tier: &str| asked.contains(&tier);
    let is_open = judged.verdict == Verdict::Inconclusive;
    let is_dangerous = matches!(corpus, Says::Answer(CorpusAnswer::Dangerous));
    let is_suspicious = matches!(reader, Says::Answer(Opinion::Suspicious));
    let is_chosen = is_behavioral(judged) || matches!(corpus, Says::Answer(CorpusAnswer::Cleared));
    assert_eq!(is("corpus"), is_open);
    assert_eq!(is("reader"), is_open && !is_dangerous);
    assert_eq!(is("verifier"), is_open && !is_dangerous && !is_suspicious && is_chosen);
}

fn check_rules(
    before: &Judgement,
    after: &Judgement,
    corpus: Says<CorpusAnswer>,
    reader: Says<Opinion>,
    verifier: Says<Behavior>,
) {
    let is_raised = matches!(corpus, Says::Answer(CorpusAnswer::Dangerous))
        || matches!(reader, Says::Answer(Opinion::Suspicious));
    let is_cleared = matches!(verifier, Says::Answer(Behavior::Cleared));
    if before.verdict != Verdict::Inconclusive {
        assert_eq!(before, after, "what is settled is asked of no tier");
        return;
    }
    let proceeds = !is_raised && is_cleared && is_behavioral(before);
    assert_eq!(after.verdict == Verdict::Proceed, proceeds);
    assert!(!is_raised || after.verdict == Verdict::Hold);
    let provenance = after.provenance();
    assert_eq!(provenance.tier_reached == 3, provenance.verdict_scope == Scope::Behavioral);
    let said = after.climbed.map(|climbed| climbed.corpus);
    let is_answered = |answer| said == Some(answer);
    match corpus {
        Says::Answer(answer) => assert!(is_answered(answer)),
        Says::Miss | Says::Panic => {
            assert!(is_answered(CorpusAnswer::NotRun), "an error is a miss");
        }
    }
    if proceeds {
        assert!(before.before.is_some() && before.after.is_some(), "calls go on with a pin");
        // This accepts nothing: the client keeps the approved definition, and nothing is pinned.
        assert!(after.is_deferred && !after.is_accepted && after.reason.is_none());
        assert_eq!(provenance.framing, Framing::ContractDiffNotSafety);
    } else {
        assert!(after.reason.is_some() && !after.is_deferred);
        assert!(after.verdict >= before.verdict, "no tier relaxes anything else");
    }
    if matches!(verifier, Says::Miss | Says::Panic) && !is_raised && is_behavioral(before) {
        let behavior = after.climbed.map(|climbed| climbed.behavior);
        assert_eq!(behavior, Some(Behavior::Unavailable), "an error is a miss");
        assert!(provenance.tier_reached < 3, "a tier that failed did not run");
    }
}

#[test]
fn a_cleared_corpus_settles_no_kind_at_all() {
    for kind in ChangeKind::ALL {
        let (verdict, tier, _) =
            climb(CorpusAnswer::Cleared, Opinion::NotRun, Behavior::NotRun, *kind);
        assert_eq!((verdict, tier), (Verdict::Inconclusive, 1), "{kind}");
    }
}

/// No kind is currently inconclusive without being behavioral; `description-only` stands in for
/// one.
#[test]
fn a_cleared_corpus_only_chooses_that_a_local_check_runs() {
    let later = ChangeKind::DescriptionOnly;
    let with = |corpus, behavior| climb(corpus, Opinion::NotRun, behavior, later);
    let not_run = with(CorpusAnswer::Unknown, Behavior::Failed);
    assert_eq!(not_run, (Verdict::Inconclusive, 1, Scope::Structural));
    let chosen = with(CorpusAnswer::Cleared, Behavior::Failed);
    assert_eq!(chosen, (Verdict::Hold, 3, Scope::Behavioral));
    let chosen = with(CorpusAnswer::Cleared, Behavior::Cleared);
    assert_eq!(chosen, (Verdict::Inconclusive, 3, Scope::Behavioral));
}

#[test]
fn a_dangerous_corpus_holds_and_asks_nothing_further() {
    let (verdict, tier, _) =
        climb(CorpusAnswer::Dangerous, Opinion::LikelyBenign, Behavior::Cleared, FLIP);
    assert_eq!((verdict, tier), (Verdict::Hold, 1));
}

#[test]
fn an_opinion_never_turns_a_hold_into_a_proceed() {
    for kind in [FLIP, ChangeKind::DescriptionOnly] {
        let climbed =
            climb(CorpusAnswer::Unknown, Opinion::LikelyBenign, Behavior::Unavailable, kind);
        assert_eq!(climbed, (Verdict::Inconclusive, 2, Scope::Semantic));
    }
    let (verdict, ..) = climb(CorpusAnswer::NotRun, Opinion::Suspicious, Behavior::Cleared, FLIP);
    assert_eq!(verdict, Verdict::Hold);
}

#[test]
fn only_observed_behaviour_clears_or_refutes() {
    let with = |behavior| climb(CorpusAnswer::NotRun, Opinion::NotRun, behavior, FLIP);
    assert_eq!(with(Behavior::Cleared), (Verdict::Proceed, 3, Scope::Behavioral));
    assert_eq!(with(Behavior::Failed), (Verdict::Hold, 3, Scope::Behavioral));
    for nothing in [Behavior::NotRun, Behavior::Declined, Behavior::Unavailable] {
        assert_eq!(with(nothing), (Verdict::Inconclusive, 0, Scope::Structural), "{nothing}");
    }
}

/// Observations say nothing about a removed parameter, about text with a marker, or about a change
/// that could not be compared.
#[test]
fn a_change_of_another_class_beside_a_behavioral_one_is_never_cleared() {
    let cleared = Says::Answer(Behavior::Cleared);
    let (corpus, reader) = (Says::Answer(CorpusAnswer::Cleared), Says::Answer(Opinion::NotRun));
    let climbed_with = |beside: &ChangeKind| {
        let both = judgement(Verdict::Inconclusive, &[FLIP, *beside]);
        climbed(corpus, reader, cleared, both).verdict
    };
    for beside in ChangeKind::ALL {
        let expected = match beside.class() {
            ChangeClass::Breaking | ChangeClass::FailSafe | ChangeClass::Marker => {
                Verdict::Inconclusive
            }
            _ => Verdict::Proceed,
        };
        assert_eq!(climbed_with(beside), expected, "{beside}");
    }
}

#[test]
fn a_tool_without_an_approved_definition_is_never_cleared() {
    let cleared = Says::Answer(Behavior::Cleared);
    let new = Judgement { before: None, ..judgement(Verdict::Inconclusive, &[FLIP]) };
    let (corpus, reader) = (Says::Answer(CorpusAnswer::NotRun), Says::Answer(Opinion::NotRun));
    assert_eq!(climbed(corpus, reader, cleared, new).verdict, Verdict::Inconclusive);
}

#[test]
fn a_surface_has_the_verdict_and_the_tier_of_what_is_left() {
    let mut surface = SurfaceJudgement {
        posture: crate::posture::Posture::Guard,
        verdict: Verdict::Inconclusive,
        entries: vec![judgement(Verdict::Inconclusive, &[FLIP])],
        unreadable: Vec::new(),
    };
    let cleared = Says::Answer(Behavior::Cleared);
    let ladder = Ladder { verifier: &cleared, ..Ladder::default() };
    let mut held = surface.clone();
    held.entries.push(judgement(Verdict::Hold, &[ChangeKind::RemovedParam]));
    held.verdict = Verdict::Hold;
    ladder.climb_all(&mut surface);
    let (verdict, provenance) = (surface.verdict, surface.provenance());
    assert_eq!((verdict, provenance.tier_reached), (Verdict::Proceed, 3));
    ladder.climb_all(&mut held);
    let (verdict, provenance) = (held.verdict, held.provenance());
    assert_eq!((verdict, provenance.tier_reached), (Verdict::Hold, 0));
    let mut unreadable = SurfaceJudgement {
        verdict: Verdict::Hold,
        unreadable: vec!["prompts/list: too long".to_owned()],
        entries: vec![judgement(Verdict::Inconclusive, &[FLIP])],
        ..held
    };
    ladder.climb_all(&mut unreadable);
    assert_eq!(unreadable.verdict, Verdict::Hold);
}

/// Messages of the drift network are shown with a verdict: everything else is the same with and
/// without them.
#[test]
fn an_advisory_moves_nothing() {
    use crate::network::{DriftAdvisory, Hour, Seen};
    let advisory = |seen| DriftAdvisory {
        seen,
        kinds: vec![FLIP],
        is_safety_relevant: true,
        hour: Hour::of(contract::time::Timestamp(0)),
    };
    for kind in ChangeKind::ALL {
        for verdict in Verdict::ALL {
            for corpus in CorpusAnswer::ALL {
                for behavior in Behavior::ALL {
                    let plain = judgement(verdict, &[*kind]);
                    let advised =
                        Judgement { advisory: Some(advisory(Seen::SameChange)), ..plain.clone() };
                    let climb = |judged| {
                        let reader = Says::Answer(Opinion::NotRun);
                        climbed(Says::Answer(corpus), reader, Says::Answer(behavior), judged)
                    };
                    let expected = Judgement { advisory: advised.advisory.clone(), ..climb(plain) };
                    assert_eq!(climb(advised), expected);
                }
            }
        }
    }
}

use super::*;
use crate::state::Directive;
use contract::surface::EntryType;

const SCREENED: Timestamp = Timestamp(1_000);

fn verdict(grade: Grade) -> EntryVerdict {
    EntryVerdict {
        entry: EntryId::new(EntryType::Tool, "add"),
        binding: Binding { definition_hash: None, entry_hash: EntryHash::of(b"one") },
        judges: Judges::Agree,
        dimensions: Dimension::ALL
            .iter()
            .map(|&dimension| DimensionResult::of(dimension, Vec::new()))
            .collect(),
        grade,
        screened_at: SCREENED,
        expires_at: grade.expires_at(SCREENED),
    }
}

#[test]
fn a_verdict_ends_with_its_grade_and_with_its_definition() {
    let verdict = verdict(Grade::Scanned);
    let (same, other) = (EntryHash::of(b"one"), EntryHash::of(b"two"));
    let week = 7 * 86_400_000;
    let at = |moment: i64| verdict.state(Timestamp(moment), same).directive;
    assert_eq!(at(1_000 + week - 1), Directive::Review);
    assert_eq!(at(1_000 + week), Directive::Unverified);
    assert_eq!(verdict.state(SCREENED, other), State::UNVERIFIED);
}

#[test]
fn lifetimes_are_those_of_the_grades() {
    let days: Vec<u32> = Grade::ALL.iter().map(|grade| grade.lifetime_days()).collect();
    assert_eq!(days, [0, 7, 30, 90, 90, 90]);
    assert_eq!(
        verdict(Grade::Unverified).state(SCREENED, EntryHash::of(b"one")),
        State::UNVERIFIED
    );
}

#[test]
fn a_dimension_that_was_not_run_leaves_the_evidence_partial() {
    let mut verdict = verdict(Grade::SandboxL1);
    let current = EntryHash::of(b"one");
    assert_eq!(verdict.evidence(SCREENED, current).coverage, Coverage::Whole);
    assert_eq!(verdict.granularity(), Granularity::Behavior);
    assert!(!verdict.limits().contains(&HonestLimit::ConformanceNotRun));
    verdict.dimensions.retain(|result| result.dimension != Dimension::Conformance);
    assert_eq!(verdict.evidence(SCREENED, current).coverage, Coverage::Partial);
    assert_eq!(verdict.granularity(), Granularity::Definition);
    assert!(verdict.limits().contains(&HonestLimit::ConformanceNotRun));
}

#[test]
fn a_server_without_entries_has_no_contract() {
    let surface_hash = SurfaceHash::of(b"");
    let mut screening = Screening {
        surface_hash,
        grade: Grade::CrawlL0,
        screened_at: SCREENED,
        expires_at: Grade::CrawlL0.expires_at(SCREENED),
        entries: Vec::new(),
    };
    assert_eq!(screening.state(SCREENED, surface_hash), State::UNVERIFIED);
    screening.entries.push(verdict(Grade::CrawlL0));
    assert_eq!(screening.state(SCREENED, surface_hash).directive, Directive::Review);
}

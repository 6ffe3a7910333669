use super::*;

fn outcome(at: i64, source: Source, server: &str, is_wrong: bool) -> Outcome {
    Outcome {
        at: Timestamp(at),
        source,
        direction: Direction::Held,
        posture: "guard".to_owned(),
        kind: "description-only".to_owned(),
        server: server.to_owned(),
        by: (source == Source::Person).then(|| "ada".to_owned()),
        is_wrong,
    }
}

/// The given number of outcomes spread over servers, every tenth of them wrong.
fn many(count: i64, source: Source, servers: i64) -> Vec<Outcome> {
    let of =
        |at: i64| outcome(at * 86_400_000, source, &format!("s{}", at % servers), at % 10 == 0);
    (0..count).map(of).collect()
}

fn only_cell(outcomes: Vec<Outcome>) -> Cell {
    let report = OutcomeStore::verified(outcomes).report();
    assert_eq!(report.cells.len(), 1);
    report.cells[0].clone()
}

#[test]
fn autonomy_is_off_and_nothing_is_calibrated() {
    // Turning it on requires held-out evidence and a separate decision.
    const { assert!(!AUTONOMY_ENABLED && !CALIBRATED) };
    let store = OutcomeStore::verified(many(1_000, Source::HeldOut, 10));
    assert_eq!(store.decision(), Decision::Escalate);
    let report = store.report();
    assert!(!report.calibrated && !report.autonomy_enabled);
}

#[test]
fn a_sufficient_cell_has_a_bound_and_a_rate() {
    let cell = only_cell(many(100, Source::HeldOut, 5));
    assert!(cell.lacks.is_empty());
    assert_eq!(cell.p_wrong, upper(7.0, 70.0));
    assert_eq!(cell.observed, Some(0.1));
    let report = OutcomeStore::verified(many(100, Source::HeldOut, 5)).report();
    let expected = (upper(7.0, 70.0) - 0.1).powi(2);
    assert!((report.reliability.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn each_lack_makes_a_cell_say_nothing() {
    let check = |outcomes: Vec<Outcome>, lack: Lack| {
        let cell = only_cell(outcomes);
        assert_eq!(
            (cell.lacks.as_slice(), cell.p_wrong, cell.observed),
            ([lack].as_slice(), 1.0, None)
        );
    };
    check(many(29, Source::HeldOut, 3), Lack::Weight);
    check(many(30, Source::HeldOut, 2), Lack::Servers);
    check(many(100, Source::Person, 3), Lack::OnlyPersons);
    assert!(only_cell(many(30, Source::HeldOut, 3)).lacks.is_empty());
}

#[test]
fn a_person_counts_half_and_the_sixth_override_of_a_day_not_at_all() {
    let day = |count: i64| (0..count).map(|at| outcome(at, Source::Person, "s", true)).collect();
    assert_eq!(only_cell(day(5)).weight, 2.5);
    assert_eq!(only_cell(day(9)).weight, 2.5);
    let mut two_days: Vec<Outcome> = day(9);
    two_days.push(outcome(86_400_000, Source::Person, "s", true));
    assert_eq!(only_cell(two_days).weight, 3.0);
    // A confirmed hold is not an override.
    let confirmed = (0..9).map(|at| outcome(at, Source::Person, "s", false)).collect();
    assert_eq!(only_cell(confirmed).weight, 4.5);
}

#[test]
fn the_cleared_direction_takes_held_out_data_only() {
    let cleared =
        |source| Outcome { direction: Direction::Cleared, ..outcome(1, source, "s", false) };
    let store = OutcomeStore::verified(vec![cleared(Source::Person), cleared(Source::Battery)]);
    assert_eq!(store.report().emptied, Some(Emptied::NoOutcomes));
    assert_eq!(OutcomeStore::verified(vec![cleared(Source::HeldOut)]).report().outcomes, 1);
}

#[test]
fn an_emptied_store_escalates_everything_and_says_why() {
    for why in [
        Emptied::LedgerDoesNotVerify("line 3".to_owned()),
        Emptied::UnknownSource("rumour".to_owned()),
        Emptied::NoOutcomes,
    ] {
        let store = OutcomeStore::empty(why.clone());
        let report = store.report();
        assert_eq!((report.emptied, report.outcomes, report.reliability), (Some(why), 0, None));
        assert_eq!(store.decision(), Decision::Escalate);
    }
    assert_eq!(Source::named("rumour"), None);
}

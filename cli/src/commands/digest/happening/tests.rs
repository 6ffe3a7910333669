use super::*;
use contract::hash::SurfaceHash;
use contract::surface::EntryType;
use gate::posture::Posture;

const DAY: i64 = 86_400_000;

/// An act on day 5.
fn act(seq: i64, action: &str) -> HistoryEvent {
    HistoryEvent {
        seq,
        act: seq,
        at: Timestamp(5 * DAY + seq),
        by: "ada".to_owned(),
        server: "files".parse().unwrap(),
        action: action.to_owned(),
        entry_type: None,
        key: None,
        entry_hash_before: None,
        entry_hash_after: None,
        surface_hash_before: None,
        surface_hash_after: None,
        status_before: None,
        status_after: None,
        basis: None,
        detail: None,
        raw: None,
    }
}

fn seen(seq: i64, before: &str, after: &str) -> HistoryEvent {
    HistoryEvent {
        surface_hash_before: Some(SurfaceHash::of(before.as_bytes())),
        surface_hash_after: Some(SurfaceHash::of(after.as_bytes())),
        ..act(seq, "server.observe")
    }
}

/// A history line that belongs to an act.
fn line(act_seq: i64, seq: i64, action: &str, basis: Basis) -> HistoryEvent {
    HistoryEvent {
        act: act_seq,
        entry_type: Some(EntryType::Tool),
        key: Some(format!("tool_{seq}")),
        basis: Some(basis),
        ..act(seq, action)
    }
}

#[track_caller]
fn check(history: &[HistoryEvent], expected: &[What]) -> Vec<Happening> {
    let (happened, _) = happenings(history, Day(5), Posture::Guard);
    let found: Vec<What> = happened.iter().map(|happening| happening.what).collect();
    assert_eq!(found, expected, "{happened:#?}");
    happened
}

#[test]
fn what_people_did_is_told() {
    for (action, what) in [
        ("server.approve", What::Approved),
        ("server.quarantine", What::Quarantined),
        ("server.release", What::Released),
        ("server.rollback", What::RolledBack),
    ] {
        check(&[act(1, action)], &[what]);
    }
    check(&[act(1, "server.observe")], &[]);
}

#[test]
fn what_began_to_be_held_is_told_and_a_change_too() {
    let mut held = seen(1, "a", "b");
    held.status_after = Some(ServerStatus::Changed);
    check(&[held], &[What::Held]);
    check(&[seen(1, "a", "b")], &[]);
    check(&[seen(1, "a", "a")], &[]);
    let mut first = seen(1, "a", "b");
    first.surface_hash_before = None;
    check(&[first], &[]);
}

#[test]
fn what_was_accepted_as_benign_is_counted_only() {
    let history = [seen(1, "a", "b"), line(1, 2, "pin.added", Basis::Auto)];
    check(&history, &[]);
    assert_eq!(happenings(&history, Day(5), Posture::Guard).1, 1);
    // If the same act also began to hold something, that is reported.
    let mut held = history.to_vec();
    held[0].status_after = Some(ServerStatus::Changed);
    check(&held, &[What::Held]);
}

#[test]
fn a_first_pin_is_told_with_its_entries() {
    for basis in [Basis::Person, Basis::Attested, Basis::FirstUse] {
        let history = [act(1, "server.pin"), line(1, 2, "pin.added", basis)];
        let happened = check(&history, &[What::Pinned]);
        assert_eq!(happened[0].entries, ["tool:tool_2"]);
    }
}

#[test]
fn a_first_look_that_left_something_out_is_told_twice() {
    let mut own = act(1, "server.pin");
    own.status_after = Some(ServerStatus::Changed);
    let history = [own, line(1, 2, "pin.added", Basis::FirstUse)];
    let happened = check(&history, &[What::Pinned, What::Held]);
    assert_eq!((happened[0].entry_count, happened[1].entry_count), (1, 0));
}

#[test]
fn tampered_pins_are_reported_before_their_repair() {
    let history = [act(1, "server.approve"), line(1, 2, "pin.discarded", Basis::Person)];
    let happened = check(&history, &[What::Discarded, What::Approved]);
    assert_eq!((happened[0].entry_count, happened[1].entry_count), (1, 0));
}

#[test]
fn entries_are_named_up_to_a_bound_and_counted_past_it() {
    for (number, named) in [(MAX_NAMED, MAX_NAMED), (MAX_NAMED + 1, MAX_NAMED)] {
        let mut history = vec![act(1, "server.approve")];
        let lines = (2..).take(number);
        history.extend(lines.map(|seq| line(1, seq, "pin.added", Basis::Person)));
        let happened = check(&history, &[What::Approved]);
        assert_eq!((happened[0].entries.len(), happened[0].entry_count), (named, number));
    }
}

#[test]
fn only_the_day_is_told() {
    let mut history =
        [act(1, "server.approve"), act(2, "server.release"), act(3, "server.quarantine")];
    history[0].at = Timestamp(5 * DAY - 1);
    history[2].at = Timestamp(6 * DAY);
    check(&history, &[What::Released]);
}

use super::*;

fn rate(text: &str) -> Option<Rate> {
    Some(text.parse().unwrap())
}

fn watch() -> AnomalyWatch {
    AnomalyWatch::new(AnomalyRules {
        throttle: SignalRates { denials: rate("3/min"), ..SignalRates::default() },
        quarantine: SignalRates {
            denials: rate("5/min"),
            new_tools: rate("2/min"),
            ..SignalRates::default()
        },
        throttle_to: "1/sec".parse().unwrap(),
    })
}

const ADA: WatchedSession<'_> = WatchedSession { principal: "idp|ada", session: Some(1) };

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The actions that result from this many simultaneous denials.
fn denials(watch: &AnomalyWatch, count: usize, now: Duration) -> Vec<Option<AnomalyAction>> {
    let note = |_| watch.note(ADA, AnomalySignal::Denial, now).map(|tripped| tripped.action);
    (0..count).map(note).collect()
}

#[test]
fn a_session_is_throttled_past_one_rate_and_quarantined_past_a_higher_one() {
    use AnomalyAction::{Quarantine, Throttle};
    let watch = watch();
    let found = denials(&watch, 6, at(0));
    assert_eq!(found, [None, None, None, Some(Throttle), None, Some(Quarantine)]);
    let tripped = watch.note(ADA, AnomalySignal::Denial, at(0));
    assert_eq!(tripped, None, "the count starts from zero");
}

#[test]
fn what_is_spread_over_time_trips_nothing() {
    let watch = watch();
    for minute in 0..20 {
        assert_eq!(denials(&watch, 3, at(60 * minute)), [None; 3], "minute {minute}");
    }
}

#[test]
fn sessions_and_principals_are_counted_apart() {
    let watch = watch();
    let others = [
        WatchedSession { session: Some(2), ..ADA },
        WatchedSession { session: None, ..ADA },
        WatchedSession { principal: "idp|bob", ..ADA },
    ];
    for who in [ADA].into_iter().chain(others) {
        for _ in 0..3 {
            assert_eq!(watch.note(who, AnomalySignal::Denial, at(0)), None, "{who:?}");
        }
    }
    // A signal without a rule is not counted.
    for _ in 0..100 {
        assert_eq!(watch.note(ADA, AnomalySignal::Hold, at(0)), None);
    }
}

#[test]
fn a_throttled_session_is_paced_for_a_while_and_no_other() {
    let watch = watch();
    assert_eq!(watch.pace(ADA, at(0)), None);
    denials(&watch, 4, at(0));
    assert_eq!(watch.throttled(), 1);
    assert_eq!(watch.pace(ADA, at(0)), None, "one call a second is left");
    assert_eq!(watch.pace(ADA, at(0)), Some(at(1)));
    assert_eq!(watch.pace(WatchedSession { session: Some(2), ..ADA }, at(0)), None);
    assert_eq!(watch.pace(ADA, at(1)), None);
    let over = THROTTLE_LASTS + at(1);
    for _ in 0..3 {
        assert_eq!(watch.pace(ADA, over), None, "it is over by itself");
    }
    assert_eq!(watch.throttled(), 0);
}

#[test]
fn only_tools_that_were_not_called_before_are_new() {
    let watch = watch();
    for _ in 0..10 {
        assert_eq!(watch.note_tool(ADA, "files__read", at(0)), None);
    }
    assert_eq!(watch.note_tool(ADA, "files__write", at(0)), None);
    let tripped = watch.note_tool(ADA, "files__move", at(0)).unwrap();
    assert_eq!(tripped.action, AnomalyAction::Quarantine);
    assert_eq!(tripped.rule(), "more than 2/min new_tools");
}

#[test]
fn past_the_most_sessions_idle_ones_make_room_and_others_are_not_watched() {
    let watch = watch();
    let session = |number| WatchedSession { session: Some(number), ..ADA };
    for number in 0..2 * MAX_WATCHED_SESSIONS as u64 {
        let _ = watch.note(session(number), AnomalySignal::Denial, at(0));
    }
    let kept = || watch.shards.iter().map(|shard| shard.lock().unwrap().len()).sum::<usize>();
    assert_eq!(kept(), MAX_WATCHED_SESSIONS);
    let later = at(0) + IDLE + at(1);
    let _ = watch.note(session(u64::MAX), AnomalySignal::Denial, later);
    assert!(kept() < MAX_WATCHED_SESSIONS, "those that were idle are forgotten");
}

//! Incident mode: when it is on, for which servers, what is revoked, and who did it when.

use super::bench::*;
use crate::{
    ActorType, ApiKeyHash, By, Day, DrillSighting, Incident, IncidentLevel, IncidentScope,
    IncidentState, MAX_INCIDENT_SERVERS, MAX_NAME_BYTES, MAX_REASON_BYTES, MAX_REVOCATIONS,
    MAX_REVOKED_BYTES, NewApiKey, NotATool, Quarantine, RevokedKind, Signed, StoppedParts,
    StoppedTool, Store, StoreError,
};
use gate::time::Timestamp;

fn by(name: &str, milliseconds: i64) -> By<'_> {
    By { name, at: Timestamp(NOON.0 + milliseconds) }
}

fn signed(name: &str, milliseconds: i64) -> Signed {
    Signed { by: name.to_owned(), at: Timestamp(NOON.0 + milliseconds) }
}

fn everywhere(level: IncidentLevel) -> Incident {
    Incident { level, scope: IncidentScope::All, reason: Some("a token leaked".to_owned()) }
}

fn an_incident_survives_a_restart_and_ends_on_command(kind: Kind) {
    let bench = Bench::new(kind);
    assert_eq!(bench.store().incident().unwrap(), IncidentState::default());
    let incident = everywhere(IncidentLevel::High);
    bench.store().begin_incident(&incident, by("ada", 0)).unwrap();
    let found = bench.store().incident().unwrap();
    assert_eq!(found.incident, Some((incident, signed("ada", 0))));
    assert_eq!(found.egress_blocked, None);
    let limited = Incident {
        level: IncidentLevel::Critical,
        scope: IncidentScope::servers([id("reports"), id("mail")].into()),
        reason: None,
    };
    bench.store().begin_incident(&limited, by("bob", 1)).unwrap();
    let found = bench.store().incident().unwrap();
    assert_eq!(found.incident, Some((limited, signed("bob", 1))), "the newest one counts");
    bench.store().end_incident("over", by("ada", 2)).unwrap();
    assert_eq!(bench.store().incident().unwrap(), IncidentState::default());
}

fn egress_is_blocked_and_unblocked_by_itself(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.block_egress(by("ada", 0)).unwrap();
    let found = store.incident().unwrap();
    assert_eq!(found.egress_blocked, Some(signed("ada", 0)));
    assert_eq!(found.incident, None);
    store.begin_incident(&everywhere(IncidentLevel::High), by("ada", 1)).unwrap();
    store.end_incident("over", by("ada", 2)).unwrap();
    assert!(store.incident().unwrap().egress_blocked.is_some());
    store.unblock_egress(by("bob", 3)).unwrap();
    assert_eq!(store.incident().unwrap(), IncidentState::default());
}

fn a_revocation_keeps_the_latest_moment_whatever_the_clock_does(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for kind in RevokedKind::ALL {
        store.revoke(kind, "it\0s", by("ada", 5)).unwrap();
    }
    store.revoke(RevokedKind::Key, "it\0s", by("bob", 9)).unwrap();
    store.revoke(RevokedKind::Session, "it\0s", by("bob", 1)).unwrap();
    let found = store.incident().unwrap().revocations;
    assert_eq!(found.len(), RevokedKind::ALL.len());
    for revocation in found {
        let expected =
            if revocation.kind == RevokedKind::Key { signed("bob", 9) } else { signed("ada", 5) };
        assert_eq!(revocation.value_sha256(), contract::hash::sha256_hex(b"it\0s"));
        let is_shown = matches!(revocation.kind, RevokedKind::Principal | RevokedKind::Server);
        assert_eq!(revocation.shown_value(), is_shown.then_some("it\0s"));
        assert_eq!(revocation.value == "it\0s", is_shown, "kept in clear");
        assert_eq!(revocation.signed, expected);
    }
    let is_told = |event: &crate::StoreEvent| event.subject.as_deref() == Some("it\0s");
    assert_eq!(store.events().unwrap().iter().filter(|event| is_told(event)).count(), 2);
    // The form that older versions stored.
    bench.edit("UPDATE revocations SET value = 'abc' WHERE kind = 'session'");
    let found = store.sealed_incident().unwrap().0.revocations;
    let session = found.iter().find(|found| found.kind == RevokedKind::Session).unwrap();
    assert_eq!(session.value_sha256(), contract::hash::sha256_hex(b"abc"));
}

fn each_thing_that_a_person_did_is_an_event_and_stays_one(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.begin_incident(&everywhere(IncidentLevel::High), by("ada", 0)).unwrap();
    store.block_egress(by("bob", 1)).unwrap();
    store.revoke(RevokedKind::Principal, "eve", by("ada", 2)).unwrap();
    store.unblock_egress(by("bob", 3)).unwrap();
    store.end_incident("over", by("ada", 4)).unwrap();
    // Turning off what is off already records no event.
    store.end_incident("over", by("ada", 5)).unwrap();
    store.unblock_egress(by("ada", 6)).unwrap();
    let events = store.events().unwrap();
    let lines: Vec<_> = events
        .iter()
        .map(|event| {
            let subject = event.subject.as_deref();
            (event.seq, event.at.0 - NOON.0, event.by.as_str(), event.action.as_str(), subject)
        })
        .collect();
    assert_eq!(
        lines,
        [
            (1, 0, "ada", "incident.on", Some("high")),
            (2, 1, "bob", "incident.block_egress", None),
            (3, 2, "ada", "incident.revoke", Some("eve")),
            (4, 3, "bob", "incident.unblock_egress", None),
            (5, 4, "ada", "incident.off", None),
        ]
    );
    assert_eq!(events[0].detail.as_deref(), Some("a token leaked"));
    assert_eq!(events[2].detail.as_deref(), Some("principal"));
    for sql in ["UPDATE events SET by = 'eve'", "DELETE FROM events"] {
        assert!(bench.edit_plainly(sql).unwrap_err().contains("events is only added to"));
    }
}

fn other_processes_see_an_incident_at_once(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, other) = (bench.store(), bench.store());
    let before = other.version().unwrap();
    one.begin_incident(&everywhere(IncidentLevel::High), by("ada", 0)).unwrap();
    assert_ne!(other.version().unwrap(), before);
    assert!(other.incident().unwrap().incident.is_some());
}

/// A state that cannot be read does not count as empty.
fn what_holdpoint_does_not_write_is_an_error(kind: Kind) {
    for edit in [
        "UPDATE switches SET level = 'lowest'",
        "UPDATE switches SET scope = '[\"NOT AN ID\"]'",
        "UPDATE switches SET scope = '{'",
        "UPDATE switches SET scope = '{\"servers\":[],\"tools\":[\"files\"],\"principals\":[]}'",
        "UPDATE switches SET name = 'other'",
        "UPDATE revocations SET kind = 'other'",
    ] {
        let bench = Bench::new(kind);
        let mut store = bench.store();
        store.begin_incident(&everywhere(IncidentLevel::High), by("ada", 0)).unwrap();
        store.revoke(RevokedKind::Key, "k", by("ada", 0)).unwrap();
        bench.edit(edit);
        let error = store.incident().unwrap_err();
        assert!(matches!(error, StoreError::Garbled { .. }), "{edit}: {error}");
    }
}

#[track_caller]
fn check_limit(result: Result<(), StoreError>, is_fine: bool) {
    match result {
        Ok(()) => assert!(is_fine),
        Err(StoreError::OverLimit { .. }) => assert!(!is_fine),
        Err(other) => panic!("{other}"),
    }
}

fn an_incident_that_names_tools_and_principals_is_read_as_it_was_written(kind: Kind) {
    let bench = Bench::new(kind);
    let parts = StoppedParts {
        servers: [id("reports")].into(),
        tools: ["files__write_file".parse().unwrap(), "files___odd__name".parse().unwrap()].into(),
        principals: ["https://idp|svc".to_owned()].into(),
    };
    let scope = IncidentScope::Parts(parts);
    assert!(scope.concerns(&id("files")) && scope.concerns(&id("reports")));
    assert!(!scope.concerns(&id("mail")));
    let incident = Incident { scope, ..everywhere(IncidentLevel::Low) };
    bench.store().begin_incident(&incident, by("ada", 0)).unwrap();
    let found = bench.store().incident().unwrap().incident.map(|(incident, _)| incident);
    assert_eq!(found, Some(incident));
    for wrong in ["files", "files__", "__write", "FILES__write"] {
        assert_eq!(wrong.parse::<StoppedTool>(), Err(NotATool), "{wrong}");
    }
}

fn a_quarantine_lasts_until_it_is_released_and_cannot_be_edited_away(kind: Kind) {
    let bench = Bench::new(kind);
    let quarantine = |session: Option<&str>| Quarantine {
        principal: "https://idp|svc".to_owned(),
        session: session.map(str::to_owned),
        rule: "more than 60/min denials".to_owned(),
        at: NOON,
    };
    let (one, all) = (quarantine(Some("01")), quarantine(None));
    assert_ne!(one.id(), all.id());
    let mut store = bench.store();
    for known in [&one, &all, &one] {
        store.quarantine(known).unwrap();
    }
    let found = |store: &dyn Store| store.incident().unwrap().quarantines;
    assert_eq!(found(&*bench.store()).len(), 2);
    store.release_quarantine(&all.id(), by("ada", 1)).unwrap();
    assert_eq!(found(&*store), [one]);
    bench.edit("DELETE FROM quarantines");
    let state = store.incident().unwrap();
    assert!(
        state.incident.is_some(),
        "a row that something else removed is an incident: {state:?}"
    );
}

fn a_drill_is_seen_by_those_who_report_it(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    assert_eq!(store.last_drill().unwrap(), 0);
    let sighting = |node: &str| DrillSighting { node: node.to_owned(), place: node.to_owned() };
    assert_eq!(store.begin_drill(by("ada", 0)).unwrap(), 1);
    for node in ["a", "b", "a"] {
        bench.store().note_drill(1, &sighting(node)).unwrap();
    }
    assert_eq!(store.drill_sightings(1).unwrap(), [sighting("a"), sighting("b")]);
    assert_eq!(bench.store().begin_drill(by("ada", 1)).unwrap(), 2);
    assert_eq!((store.last_drill().unwrap(), store.drill_sightings(2).unwrap()), (2, Vec::new()));
    assert_eq!(store.incident().unwrap(), IncidentState::default(), "it switches nothing");
}

fn everything_of_an_incident_is_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for past in [0, 1] {
        let is_fine = past == 0;
        let reason = Some("x".repeat(MAX_REASON_BYTES + past));
        let incident = Incident { reason, ..everywhere(IncidentLevel::High) };
        check_limit(store.begin_incident(&incident, by("ada", 0)), is_fine);
        let servers = (0..MAX_INCIDENT_SERVERS + past).map(|index| id(&format!("s{index}")));
        let scope = IncidentScope::servers(servers.collect());
        let incident = Incident { scope, ..everywhere(IncidentLevel::High) };
        check_limit(store.begin_incident(&incident, by("ada", 0)), is_fine);
        let value = "x".repeat(MAX_REVOKED_BYTES + past);
        check_limit(store.revoke(RevokedKind::Key, &value, by("ada", 0)), is_fine);
        let name = "x".repeat(MAX_NAME_BYTES + past);
        check_limit(store.block_egress(by(&name, 0)), is_fine);
    }
    assert!(matches!(store.block_egress(by("", 0)), Err(StoreError::Nameless)));
    // One revocation exists already.
    bench.edit(&format!(
        "INSERT INTO revocations (kind, value, at, by)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
         SELECT 'key', 'v' || n, 1, 'ada' FROM numbers",
        MAX_REVOCATIONS - 2
    ));
    check_limit(store.revoke(RevokedKind::Key, "the last", by("ada", 0)), true);
    check_limit(store.revoke(RevokedKind::Key, "one past it", by("ada", 0)), false);
    check_limit(store.revoke(RevokedKind::Key, "the last", by("ada", 1)), true);
    assert_eq!(store.incident().unwrap().revocations.len(), MAX_REVOCATIONS);
}

/// An incident on one server, blocked egress, a revocation and an API key, all sealed.
fn switched_on(kind: Kind) -> Bench {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let incident = Incident {
        level: IncidentLevel::Critical,
        scope: IncidentScope::servers([id("reports")].into()),
        reason: None,
    };
    store.begin_incident(&incident, by("ada", 0)).unwrap();
    store.block_egress(by("ada", 1)).unwrap();
    store.revoke(RevokedKind::Principal, "eve", by("ada", 2)).unwrap();
    let key = NewApiKey {
        id: "laptop".parse().unwrap(),
        hash: ApiKeyHash([7; 32]),
        sub: "ada".to_owned(),
        actor_type: ActorType::User,
        org: None,
        groups: Vec::new(),
        clearance: None,
        admin: false,
        expires_at: None,
    };
    store.add_api_key(&key, by("ada", 3)).unwrap();
    store.revoke_api_key(&key.id, by("ada", 4)).unwrap();
    assert_eq!(store.sealed_incident().unwrap().1.doubt, None);
    bench
}

fn an_edited_or_deleted_switch_is_an_incident_that_is_still_on(kind: Kind) {
    for edit in [
        "DELETE FROM switches",
        "DELETE FROM switches WHERE name = 'block_egress'",
        "UPDATE switches SET scope = '[\"mail\"]' WHERE name = 'incident'",
        "UPDATE switches SET level = 'high' WHERE name = 'incident'",
        "UPDATE switches SET at = at + 1",
        "DELETE FROM revocations",
        "UPDATE revocations SET value = 'bob'",
        "UPDATE revocations SET at = 0",
        "INSERT INTO revocations (kind, value, at, by) VALUES ('server', 'reports', 1, 'eve')",
        "UPDATE api_keys SET revoked_at = NULL, revoked_by = NULL",
        "UPDATE api_keys SET expires_at = 9000000000000",
        "DELETE FROM switch_seal",
        "DELETE FROM switch_seal; DELETE FROM switches; DELETE FROM revocations; DELETE FROM api_keys",
        "UPDATE switch_seal SET seal_count = seal_count + 1",
    ] {
        let bench = switched_on(kind);
        bench.edit(edit);
        let mut store = bench.store();
        let state = store.incident().unwrap();
        let (incident, signed) = state.incident.expect(edit);
        assert_eq!((incident.level, incident.scope), (IncidentLevel::Low, IncidentScope::All));
        let reason = incident.reason.unwrap();
        assert!(reason.contains("a program other than Holdpoint"), "{reason}");
        assert!(reason.contains("holdpoint incident off"), "{reason}");
        assert_eq!(signed.by, "holdpoint");
        assert!(state.egress_blocked.is_some(), "{edit}");
        let refused = store.api_key(&ApiKeyHash([7; 32]));
        assert!(matches!(refused, Err(StoreError::OlderStore { .. })), "{edit}: {refused:?}");
        // Switches set meanwhile are recorded, but do not end the doubt.
        store.revoke(RevokedKind::Principal, "mallory", by("ada", 5)).unwrap();
        assert!(store.sealed_incident().unwrap().1.doubt.is_some(), "{edit}");
        store.end_incident("over", by("ada", 6)).unwrap();
        store.accept_incident_state(0, by("ada", 6)).unwrap();
        assert_eq!(store.incident().unwrap().incident, None, "{edit}");
        assert!(store.events().unwrap().iter().any(|event| event.action == "incident.accept"));
    }
}

fn the_day_a_key_was_used_is_not_sealed(kind: Kind) {
    let bench = switched_on(kind);
    bench.store().note_api_key_use(&"laptop".parse().unwrap(), Day(20_000)).unwrap();
    assert_eq!(bench.store().sealed_incident().unwrap().1.doubt, None);
}

fn older_rows_with_their_older_seal_are_noticed(kind: Kind) {
    let bench = switched_on(kind);
    bench.edit("CREATE TABLE kept AS SELECT * FROM switch_seal");
    bench.edit("CREATE TABLE kept_revocations AS SELECT * FROM revocations");
    bench.store().revoke(RevokedKind::Principal, "mallory", by("ada", 9)).unwrap();
    bench.edit(
        "DELETE FROM switch_seal; INSERT INTO switch_seal SELECT * FROM kept;
         DELETE FROM revocations; INSERT INTO revocations SELECT * FROM kept_revocations;
         DROP TABLE kept; DROP TABLE kept_revocations",
    );
    assert!(bench.store().sealed_incident().unwrap().1.doubt.is_some());
}

fn a_key_that_is_gone_leaves_the_state_in_doubt_until_a_person_accepts_it(kind: Kind) {
    if kind == Kind::Postgres {
        return; // There another node has the key, and none at all is an error of this node.
    }
    let bench = switched_on(kind);
    std::fs::remove_file(bench.home.keys_path().join("pins.key")).unwrap();
    let mut store = bench.store();
    assert!(store.incident().unwrap().incident.unwrap().0.reason.unwrap().contains("is gone"));
    store.revoke(RevokedKind::Principal, "mallory", by("ada", 5)).unwrap();
    assert!(store.sealed_incident().unwrap().1.doubt.is_some());
    store.accept_incident_state(0, by("ada", 6)).unwrap();
    assert_eq!(store.sealed_incident().unwrap().1.doubt, None);
}

/// A person who stops calls must not be hindered by the state of a file.
fn an_incident_begins_without_a_key_that_can_be_used(kind: Kind) {
    if kind == Kind::Postgres {
        return; // There a node without the nodes' key does not get as far.
    }
    let bench = Bench::new(kind);
    std::fs::write(bench.home.keys_path().join("pins.key"), "too short").unwrap();
    bench.store().begin_incident(&everywhere(IncidentLevel::High), by("ada", 0)).unwrap();
    assert!(bench.store().incident().unwrap().incident.is_some());
}

on_both![
    an_incident_begins_without_a_key_that_can_be_used,
    an_edited_or_deleted_switch_is_an_incident_that_is_still_on,
    the_day_a_key_was_used_is_not_sealed,
    older_rows_with_their_older_seal_are_noticed,
    a_key_that_is_gone_leaves_the_state_in_doubt_until_a_person_accepts_it,
    an_incident_survives_a_restart_and_ends_on_command,
    egress_is_blocked_and_unblocked_by_itself,
    a_revocation_keeps_the_latest_moment_whatever_the_clock_does,
    each_thing_that_a_person_did_is_an_event_and_stays_one,
    other_processes_see_an_incident_at_once,
    what_holdpoint_does_not_write_is_an_error,
    everything_of_an_incident_is_bounded,
    an_incident_that_names_tools_and_principals_is_read_as_it_was_written,
    a_quarantine_lasts_until_it_is_released_and_cannot_be_edited_away,
    a_drill_is_seen_by_those_who_report_it,
];

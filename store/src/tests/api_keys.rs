//! API keys: found by the hash of the key, revoked permanently.

use super::bench::*;
use crate::{
    ActorType, ApiKeyHash, By, Day, MAX_API_KEYS, MAX_GROUPS, MAX_PRINCIPAL_BYTES, NewApiKey,
    Refusal, Signed, StoreError,
};
use gate::time::Timestamp;

const ADA: By<'_> = By { name: "ada", at: NOON };

fn key(name: &str, byte: u8) -> NewApiKey {
    NewApiKey {
        id: name.parse().unwrap(),
        hash: ApiKeyHash([byte; 32]),
        sub: "svc\0reports".to_owned(),
        actor_type: ActorType::Agent,
        org: Some("acme".to_owned()),
        groups: vec!["readers".to_owned(), "päople".to_owned()],
        clearance: Some("internal".to_owned()),
        admin: true,
        expires_at: Some(Timestamp(NOON.0 + 1_000)),
    }
}

fn a_key_is_found_by_its_hash_and_by_no_other(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let plain = NewApiKey {
        org: None,
        groups: vec![],
        clearance: None,
        admin: false,
        expires_at: None,
        ..key("plain", 2)
    };
    store.add_api_key(&key("full", 1), ADA).unwrap();
    store.add_api_key(&plain, ADA).unwrap();
    let found = bench.store().api_key(&ApiKeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(found.key, key("full", 1));
    assert_eq!(found.created, Signed { by: "ada".to_owned(), at: NOON });
    assert_eq!((found.revoked, found.last_used), (None, None));
    assert_eq!(store.api_key(&ApiKeyHash([2; 32])).unwrap().unwrap().key, plain);
    assert_eq!(store.api_key(&ApiKeyHash([3; 32])).unwrap(), None);
    let names: Vec<_> = store.api_keys().unwrap().into_iter().map(|key| key.key.id).collect();
    assert_eq!(names, ["full".parse().unwrap(), "plain".parse().unwrap()]);
}

fn every_actor_type_comes_back(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for (byte, actor_type) in (1..).zip([ActorType::User, ActorType::Agent, ActorType::System]) {
        let key = NewApiKey { actor_type, ..key(&format!("k{byte}"), byte) };
        store.add_api_key(&key, ADA).unwrap();
        assert_eq!(store.api_key(&key.hash).unwrap().unwrap().key.actor_type, actor_type);
    }
}

fn a_revoked_key_stays_revoked_by_whom_it_first_was(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.add_api_key(&key("k", 1), ADA).unwrap();
    assert!(store.api_key(&ApiKeyHash([1; 32])).unwrap().unwrap().is_valid(NOON));
    let id = "k".parse().unwrap();
    for (name, milliseconds) in [("bob", 5), ("eve", 9)] {
        store.revoke_api_key(&id, By { name, at: Timestamp(NOON.0 + milliseconds) }).unwrap();
    }
    let found = store.api_key(&ApiKeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(found.revoked, Some(Signed { by: "bob".to_owned(), at: Timestamp(NOON.0 + 5) }));
    assert!(!found.is_valid(NOON));
    let events = store.events().unwrap();
    let lines: Vec<_> =
        events.iter().map(|event| (event.by.as_str(), event.action.as_str())).collect();
    assert_eq!(lines, [("ada", "key.create"), ("bob", "key.revoke")]);
    let error = store.revoke_api_key(&"other".parse().unwrap(), ADA).unwrap_err();
    assert_eq!(error.to_string(), "there is no API key `other`");
}

fn a_key_is_valid_until_the_moment_it_expires(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.add_api_key(&key("k", 1), ADA).unwrap();
    let found = store.api_key(&ApiKeyHash([1; 32])).unwrap().unwrap();
    assert!(found.is_valid(Timestamp(NOON.0 + 999)));
    assert!(!found.is_valid(Timestamp(NOON.0 + 1_000)));
}

fn neither_a_name_nor_a_hash_is_used_twice(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.add_api_key(&key("k", 1), ADA).unwrap();
    for other in [key("k", 2), key("other", 1)] {
        let error = store.add_api_key(&other, ADA).unwrap_err();
        assert!(matches!(error, StoreError::Refused(Refusal::Taken { .. })), "{error}");
    }
    assert_eq!(store.api_keys().unwrap().len(), 1);
}

fn the_day_of_the_last_use_is_written_once_a_day_and_never_goes_back(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    store.add_api_key(&key("k", 1), ADA).unwrap();
    let id = "k".parse().unwrap();
    let last_used =
        |store: &dyn crate::Store| store.api_key(&ApiKeyHash([1; 32])).unwrap().unwrap().last_used;
    store.note_api_key_use(&id, Day(7)).unwrap();
    assert_eq!(last_used(&*store), Some(Day(7)));
    let before = store.version().unwrap();
    store.note_api_key_use(&id, Day(7)).unwrap();
    store.note_api_key_use(&id, Day(6)).unwrap();
    assert_eq!(last_used(&*store), Some(Day(7)));
    assert_eq!(store.version().unwrap(), before, "nothing was written");
    store.note_api_key_use(&id, Day(8)).unwrap();
    assert_eq!(last_used(&*store), Some(Day(8)));
    assert!(store.note_api_key_use(&"other".parse().unwrap(), Day(8)).is_err());
}

fn a_garbled_key_opens_nothing(kind: Kind) {
    for edit in [
        "actor_type = 'root'".to_owned(),
        "group_names = '{}'".to_owned(),
        "admin = 2".to_owned(),
        "id = 'not an id'".to_owned(),
        "revoked_at = 5".to_owned(),
    ] {
        let bench = Bench::new(kind);
        let mut store = bench.store();
        store.add_api_key(&key("k", 1), ADA).unwrap();
        bench.edit(&format!("UPDATE api_keys SET {edit}"));
        let error = store.api_key(&ApiKeyHash([1; 32])).unwrap_err();
        assert!(matches!(error, StoreError::OlderStore { .. }), "{edit}: {error}");
        // Also after a person accepted the state.
        store.accept_incident_state(0, ADA).unwrap();
        let error = store.api_key(&ApiKeyHash([1; 32])).unwrap_err();
        assert!(matches!(error, StoreError::Garbled { .. }), "{edit}: {error}");
    }
}

fn a_key_that_another_program_gave_more_power_opens_nothing(kind: Kind) {
    for edit in ["admin = 1", "clearance = 'secret'", "admin = 0"] {
        let bench = Bench::new(kind);
        let mut store = bench.store();
        let admin = edit == "admin = 0";
        store.add_api_key(&NewApiKey { admin, clearance: None, ..key("k", 1) }, ADA).unwrap();
        assert_eq!(store.sealed_api_keys().unwrap().len(), 1);
        bench.edit(&format!("UPDATE api_keys SET {edit}"));
        for error in
            [store.sealed_api_keys().unwrap_err(), store.api_key(&ApiKeyHash([1; 32])).unwrap_err()]
        {
            assert!(matches!(error, StoreError::OlderStore { .. }), "{edit}: {error}");
        }
        // A person can still list the keys.
        assert_eq!(store.api_keys().unwrap().len(), 1);
    }
}

fn everything_of_a_key_is_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for (past, byte) in [(0, 1), (1, 4)] {
        let long = "x".repeat(MAX_PRINCIPAL_BYTES + past);
        let keys = [
            NewApiKey { sub: long.clone(), ..key(&format!("a{past}"), byte) },
            NewApiKey { org: Some(long.clone()), ..key(&format!("b{past}"), byte + 1) },
            NewApiKey {
                groups: vec!["g".to_owned(); MAX_GROUPS + past],
                ..key(&format!("c{past}"), byte + 2)
            },
        ];
        for key in keys {
            let added = store.add_api_key(&key, ADA);
            assert_eq!(added.is_ok(), past == 0, "{added:?}");
            assert!(past == 0 || matches!(added, Err(StoreError::OverLimit { .. })));
        }
    }
    let (digits, prefix) = match kind {
        Kind::Sqlite => ("CAST(printf('%032d', n) AS BLOB)", "v"),
        Kind::Postgres => ("decode(md5(n::text) || md5(n::text), 'hex')", "v"),
    };
    bench.edit(&format!(
        "INSERT INTO api_keys (id, hash, sub, actor_type, group_names, created_at, created_by)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
         SELECT '{prefix}' || n, {digits}, 's', 'user', '[]', 1, 'ada' FROM numbers",
        MAX_API_KEYS - 4
    ));
    store.add_api_key(&key("last", 9), ADA).unwrap();
    let error = store.add_api_key(&key("past", 10), ADA).unwrap_err();
    assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
}

on_both![
    a_key_is_found_by_its_hash_and_by_no_other,
    every_actor_type_comes_back,
    a_revoked_key_stays_revoked_by_whom_it_first_was,
    a_key_is_valid_until_the_moment_it_expires,
    neither_a_name_nor_a_hash_is_used_twice,
    the_day_of_the_last_use_is_written_once_a_day_and_never_goes_back,
    a_garbled_key_opens_nothing,
    a_key_that_another_program_gave_more_power_opens_nothing,
    everything_of_a_key_is_bounded,
];

//! Actions on incident mode and keys get a line in the index; failed ones do not.

use crate::tests::bench::{Bench, Kind, NOON, call, id, on_both};
use crate::{
    ActorType, ApiKeyHash, ApiKeyStore, ApprovalDecision, ApprovalStore, By, Count, Day, Incident,
    IncidentLevel, IncidentScope, IncidentStore, NewApiKey, RevokedKind, Spent, StatisticsStore,
    Store, Taken, Witnessed,
};
use gate::time::Timestamp;
use serde_json::Value;

const ADA: By<'_> = By { name: "ada", at: NOON };

fn key(name: &str) -> NewApiKey {
    NewApiKey {
        id: name.parse().unwrap(),
        hash: ApiKeyHash([1; 32]),
        sub: "svc".to_owned(),
        actor_type: ActorType::Agent,
        org: None,
        groups: Vec::new(),
        clearance: None,
        admin: false,
        expires_at: None,
    }
}

/// The actors and actions in the home's index.
fn witnessed(bench: &Bench) -> Vec<(String, String)> {
    let path = bench.home.path().join("receipts/index/000001.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| !line["name"].as_str().unwrap().starts_with("chain."))
        .map(|line| {
            let text = |member: &str| line[member].as_str().unwrap_or("nobody").to_owned();
            (text("by"), text("name"))
        })
        .collect()
}

fn incidents_and_keys_are_witnessed(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = Witnessed::new(bench.store(), &bench.home);
    let incident = Incident { level: IncidentLevel::High, scope: IncidentScope::All, reason: None };
    store.begin_incident(&incident, ADA).unwrap();
    store.block_egress(ADA).unwrap();
    store.revoke(RevokedKind::Principal, "eve", ADA).unwrap();
    store.unblock_egress(ADA).unwrap();
    store.end_incident("over", By { name: "holdpoint", at: NOON }).unwrap();
    store.add_api_key(&key("k1"), ADA).unwrap();
    assert!(store.add_api_key(&key("k1"), ADA).is_err(), "there is one already");
    store.revoke_api_key(&"k1".parse().unwrap(), ADA).unwrap();
    let expected = [
        ("ada", "incident.on"),
        ("ada", "incident.block_egress"),
        ("ada", "incident.revoke"),
        ("ada", "incident.unblock_egress"),
        ("nobody", "incident.off"),
        ("ada", "key.create"),
        ("ada", "key.revoke"),
    ];
    let expected = expected.map(|(by, name)| (by.to_owned(), name.to_owned()));
    assert_eq!(witnessed(&bench), expected);
    let names: Vec<_> = store.events().unwrap().into_iter().map(|event| event.action).collect();
    assert_eq!(names, expected.map(|(_, name)| name), "the store has them too");
    assert!(store.api_key(&ApiKeyHash([1; 32])).unwrap().unwrap().revoked.is_some());
    assert_eq!(store.incident().unwrap().revocations.len(), 1);
}

fn approvals_and_counters_are_handed_on(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = Witnessed::new(bench.store(), &bench.home);
    let call = call();
    let (approval, end) = ("a1".parse().unwrap(), Timestamp(NOON.0 + 9));
    store.park_call(&approval, &call, NOON, end).unwrap();
    assert_eq!(store.parked_calls(NOON).unwrap().len(), 1);
    store
        .decide_call(
            &approval,
            ApprovalDecision::Grant { mfa: false },
            By { name: "bob", at: NOON },
        )
        .unwrap();
    assert!(matches!(store.take_approval(&approval, &call, NOON).unwrap(), Taken::Taken(_)));
    assert_eq!(store.use_approval(&approval, NOON, NOON).unwrap(), Spent::Spent);
    assert!(store.approval(&approval).unwrap().is_some());
    assert_eq!(store.expire_approvals(end).unwrap(), 0);
    let count = Count { day: Day(3), server: id("mail"), name: "calls".to_owned(), value: 4 };
    store.add_counts(std::slice::from_ref(&count)).unwrap();
    assert_eq!(store.counts(Day(3), Day(3)).unwrap(), [count]);
    store.add_api_key(&key("k1"), ADA).unwrap();
    store.note_api_key_use(&"k1".parse().unwrap(), Day(3)).unwrap();
    assert_eq!(store.api_keys().unwrap()[0].last_used, Some(Day(3)));
}

on_both![incidents_and_keys_are_witnessed, approvals_and_counters_are_handed_on];

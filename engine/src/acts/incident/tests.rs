use super::*;
use std::collections::BTreeSet;
use store::{IncidentLevel, IncidentStore};

fn incident(level: IncidentLevel, servers: &[&str]) -> Incident {
    let servers: BTreeSet<ServerId> = servers.iter().filter_map(|id| id.parse().ok()).collect();
    let scope =
        if servers.is_empty() { IncidentScope::All } else { IncidentScope::servers(servers) };
    Incident { level, scope, reason: None }
}

#[test]
fn an_incident_covers_another_only_where_it_stops_no_less() {
    use IncidentLevel::{Critical, High};
    for (new, old, expected) in [
        ((High, &[][..]), (High, &[][..]), true),
        ((High, &[]), (Critical, &[]), true),
        ((Critical, &[]), (High, &[]), false),
        ((High, &[]), (Critical, &["files"]), true),
        ((High, &["files"]), (High, &[]), false),
        ((High, &["files", "mail"]), (High, &["mail"]), true),
        ((High, &["files"]), (High, &["files", "mail"]), false),
        ((High, &["files"]), (High, &["mail"]), false),
        ((Critical, &["files", "mail"]), (High, &["mail"]), false),
    ] {
        let (after, before) = (incident(new.0, new.1), incident(old.0, old.1));
        assert_eq!(covers(&after, &before), expected, "{after:?} over {before:?}");
    }
}

fn store() -> (tempfile::TempDir, store::Witnessed) {
    let directory = tempfile::tempdir().unwrap();
    let home = store::Home::open(&directory.path().join("home")).unwrap();
    let store = Box::new(store::SqliteStore::open(&home).unwrap());
    (directory, store::Witnessed::new(store, &home))
}

fn ada() -> By<'static> {
    By { name: "ada", at: gate::time::Timestamp(1_700_000_000_000) }
}

#[test]
fn stopping_more_needs_no_consent_and_stopping_less_does() {
    let (_directory, mut store) = store();
    let (high, critical) = (IncidentLevel::High, IncidentLevel::Critical);
    begin(&mut store, &incident(critical, &[]), Consent::NotAsked, ada()).unwrap();
    begin(&mut store, &incident(high, &[]), Consent::NotAsked, ada()).unwrap();
    let less = begin(&mut store, &incident(critical, &[]), Consent::NotAsked, ada());
    assert!(matches!(less, Err(ActError::NeedsConsent)), "{less:?}");
    begin(&mut store, &incident(critical, &[]), Consent::Given, ada()).unwrap();
    let ended = end(&mut store, "over", Consent::NotAsked, ada());
    assert!(matches!(ended, Err(ActError::NeedsConsent)), "{ended:?}");
    end(&mut store, "over", Consent::Given, ada()).unwrap();
    end(&mut store, "over", Consent::NotAsked, ada()).unwrap();
    unblock_egress(&mut store, Consent::NotAsked, ada()).unwrap();
    block_egress(&mut store, ada()).unwrap();
    let opened = unblock_egress(&mut store, Consent::NotAsked, ada());
    assert!(matches!(opened, Err(ActError::NeedsConsent)), "{opened:?}");
    assert!(store.incident().unwrap().egress_blocked.is_some());
    unblock_egress(&mut store, Consent::Given, ada()).unwrap();
    assert_eq!(store.incident().unwrap().egress_blocked, None);
}

#[test]
fn a_name_that_would_stop_nothing_is_refused() {
    let (_directory, mut store) = store();
    let unknown = incident(IncidentLevel::High, &["files"]);
    let refused = begin(&mut store, &unknown, Consent::Given, ada());
    assert!(matches!(refused, Err(ActError::UnknownServer { .. })), "{refused:?}");
    let refused = revoke(&mut store, RevokedKind::Server, "files", ada());
    assert!(matches!(refused, Err(ActError::UnknownServer { .. })), "{refused:?}");
    let refused = revoke(&mut store, RevokedKind::Server, "no id", ada());
    assert!(matches!(refused, Err(ActError::NotAServerId(_))), "{refused:?}");
    let refused = revoke(&mut store, RevokedKind::Principal, "", ada());
    assert!(matches!(refused, Err(ActError::Nameless(RevokedKind::Principal))), "{refused:?}");
}

#[test]
fn a_principal_is_known_by_what_it_did() {
    let (directory, mut store) = store();
    let receipts = directory.path().join("home/receipts");
    assert!(!is_known_principal(&store, &receipts, "ada").unwrap());
    revoke(&mut store, RevokedKind::Principal, "bob", ada()).unwrap();
    assert!(is_known_principal(&store, &receipts, "ada").unwrap());
    assert!(!is_known_principal(&store, &receipts, "bob").unwrap());
}

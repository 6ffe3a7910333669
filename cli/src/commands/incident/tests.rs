use super::*;
use store::IncidentLevel;

fn incident(level: IncidentLevel, servers: &[&str]) -> Incident {
    let servers: BTreeSet<ServerId> = servers.iter().filter_map(|id| id.parse().ok()).collect();
    let scope =
        if servers.is_empty() { IncidentScope::All } else { IncidentScope::Servers(servers) };
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

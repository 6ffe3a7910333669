//! The state of incident mode as a JSON document, which `holdpoint incident --json` prints and the
//! admin API returns.

use gate::server::ServerId;
use serde::Serialize;
use std::collections::BTreeSet;
use store::{IncidentScope, IncidentState, Quarantine, QuarantineId, Revocation, Signed};

/// The state of incident mode.
#[derive(Debug, Serialize)]
pub struct IncidentDocument<'a> {
    incident: Option<OnDocument<'a>>,
    egress_blocked: Option<&'a Signed>,
    revocations: Vec<RevocationDocument<'a>>,
    quarantines: Vec<QuarantineDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct OnDocument<'a> {
    level: &'static str,
    /// `None` means all servers.
    servers: Option<&'a BTreeSet<ServerId>>,
    tools: Vec<String>,
    principals: Vec<&'a str>,
    reason: Option<&'a str>,
    #[serde(flatten)]
    signed: &'a Signed,
}

#[derive(Debug, Serialize)]
struct RevocationDocument<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    value_sha256: String,
    #[serde(flatten)]
    signed: &'a Signed,
}

#[derive(Debug, Serialize)]
struct QuarantineDocument<'a> {
    id: QuarantineId,
    principal: &'a str,
    session: Option<&'a str>,
    rule: &'a str,
    at: gate::time::Timestamp,
}

impl<'a> IncidentDocument<'a> {
    pub fn of(state: &'a IncidentState) -> IncidentDocument<'a> {
        let incident = state.incident.as_ref().map(|(incident, signed)| {
            let (servers, tools, principals) = match &incident.scope {
                IncidentScope::All => (None, Vec::new(), Vec::new()),
                IncidentScope::Parts(parts) => (
                    Some(&parts.servers),
                    parts.tools.iter().map(ToString::to_string).collect(),
                    parts.principals.iter().map(String::as_str).collect(),
                ),
            };
            let (level, reason) = (incident.level.as_str(), incident.reason.as_deref());
            OnDocument { level, servers, tools, principals, reason, signed }
        });
        let revoked = |revocation: &'a Revocation| RevocationDocument {
            kind: revocation.kind.as_str(),
            value: revocation.shown_value(),
            value_sha256: revocation.value_sha256(),
            signed: &revocation.signed,
        };
        let quarantined = |quarantine: &'a Quarantine| QuarantineDocument {
            id: quarantine.id(),
            principal: &quarantine.principal,
            session: quarantine.session.as_deref(),
            rule: &quarantine.rule,
            at: quarantine.at,
        };
        IncidentDocument {
            incident,
            egress_blocked: state.egress_blocked.as_ref(),
            revocations: state.revocations.iter().map(revoked).collect(),
            quarantines: state.quarantines.iter().map(quarantined).collect(),
        }
    }
}

//! Incident mode over the admin API, with the document that `holdpoint incident --json` prints.

use super::AdminVisit;
use super::body::{IncidentBody, IncidentWish, RevokeBody, read};
use super::refusal::AdminError;
use engine::acts::incident::{self, Consent};
use serde_json::{Value, json};
use store::{IncidentScope, IncidentState, IncidentStore, Revocation};

impl AdminVisit {
    pub(super) fn incident(&self) -> Result<Value, AdminError> {
        let store = self.node.shared.open_store()?;
        Ok(document(&store.incident()?))
    }

    /// Declares, changes or ends an incident. What stops less needs a person.
    pub(super) fn set_incident(&self, body: &[u8]) -> Result<Value, AdminError> {
        let IncidentBody { incident, egress_blocked } = read(body)?;
        if incident.is_none() && egress_blocked.is_none() {
            let words = "the body has `incident`, `egress_blocked` or both";
            return Err(AdminError::Input(words.to_owned()));
        }
        let consent = if self.is_user() { Consent::Given } else { Consent::NotAsked };
        let incident = incident.map(|wish| wish.map(IncidentWish::incident).transpose());
        let incident = incident.transpose()?;
        let mut store = self.node.shared.open_store()?;
        match incident {
            None => {}
            Some(Some(incident)) => {
                self.by(|by| incident::begin(&mut store, &incident, consent, by))?;
            }
            Some(None) => self.by(|by| incident::end(&mut store, consent, by))?,
        }
        match egress_blocked {
            None => {}
            Some(true) => self.by(|by| incident::block_egress(&mut store, by))?,
            Some(false) => self.by(|by| incident::unblock_egress(&mut store, consent, by))?,
        }
        self.node.refresh();
        Ok(document(&store.incident()?))
    }

    pub(super) fn revoke(&self, body: &[u8]) -> Result<Value, AdminError> {
        let body: RevokeBody = read(body)?;
        let kind = body.kind()?;
        let mut store = self.node.shared.open_store()?;
        self.by(|by| incident::revoke(&mut store, kind, &body.value, by))?;
        self.node.refresh();
        Ok(document(&store.incident()?))
    }
}

fn document(state: &IncidentState) -> Value {
    let incident = state.incident.as_ref().map(|(incident, signed)| {
        json!({
            "level": incident.level.as_str(),
            "servers": match &incident.scope {
                IncidentScope::All => None,
                IncidentScope::Servers(servers) => Some(servers),
            },
            "reason": incident.reason,
            "by": signed.by,
            "at": signed.at,
        })
    });
    let revoked = |revocation: &Revocation| {
        json!({
            "kind": revocation.kind.as_str(),
            "value": revocation.shown_value(),
            "value_sha256": revocation.value_sha256(),
            "by": revocation.signed.by,
            "at": revocation.signed.at,
        })
    };
    json!({
        "incident": incident,
        "egress_blocked": state.egress_blocked,
        "revocations": state.revocations.iter().map(revoked).collect::<Vec<_>>(),
    })
}

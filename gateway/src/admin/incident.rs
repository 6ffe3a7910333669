//! Incident mode in the admin API, with the document that `holdpoint incident --json` prints.

use super::AdminVisit;
use super::body::{IncidentBody, IncidentWish, ReleaseBody, RevokeBody, read};
use super::refusal::AdminError;
use engine::acts::incident::{self, Consent, IncidentDocument};
use serde_json::{Value, json};
use store::{Incident, IncidentScope, IncidentState, IncidentStore, StoppedTool, Witnessed};

impl AdminVisit {
    pub(super) fn incident(&self) -> Result<Value, AdminError> {
        let store = self.node.shared.open_store()?;
        Ok(document(&store.incident()?))
    }

    /// Declares, changes or ends an incident. Stopping less requires a person.
    pub(super) fn set_incident(&self, body: &[u8]) -> Result<Value, AdminError> {
        let IncidentBody { incident, egress_blocked, reason } = read(body)?;
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
            Some(Some(mut incident)) => {
                self.use_own_names(&mut incident);
                self.by(|by| incident::begin(&mut store, &incident, consent, by))?;
            }
            Some(None) => {
                let reason = reason.unwrap_or_default();
                self.by(|by| incident::end(&mut store, &reason, consent, by))?;
            }
        }
        match egress_blocked {
            None => {}
            Some(true) => self.by(|by| incident::block_egress(&mut store, by))?,
            Some(false) => self.by(|by| incident::unblock_egress(&mut store, consent, by))?,
        }
        self.apply_decision(&store);
        Ok(document(&store.incident()?))
    }

    /// Releases a session that tripped an anomaly rule. Requires a person.
    pub(super) fn release_quarantine(&self, body: &[u8]) -> Result<Value, AdminError> {
        let body: ReleaseBody = read(body)?;
        let id = body.id()?;
        let consent = if self.is_user() { Consent::Given } else { Consent::NotAsked };
        let mut store = self.node.shared.open_store()?;
        self.by(|by| incident::release(&mut store, &id, consent, by))?;
        self.apply_decision(&store);
        Ok(document(&store.incident()?))
    }

    /// Applies the decision on this node before the response is sent.
    fn apply_decision(&self, store: &Witnessed) {
        // If reading fails, the next check of the store tries again.
        let _ = self.node.take_keys(store);
        self.node.refresh();
    }

    /// Replaces a tool's name at the gateway by the server's own name.
    fn use_own_names(&self, incident: &mut Incident) {
        let IncidentScope::Parts(parts) = &mut incident.scope else { return };
        let own = |named: StoppedTool| {
            let settings = self.node.server_settings(&named.server);
            let renamed = settings.as_ref().and_then(|settings| {
                settings.names.iter().find(|(_, shown)| **shown == named.tool)
            });
            let tool = renamed.map(|(own, _)| own.clone());
            StoppedTool { tool: tool.unwrap_or(named.tool), server: named.server }
        };
        parts.tools = std::mem::take(&mut parts.tools).into_iter().map(own).collect();
    }

    pub(super) fn revoke(&self, body: &[u8]) -> Result<Value, AdminError> {
        let body: RevokeBody = read(body)?;
        let kind = body.kind()?;
        let mut store = self.node.shared.open_store()?;
        self.by(|by| incident::revoke(&mut store, kind, &body.value, by))?;
        self.apply_decision(&store);
        Ok(document(&store.incident()?))
    }
}

/// The incident state as a document.
fn document(state: &IncidentState) -> Value {
    json!(IncidentDocument::of(state))
}

//! Records incident mode and API keys in the ledger, like acts on servers. Passes two things
//! through: approvals of single calls, which are in the receipts of those calls, and counters,
//! which prove nothing.

use super::{HOLDPOINT, Witnessed, unwitnessed};
use crate::Store;
use crate::api_key::{ApiKey, ApiKeyHash, ApiKeyId, ApiKeyStore, NewApiKey};
use crate::approval::{
    ApprovalDecision, ApprovalId, ApprovalStore, CallApproval, CallBinding, Spent, Taken,
};
use crate::by::By;
use crate::drill::{DrillSighting, DrillStore};
use crate::error::StoreError;
use crate::incident::{
    Incident, IncidentScope, IncidentSeal, IncidentState, IncidentStore, RevokedKind, StoppedParts,
};
use crate::quarantine::{Quarantine, QuarantineId};
use crate::statistics::{Count, Day, StatisticsStore};
use gate::time::Timestamp;
use ledger::record::{Event, Text};
use serde_json::{Value, json};

impl Witnessed {
    /// Makes a change and writes its line to the ledger under one lock.
    fn witness(
        &mut self,
        name: &'static str,
        by: By<'_>,
        data: &Value,
        doing: impl FnOnce(&mut dyn Store) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut journal = self.journal.lock(by.at)?;
        doing(&mut *self.store)?;
        let mut data = data.clone();
        if let Value::Object(members) = &mut data {
            let seen = journal.index().switch_seals;
            let sealed = u64::try_from(self.store.sealed_incident()?.1.count).unwrap_or(0);
            // If the database is behind, continue from the count that the ledger has seen:
            // otherwise the copy from before the act would look like the newest state. If an index
            // was lost, only an acceptance sets the count.
            let is_open = seen == 0 && journal.index().restarted_at.is_some() && name != ACCEPT;
            if !is_open {
                members.insert("switch_seal".to_owned(), sealed.max(seen.saturating_add(1)).into());
            }
        }
        let person = (by.name != HOLDPOINT).then_some(Text(by.name));
        let event = Event { ts: by.at, name, by: person, server_id: None, data: Some(&data) };
        journal.append(&event).map_err(unwitnessed)?;
        Ok(())
    }

    /// Why switches and keys with this seal count cannot be trusted.
    fn doubt_switches(&self, seal_count: i64) -> Option<String> {
        let seen = self.seen.borrow();
        if let Some(fault) = &seen.fault {
            return Some(fault.clone());
        }
        if let (Some(moment), 0) = (&seen.restarted_at, seen.switch_seals) {
            return Some(format!(
                "the receipts were removed and started over at {moment}, so nothing shows which switches were on"
            ));
        }
        let is_older = u64::try_from(seal_count).unwrap_or(0) < seen.switch_seals;
        is_older.then(|| OLDER_STORE.to_owned())
    }
}

/// A person accepted the current state.
const ACCEPT: &str = "incident.accept";

const OLDER_STORE: &str = "the ledger has seen newer switches and keys: the database was deleted, or put back from an older copy";

impl IncidentStore for Witnessed {
    fn sealed_incident(&self) -> Result<(IncidentState, IncidentSeal), StoreError> {
        self.look();
        let (state, seal) = self.store.sealed_incident()?;
        let doubt = seal.doubt.or_else(|| self.doubt_switches(seal.count));
        Ok((state, IncidentSeal { doubt, ..seal }))
    }

    fn accept_incident_state(&mut self, seen: i64, by: By<'_>) -> Result<(), StoreError> {
        let data = json!({});
        self.witness(ACCEPT, by, &data, |store| store.accept_incident_state(seen, by))
    }

    fn begin_incident(&mut self, incident: &Incident, by: By<'_>) -> Result<(), StoreError> {
        let level = incident.level.as_str();
        let data = match &incident.scope {
            IncidentScope::All => json!({"level": level, "servers": null}),
            IncidentScope::Parts(StoppedParts { servers, tools, principals }) => {
                let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
                let principals: Vec<Text<'_>> = principals.iter().map(|name| Text(name)).collect();
                json!({"level": level, "servers": servers, "tools": tools, "principals": principals})
            }
        };
        self.witness("incident.on", by, &data, |store| store.begin_incident(incident, by))
    }

    fn end_incident(&mut self, reason: &str, by: By<'_>) -> Result<(), StoreError> {
        let is_in_doubt = self.sealed_incident()?.1.doubt.is_some();
        let data = json!({"reason": Text(reason)});
        self.witness("incident.off", by, &data, |store| store.end_incident(reason, by))?;
        if is_in_doubt {
            self.look();
            let seen = i64::try_from(self.seen.borrow().switch_seals).unwrap_or(i64::MAX);
            self.accept_incident_state(seen, by)?;
        }
        Ok(())
    }

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        self.witness("incident.block_egress", by, &json!({}), |store| store.block_egress(by))
    }

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        self.witness("incident.unblock_egress", by, &json!({}), |store| store.unblock_egress(by))
    }

    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError> {
        // Record only the hash: a session id is as good as a password, and the person may have
        // typed the key itself.
        let value_hash = contract::hash::sha256_hex(value.as_bytes());
        let data = json!({"kind": kind.as_str(), "value_sha256": value_hash});
        self.witness("incident.revoke", by, &data, |store| store.revoke(kind, value, by))
    }

    fn quarantine(&mut self, quarantine: &Quarantine) -> Result<(), StoreError> {
        let data = json!({
            "id": quarantine.id(),
            "principal": Text(&quarantine.principal),
            "rule": Text(&quarantine.rule),
        });
        let by = By { name: HOLDPOINT, at: quarantine.at };
        self.witness("incident.quarantine", by, &data, |store| store.quarantine(quarantine))
    }

    fn release_quarantine(&mut self, id: &QuarantineId, by: By<'_>) -> Result<(), StoreError> {
        let data = json!({"id": id});
        self.witness("incident.release", by, &data, |store| store.release_quarantine(id, by))
    }
}

impl ApiKeyStore for Witnessed {
    fn add_api_key(&mut self, key: &NewApiKey, by: By<'_>) -> Result<(), StoreError> {
        let data = json!({"key": key.id, "sub": Text(&key.sub), "admin": key.admin});
        self.witness("key.create", by, &data, |store| store.add_api_key(key, by))
    }

    fn api_key(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        if let Some(reason) = self.sealed_incident()?.1.doubt {
            return Err(StoreError::OlderStore { reason });
        }
        self.store.api_key(hash)
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.store.api_keys()
    }

    fn sealed_api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        if let Some(reason) = self.sealed_incident()?.1.doubt {
            return Err(StoreError::OlderStore { reason });
        }
        self.store.sealed_api_keys()
    }

    fn revoke_api_key(&mut self, id: &ApiKeyId, by: By<'_>) -> Result<(), StoreError> {
        self.witness("key.revoke", by, &json!({"key": id}), |store| store.revoke_api_key(id, by))
    }

    fn note_api_key_use(&mut self, id: &ApiKeyId, day: Day) -> Result<(), StoreError> {
        self.store.note_api_key_use(id, day)
    }
}

impl ApprovalStore for Witnessed {
    fn park_call(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.store.park_call(id, call, at, expires_at)
    }

    fn approval(&self, id: &ApprovalId) -> Result<Option<CallApproval>, StoreError> {
        self.store.approval(id)
    }

    fn parked_calls(&self, now: Timestamp) -> Result<Vec<CallApproval>, StoreError> {
        self.store.parked_calls(now)
    }

    fn decide_call(
        &mut self,
        id: &ApprovalId,
        decision: ApprovalDecision,
        by: By<'_>,
    ) -> Result<(), StoreError> {
        self.store.decide_call(id, decision, by)
    }

    fn take_approval(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
    ) -> Result<Taken, StoreError> {
        self.store.take_approval(id, call, at)
    }

    fn use_approval(
        &mut self,
        id: &ApprovalId,
        taken_at: Timestamp,
        now: Timestamp,
    ) -> Result<Spent, StoreError> {
        self.store.use_approval(id, taken_at, now)
    }

    fn grant_count(&self) -> Result<i64, StoreError> {
        self.store.grant_count()
    }

    fn expire_approvals(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        self.store.expire_approvals(now)
    }
}

impl DrillStore for Witnessed {
    fn begin_drill(&mut self, by: By<'_>) -> Result<i64, StoreError> {
        let mut drill = 0;
        self.witness("incident.drill", by, &json!({}), |store| {
            drill = store.begin_drill(by)?;
            Ok(())
        })?;
        Ok(drill)
    }

    fn last_drill(&self) -> Result<i64, StoreError> {
        self.store.last_drill()
    }

    fn note_drill(&mut self, drill: i64, seen_by: &DrillSighting) -> Result<(), StoreError> {
        self.store.note_drill(drill, seen_by)
    }

    fn drill_sightings(&self, drill: i64) -> Result<Vec<DrillSighting>, StoreError> {
        self.store.drill_sightings(drill)
    }
}

impl StatisticsStore for Witnessed {
    fn add_counts(&mut self, counts: &[Count]) -> Result<(), StoreError> {
        self.store.add_counts(counts)
    }

    fn counts(&self, from: Day, to: Day) -> Result<Vec<Count>, StoreError> {
        self.store.counts(from, to)
    }
}

#[cfg(test)]
mod tests;

//! Incident mode and API keys are witnessed as acts on servers are. Approvals of single calls are in those calls'
//! receipts, and counters prove nothing: both are handed on.

use super::{NOBODY, Witnessed, unwitnessed};
use crate::Store;
use crate::api_key::{ApiKey, ApiKeyHash, ApiKeyId, ApiKeyStore, NewApiKey};
use crate::approval::{
    ApprovalDecision, ApprovalId, ApprovalStore, CallApproval, CallBinding, Taken,
};
use crate::by::By;
use crate::error::StoreError;
use crate::incident::{Incident, IncidentScope, IncidentState, IncidentStore, RevokedKind};
use crate::statistics::{Count, Day, StatisticsStore};
use gate::time::Timestamp;
use ledger::record::{Event, Text};
use serde_json::{Value, json};

impl Witnessed {
    /// Does something, and writes its line while nobody else can write one.
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
            members.insert("events".to_owned(), self.newest_event()?.into());
        }
        let person = (by.name != NOBODY).then_some(Text(by.name));
        let event = Event { ts: by.at, name, by: person, server_id: None, data: Some(&data) };
        journal.append(&event).map_err(unwitnessed)?;
        Ok(())
    }

    /// The number of the newest event in the database.
    fn newest_event(&self) -> Result<i64, StoreError> {
        Ok(self.store.events()?.iter().map(|event| event.seq).max().unwrap_or(0))
    }

    /// Refuses to say that there is no incident, or that a key counts, out of a database that is older than the ledger.
    fn check_age(&self) -> Result<(), StoreError> {
        self.look();
        let seen = self.seen.borrow();
        if let Some(fault) = &seen.fault {
            return Err(StoreError::OlderStore { reason: fault.clone() });
        }
        if u64::try_from(self.newest_event()?).unwrap_or(0) < seen.events {
            return Err(StoreError::OlderStore { reason: OLDER_STORE.to_owned() });
        }
        Ok(())
    }
}

const OLDER_STORE: &str = "the ledger has seen newer switches and keys: the database was deleted, or put back from an older copy";

impl IncidentStore for Witnessed {
    fn incident(&self) -> Result<IncidentState, StoreError> {
        self.check_age()?;
        self.store.incident()
    }

    fn begin_incident(&mut self, incident: &Incident, by: By<'_>) -> Result<(), StoreError> {
        let servers = match &incident.scope {
            IncidentScope::All => Value::Null,
            IncidentScope::Servers(servers) => json!(servers),
        };
        let data = json!({"level": incident.level.as_str(), "servers": servers});
        self.witness("incident.on", by, &data, |store| store.begin_incident(incident, by))
    }

    fn end_incident(&mut self, by: By<'_>) -> Result<(), StoreError> {
        self.witness("incident.off", by, &json!({}), |store| store.end_incident(by))
    }

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        self.witness("incident.block_egress", by, &json!({}), |store| store.block_egress(by))
    }

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        self.witness("incident.unblock_egress", by, &json!({}), |store| store.unblock_egress(by))
    }

    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError> {
        // The id of a session is as good as a password, and who revokes a key may have typed the key itself.
        let value_hash = contract::hash::sha256_hex(value.as_bytes());
        let data = json!({"kind": kind.as_str(), "value_sha256": value_hash});
        self.witness("incident.revoke", by, &data, |store| store.revoke(kind, value, by))
    }
}

impl ApiKeyStore for Witnessed {
    fn add_api_key(&mut self, key: &NewApiKey, by: By<'_>) -> Result<(), StoreError> {
        let data = json!({"key": key.id, "sub": Text(&key.sub)});
        self.witness("key.create", by, &data, |store| store.add_api_key(key, by))
    }

    fn api_key(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.check_age()?;
        self.store.api_key(hash)
    }

    fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.store.api_keys()
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

    fn expire_approvals(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        self.store.expire_approvals(now)
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

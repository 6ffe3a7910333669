//! Incident mode: the switches that stop calls for everyone, and revocations.
//!
//! INVARIANT: stopping more needs no consent; stopping less does. An agent with a shell must not be
//! able to release itself.

mod document;

pub use document::IncidentDocument;

use crate::acts::{ActError, Among};
use contract::surface::{EntryId, EntryType};
use gate::server::ServerId;
use ledger::receipt::{Filter, Item, newest};
use std::path::Path;
use store::receipts::DiskFolder;
use store::{
    By, Incident, IncidentLevel, IncidentScope, QuarantineId, RevokedKind, StoppedTool, Store,
};

/// Whether a person agreed to stop less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Given,
    NotAsked,
}

impl Consent {
    fn require(self) -> Result<(), ActError> {
        match self {
            Consent::Given => Ok(()),
            Consent::NotAsked => Err(ActError::NeedsConsent),
        }
    }
}

/// Declares an incident, replacing the current one if there is one.
pub fn begin(
    store: &mut dyn Store,
    incident: &Incident,
    consent: Consent,
    by: By<'_>,
) -> Result<(), ActError> {
    if let IncidentScope::Parts(parts) = &incident.scope {
        parts.servers.iter().try_for_each(|id| need_known(store, id))?;
        parts.tools.iter().try_for_each(|tool| need_known_tool(store, tool))?;
    }
    let before = store.incident()?.incident;
    if before.is_some_and(|(before, _)| !covers(incident, &before)) {
        consent.require()?;
    }
    Ok(store.begin_incident(incident, by)?)
}

/// Ends the current incident, for a reason that is recorded.
pub fn end(
    store: &mut dyn Store,
    reason: &str,
    consent: Consent,
    by: By<'_>,
) -> Result<(), ActError> {
    if store.incident()?.incident.is_none() {
        return Ok(());
    }
    if reason.trim().is_empty() {
        return Err(ActError::NoReason);
    }
    consent.require()?;
    Ok(store.end_incident(reason, by)?)
}

/// Lets a session call again after it tripped an anomaly rule.
pub fn release(
    store: &mut dyn Store,
    id: &QuarantineId,
    consent: Consent,
    by: By<'_>,
) -> Result<(), ActError> {
    if !store.incident()?.quarantines.iter().any(|known| known.id() == *id) {
        return Err(ActError::NotQuarantined(id.clone()));
    }
    consent.require()?;
    Ok(store.release_quarantine(id, by)?)
}

/// Revokes everything that began before now.
pub fn revoke(
    store: &mut dyn Store,
    kind: RevokedKind,
    value: &str,
    by: By<'_>,
) -> Result<(), ActError> {
    if value.is_empty() {
        return Err(ActError::Nameless(kind));
    }
    if kind == RevokedKind::Server {
        need_known(store, &value.parse()?)?;
    }
    Ok(store.revoke(kind, value, by)?)
}

pub fn block_egress(store: &mut dyn Store, by: By<'_>) -> Result<(), ActError> {
    Ok(store.block_egress(by)?)
}

/// Opens egress again.
pub fn unblock_egress(store: &mut dyn Store, consent: Consent, by: By<'_>) -> Result<(), ActError> {
    if store.incident()?.egress_blocked.is_none() {
        return Ok(());
    }
    consent.require()?;
    Ok(store.unblock_egress(by)?)
}

/// Whether a receipt, a history or an event mentions a principal. An unknown principal may be known
/// to another home on the same store, so it can be revoked anyway.
pub fn is_known_principal(
    store: &dyn Store,
    receipts: &Path,
    name: &str,
) -> Result<bool, ActError> {
    if store.events()?.iter().any(|event| event.by == name) {
        return Ok(true);
    }
    for server in store.servers()? {
        if store.history(&server.id)?.iter().any(|event| event.by == name) {
            return Ok(true);
        }
    }
    if !receipts.exists() {
        return Ok(false);
    }
    let filter = Filter { principal: Some(name.to_owned()), ..Filter::default() };
    let is_receipt = |item: &Item| !matches!(item, Item::Event(_));
    let found = newest(&DiskFolder::new(receipts), &filter, &is_receipt, 1);
    Ok(!found.map_err(ActError::Receipts)?.items.is_empty())
}

/// Refuses an unknown server, because a mistyped name would stop nothing.
fn need_known(store: &dyn Store, id: &ServerId) -> Result<(), ActError> {
    match store.server(id)? {
        Some(_) => Ok(()),
        None => Err(ActError::unknown_server(store, id)),
    }
}

/// Like [`need_known`], for a tool: one that was never pinned is mistyped, or known under a name
/// assigned by the gateway.
fn need_known_tool(store: &dyn Store, named: &StoppedTool) -> Result<(), ActError> {
    need_known(store, &named.server)?;
    let entry = EntryId::new(EntryType::Tool, named.tool.as_str());
    if !store.pins_ever(&named.server, &entry)?.is_empty() {
        return Ok(());
    }
    let pins = store.pins(&named.server)?;
    let known = pins.iter().map(|(entry, _)| entry.clone());
    Err(ActError::UnknownEntry {
        server: named.server.clone(),
        key: named.tool.clone(),
        among: Among::Pinned,
        known: known.filter(|entry| entry.entry_type == EntryType::Tool).collect(),
    })
}

/// Whether an incident stops everything that the previous one stops.
fn covers(incident: &Incident, before: &Incident) -> bool {
    let is_lowest = incident.level == IncidentLevel::Low && incident.scope == IncidentScope::All;
    // The lower level denies everything that the higher one denies, and more.
    is_lowest || (incident.scope.covers(&before.scope) && incident.level <= before.level)
}

#[cfg(test)]
mod tests;

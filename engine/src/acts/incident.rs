//! Incident mode: the switches that stop calls for everyone, and what is revoked.
//!
//! INVARIANT: stopping more needs no consent; stopping less does. An agent with a shell must not release itself.

use crate::acts::ActError;
use gate::server::ServerId;
use ledger::receipt::{Filter, Item, newest};
use std::path::Path;
use store::receipts::DiskFolder;
use store::{By, Incident, IncidentScope, RevokedKind, Store};

/// Whether a person agreed that less is stopped.
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

/// Declares an incident, in the place of one that is on.
pub fn begin(
    store: &mut dyn Store,
    incident: &Incident,
    consent: Consent,
    by: By<'_>,
) -> Result<(), ActError> {
    if let IncidentScope::Servers(servers) = &incident.scope {
        servers.iter().try_for_each(|id| need_known(store, id))?;
    }
    let before = store.incident()?.incident;
    if before.is_some_and(|(before, _)| !covers(incident, &before)) {
        consent.require()?;
    }
    Ok(store.begin_incident(incident, by)?)
}

/// Ends the incident that is on.
pub fn end(store: &mut dyn Store, consent: Consent, by: By<'_>) -> Result<(), ActError> {
    if store.incident()?.incident.is_none() {
        return Ok(());
    }
    consent.require()?;
    Ok(store.end_incident(by)?)
}

/// Revokes what began before now.
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

/// Opens the ways out again.
pub fn unblock_egress(store: &mut dyn Store, consent: Consent, by: By<'_>) -> Result<(), ActError> {
    if store.incident()?.egress_blocked.is_none() {
        return Ok(());
    }
    consent.require()?;
    Ok(store.unblock_egress(by)?)
}

/// Whether a receipt, a history or an event names a principal. One that is unknown may be known to a different home on
/// the same store, so it can be revoked all the same.
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

/// A mistyped name would stop nothing.
fn need_known(store: &dyn Store, id: &ServerId) -> Result<(), ActError> {
    match store.server(id)? {
        Some(_) => Ok(()),
        None => Err(ActError::unknown_server(store, id)),
    }
}

/// Whether an incident stops all that the one before stops.
fn covers(incident: &Incident, before: &Incident) -> bool {
    let has_all_servers = match (&incident.scope, &before.scope) {
        (IncidentScope::All, _) => true,
        (IncidentScope::Servers(_), IncidentScope::All) => false,
        (IncidentScope::Servers(servers), IncidentScope::Servers(others)) => {
            servers.is_superset(others)
        }
    };
    // The lower level denies what the higher one does, and more.
    has_all_servers && incident.level <= before.level
}

#[cfg(test)]
mod tests;

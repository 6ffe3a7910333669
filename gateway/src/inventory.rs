//! What the servers of a gateway offer as it is accepted, with what the operator says of each tool. It is read from the
//! configuration and the store, so a gateway need not run.

use contract::surface::{Entry, EntryId, EntryType};
use gate::pins::{EntryPins, PinBook};
use serde_json::{Value, json};
use settings::gateway::{GatewaySettings, Reach, ServerSettings};
use store::{Store, StoreError};

/// Every server that is configured.
pub fn inventory(settings: &GatewaySettings, store: &dyn Store) -> Result<Value, StoreError> {
    let servers: Result<Vec<Value>, StoreError> =
        settings.servers.values().map(|server| inventory_of(server, store)).collect();
    Ok(json!({"servers": servers?}))
}

/// One of them.
pub(crate) fn inventory_of(
    settings: &ServerSettings,
    store: &dyn Store,
) -> Result<Value, StoreError> {
    let snapshot = store.snapshot(&settings.id)?;
    let tools: Vec<Value> = accepted(&snapshot.pins)
        .filter(|(id, ..)| id.entry_type == EntryType::Tool)
        .map(|(id, entry, pins)| tool(settings, id, entry, pins))
        .collect();
    let count = |entry_type: EntryType| {
        accepted(&snapshot.pins).filter(|(id, ..)| id.entry_type == entry_type).count()
    };
    Ok(json!({
        "id": settings.id,
        "status": snapshot.status(),
        "trust": settings.trust.as_str(),
        "risk": settings.risk.as_str(),
        "orgs": settings.orgs,
        "reached_by": match &settings.reach {
            Reach::Command(_) => "command",
            Reach::Url(_) => "url",
        },
        "tools": tools,
        "prompts": count(EntryType::Prompt),
        "resources": count(EntryType::Resource) + count(EntryType::Template),
        "lost": snapshot.pins.lost,
    }))
}

fn accepted(pins: &PinBook) -> impl Iterator<Item = (&EntryId, &Entry, &EntryPins)> {
    let accepted = pins.iter().filter(|(_, pins)| !pins.is_gone());
    accepted.filter_map(|(id, pins)| Some((id, &pins.accepted()?.entry, pins)))
}

fn tool(settings: &ServerSettings, id: &EntryId, entry: &Entry, pins: &EntryPins) -> Value {
    let pin = pins.accepted();
    json!({
        "name": id.key,
        "shown_as": settings.shown_name(&id.key),
        "risk": settings.risk_of(&id.key).as_str(),
        "allowed": settings.may_serve(&id.key),
        "definition_hash": entry.definition_hash(),
        "entry_hash": entry.entry_hash(),
        "basis": pin.map(|pin| pin.basis),
        "at": pin.map(|pin| pin.at),
        "by": pin.map(|pin| pin.by.as_str()),
    })
}

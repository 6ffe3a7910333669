//! The accepted tools of a gateway's servers, with the operator's classification of each. Read from
//! the configuration and the store, so that no gateway has to run.

use contract::surface::{Entry, EntryId, EntryType};
use engine::confinement::{LastStart, RecordFile};
use gate::pins::{EntryPins, PinBook};
use serde_json::{Value, json};
use settings::gateway::{GatewaySettings, Reach, ServerSettings};
use std::path::Path;
use store::{Store, StoreError};

/// The inventory of every configured server.
pub fn inventory(
    settings: &GatewaySettings,
    store: &dyn Store,
    home: &Path,
) -> Result<Value, StoreError> {
    let servers: Result<Vec<Value>, StoreError> =
        settings.servers.values().map(|server| inventory_of(server, store, home)).collect();
    Ok(json!({"servers": servers?}))
}

/// The inventory of one server.
pub(crate) fn inventory_of(
    settings: &ServerSettings,
    store: &dyn Store,
    home: &Path,
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
        "sandbox": sandbox(settings, home),
        "tools": tools,
        "prompts": count(EntryType::Prompt),
        "resources": count(EntryType::Resource) + count(EntryType::Template),
        "lost": snapshot.pins.lost,
    }))
}

/// How a server's program is confined. The level is that of its last start, or `null` if it was
/// never started.
fn sandbox(settings: &ServerSettings, home: &Path) -> Value {
    let Reach::Command(command) = &settings.reach else { return Value::Null };
    let started = RecordFile::of(home, &settings.id).read().started;
    match (&command.sandbox, started) {
        (None, _) => json!({"level": "none", "fs_policy": "none", "net_policy": "none"}),
        (Some(keys), None) => {
            json!({"level": null, "fs_policy": keys.files(), "net_policy": null})
        }
        (Some(_), Some(LastStart { level, files, network, .. })) => {
            json!({"level": level, "fs_policy": files, "net_policy": network})
        }
    }
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

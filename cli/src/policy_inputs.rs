//! The inputs that the gateway's policies are compiled from: its configuration, the policy files,
//! and what was accepted of each server.

use crate::arguments::Options;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::gateway_file;
use crate::target::home_path;
use contract::surface::EntryType;
use gate::pins::Pin;
use gateway::policies::{self, PolicyFiles};
use policy::{Inventory, ServerInventory, ToolInventory};
use settings::gateway::ServerSettings;
use std::path::Path;
use std::sync::Arc;
use store::{Home, IncidentState, IncidentStore, Store, Witnessed};

/// The inputs of [`policy::Policies::compile`].
#[derive(Debug)]
pub(crate) struct PolicyInputs {
    pub(crate) files: Vec<(String, String)>,
    pub(crate) entities: Option<String>,
    pub(crate) inventory: Inventory,
    /// The configured issuer of tokens, if there is exactly one.
    pub(crate) issuer: Option<String>,
}

impl PolicyInputs {
    pub(crate) fn read(config: Option<&Path>, options: &Options) -> Result<Self, Failure> {
        let home_path = home_path(options)?;
        let (settings, folder) = gateway_file::read(&gateway_file::path(&home_path, config))?;
        let PolicyFiles { files, entities } =
            policies::read(&settings.policy).map_err(Failure::usage)?;
        // Error messages name paths as the configuration writes them.
        let named = |(path, text): (String, String)| {
            let name =
                Path::new(&path).strip_prefix(&folder).map(|name| name.display().to_string());
            (name.unwrap_or(path), text)
        };
        let files = files.into_iter().map(named).collect();
        let home = Home::open(&home_path)?;
        let configuration = Configuration::read(&home.config_path())?;
        let location = gateway_file::location(&settings, &configuration)?;
        let store = Witnessed::new(store::open(&home, &location)?, &home);
        let state = store.incident()?;
        let servers = settings.servers.values();
        let servers: Result<Vec<_>, Failure> =
            servers.map(|server| inventory_of(server, &store, &state)).collect();
        let issuer = match settings.auth.issuers.as_slice() {
            [only] => Some(only.issuer.to_string()),
            _ => None,
        };
        Ok(PolicyInputs { files, entities, inventory: Inventory::new(servers?), issuer })
    }
}

/// A server as the operator classified it, together with its pins.
fn inventory_of(
    settings: &ServerSettings,
    store: &Witnessed,
    state: &IncidentState,
) -> Result<Arc<ServerInventory>, Failure> {
    let incident = state.incident.as_ref();
    let incident = incident.is_some_and(|(incident, _)| incident.scope.concerns(&settings.id));
    let mut builder = ServerInventory::builder(settings.id.as_str())
        .trust(settings.trust)
        .risk(settings.risk)
        .incident(incident);
    for org in settings.orgs.iter().flatten() {
        builder = builder.org(org);
    }
    if store.server(&settings.id)?.is_none() {
        return Ok(builder.build());
    }
    let pins = store.pins(&settings.id)?;
    if let Some(lost) = &pins.lost {
        return Err(Failure::held(format!("the pins of `{}` cannot be read: {lost}", settings.id)));
    }
    let present = pins.iter().filter(|(_, pins)| !pins.is_gone());
    let sound = present.filter(|(entry, _)| !pins.tampered.contains_key(entry));
    for pin in sound.filter_map(|(_, pins)| pins.accepted()) {
        builder = add(builder, pin, settings);
    }
    Ok(builder.build())
}

fn add(
    builder: policy::ServerBuilder,
    pin: &Pin,
    settings: &ServerSettings,
) -> policy::ServerBuilder {
    let name = pin.entry.key();
    match pin.entry.entry_type() {
        EntryType::Tool => match pin.entry.document() {
            Ok(document) => {
                let risk = settings.risk_of(name);
                builder.tool(ToolInventory::from_definition(name, risk, document.root()))
            }
            Err(_) => builder,
        },
        EntryType::Prompt => builder.prompt(name),
        EntryType::Resource | EntryType::Template => builder.resource(name),
        EntryType::Instructions | EntryType::Identity | EntryType::Origin => builder,
    }
}

//! What the gateway's policies are compiled from: its configuration, the policy files, and what was accepted of each server.

use crate::arguments::Options;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::gateway_file::{self, read_bounded};
use crate::target::home_path;
use contract::surface::EntryType;
use gate::pins::Pin;
use policy::{Inventory, ServerInventory, ToolInventory};
use settings::gateway::{PolicySettings, ServerSettings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Home, IncidentScope, IncidentState, IncidentStore, Store, Witnessed};

/// The largest policy file.
const MAX_POLICY_BYTES: u64 = 1024 * 1024;
/// The most policy files.
const MAX_POLICY_FILES: usize = 1_000;

/// Everything that [`policy::Policies::compile`] takes.
#[derive(Debug)]
pub(crate) struct PolicyInputs {
    pub(crate) files: Vec<(String, String)>,
    pub(crate) entities: Option<String>,
    pub(crate) inventory: Inventory,
    /// The one configured issuer of tokens.
    pub(crate) issuer: Option<String>,
}

impl PolicyInputs {
    pub(crate) fn read(config: Option<&Path>, options: &Options) -> Result<Self, Failure> {
        let home_path = home_path(options)?;
        let (settings, folder) = gateway_file::read(&gateway_file::path(&home_path, config))?;
        let (files, entities) = read_files(&settings.policy, &folder)?;
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

type NamedTexts = Vec<(String, String)>;

fn read_files(
    settings: &PolicySettings,
    folder: &Path,
) -> Result<(NamedTexts, Option<String>), Failure> {
    let mut files = Vec::new();
    for pattern in &settings.files {
        let found = matching(pattern)?;
        if found.is_empty() {
            return Err(Failure::usage(format!("`policy.files`: no file matches `{pattern}`")));
        }
        for path in found {
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            files.push((name, read_bounded(&path, MAX_POLICY_BYTES)?));
        }
        if files.len() > MAX_POLICY_FILES {
            let sentence = format!("`policy.files`: more than {MAX_POLICY_FILES} files match");
            return Err(Failure::usage(sentence));
        }
    }
    let entities = settings.entities.as_deref();
    let entities = entities.map(|path| read_bounded(path, MAX_POLICY_BYTES)).transpose()?;
    Ok((files, entities))
}

/// The files that match a pattern with one `*` in its last part, in the order of their names.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let path = Path::new(pattern);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((before, after)) = name.split_once('*') else { return Ok(vec![path.to_owned()]) };
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_long = name.len() >= before.len() + after.len();
        if is_long && name.starts_with(before) && name.ends_with(after) && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// A server as the operator classified it, with what is pinned of it.
fn inventory_of(
    settings: &ServerSettings,
    store: &Witnessed,
    state: &IncidentState,
) -> Result<Arc<ServerInventory>, Failure> {
    let incident = state.incident.as_ref().is_some_and(|(incident, _)| match &incident.scope {
        IncidentScope::All => true,
        IncidentScope::Servers(servers) => servers.contains(&settings.id),
    });
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

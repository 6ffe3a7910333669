//! Reads the configuration file, and determines which keys apply to one server.

use crate::error::{ConfigurationError, at_line, explain};
use crate::keys::{Anomaly, Approve, Behavior, Export, Keys, Receipts};
use crate::network::{JudgeKeys, Network};
use gate::server::ServerId;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// The largest configuration file that is read.
pub const MAX_CONFIGURATION_BYTES: u64 = 1024 * 1024;

/// The configuration: the general keys, and those of servers with a table of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    general: Keys,
    servers: BTreeMap<ServerId, Keys>,
}

impl Configuration {
    /// Reads a file. A missing file is an empty configuration.
    pub fn read(path: &Path) -> Result<Configuration, ConfigurationError> {
        let wrong = |problem: String| ConfigurationError { path: path.to_owned(), problem };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Configuration::default());
            }
            Err(error) => return Err(wrong(error.to_string())),
            Ok(found) if found.len() > MAX_CONFIGURATION_BYTES => {
                return Err(wrong(format!("larger than {MAX_CONFIGURATION_BYTES} bytes")));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Configuration::parse(&text).map_err(wrong)
    }

    /// The error describes the problem on one line.
    pub fn parse(text: &str) -> Result<Configuration, String> {
        let syntax = |error: &toml::de::Error| at_line(text, error, error.message());
        let table: Table = text.parse().map_err(|error| syntax(&error))?;
        let document = toml::Deserializer::parse(text).map_err(|error| syntax(&error))?;
        let keys: Keys =
            serde_path_to_error::deserialize(document).map_err(|error| explain(text, &error))?;
        check_general(&keys)?;
        check_preflight(&keys, "")?;
        check_sandbox(&keys, "")?;
        let mut servers = BTreeMap::new();
        for (id, own) in &keys.server {
            check_own(id, own)?;
            let merged = for_server(&table, id);
            let merged = Keys::deserialize(merged).map_err(|error| error.to_string())?;
            if let Err(missing) = merged.admission.bindings() {
                return Err(format!(
                    "`server.{id}`: a package is named by `package`, `version` and `integrity` together: `{missing}` is missing"
                ));
            }
            check_preflight(&merged, &format!("server.{id}."))?;
            check_sandbox(&merged, &format!("server.{id}."))?;
            servers.insert(id.clone(), merged);
        }
        Ok(Configuration { general: keys, servers })
    }

    /// The keys that apply to a server: its own, and the general ones where it has none. Without a
    /// server, the general keys.
    pub fn of(&self, server: Option<&ServerId>) -> &Keys {
        server.and_then(|id| self.servers.get(id)).unwrap_or(&self.general)
    }

    /// The servers that have a table of their own.
    pub fn servers(&self) -> impl Iterator<Item = &ServerId> {
        self.servers.keys()
    }
}

/// The general table, overridden by a server's own table.
fn for_server(table: &Table, id: &ServerId) -> Table {
    let mut merged = table.clone();
    if let Some(Value::Table(mut servers)) = merged.remove("server")
        && let Some(Value::Table(own)) = servers.remove(id.as_str())
    {
        merge(&mut merged, own);
    }
    merged
}

fn merge(general: &mut Table, own: Table) {
    for (key, value) in own {
        match (general.get_mut(&key), value) {
            (Some(Value::Table(general)), Value::Table(own)) => merge(general, own),
            (_, value) => {
                general.insert(key, value);
            }
        }
    }
}

/// Refuses keys at the top level that describe a single server.
fn check_general(keys: &Keys) -> Result<(), String> {
    if let Some(key) = keys.admission.key_of_one_server() {
        return Err(format!("`admission.{key}` is about one server: write it under `server.ID`"));
    }
    if keys.approval.tools.is_some() {
        return Err("`approval.tools` is about one server: write it under `server.ID`".to_owned());
    }
    if keys.behavior != Behavior::default() {
        return Err("`behavior` is about one server: write it under `server.ID`".to_owned());
    }
    if keys.risk.is_some() || !keys.tool_risk.is_empty() {
        let key = if keys.risk.is_some() { "risk" } else { "tool_risk" };
        return Err(format!("`{key}` is about one server: write it under `server.ID`"));
    }
    if let Some(why) = keys.anomaly.mistake() {
        return Err(format!("`anomaly.throttle_to`: {why}"));
    }
    if let Some((key, why)) = keys.network.mistake() {
        return Err(format!("`network.{key}`: {why}"));
    }
    if let Some((key, why)) = keys.judge.mistake() {
        return Err(format!("`judge.{key}`: {why}"));
    }
    for (header, secret) in keys.export.otlp_headers.iter().flatten() {
        let wrong = |error| format!("`export.otlp_headers.{header}`: {error}");
        secret.check_readable().map_err(wrong)?;
    }
    Ok(())
}

fn check_preflight(keys: &Keys, above: &str) -> Result<(), String> {
    match keys.preflight.mistake() {
        Some((key, why)) => Err(format!("`{above}preflight.{key}`: {why}")),
        None => Ok(()),
    }
}

fn check_sandbox(keys: &Keys, above: &str) -> Result<(), String> {
    match keys.sandbox.mistake() {
        Some((key, why)) => Err(format!("`{above}sandbox.{key}`: {why}")),
        None => Ok(()),
    }
}

/// Refuses keys in a server's table that concern all servers.
fn check_own(id: &ServerId, own: &Keys) -> Result<(), String> {
    let of_all = [
        (
            "approve",
            own.approve != Approve::default(),
            "who may approve is the same for all servers",
        ),
        ("anomaly", own.anomaly != Anomaly::default(), "sessions are watched over all servers"),
        ("network", own.network != Network::default(), "all servers share one directory"),
        ("judge", own.judge != JudgeKeys::default(), "all servers share one model"),
        ("store", own.store.is_some(), "all servers are in one store"),
        (
            "receipts",
            own.receipts != Receipts::default(),
            "all receipts of a home are written in one way",
        ),
        ("export", own.export != Export::default(), "all receipts of a home go to one place"),
        ("server", !own.server.is_empty(), "a server has no servers of its own"),
    ];
    if let Some(why) = own.approval.mistake() {
        return Err(format!("`server.{id}.approval.tools`: {why}"));
    }
    match of_all.into_iter().find(|(_, is_set, _)| *is_set) {
        None => Ok(()),
        Some((key, _, reason)) => Err(format!("`server.{id}.{key}`: {reason}")),
    }
}

#[cfg(test)]
mod tests;

//! Applies newer settings to a running gateway: as a whole or not at all. Unchanged servers are not
//! touched, and calls in flight finish.

use crate::identity::Authenticator;
use crate::node::{Node, Servers, StartError};
use crate::policies;
use crate::server::GatewayServer;
use gate::server::ServerId;
use serde_json::json;
use settings::gateway::{GatewaySettings, ServerChanges, ServerSettings};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What a reload changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub servers: ServerChanges,
    /// Keys that changed in the file but only take effect after a restart.
    pub restart_keys: Vec<&'static str>,
    pub has_new_certificate: bool,
}

impl std::fmt::Display for Reloaded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ServerChanges { added, removed, changed } = &self.servers;
        formatter.write_str("the settings and the policies were read again")?;
        for (what, ids) in [("added", added), ("changed", changed), ("removed", removed)] {
            if !ids.is_empty() {
                let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
                write!(formatter, "; {what}: {}", ids.join(", "))?;
            }
        }
        if self.has_new_certificate {
            formatter.write_str("; the certificate was replaced")?;
        }
        if !self.restart_keys.is_empty() {
            let keys: Vec<String> =
                self.restart_keys.iter().map(|key| format!("`{key}`")).collect();
            write!(formatter, "; restart the gateway for {} to count", keys.join(", "))?;
        }
        Ok(())
    }
}

/// What was prepared for newer settings but is not served yet.
struct Prepared {
    servers: Servers,
    opened: Vec<Arc<GatewayServer>>,
    changes: ServerChanges,
}

impl Node {
    /// Applies newer settings. On an error, nothing changes. Blocks while files and the store are
    /// read.
    pub fn reload(&self, newer: GatewaySettings) -> Result<Reloaded, StartError> {
        let _cataloging = self.cataloging.lock().unwrap_or_else(PoisonError::into_inner);
        let running = self.shared.settings();
        let restart_keys = running.restart_keys(&newer);
        let newer = Arc::new(newer.with_restart_keys_of(&running));
        let read = policies::read(&newer.policy)?;
        let authenticator = self.authenticator_for(&running, &newer)?;
        let Prepared { servers, opened, changes } = self.prepare(&running, &newer)?;
        let prepared = self.compile(&servers, &newer, &read).and_then(|made| {
            let has_new_certificate = self.renew_tls()?;
            Ok((made, has_new_certificate))
        });
        let ((catalog, policies), has_new_certificate) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                opened.iter().for_each(|server| server.retire(Duration::ZERO));
                return Err(error);
            }
        };
        let patience = Duration::from_secs(running.front.limits.call_max_seconds);
        self.shared.current.store(newer.clone());
        self.names.rcu(|names| names.with_origins_of(&newer.front));
        if let Some(authenticator) = authenticator {
            self.write_key_uses();
            self.who.store(Arc::new(authenticator));
            self.keys_changed.send_modify(|count| *count = count.wrapping_add(1));
        }
        self.shared.authorizer.written(read.digest());
        self.shared.authorizer.replace(policies);
        let before = self.publish(catalog);
        for id in changes.changed.iter().chain(&changes.removed) {
            if let Some(known) = before.servers.get(id) {
                known.server.retire(patience);
            }
        }
        let reloaded = Reloaded { servers: changes, restart_keys, has_new_certificate };
        let data = json!({"outcome": reloaded.to_string()});
        self.shared.recorder.event("gateway", "gateway.reload", None, &data);
        Ok(reloaded)
    }

    /// A new authenticator, if the settings for authentication changed.
    fn authenticator_for(
        &self,
        running: &GatewaySettings,
        newer: &GatewaySettings,
    ) -> Result<Option<Authenticator>, StartError> {
        if running.auth == newer.auth && running.oauth_proxy == newer.oauth_proxy {
            return Ok(None);
        }
        let authenticator = Authenticator::new(&newer.auth, &newer.front.public_url)?
            .minting(self.shared.minted_tokens(newer));
        authenticator.reload_keys(&self.shared.open_store()?)?;
        Ok(Some(authenticator))
    }

    /// Opens servers that are new or changed.
    fn prepare(
        &self,
        running: &GatewaySettings,
        newer: &GatewaySettings,
    ) -> Result<Prepared, StartError> {
        let now = self.catalog().servers();
        let mut prepared = Prepared {
            servers: Servers::new(),
            opened: Vec::new(),
            changes: running.server_changes(newer),
        };
        for (id, settings) in &newer.servers {
            let same = now.get(id).filter(|_| is_same(running, newer, id, settings));
            let server = match same {
                Some(server) => server.clone(),
                None => match GatewayServer::open(settings.clone(), newer, &self.shared) {
                    Ok(server) => {
                        prepared.opened.push(server.clone());
                        let ServerChanges { added, changed, .. } = &mut prepared.changes;
                        if !added.contains(id) && !changed.contains(id) {
                            changed.push(id.clone());
                        }
                        server
                    }
                    Err(error) => {
                        prepared.opened.iter().for_each(|server| server.retire(Duration::ZERO));
                        return Err(error.into());
                    }
                },
            };
            prepared.servers.insert(id.clone(), server);
        }
        Ok(prepared)
    }

    fn compile(
        &self,
        servers: &Servers,
        newer: &GatewaySettings,
        read: &policies::PolicyFiles,
    ) -> Result<(crate::catalog::Catalog, policy::Policies), StartError> {
        let catalog = Node::catalog_of(servers, newer)?;
        let policies = policies::compile(read, &catalog.inventory())?;
        Ok((catalog, policies))
    }
}

/// Whether a server's effective settings are unchanged: its own table, and settings for all
/// servers.
fn is_same(
    running: &GatewaySettings,
    newer: &GatewaySettings,
    id: &ServerId,
    settings: &ServerSettings,
) -> bool {
    running.servers.get(id).is_some_and(|own| {
        **own == *settings
            && running.engine_keys(own) == newer.engine_keys(settings)
            && running.vault == newer.vault
            && running.age == newer.age
            && running.front.limits.call_timeout_seconds == newer.front.limits.call_timeout_seconds
    })
}

//! The effects of a changed file on a running gateway.

use super::GatewaySettings;
use gate::server::ServerId;
use std::sync::Arc;

/// The servers that a newer file starts, stops or replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChanges {
    pub added: Vec<ServerId>,
    pub removed: Vec<ServerId>,
    pub changed: Vec<ServerId>,
}

impl GatewaySettings {
    /// How the servers of a newer file differ from the current ones.
    pub fn server_changes(&self, newer: &GatewaySettings) -> ServerChanges {
        let mut changes = ServerChanges::default();
        for (id, settings) in &newer.servers {
            match self.servers.get(id) {
                None => changes.added.push(id.clone()),
                Some(own) if Arc::ptr_eq(own, settings) || own == settings => {}
                Some(_) => changes.changed.push(id.clone()),
            }
        }
        let is_gone = |id: &&ServerId| !newer.servers.contains_key(*id);
        changes.removed = self.servers.keys().filter(is_gone).cloned().collect();
        changes
    }

    /// The keys that differ in a newer file but take effect only after a restart.
    pub fn restart_keys(&self, newer: &GatewaySettings) -> Vec<&'static str> {
        let (own, front) = (&self.front, &newer.front);
        let differing = [
            ("gateway.listen", own.listen != front.listen),
            ("gateway.admin_listen", own.admin_listen != front.admin_listen),
            ("gateway.metrics_listen", own.metrics_listen != front.metrics_listen),
            ("gateway.peer_listen", own.peers != front.peers),
            ("gateway.public_url", own.public_url != front.public_url),
            ("gateway.tls", own.transport != front.transport),
            ("gateway.store", self.store != newer.store),
            ("receipts", self.receipts != newer.receipts),
            ("export", self.export != newer.export),
            ("traces", self.traces != newer.traces),
            ("approval.webhook", self.webhook != newer.webhook),
            ("anomaly", self.anomaly != newer.anomaly),
            ("network", self.network != newer.network),
            ("judge", self.judge != newer.judge),
        ];
        differing.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }

    /// These settings, with the running gateway's values for the keys that take effect only after a
    /// restart.
    #[must_use]
    pub fn with_restart_keys_of(self, running: &GatewaySettings) -> GatewaySettings {
        let own = running.front.clone();
        let front = super::FrontSettings {
            limits: self.front.limits,
            allowed_origins: self.front.allowed_origins,
            ..own
        };
        GatewaySettings {
            front,
            store: running.store.clone(),
            receipts: running.receipts.clone(),
            export: running.export.clone(),
            traces: running.traces.clone(),
            webhook: running.webhook.clone(),
            anomaly: running.anomaly.clone(),
            network: running.network.clone(),
            judge: running.judge.clone(),
            ..self
        }
    }
}

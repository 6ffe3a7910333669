//! Shuts down a gateway: calls in flight finish, streams are closed, processes are ended, and
//! everything is recorded and signed.

use crate::node::Node;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The polling interval for open work.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long processes may take to end: they may exit by themselves, are then asked to, and finally
/// killed.
const CHILDREN_PATIENCE: Duration = Duration::from_secs(10);

impl Node {
    /// Shuts down the gateway: accepts nothing new, lets calls in flight finish within `grace`,
    /// then ends and records everything. No server process is left when it returns.
    pub async fn shut_down(self: Arc<Self>, grace: Duration) {
        self.stop.send_replace(true);
        self.sessions.close_streams();
        // A response only counts as delivered once its connection is closed, not when it is written
        // to a buffer.
        let is_busy = || self.flight_count() > 0 || *self.connections.borrow() > 0;
        wait_while(is_busy, grace).await;
        let servers = self.catalog().servers();
        for server in servers.values() {
            server.close().await;
        }
        let has_children = || servers.values().any(|server| server.child_count() > 0);
        wait_while(has_children, CHILDREN_PATIENCE).await;
        let node = self.clone();
        let recorded = tokio::task::spawn_blocking(move || {
            node.write_key_uses();
            node.shared.recorder.finish();
        });
        let _ = recorded.await;
    }
}

async fn wait_while(is_so: impl Fn() -> bool, patience: Duration) {
    let begun = Instant::now();
    while is_so() && begun.elapsed() < patience {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

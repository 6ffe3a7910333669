//! The end of a gateway: calls in flight finish, streams are closed, processes are ended, and everything is recorded and
//! signed.

use crate::node::Node;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked whether everything has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long processes may take to end: they may end by themselves, are asked to, and are killed.
const CHILDREN_PATIENCE: Duration = Duration::from_secs(10);

impl Node {
    /// Ends the gateway: nothing new is accepted, calls in flight may finish within `grace`, then everything is ended and
    /// recorded. No process of a server is left when it returns.
    pub async fn shut_down(self: Arc<Self>, grace: Duration) {
        self.stop.send_replace(true);
        self.sessions.close_streams();
        // An answer counts as given once its connection is closed, not when it is written to a buffer.
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
        tokio::time::sleep(LOOK).await;
    }
}

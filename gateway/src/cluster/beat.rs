//! The thread that reports this node as alive, and reads the state of the others.

use super::{Cluster, Members, lock};
use crate::node::{Node, StartError};
use engine::recorder::now;
use settings::gateway::Reach;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use store::{KnownNode, NodeId, NodeRegistry, StoreError};

/// How often a node reports that it is alive.
const BEAT: Duration = Duration::from_secs(1);
/// After this many reads in a row without a new beat, a node counts as gone.
const GONE_AFTER: u32 = 5;
/// How often to look for processes that have ended.
const SWEEP: Duration = Duration::from_secs(15);

/// A random node id, which no earlier run had.
pub(crate) fn new_id() -> Result<NodeId, getrandom::Error> {
    Ok(NodeId(getrandom::u64()?))
}

/// How many times in a row each node was read without a new beat.
#[derive(Debug, Default)]
struct Watch(HashMap<NodeId, (i64, u32)>);

impl Watch {
    /// Processes a read of the nodes. Returns those to declare gone.
    fn look<'n>(&mut self, own: NodeId, known: &'n [KnownNode]) -> Vec<&'n KnownNode> {
        let live = |node: &&KnownNode| node.gone_at.is_none() && node.id != own;
        self.0.retain(|id, _| known.iter().filter(live).any(|node| node.id == *id));
        let mut silent = Vec::new();
        for node in known.iter().filter(live) {
            let (beat, unchanged) = self.0.entry(node.id).or_insert((node.beat, 0));
            if *beat == node.beat {
                *unchanged += 1;
            } else {
                (*beat, *unchanged) = (node.beat, 0);
            }
            if *unchanged > GONE_AFTER {
                silent.push(node);
            }
        }
        silent
    }
}

impl Members {
    fn of(own: NodeId, known: &[KnownNode]) -> Members {
        let mut members = Members::default();
        for node in known.iter().filter(|node| node.gone_at.is_none()) {
            if node.id != own {
                members.live.insert(node.id, node.address.as_str().into());
            }
        }
        let is_back = |gone: &&KnownNode| {
            known.iter().any(|node| node.gone_at.is_none() && node.address == gone.address)
        };
        let gone = known.iter().filter(|node| node.gone_at.is_some() && !is_back(node));
        members.gone = gone.map(|node| node.address.as_str().into()).collect();
        members.gone.dedup();
        members
    }
}

impl Node {
    /// Joins the cluster, with the configured address or else the one that this node listens on.
    pub(crate) fn join_cluster(self: &Arc<Self>, listening: SocketAddr) -> Result<(), StartError> {
        let Some(cluster) = self.cluster.clone() else { return Ok(()) };
        let settings = self.shared.settings();
        let address = match settings.front.peers.as_ref().and_then(|peers| peers.address.as_ref()) {
            None => listening.to_string(),
            Some(named) => named
                .read(|name| std::env::var(name).ok())
                .map_err(|problem| StartError::Peers(problem.to_string()))?,
        };
        let _ = cluster.address.set(address.clone());
        let registry = self.shared.open_registry()?;
        registry.join(cluster.id(), &address, now())?;
        cluster.update_members(&registry.beat(cluster.id())?);
        let node = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("nodes".to_owned())
            .spawn(move || follow(&node, &cluster, &registry, &address))
            .map_err(|error| StartError::Peers(error.to_string()))?;
        Ok(())
    }

    /// Ends every process of callers: the other nodes consider this one gone, and start their own.
    fn end_instances(&self) {
        for known in self.catalog().servers.values() {
            if matches!(known.server.settings.reach, Reach::Command(_)) {
                known.server.end_links();
            }
        }
    }
}

fn follow(node: &Weak<Node>, cluster: &Cluster, registry: &NodeRegistry, address: &str) {
    let mut watch = Watch::default();
    let mut swept = Instant::now();
    loop {
        let begun = Instant::now();
        let Some(strong) = node.upgrade() else { return };
        if *strong.stop.borrow() {
            let _ = registry.leave(cluster.id(), now());
            return;
        }
        // If the database does not answer, nothing is concluded about any node.
        let _ = cluster.beat(&strong, registry, &mut watch, address);
        if swept.elapsed() > SWEEP {
            let catalog = strong.catalog();
            let running: HashMap<_, _> = catalog
                .servers
                .iter()
                .map(|(id, known)| (id, known.server.link_owners()))
                .collect();
            cluster.sweep(|server, principal| {
                running.get(server).is_some_and(|owners| owners.contains(principal))
            });
            swept = Instant::now();
        }
        drop(strong);
        while begun.elapsed() < BEAT {
            std::thread::sleep(Duration::from_millis(50));
            // Leave at once when this node shuts down.
            if node.upgrade().is_none_or(|node| *node.stop.borrow()) {
                break;
            }
        }
    }
}

impl Cluster {
    fn beat(
        &self,
        node: &Arc<Node>,
        registry: &NodeRegistry,
        watch: &mut Watch,
        address: &str,
    ) -> Result<(), StoreError> {
        let own = self.id();
        let mut known = registry.beat(own)?;
        if !known.iter().any(|one| one.id == own && one.gone_at.is_none()) {
            node.remark(
                "the other nodes took this one for gone: it joins again, and its sessions and processes end",
            );
            let Ok(id) = new_id() else { return Ok(()) };
            // INVARIANT: the processes of the old id are told to end before anything is owned under
            // the new one.
            lock(&self.owned).clear();
            node.end_instances();
            registry.join(id, address, now())?;
            self.id.store(id.0, Ordering::Release);
            node.sessions.set_node(id);
            known = registry.beat(id)?;
        }
        for silent in watch.look(self.id(), &known) {
            registry.declare_gone(silent, now())?;
            node.remark(&format!("the node at `{}` is gone", silent.address));
        }
        self.update_members(&known);
        Ok(())
    }

    pub(super) fn update_members(&self, known: &[KnownNode]) {
        let members = Members::of(self.id(), known);
        self.client.keep_only(|id| members.live.contains_key(&id));
        self.members.store(Arc::new(members));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::time::Timestamp;

    fn node(id: u64, beat: i64) -> KnownNode {
        KnownNode { id: NodeId(id), address: format!("10.0.0.{id}:8422"), beat, gone_at: None }
    }

    #[test]
    fn a_node_is_gone_after_it_was_found_silent_so_often() {
        let (own, mut watch) = (NodeId(1), Watch::default());
        for beat in 0..20 {
            let known = [node(1, 1), node(2, beat)];
            assert!(watch.look(own, &known).is_empty(), "this node and one that beats");
        }
        let known = [node(1, 1), node(2, 19)];
        for _ in 0..GONE_AFTER {
            assert!(watch.look(own, &known).is_empty());
        }
        assert_eq!(watch.look(own, &known), [&known[1]]);
        // A single new beat resets the count.
        let known = [node(1, 1), node(2, 20)];
        assert!(watch.look(own, &known).is_empty());
    }

    #[test]
    fn an_address_is_missing_until_a_node_is_back_there() {
        let gone = KnownNode { gone_at: Some(Timestamp(1)), ..node(2, 7) };
        let members = Members::of(NodeId(1), &[node(1, 1), gone.clone(), node(3, 1)]);
        assert_eq!(members.live.keys().copied().collect::<Vec<_>>(), [NodeId(3)]);
        assert_eq!(members.gone, [Arc::from("10.0.0.2:8422")]);
        let back = KnownNode { address: gone.address.clone(), ..node(4, 1) };
        assert!(Members::of(NodeId(1), &[gone, back]).gone.is_empty());
    }
}

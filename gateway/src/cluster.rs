//! The nodes that share a database and a cluster key, as seen by this one: which are alive, and
//! which one runs a server's process for a caller.

mod beat;

pub(crate) use beat::new_id;

use crate::peer::told::Told;
use crate::peer::{PeerClient, PeerTls};
use crate::sessions::PrincipalId;
use arc_swap::ArcSwap;
use gate::server::ServerId;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::{InstanceKey, NodeId, NodeRegistry, StoreError};
use tokio::sync::mpsc;

/// How long to cache which other node runs a process. That node notices itself if it no longer
/// does.
const OWNER_CACHE: Duration = Duration::from_secs(30);
/// The most processes of other nodes that are cached.
const MAX_CACHED_OWNERS: usize = 100_000;
/// How long a claimed process may take to appear: longer than a server may take to start.
const CLAIM_GRACE: Duration = Duration::from_secs(90);

/// The minimum time between two lookups of unknown nodes in the database.
const LOOKUP_PAUSE: Duration = Duration::from_millis(200);

/// The other nodes, as last read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// The live nodes and their addresses.
    pub(crate) live: BTreeMap<NodeId, Arc<str>>,
    /// The addresses of nodes that are gone and did not return.
    pub(crate) gone: Vec<Arc<str>>,
}

/// The state of the cluster on this node.
pub(crate) struct Cluster {
    id: AtomicU64,
    /// The address of this node for the others, once it has joined.
    address: OnceLock<String>,
    pub(crate) tls: PeerTls,
    pub(crate) client: PeerClient,
    members: ArcSwap<Members>,
    registry: Mutex<NodeRegistry>,
    /// The processes that this node runs or is about to start, and when each was last used.
    owned: Mutex<HashMap<InstanceKey, OwnedInstance>>,
    /// The processes of other nodes, and when that was read.
    elsewhere: Mutex<HashMap<InstanceKey, (NodeId, Instant)>>,
    /// When an unknown node was last looked up.
    looked: tokio::sync::Mutex<Option<Instant>>,
    /// The number of requests forwarded to other nodes.
    pub(crate) relayed: AtomicU64,
    /// Queues server messages outside of a call, for callers on other nodes.
    pub(crate) telling: OnceLock<mpsc::Sender<Told>>,
    /// The number of those messages that did not reach a node.
    pub(crate) untold: AtomicU64,
}

#[derive(Debug, Clone)]
struct OwnedInstance {
    server: ServerId,
    principal: PrincipalId,
    asked_at: Instant,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(id: NodeId, tls: PeerTls, registry: NodeRegistry) -> Cluster {
        Cluster {
            id: AtomicU64::new(id.0),
            address: OnceLock::new(),
            client: PeerClient::new(&tls),
            tls,
            members: ArcSwap::default(),
            registry: Mutex::new(registry),
            owned: Mutex::default(),
            elsewhere: Mutex::default(),
            looked: tokio::sync::Mutex::default(),
            relayed: AtomicU64::new(0),
            telling: OnceLock::new(),
            untold: AtomicU64::new(0),
        }
    }

    /// This node's id. It changes if the other nodes declare this one gone.
    pub(crate) fn id(&self) -> NodeId {
        NodeId(self.id.load(Ordering::Acquire))
    }

    pub(crate) fn own_address(&self) -> Option<String> {
        self.address.get().cloned()
    }

    pub(crate) fn members(&self) -> Arc<Members> {
        self.members.load_full()
    }

    /// The address of a node; `None` if it is gone.
    pub(crate) fn address_of(&self, node: NodeId) -> Option<Arc<str>> {
        self.members.load().live.get(&node).cloned()
    }

    /// Like [`Cluster::address_of`], for a node that may have just joined. Limits database lookups
    /// to a few per second, however many requests name nodes that are gone.
    pub(crate) async fn find(self: &Arc<Self>, node: NodeId) -> Option<Arc<str>> {
        if let Some(address) = self.address_of(node) {
            return Some(address);
        }
        let mut looked = self.looked.lock().await;
        let is_due = looked.is_none_or(|at| at.elapsed() > LOOKUP_PAUSE);
        if is_due && self.address_of(node).is_none() {
            let cluster = self.clone();
            let reading = tokio::task::spawn_blocking(move || {
                let known = lock(&cluster.registry).nodes();
                if let Ok(known) = known {
                    cluster.update_members(&known);
                }
            });
            let _ = reading.await;
            *looked = Some(Instant::now());
        }
        self.address_of(node)
    }

    /// The node that runs a server's process for a caller: this one, unless another node already
    /// does. Blocks if the answer is not cached.
    pub(crate) fn owner(
        &self,
        server: &ServerId,
        principal: &PrincipalId,
    ) -> Result<NodeId, StoreError> {
        if let Some(known) = self.known_owner(server, principal) {
            return Ok(known);
        }
        let key = instance_key(server, principal);
        let registry = lock(&self.registry);
        let own = self.id();
        let owner = registry.claim(&key, own)?;
        // INVARIANT: recorded before the registry is released, so that a sweep cannot give the
        // process up in between.
        if owner == own {
            let asked_at = Instant::now();
            let owned = OwnedInstance { server: server.clone(), principal: *principal, asked_at };
            lock(&self.owned).insert(key, owned);
        } else {
            let mut elsewhere = lock(&self.elsewhere);
            if elsewhere.len() >= MAX_CACHED_OWNERS {
                elsewhere.clear();
            }
            elsewhere.insert(key, (owner, Instant::now()));
        }
        Ok(owner)
    }

    /// Like [`Cluster::owner`], but only from the cache.
    pub(crate) fn known_owner(&self, server: &ServerId, principal: &PrincipalId) -> Option<NodeId> {
        let key = instance_key(server, principal);
        if let Some(owned) = lock(&self.owned).get_mut(&key) {
            owned.asked_at = Instant::now();
            return Some(self.id());
        }
        let (owner, heard) = lock(&self.elsewhere).get(&key).copied()?;
        let counts = heard.elapsed() < OWNER_CACHE && self.address_of(owner).is_some();
        counts.then_some(owner)
    }

    /// Forgets that a node runs a process, after it turned out not to.
    pub(crate) fn forget_owner(&self, server: &ServerId, principal: &PrincipalId) {
        lock(&self.elsewhere).remove(&instance_key(server, principal));
    }

    /// Releases processes that have ended. Blocks.
    pub(crate) fn sweep(&self, runs: impl Fn(&ServerId, &PrincipalId) -> bool) {
        let registry = lock(&self.registry);
        let over: Vec<InstanceKey> = lock(&self.owned)
            .iter()
            .filter(|(_, owned)| owned.asked_at.elapsed() > CLAIM_GRACE)
            .filter(|(_, owned)| !runs(&owned.server, &owned.principal))
            .map(|(key, _)| *key)
            .collect();
        // INVARIANT: a process is removed here before it is released for other nodes. A request in
        // between claims it again, after the release.
        let given_up: Vec<_> = {
            let mut owned = lock(&self.owned);
            over.iter().filter_map(|key| Some((*key, owned.remove(key)?))).collect()
        };
        if !over.is_empty() && registry.release(&over, self.id()).is_err() {
            // The next sweep tries again.
            lock(&self.owned).extend(given_up);
        }
    }
}

fn instance_key(server: &ServerId, principal: &PrincipalId) -> InstanceKey {
    let mut hash = Sha256::new();
    hash.update((server.as_str().len() as u64).to_be_bytes());
    hash.update(server.as_str().as_bytes());
    hash.update(principal);
    InstanceKey(hash.finalize().into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The store, the ledger, the policies and the keys that every part of a gateway uses.

use crate::approvals::Approvals;
use crate::authorizer::PolicyAuthorizer;
use crate::node::StartError;
use crate::sealed::Sealer;
use arc_swap::ArcSwap;
use engine::credentials::{BadVault, SecretReader, Vault};
use engine::lease::Lease;
use engine::recorder::Recorder;
use gate::by_the_call::input::InputRulesCache;
use settings::gateway::{GatewaySettings, VaultSettings};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Home, LaunchKey, Location, NodeRegistry, StoreError, Witnessed};

/// Takes a sentence for the person who runs the gateway.
pub type Remark = dyn Fn(&str) + Send + Sync;

/// What every part of a gateway shares.
pub(crate) struct Shared {
    /// What counts now; a reload replaces it as a whole.
    pub(crate) current: ArcSwap<GatewaySettings>,
    pub(crate) home: Home,
    pub(crate) location: Location,
    /// Where several nodes share a database.
    pub(crate) lease: Option<Lease>,
    pub(crate) launch_key: LaunchKey,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) authorizer: Arc<PolicyAuthorizer>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) sealer: Arc<Sealer>,
    /// What the definitions of all servers' tools were compiled to.
    pub(crate) input_rules: InputRulesCache,
    pub(crate) remark: Arc<Remark>,
    /// The Vault that servers use, with the settings that it was made with.
    pub(crate) vault: Mutex<Option<(VaultSettings, Arc<Vault>)>>,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Shared {
    /// The settings that count now.
    pub(crate) fn settings(&self) -> Arc<GatewaySettings> {
        self.current.load_full()
    }

    /// Reads secrets where these settings say. Servers with the same Vault share what signing in there gave.
    pub(crate) fn secrets(&self, settings: &GatewaySettings) -> Result<SecretReader, BadVault> {
        let Some(wanted) = &settings.vault else { return Ok(SecretReader::default()) };
        let mut known = self.vault.lock().unwrap_or_else(PoisonError::into_inner);
        let vault = match &*known {
            Some((settings, vault)) if settings == wanted => vault.clone(),
            Some(_) | None => {
                let vault = Arc::new(Vault::open(wanted)?);
                *known = Some((wanted.clone(), vault.clone()));
                vault
            }
        };
        Ok(SecretReader::new(Some(vault)))
    }

    /// The nodes that share the store. Fails where it is a file, which one node has alone.
    pub(crate) fn open_registry(&self) -> Result<NodeRegistry, StartError> {
        match &self.location {
            Location::Postgres(address) => Ok(NodeRegistry::open(&self.home, address)?),
            Location::Sqlite | Location::SqliteIn(_) => Err(StartError::Peers(
                "`gateway.peer_listen` is for nodes that share a store: set `gateway.store` to PostgreSQL, or remove it"
                    .to_owned(),
            )),
        }
    }

    /// A connection to the store of its own.
    pub(crate) fn open_store(&self) -> Result<Witnessed, StoreError> {
        Ok(Witnessed::new(store::open(&self.home, &self.location)?, &self.home))
    }
}

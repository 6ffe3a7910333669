//! The resources that all parts of a gateway share: the store, the ledger, the policies and the
//! keys.

use crate::approvals::Approvals;
use crate::authorizer::PolicyAuthorizer;
use crate::identity::MintedTokens;
use crate::node::StartError;
use crate::rates::Rates;
use crate::sealed::Sealer;
use crate::sign_in::SignIns;
use arc_swap::{ArcSwap, Guard};
use engine::anomaly::Anomalies;
use engine::credentials::{BadVault, SecretReader, Vault};
use engine::egress_block::EgressBlock;
use engine::lease::Lease;
use engine::recorder::Recorder;
use engine::upper_tiers::UpperTiers;
use gate::by_the_call::input::InputRulesCache;
use sandbox::EgressSwitch;
use settings::gateway::{GatewaySettings, VaultSettings};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Home, LaunchKey, Location, NodeRegistry, RateCounts, StoreError, Witnessed};
use tokio::sync::watch;

/// Receives messages for the gateway's operator.
pub type Remark = dyn Fn(&str) + Send + Sync;

/// Shared by all parts of a gateway.
pub(crate) struct Shared {
    /// The current settings; a reload replaces them as a whole.
    pub(crate) current: ArcSwap<GatewaySettings>,
    pub(crate) home: Home,
    pub(crate) location: Location,
    /// Set if several nodes share a database.
    pub(crate) lease: Option<Lease>,
    pub(crate) launch_key: LaunchKey,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) authorizer: Arc<PolicyAuthorizer>,
    pub(crate) approvals: Arc<Approvals>,
    /// Detects anomalous sessions, if rules are configured.
    pub(crate) anomalies: Option<Arc<Anomalies>>,
    /// Whether `incident block-egress` has closed all egress proxies.
    pub(crate) egress: Arc<EgressBlock>,
    pub(crate) sealer: Arc<Sealer>,
    /// The records of people's sign-ins.
    pub(crate) sign_ins: Arc<SignIns>,
    /// The compiled input schemas of all servers' tools.
    pub(crate) input_rules: InputRulesCache,
    pub(crate) rates: Arc<Rates>,
    pub(crate) remark: Arc<Remark>,
    /// The Vault that servers use, with the settings it was opened with.
    pub(crate) vault: Mutex<Option<(VaultSettings, Arc<Vault>)>>,
    /// Cuts confined servers off from the network. Follows `egress`.
    pub(crate) egress_switch: EgressSwitch,
    pub(crate) runtime: tokio::runtime::Handle,
    /// The network and model that are asked about changes, if the operator named them.
    pub(crate) upper: UpperTiers,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Shared {
    /// The current settings.
    pub(crate) fn settings(&self) -> Arc<GatewaySettings> {
        self.current.load_full()
    }

    /// The current settings for a single read. Unlike a clone it does not count a reference, which
    /// all calls would do at the same address.
    pub(crate) fn glance(&self) -> Guard<Arc<GatewaySettings>> {
        self.current.load()
    }

    /// A reader for the secrets in these settings. Servers with the same Vault share its session.
    pub(crate) fn secrets(&self, settings: &GatewaySettings) -> Result<SecretReader, BadVault> {
        let reader = SecretReader::default().opening_with(settings.age.clone());
        let Some(wanted) = &settings.vault else { return Ok(reader) };
        let mut known = self.vault.lock().unwrap_or_else(PoisonError::into_inner);
        let vault = match &*known {
            Some((settings, vault)) if settings == wanted => vault.clone(),
            Some(_) | None => {
                let vault = Arc::new(Vault::open(wanted)?);
                *known = Some((wanted.clone(), vault.clone()));
                vault
            }
        };
        Ok(reader.with_vault(vault))
    }

    /// Reads tokens that the gateway issued, if it issues any.
    pub(crate) fn minted_tokens(&self, settings: &GatewaySettings) -> Option<MintedTokens> {
        let issuer = settings.oauth_proxy.as_ref()?.issuer.clone();
        Some(MintedTokens { sealer: self.sealer.clone(), issuer })
    }

    /// The nodes that share the store. Fails for a SQLite file, which only one node can use.
    pub(crate) fn open_registry(&self) -> Result<NodeRegistry, StartError> {
        match &self.location {
            Location::Postgres(address) => Ok(NodeRegistry::open(&self.home, address)?),
            Location::Sqlite | Location::SqliteIn(_) => Err(StartError::Peers(
                "`gateway.peer_listen` is for nodes that share a store: set `gateway.store` to PostgreSQL, or remove it"
                    .to_owned(),
            )),
        }
    }

    /// Shares rate limits with the other nodes on the store, until the gateway shuts down.
    pub(crate) fn share_rates(&self, stop: watch::Receiver<bool>) -> Result<(), StartError> {
        let (Location::Postgres(address), Some(lease)) = (&self.location, &self.lease) else {
            return Ok(());
        };
        let counts = RateCounts::open(&self.home, address)?;
        let following = self.rates.follow(counts, lease.clone(), stop);
        following.map_err(|source| StoreError::NotFollowed { source }.into())
    }

    /// Opens a separate connection to the store.
    pub(crate) fn open_store(&self) -> Result<Witnessed, StoreError> {
        Ok(Witnessed::new(store::open(&self.home, &self.location)?, &self.home))
    }
}

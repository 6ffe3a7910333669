//! One gateway process: its servers, its catalog, its sessions, and how it starts, follows the
//! store and shuts down.

use crate::approvals::{ApprovalTimes, Approvals};
use crate::asking::Questions;
use crate::authorizer::PolicyAuthorizer;
use crate::call_slots::CallSlots;
use crate::catalog::{Catalog, CatalogServer};
use crate::cluster::{self, Cluster};
use crate::cluster_key;
use crate::counts::Counts;
use crate::flight::{FlightKey, Flights, InFlight};
use crate::front::TlsFront;
use crate::front_checks::FrontNames;
use crate::identity::{Authenticator, IssuerError};
use crate::incident;
use crate::link::{Ending, Surroundings};
use crate::mcp::Visit;
use crate::mcp::watch::Watches;
use crate::peer::PeerTls;
use crate::policies::{self, PolicyFilesError};
use crate::rates::Rates;
use crate::recent::Recent;
use crate::recheck::Rechecks;
use crate::replay::Replays;
use crate::resources::{Remark, Shared};
use crate::sealed::{SealError, Sealer};
use crate::server::{GatewayServer, ServerError};
use crate::sessions::Sessions;
use crate::sign_in::SignIns;
use crate::strangers::Strangers;
use crate::traces::Tracer;
use crate::webhook::Webhook;
use arc_swap::ArcSwap;
use contract::surface::ListKind;
use contract::time::Timestamp;
use engine::admission::Admittance;
use engine::anomaly::Anomalies;
use engine::credentials::Needles;
use engine::export::{Otlp, add_header, do_not_track};
use engine::lease::Lease;
use engine::recorder::{Recorder, now};
use engine::server::Unlinked;
use engine::situation::{ServerProfile, Situation, Switches};
use engine::upper_tiers::Access;
use gate::by_the_call::input::InputRulesCache;
use gate::server::{ServerId, ServerStatus};
use gate::view::View;
use settings::gateway::{GatewaySettings, ServerSettings, StoreLoss};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::receipts::{Receipts, ReceiptsError, Settings as ReceiptSettings};
use store::{Home, IncidentState, Location, LocationError, NodeId, Store, StoreError, Witnessed};
use tokio::sync::{Semaphore, watch};

/// The server id in receipts of requests that the gateway itself answers.
const OWN_ID: &str = "gateway";

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the store: {0}")]
    Location(#[from] LocationError),
    #[error("the store: {0}")]
    Store(#[from] StoreError),
    #[error("the receipts: {0}")]
    Receipts(#[from] ReceiptsError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Policies(#[from] PolicyFilesError),
    #[error("the key of the home: {0}")]
    Key(String),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    #[error("`{0}` cannot be listened on: {1}")]
    Listen(std::net::SocketAddr, std::io::Error),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Webhook(String),
    #[error("`traces.otlp`: {0}")]
    Traces(String),
    #[error("{0}")]
    Peers(String),
}

impl From<SealError> for StartError {
    fn from(error: SealError) -> StartError {
        StartError::Key(error.to_string())
    }
}

/// The servers of a gateway.
pub(crate) type Servers = BTreeMap<ServerId, Arc<GatewayServer>>;

/// One gateway process.
pub struct Node {
    pub(crate) shared: Shared,
    catalog: ArcSwap<Catalog>,
    /// Held while a catalog is built, so that an older one never replaces a newer one.
    pub(crate) cataloging: Mutex<()>,
    pub(crate) sessions: Sessions,
    /// The situation that requests are recorded with if the gateway itself answers them.
    own_situation: ArcSwap<Situation>,
    /// The state of incident mode, as last read from the store.
    pub(crate) incident: ArcSwap<IncidentState>,
    /// The last drill that was reported.
    pub(crate) drilled: AtomicI64,
    pub(crate) id: NodeId,
    pub(crate) who: ArcSwap<Authenticator>,
    /// The host names that requests may be sent to.
    pub(crate) names: ArcSwap<FrontNames>,
    pub(crate) strangers: Strangers,
    /// The search patterns for messages to servers, by the caller's credential.
    pub(crate) needles: Recent<Needles>,
    /// The open questions of servers to clients.
    pub(crate) questions: Questions,
    /// The subscriptions of sessions at servers without sessions.
    pub(crate) watches: Watches,
    /// Streams that clients may resume.
    pub(crate) replays: Replays,
    /// Set if the gateway terminates TLS itself.
    pub(crate) tls: Option<TlsFront>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) started_at: Timestamp,
    /// Limits how many readings of the ledger run at once.
    pub(crate) ledger_readers: Semaphore,
    pub(crate) call_slots: Arc<CallSlots>,
    pub(crate) rechecks: Rechecks,
    /// Exports spans, if the configuration names a collector.
    pub(crate) tracer: Option<Arc<Tracer>>,
    in_flight: Flights,
    /// Counts changes of the valid callers.
    pub(crate) keys_changed: watch::Sender<u64>,
    pub(crate) stop: watch::Sender<bool>,
    /// The number of open connections of callers.
    pub(crate) connections: watch::Sender<usize>,
    /// The other nodes, if `peer_listen` is configured.
    pub(crate) cluster: Option<Arc<Cluster>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Node").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Node {
    /// Opens the store, the receipts and the servers. Starts or contacts no server, and listens on
    /// no address.
    pub fn open(
        settings: Arc<GatewaySettings>,
        home: Home,
        receipts: ReceiptSettings,
        remark: Arc<Remark>,
        runtime: tokio::runtime::Handle,
    ) -> Result<Arc<Node>, StartError> {
        let location = Location::parse(settings.store.as_deref().unwrap_or("sqlite"))?;
        let mut store = Witnessed::new(store::open(&home, &location)?, &home);
        let launch_key = store.launch_key(true)?;
        let lease = match &location {
            Location::Postgres(_) => {
                let grace = match settings.store_loss {
                    StoreLoss::Refuse => Duration::ZERO,
                    StoreLoss::Continue { seconds } => Duration::from_secs(seconds.into()),
                };
                Some(Lease::of(store::open(&home, &location)?)?.outlasting(grace))
            }
            Location::Sqlite | Location::SqliteIn(_) => None,
        };
        let secret = cluster_key::read_or_create(&home.keys_path())
            .map_err(|error| StartError::Key(error.to_string()))?;
        let counts = Arc::new(Counts::default());
        let recorder = Recorder::new(Receipts::open(&home, receipts)?);
        let rules = settings.anomaly.rules();
        let anomalies = rules.map(|rules| {
            Anomalies::new(rules, incident::hand_over(&home, &location, &remark, &runtime))
        });
        let recorder = recorder.watched_by(counts.clone()).signalling(anomalies.clone());
        let recorder = Arc::new(recorder);
        let read = policies::read(&settings.policy)?;
        let empty = policies::compile(&read, &Catalog::default().inventory())?;
        let authorizer = Arc::new(PolicyAuthorizer::new(empty));
        authorizer.written(read.digest());
        let limits = &settings.front.limits;
        let times = ApprovalTimes {
            wait: Duration::from_secs(limits.approval_wait_seconds),
            ttl: Duration::from_secs(limits.approval_ttl_seconds),
        };
        let sealer = Arc::new(Sealer::of(&secret)?);
        let webhook = settings.webhook.as_ref().map(|webhook| {
            let public_url = settings.front.public_url.as_str();
            Webhook::open(webhook, public_url, sealer.clone(), remark.clone(), &runtime)
        });
        let approvals = Approvals::new(
            store::open(&home, &location)?,
            &secret,
            times,
            authorizer.clone(),
            recorder.clone(),
            runtime.clone(),
        );
        let webhook =
            webhook.transpose().map_err(|error| StartError::Webhook(error.to_string()))?;
        let approvals = approvals.notifying(webhook);
        let rates = match lease {
            Some(_) => Rates::shared(),
            None => Rates::default(),
        };
        let sign_ins = Arc::new(SignIns::new(&home, &location, sealer.clone()));
        let read_key = |name: &settings::SecretName| name.read(|name| std::env::var(name).ok());
        let access = Access::here(&settings.network, &settings.judge, home.path(), &read_key);
        let upper = access.start(home.path(), store.journal().folder(), &|words| remark(words));
        let shared = Shared {
            current: ArcSwap::new(settings),
            home,
            location,
            lease,
            launch_key,
            recorder,
            authorizer,
            approvals: Arc::new(approvals),
            anomalies,
            egress: Arc::default(),
            sealer,
            sign_ins,
            input_rules: InputRulesCache::default(),
            rates: Arc::new(rates),
            remark,
            vault: std::sync::Mutex::default(),
            egress_switch: sandbox::EgressSwitch::default(),
            runtime,
            upper,
        };
        let switch = shared.egress_switch.clone();
        shared.egress.tell(Box::new(move |is_closed| match is_closed {
            true => switch.close(),
            false => switch.open(),
        }));
        let settings = shared.settings();
        let servers: Result<Servers, ServerError> = settings
            .servers
            .iter()
            .map(|(id, own)| {
                Ok((id.clone(), GatewayServer::open(own.clone(), &settings, &shared)?))
            })
            .collect();
        let own_situation = Situation {
            server: OWN_ID.parse().map_err(|_| StartError::Key(OWN_ID.to_owned()))?,
            profile: ServerProfile::default(),
            settings: gate::posture::Settings::default(),
            switches: Switches::default(),
            admission: Admittance::NotAsked,
            view: Arc::new(View::default()),
            mirrorings: Arc::default(),
        };
        let front = &settings.front;
        let authenticator = Authenticator::new(&settings.auth, &front.public_url)?
            .minting(shared.minted_tokens(&settings));
        let names = ArcSwap::from_pointee(FrontNames::new(front, front.listen));
        let tls =
            TlsFront::open(&front.transport).map_err(|error| StartError::Tls(error.to_string()))?;
        let tracer = tracer_of(&settings, &shared)?;
        let id = cluster::new_id().map_err(|error| StartError::Key(error.to_string()))?;
        let cluster = match &front.peers {
            Some(_) => {
                let tls =
                    PeerTls::of(&secret).map_err(|error| StartError::Key(error.to_string()))?;
                Some(Arc::new(Cluster::new(id, tls, shared.open_registry()?)))
            }
            None => None,
        };
        let node = Arc::new(Node {
            shared,
            catalog: ArcSwap::from_pointee(Catalog::default()),
            cataloging: Mutex::default(),
            sessions: Sessions::new(id),
            own_situation: ArcSwap::from_pointee(own_situation),
            incident: ArcSwap::default(),
            drilled: AtomicI64::new(0),
            id,
            who: ArcSwap::from_pointee(authenticator),
            names,
            strangers: Strangers::default(),
            needles: Recent::default(),
            questions: Questions::default(),
            watches: Watches::default(),
            replays: Replays::default(),
            tls,
            counts,
            started_at: now(),
            ledger_readers: Semaphore::new(1),
            call_slots: Arc::default(),
            rechecks: Rechecks::default(),
            tracer,
            in_flight: Flights::default(),
            keys_changed: watch::Sender::new(0),
            stop: watch::Sender::new(false),
            connections: watch::Sender::new(0),
            cluster,
        });
        node.take_keys(&store)?;
        drop(node.publish(Node::catalog_of(&servers?, &settings)?));
        // Compile all policies against what the servers offer: mistakes are found before anything
        // is served.
        let inventory = node.catalog().inventory();
        node.shared.authorizer.replace(policies::compile(&read, &inventory)?);
        node.start_upkeep(store)?;
        Ok(node)
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// How many servers have each status, including those with none.
    pub(crate) fn statuses(&self) -> BTreeMap<&'static str, u64> {
        let mut statuses: BTreeMap<&'static str, u64> =
            ServerStatus::ALL.into_iter().map(|status| (status.as_str(), 0)).collect();
        for known in self.catalog().servers.values() {
            *statuses.entry(known.status.as_str()).or_default() += 1;
        }
        statuses
    }

    pub(crate) fn remark(&self, sentence: &str) {
        (self.shared.remark)(sentence);
    }

    /// Signals when the gateway shuts down.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// The situation that requests are recorded with if the gateway itself answers them.
    pub(crate) fn own_situation(&self) -> Arc<Situation> {
        self.own_situation.load_full()
    }

    /// Applies the state of incident mode, for the gateway's own answers and for the egress
    /// proxies.
    pub(crate) fn take_incident(&self, state: IncidentState) {
        let before = self.own_situation();
        let switches = Switches::about(&before.server, &state);
        self.own_situation.store(Arc::new(Situation { switches, ..(*before).clone() }));
        self.shared.egress.set(state.egress_blocked.is_some());
        self.incident.store(Arc::new(state));
    }

    /// The situation of a server that was never observed.
    pub(crate) fn unobserved(&self, server: &GatewayServer) -> Situation {
        Situation { server: server.id().clone(), ..(*self.own_situation()).clone() }
    }

    /// Authenticates callers.
    pub(crate) fn authenticator(&self) -> Arc<Authenticator> {
        self.who.load_full()
    }

    /// Builds the catalog from what is recorded of these servers.
    pub(crate) fn catalog_of(
        servers: &Servers,
        settings: &GatewaySettings,
    ) -> Result<Catalog, StoreError> {
        Ok(Catalog::new(Node::situations(servers)?, settings.toolsets.clone()))
    }

    /// The situation and status of each server as last recorded.
    fn situations(servers: &Servers) -> Result<BTreeMap<ServerId, CatalogServer>, StoreError> {
        let known = |(id, server): (&ServerId, &Arc<GatewayServer>)| {
            let (situation, status) = (server.recorded()?, server.engine.status()?);
            Ok((id.clone(), CatalogServer { server: server.clone(), situation, status }))
        };
        servers.iter().map(known).collect()
    }

    /// Serves a catalog from now on, with policies compiled for it. Notifies clients of changed
    /// lists. The caller holds `cataloging`.
    pub(crate) fn publish(&self, catalog: Catalog) -> Arc<Catalog> {
        let before = self.catalog.swap(Arc::new(catalog));
        let catalog = self.catalog();
        let (policies, problems) = self.shared.authorizer.policies().refresh(&catalog.inventory());
        for problem in problems {
            self.remark(&format!("policies: {problem}"));
        }
        self.shared.authorizer.replace(policies);
        for known in catalog.servers.values() {
            if let Some(situation) = &known.situation {
                known.server.end_revoked(situation);
            }
        }
        // A list built in the meantime may be based on the earlier policies.
        catalog.forget_lists();
        for (id, now) in &catalog.servers {
            let earlier = before.servers.get(id).and_then(|known| known.situation.as_ref());
            for kind in ListKind::ALL {
                let is_same = match (&now.situation, earlier) {
                    (Some(now), Some(earlier)) => now.view.is_shown_like(&earlier.view, kind),
                    (Some(now), None) => now.view.list(kind).is_none(),
                    (None, _) => true,
                };
                if !is_same && !before.servers.is_empty() {
                    let sees = |caller: &policy::Caller| {
                        now.server.settings.serves(caller.identity().org.as_deref())
                            && !self.shared.authorizer.visible_set(caller, id).is_empty()
                    };
                    self.sessions.notify_changed(id, kind, &sees);
                }
            }
        }
        before
    }

    /// Updates the catalog from the store.
    pub(crate) fn refresh(&self) {
        let _cataloging = self.cataloging.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.catalog();
        match Node::situations(&before.servers()) {
            // Most writes to the store concern no server: counters, keys, days of use.
            Ok(known) if before.is_of(&known) => {}
            Ok(known) => {
                let toolsets = self.shared.settings().toolsets.clone();
                drop(self.publish(Catalog::new(known, toolsets)));
            }
            Err(error) => self.remark(&format!("the store cannot be read: {error}")),
        }
    }

    /// Waits, for a limited time, until servers that were never observed have been.
    pub(crate) async fn see_unseen(self: &Arc<Self>, visit: &Visit, patience: Duration) {
        let catalog = self.catalog();
        let unseen: Vec<Arc<GatewayServer>> = catalog
            .in_scope(&visit.scope, visit.org())
            .filter(|(_, known)| known.situation.is_none())
            // INVARIANT: a caller only causes servers to be started that some policy could let it
            // use.
            .filter(|(id, _)| self.shared.authorizer.could_use(&visit.caller, id))
            .map(|(_, known)| known.server.clone())
            .collect();
        if unseen.is_empty() {
            return;
        }
        let looks = unseen.into_iter().map(|server| {
            let (node, visit) = (self.clone(), visit.clone());
            tokio::spawn(async move {
                let key = node.link_key(&visit, &server);
                let mut presented = match node.present_for_look(&visit, &server).await {
                    Ok(presented) => presented,
                    // The caller learns this when it uses the server.
                    Err(why) if why.needs_person() => return,
                    Err(why) => {
                        let id = server.id();
                        return node.remark(&format!("`{id}`: no credential for a caller: {why}"));
                    }
                };
                let ready = node.link(&visit, &server, &key, &mut presented).await;
                match ready {
                    Ok(ready) => {
                        let list = |number: u64| {
                            format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}"#)
                                .into_bytes()
                        };
                        let surroundings = Surroundings { presented, ..Surroundings::default() };
                        let mut request =
                            ready.link.ask_in(&surroundings, None, Ending::RunsOn, list);
                        request.answer().await;
                    }
                    Err(error) => node.remark(&format!("`{}`: {error}", server.id())),
                }
            })
        });
        let looks: Vec<_> = looks.collect();
        let all = async {
            for look in looks {
                let _ = look.await;
            }
        };
        let _ = tokio::time::timeout(patience, all).await;
        let node = self.clone();
        let _ = tokio::task::spawn_blocking(move || node.refresh()).await;
    }

    pub(crate) fn refuse_nowhere(&self, unlinked: &Unlinked<'_>) -> Vec<u8> {
        unlinked.refuse_unknown(&self.shared.recorder)
    }

    /// Adds a request that the client may cancel.
    pub(crate) fn in_flight(&self, visit: &Visit, id: &[u8]) -> InFlight {
        self.in_flight.begin(flight_key(visit, id))
    }

    /// Cancels a request of a client.
    pub(crate) fn cancel(&self, visit: &Visit, id: &[u8]) {
        self.in_flight.cancel(&flight_key(visit, id));
    }

    /// How many requests of callers servers are processing.
    pub(crate) fn flight_count(&self) -> usize {
        self.in_flight.count()
    }

    /// The settings of a server.
    pub fn server_settings(&self, id: &ServerId) -> Option<Arc<ServerSettings>> {
        self.shared.settings().servers.get(id).cloned()
    }
}

fn flight_key(visit: &Visit, id: &[u8]) -> FlightKey {
    let session = visit.session.as_ref().map(|session| session.number);
    FlightKey { principal: visit.principal_id, session, id: id.into() }
}

/// Exports spans if the configuration names a collector, unless the environment forbids telemetry.
fn tracer_of(
    settings: &GatewaySettings,
    shared: &Shared,
) -> Result<Option<Arc<Tracer>>, StartError> {
    let Some(otlp) = &settings.traces.otlp else { return Ok(None) };
    if do_not_track(std::env::var_os("DO_NOT_TRACK").as_deref()) {
        (shared.remark)("`DO_NOT_TRACK` is set, so no spans are sent");
        return Ok(None);
    }
    let wrong = |problem: String| StartError::Traces(problem);
    let mut headers = http::HeaderMap::new();
    for (name, secret) in &settings.traces.headers {
        let value = secret.read(|name| std::env::var(name).ok());
        let value = value.map_err(|error| wrong(format!("`otlp_headers.{name}`: {error}")))?;
        add_header(&mut headers, name, value.trim())
            .map_err(|error| wrong(format!("`otlp_headers.{name}`: {error}")))?;
    }
    let otlp = Otlp::for_traces(otlp, headers).map_err(|error| wrong(error.to_string()))?;
    let tracer = Tracer::start(otlp, &shared.runtime).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(Arc::new(tracer)))
}

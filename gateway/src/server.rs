//! One server behind the gateway: the engine's state for it, and callers' links to it.

mod configured;
mod opening;

use crate::call_slots::ServerCalls;
use crate::child::ChildGuard;
use crate::greeting::{Era, Ungreeted};
use crate::link::Link;
use crate::metrics::ServerNumbers;
use crate::pending::Listener;
use crate::resources::Shared;
use crate::sessions::PrincipalId;
use crate::vouching::{StartCheck, Vouching};
use engine::confinement::Confiner;
use engine::credentials::{Broker, CallerKey, SecretReader, Unavailable};
use engine::decide::{Path, PreflightLimits};
use engine::error_log::ErrorLog;
use engine::judge::{Judge, Seen};
use engine::origin::{Origin, Way as OriginWay};
use engine::principal::Principal;
use engine::recorder::Recorder;
use engine::sentinel::Sentinel;
use engine::server::driver::{Driver, Wake};
use engine::server::{Server, ServerParts, ViewError};
use engine::situation::Situation;
use foldhash::HashMap;
use gate::server::ServerId;
use opening::SharedChild;
use policy::Caller;
use settings::gateway::{GatewaySettings, Reach, ServerSettings};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Location, StoreError};
use tokio::sync::OnceCell;
use wire::remote::{Credential, RemoteSession, TlsKey};
use wire::{ObserveError, Upstream};

/// The number of consecutive failures that opens the breaker.
const BREAKER_FAILURES: u32 = 5;
/// How long an open breaker blocks attempts.
const BREAKER_PAUSE: Duration = Duration::from_secs(10);
/// How long a link to a remote server may be unused before it is ended.
const REMOTE_IDLE: Duration = Duration::from_secs(600);

/// How often to check whether a server that is being retired is still in use.
const RETIRING_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Why a server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("`server.{id}`: {problem}")]
    Configured { id: ServerId, problem: String },
    #[error("`server.{id}`: the store: {source}")]
    Store { id: ServerId, source: StoreError },
}

/// Why a caller cannot get a link to a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("the server could not be started: {0}")]
    NotStarted(std::io::Error),
    #[error(transparent)]
    NotReached(Arc<ObserveError>),
    #[error("the server failed {BREAKER_FAILURES} times in a row and is left alone for a while")]
    BreakerOpen,
    #[error("as many instances of the server run as may: {0}")]
    TooMany(usize),
    #[error(transparent)]
    Refused(Ungreeted),
    #[error("a secret for its environment is not available: {0}")]
    NoSecret(Unavailable),
    #[error(transparent)]
    View(#[from] ViewError),
}

impl LinkError {
    /// Whether the server rejected the credential.
    pub(crate) fn is_credential_refused(&self) -> bool {
        matches!(self, LinkError::Refused(ungreeted) if ungreeted.is_credential_refused)
    }
}

/// Identifies a link. Callers with the same key share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    pub(crate) caller: policy::IdentityKey,
    /// The session, if each session has its own instance.
    pub(crate) session: Option<u64>,
    /// The client capabilities to offer to the server, as JSON.
    pub(crate) capabilities: Box<[u8]>,
    /// The caller's era: a server that supports both is used in this one.
    pub(crate) era: Era,
    /// Identifies the caller's credential for the server, if each caller has its own.
    pub(crate) credential: Option<CallerKey>,
}

/// A link whose server was greeted.
#[derive(Debug)]
pub(crate) struct ReadyLink {
    pub(crate) link: Arc<Link>,
    pub(crate) era: Era,
    /// Whether the server supports tasks in that era.
    pub(crate) has_tasks: bool,
    /// The principal that opened it.
    principal: Principal,
    /// Ends the process that belongs to this link alone.
    _child: Option<ChildGuard>,
    /// The program was not admitted, so there is no process.
    is_unstarted: bool,
}

/// The place of a link, which may still be opening.
type LinkCell = Arc<OnceCell<Arc<ReadyLink>>>;

/// One server behind the gateway.
pub(crate) struct GatewayServer {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) engine: Arc<Server>,
    pub(crate) broker: Broker,
    secrets: SecretReader,
    upstream: Upstream,
    /// Confines its processes, if they are confined.
    confiner: Option<Arc<Confiner>>,
    /// Records sessions whose servers were blocked from the network.
    recorder: Arc<Recorder>,
    driver: Sender<Wake>,
    links: Mutex<HashMap<LinkKey, LinkCell>>,
    /// The first session with a remote server, whose connections the others share.
    remote: OnceCell<RemoteSession>,
    tls_key: TlsKey,
    shared_child: tokio::sync::Mutex<Option<SharedChild>>,
    /// The flags for the server's eras, as [`greet`] maintains them.
    eras: AtomicU8,
    /// The eras in which it supports tasks, from the last greetings, as bits.
    tasks: AtomicU8,
    failures: AtomicU32,
    failed_at: Mutex<Option<Instant>>,
    next_instance: AtomicU64,
    children: Arc<AtomicU32>,
    /// The number of unanswered calls of all callers.
    pub(crate) calls: ServerCalls,
    is_closed: AtomicBool,
    /// The check a program must pass before it is started, if admission is configured.
    start_check: Option<StartCheck>,
    /// Whether an attestation of the server is required.
    is_vouched: bool,
    runtime: tokio::runtime::Handle,
    frame_bytes: usize,
}

impl std::fmt::Debug for GatewayServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GatewayServer")
            .field("id", &self.settings.id)
            .finish_non_exhaustive()
    }
}

impl GatewayServer {
    /// Sets up a server without starting or contacting it.
    pub(crate) fn open(
        settings: Arc<ServerSettings>,
        gateway: &GatewaySettings,
        shared: &Shared,
    ) -> Result<Arc<GatewayServer>, ServerError> {
        let id = settings.id.clone();
        let wrong = |problem: String| ServerError::Configured { id: id.clone(), problem };
        let in_store = |source| ServerError::Store { id: id.clone(), source };
        let secrets = shared.secrets(gateway).map_err(|error| wrong(error.to_string()))?;
        let broker = configured::broker_of(&settings, &secrets, shared)
            .map_err(|error| wrong(error.to_string()))?;
        let mut upstream = configured::upstream_of(&settings).map_err(wrong)?;
        let confiner = configured::confiner_of(&settings, &mut upstream, shared).map_err(wrong)?;
        let file = configured::program_of(&upstream).map_err(wrong)?;
        let allowed = configured::allowlist_of(&settings).map_err(wrong)?;
        let vouching = Vouching::of(&settings, &upstream, file.as_ref())
            .map_err(|error| wrong(error.to_string()))?;
        let store = shared.open_store().map_err(in_store)?;
        let origin = Origin::of(&upstream, &shared.launch_key);
        let launch = origin.launch(configured::header_names(&settings));
        let tls_key = TlsKey::default();
        let way = file.map_or_else(|| OriginWay::Key(tls_key.clone()), OriginWay::Program);
        let origin = origin.source(way, shared.home.path().join("digests.json"));
        let mut rules =
            configured::rules_of(gateway, &settings, &upstream, allowed.clone(), &shared.upper);
        rules.profile.sandbox = confiner.as_ref().map(|confined| confined.outline.receipt());
        let confiner = confiner.map(|confined| confined.confiner);
        let engine_settings = configured::engine_settings(gateway, &settings, vouching.as_ref());
        let frame_bytes = engine_settings.frame_bytes;
        let index_path = store.index_path();
        let mut judge = Judge::new(store, rules, Some(launch));
        let begun = judge.begin(&Seen::default()).map_err(in_store)?;
        let sentinel = Sentinel::new(index_path, shared.lease.clone()).map_err(in_store)?;
        let sentinel = match shared.location {
            Location::Postgres(_) => sentinel,
            Location::Sqlite | Location::SqliteIn(_) => {
                sentinel.following(shared.home.state_path())
            }
        };
        let (driver, wakes) = channel();
        let path = Path::for_one_server(PreflightLimits::default(), allowed);
        let path = match &shared.anomalies {
            Some(anomalies) => path.watched_by(anomalies.clone()),
            None => path,
        };
        let path = configured::preflighted(path, &settings, shared);
        let (remark, name) = (shared.remark.clone(), id.clone());
        let engine = Server::new(ServerParts {
            settings: engine_settings,
            path: path
                .authorized_by(shared.authorizer.clone())
                .approved_by(shared.approvals.clone()),
            recorder: shared.recorder.clone(),
            judge,
            begun,
            sentinel,
            driver: driver.clone(),
            errors: ErrorLog::new(shared.home.path().join("errors.jsonl")),
            remark: Box::new(move |sentence| remark(&format!("`{name}`: {sentence}"))),
            alarm: Box::new(|| {}),
        });
        let engine = Arc::new(engine.reading_by(Box::new(run_blocking)));
        let is_vouched = vouching.is_some();
        let (checker, start_check) = match vouching {
            Some(Vouching { checker, start, .. }) => (Some(checker), start),
            None => (None, None),
        };
        let kept = Driver::new(engine.clone(), origin).admitting(checker);
        std::thread::Builder::new()
            .name(format!("server {id}"))
            .spawn(move || kept.run(&wakes))
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Arc::new(GatewayServer {
            settings,
            engine,
            broker,
            secrets,
            upstream,
            confiner,
            recorder: shared.recorder.clone(),
            driver,
            links: Mutex::default(),
            remote: OnceCell::new(),
            tls_key,
            shared_child: tokio::sync::Mutex::default(),
            eras: AtomicU8::new(0),
            tasks: AtomicU8::new(0),
            failures: AtomicU32::new(0),
            failed_at: Mutex::default(),
            next_instance: AtomicU64::new(1),
            children: Arc::default(),
            calls: ServerCalls::default(),
            is_closed: AtomicBool::new(false),
            start_check,
            is_vouched,
            runtime: shared.runtime.clone(),
            frame_bytes,
        }))
    }

    pub(crate) fn id(&self) -> &ServerId {
        &self.settings.id
    }

    /// The caller's link to the server, if it is open and greeted.
    pub(crate) fn open_link_of(&self, key: &LinkKey) -> Option<Arc<ReadyLink>> {
        let links = lock(&self.links);
        links.get(key)?.get().filter(|ready| !ready.link.is_closed()).cloned()
    }

    /// Whether the server may be contacted independently of callers: an unadmitted server must not
    /// be. A remote server is only checked when a caller uses it, and counts as unadmitted before
    /// that.
    pub(crate) async fn may_be_contacted(&self, known: Option<&Situation>) -> bool {
        match (&self.start_check, &self.settings.reach) {
            (Some(check), _) => check.is_admitted().await,
            (None, Reach::Url(_)) if self.is_vouched => {
                known.is_some_and(|known| !known.admission.is_closed())
            }
            (None, Reach::Url(_) | Reach::Command(_)) => true,
        }
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The server's metrics.
    pub(crate) fn numbers(&self) -> ServerNumbers {
        ServerNumbers {
            id: self.settings.id.to_string(),
            links: lock(&self.links).len() as u64,
            children: self.children.load(Ordering::Relaxed).into(),
            calls: self.calls.load(Ordering::Relaxed) as u64,
            is_breaker_open: self.is_breaker_open(),
            egress_blocked: self.confiner.as_ref().map_or(0, |it| it.reporter().blocked()),
        }
    }

    /// The caller's link to the server; opens and greets it if needed.
    pub(crate) async fn link(
        self: &Arc<Self>,
        key: &LinkKey,
        principal: &Principal,
        credential: Option<&Arc<Credential>>,
        listener: impl Fn() -> Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        for _ in 0..2 {
            let cell = lock(&self.links).entry(key.clone()).or_default().clone();
            let open = || self.open_link(key, principal.clone(), credential, listener());
            let opened = cell.get_or_try_init(open).await;
            match opened {
                Ok(ready) if ready.is_unstarted && self.may_start().await => {
                    ready.link.close();
                    ready.link.end().await;
                    self.forget(key, &cell);
                }
                Ok(ready) if !ready.link.is_closed() => return Ok(ready.clone()),
                Ok(_) => self.forget(key, &cell),
                Err(error) => {
                    self.forget(key, &cell);
                    return Err(error);
                }
            }
        }
        Err(LinkError::NotStarted(std::io::ErrorKind::BrokenPipe.into()))
    }

    fn note_tasks(&self, era: Era, has_tasks: bool) {
        if has_tasks {
            self.tasks.fetch_or(1 << era as u8, Ordering::Relaxed);
        } else {
            self.tasks.fetch_and(!(1 << era as u8), Ordering::Relaxed);
        }
    }

    /// Whether the server supported tasks in an era at the last greeting.
    pub(crate) fn has_tasks(&self, era: Era) -> bool {
        self.tasks.load(Ordering::Relaxed) & (1 << era as u8) != 0
    }

    fn forget(&self, key: &LinkKey, cell: &LinkCell) {
        let mut links = lock(&self.links);
        if links.get(key).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            links.remove(key);
        }
    }

    async fn open_link(
        self: &Arc<Self>,
        key: &LinkKey,
        principal: Principal,
        credential: Option<&Arc<Credential>>,
        listener: Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(LinkError::NotStarted(std::io::ErrorKind::BrokenPipe.into()));
        }
        self.check_breaker()?;
        let opened = self.open_unguarded(key, principal, credential, listener).await;
        match &opened {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            // Not the server's fault: callers that need no new instance can continue.
            Err(LinkError::TooMany(_) | LinkError::View(_) | LinkError::NoSecret(_)) => {}
            // The rejection of one caller's credential says nothing about the others'.
            Err(error) if error.is_credential_refused() => {}
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                *lock(&self.failed_at) = Some(Instant::now());
            }
        }
        opened
    }

    pub(crate) fn is_breaker_open(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= BREAKER_FAILURES
            && lock(&self.failed_at).is_some_and(|at| at.elapsed() < BREAKER_PAUSE)
    }

    fn check_breaker(&self) -> Result<(), LinkError> {
        if self.is_breaker_open() { Err(LinkError::BreakerOpen) } else { Ok(()) }
    }

    /// Whether the server's program may be started.
    async fn may_start(&self) -> bool {
        match &self.start_check {
            Some(check) => check.is_admitted().await,
            None => true,
        }
    }

    /// The callers that have a link.
    pub(crate) fn link_owners(&self) -> HashSet<PrincipalId> {
        let links = lock(&self.links);
        let caller = |cell: &LinkCell| cell.get()?.principal.caller.clone();
        let callers = links.values().filter_map(caller);
        callers.map(|caller| caller.principal()).collect()
    }

    /// Ends the links of callers that were revoked since opening them, or all links if the server
    /// was revoked. Later links are judged as usual.
    pub(crate) fn end_revoked(self: &Arc<Self>, situation: &Situation) {
        self.revoke_in_background(self.broker.forget_revoked(situation));
        let mut ended = Vec::new();
        lock(&self.links).retain(|_, cell| {
            let revoked = cell.get().filter(|ready| situation.revoked(&ready.principal).is_some());
            ended.extend(revoked.map(|ready| ready.link.clone()));
            revoked.is_none()
        });
        for link in ended {
            link.close();
            self.runtime.spawn(async move { link.end().await });
        }
    }

    /// Revokes tokens at their issuer, in the background.
    fn revoke_in_background(self: &Arc<Self>, tokens: Vec<Arc<Credential>>) {
        if tokens.is_empty() {
            return;
        }
        let server = self.clone();
        self.runtime.spawn(async move {
            for token in tokens {
                if let Err(why) = server.broker.revoke(&token).await {
                    let words =
                        "a token that was revoked could not be taken back where it was issued";
                    server.engine.tell(&format!("{words}: {why}"));
                }
            }
        });
    }

    /// Ends every open link. Callers that come later get new ones.
    pub(crate) fn end_links(&self) {
        let links = std::mem::take(&mut *lock(&self.links));
        for ready in links.values().filter_map(|cell| cell.get()) {
            let link = ready.link.clone();
            link.close();
            self.runtime.spawn(async move { link.end().await });
        }
    }

    /// Ends links that are idle or whose callers have no valid credential any more, and forgets
    /// those whose server is gone.
    pub(crate) fn sweep(&self, has_left: impl Fn(&Caller) -> bool) {
        let patience = match &self.settings.reach {
            Reach::Command(command) => Duration::from_secs(command.idle_seconds),
            Reach::Url(_) => REMOTE_IDLE,
        };
        let mut ended = Vec::new();
        lock(&self.links).retain(|_, cell| {
            let Some(ready) = cell.get() else { return Arc::strong_count(cell) > 1 };
            let has_left = || ready.principal.caller.as_ref().is_some_and(&has_left);
            let is_idle = ready.link.idle().is_some_and(|idle| idle > patience || has_left());
            if is_idle || ready.link.is_closed() {
                ended.push(ready.link.clone());
            }
            !(is_idle || ready.link.is_closed())
        });
        for link in ended {
            self.runtime.spawn(async move { link.end().await });
        }
        if let Some(remote) = self.remote.get() {
            remote.close_idle();
        }
    }

    /// Ends all links and processes. None can be opened afterwards.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let links = std::mem::take(&mut *lock(&self.links));
        for ready in links.values().filter_map(|cell| cell.get()) {
            ready.link.close();
            ready.link.end().await;
        }
        drop(links);
        if let Some(shared) = self.shared_child.lock().await.take() {
            shared.input.close();
        }
        let _ = self.driver.send(Wake::End);
    }

    /// Closes the server once no caller waits for an answer, or after this time.
    pub(crate) fn retire(self: &Arc<Self>, patience: Duration) {
        let server = self.clone();
        self.runtime.spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < patience && !server.is_idle() {
                tokio::time::sleep(RETIRING_POLL_INTERVAL).await;
            }
            server.close().await;
        });
    }

    /// Whether no request is pending or was made a moment ago: a request that was just routed here
    /// may be about to start.
    fn is_idle(&self) -> bool {
        lock(&self.links).values().all(|cell| match cell.get() {
            Some(ready) => ready.link.idle().is_some_and(|idle| idle >= RETIRING_POLL_INTERVAL),
            None => false,
        })
    }

    /// The number of running processes.
    pub(crate) fn child_count(&self) -> u32 {
        self.children.load(Ordering::Acquire)
    }

    /// The situation as last recorded.
    pub(crate) fn recorded(&self) -> Result<Option<Arc<Situation>>, StoreError> {
        self.engine.recorded()
    }
}

/// Runs a blocking read, while the runtime moves the thread's other tasks elsewhere.
fn run_blocking(read: &mut dyn FnMut()) {
    let flavor = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
        _ => read(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

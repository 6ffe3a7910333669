//! One server behind the gateway: what the engine knows of it, and the links of callers to it.

use crate::child::{Child, ChildGuard, ChildInput, Said};
use crate::greeting::{Era, Greeted, Ungreeted, greet};
use crate::link::{Link, LinkParts, Way};
use crate::metrics::ServerNumbers;
use crate::pending::{Listener, Pending, Whose, messages, whose};
use crate::resources::Shared;
use crate::vouching::{StartCheck, Vouching};
use engine::decide::{Path, PreflightLimits};
use engine::error_log::ErrorLog;
use engine::judge::{Instance as EngineInstance, Judge, Rules, Seen};
use engine::origin::{Origin, Way as OriginWay};
use engine::principal::Principal;
use engine::program::find_program;
use engine::sentinel::Sentinel;
use engine::server::driver::{Driver, Wake};
use engine::server::{Server, ServerParts, ServerSettings as EngineSettings, ViewError};
use engine::situation::{ServerProfile, Situation};
use gate::server::ServerId;
use gate::shown::ListMode;
use ledger::record::{TokenMode, TrustLevel};
use policy::Trust;
use serde_json::json;
use settings::gateway::{
    CommandSettings, Credentials, GatewaySettings, Instance, Reach, ServerSettings, UrlSettings,
};
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::{Location, StoreError};
use tokio::sync::OnceCell;
use wire::remote::{RemoteLimits, RemoteSession, TlsKey};
use wire::{EndpointUrl, HttpEndpoint, ObserveError, StdioLaunch, Upstream};

/// So many failures in a row open the breaker.
const BREAKER_FAILURES: u32 = 5;
/// For so long nothing is tried then.
const BREAKER_PAUSE: Duration = Duration::from_secs(10);
/// The most connections to one server that are kept without a request.
const IDLE_CONNECTIONS: usize = 128;
/// A link to a remote server that nothing was asked on for so long is ended.
const REMOTE_IDLE: Duration = Duration::from_secs(600);

/// How often it is looked whether a server that is not used any more may end.
const RETIRING_LOOK: Duration = Duration::from_millis(200);

/// Why a server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("`server.{id}`: {problem}")]
    Configured { id: ServerId, problem: String },
    #[error("`server.{id}`: the store: {source}")]
    Store { id: ServerId, source: StoreError },
}

/// Why a caller has no link to a server.
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
    #[error(transparent)]
    View(#[from] ViewError),
}

/// Whose link it is. Callers with the same key share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    pub(crate) caller: policy::IdentityKey,
    /// The session, where each has an instance of its own.
    pub(crate) session: Option<u64>,
    /// The capabilities that the server is offered, as JSON.
    pub(crate) capabilities: Box<[u8]>,
    /// The era that the caller speaks: a server that speaks both is spoken to in that one.
    pub(crate) era: Era,
}

/// A link whose server was greeted.
#[derive(Debug)]
pub(crate) struct ReadyLink {
    pub(crate) link: Arc<Link>,
    pub(crate) era: Era,
    /// The process that is this link's alone ends with it.
    _child: Option<ChildGuard>,
    /// The program was not admitted, so that there is no process at the other end.
    is_unstarted: bool,
}

/// The place of a link, which may be just being opened.
type LinkCell = Arc<OnceCell<Arc<ReadyLink>>>;

/// A process that several callers share.
#[derive(Debug, Clone)]
struct SharedChild {
    input: ChildInput,
    instance: EngineInstance,
    ids: Arc<AtomicU64>,
    links: Arc<Mutex<HashMap<u64, Weak<Link>>>>,
}

/// One server behind the gateway.
pub(crate) struct GatewayServer {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) engine: Arc<Server>,
    upstream: Upstream,
    driver: Sender<Wake>,
    links: Mutex<HashMap<LinkKey, LinkCell>>,
    /// The first session with a remote server, whose connections the others share.
    remote: OnceCell<RemoteSession>,
    tls_key: TlsKey,
    shared_child: tokio::sync::Mutex<Option<SharedChild>>,
    /// What is known of the eras that it speaks, as [`greet`] has it.
    eras: AtomicU8,
    failures: AtomicU32,
    failed_at: Mutex<Option<Instant>>,
    next_instance: AtomicU64,
    children: Arc<AtomicU32>,
    is_closed: AtomicBool,
    /// What a program has to pass before it is started, where admission is configured.
    start_check: Option<StartCheck>,
    /// Whether an attestation is required of it.
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
    /// Sets a server up. Nothing is started or reached.
    pub(crate) fn open(
        settings: Arc<ServerSettings>,
        gateway: &GatewaySettings,
        shared: &Shared,
    ) -> Result<Arc<GatewayServer>, ServerError> {
        let id = settings.id.clone();
        let wrong = |problem: String| ServerError::Configured { id: id.clone(), problem };
        let upstream = upstream_of(&settings).map_err(wrong)?;
        let tls_key = TlsKey::default();
        let in_store = |source| ServerError::Store { id: id.clone(), source };
        let store = shared.open_store().map_err(in_store)?;
        let origin = Origin::of(&upstream, &shared.launch_key);
        let launch = origin.launch(header_names(&settings));
        let file = match &upstream {
            Upstream::Http(_) => None,
            Upstream::Stdio(launch) => {
                let program = launch.program.to_string_lossy().into_owned();
                let file = find_program(&program, launch.directory.as_deref());
                Some(file.ok_or_else(|| wrong(format!("the program `{program}` was not found")))?)
            }
        };
        let vouching = Vouching::of(&settings, &upstream, file.as_ref())
            .map_err(|error| wrong(error.to_string()))?;
        let way = match file {
            Some(file) => OriginWay::Program(file),
            None => OriginWay::Key(tls_key.clone()),
        };
        let origin = origin.source(way, shared.home.path().join("digests.json"));
        let keys = gateway.engine_keys(&settings);
        let allowed = settings.allowed_tools.as_ref().map(|tools| {
            attest::ToolAllowlist::new(tools.iter().map(String::as_str)).map(Arc::new)
        });
        let allowed = allowed.transpose().map_err(|error| wrong(error.to_string()))?;
        let rules = Rules {
            server: id.clone(),
            settings: keys.judging(None),
            first_use: keys.first_use,
            scope: keys.drift_scope,
            mode: ListMode::Accepted,
            allowed: allowed.clone(),
            mirrors_parameters: matches!(upstream, Upstream::Http(_)),
            profile: profile_of(&settings),
        };
        let usual = EngineSettings::default();
        let engine_settings = EngineSettings {
            relist_max_age: keys
                .relist
                .max_age
                .map_or(usual.relist_max_age, |seconds| Duration::from_secs(seconds.0)),
            call_timeout: Some(Duration::from_secs(gateway.front.limits.call_timeout_seconds)),
            admission_max_age: vouching.as_ref().map(|vouching| vouching.max_age),
            greets_before_check: vouching
                .as_ref()
                .is_some_and(|vouching| vouching.checker.greets_first()),
            ..usual
        };
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
        let (remark, name) = (shared.remark.clone(), id.clone());
        let engine = Arc::new(Server::new(ServerParts {
            settings: engine_settings,
            path: path.authorized_by(shared.authorizer.clone()),
            recorder: shared.recorder.clone(),
            judge,
            begun,
            sentinel,
            driver: driver.clone(),
            errors: ErrorLog::new(shared.home.path().join("errors.jsonl")),
            remark: Box::new(move |sentence| remark(&format!("`{name}`: {sentence}"))),
            alarm: Box::new(|| {}),
        }));
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
            upstream,
            driver,
            links: Mutex::default(),
            remote: OnceCell::new(),
            tls_key,
            shared_child: tokio::sync::Mutex::default(),
            eras: AtomicU8::new(0),
            failures: AtomicU32::new(0),
            failed_at: Mutex::default(),
            next_instance: AtomicU64::new(1),
            children: Arc::default(),
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

    /// Whether it may be contacted apart from callers: an unadmitted server must not be. A remote server is checked when a
    /// caller uses it, and before that it counts as unadmitted.
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

    /// How much it is used.
    pub(crate) fn numbers(&self) -> ServerNumbers {
        ServerNumbers {
            id: self.settings.id.to_string(),
            links: lock(&self.links).len() as u64,
            children: self.children.load(Ordering::Relaxed).into(),
            is_breaker_open: self.is_breaker_open(),
        }
    }

    /// The caller's link to the server, opened and greeted where there is none.
    pub(crate) async fn link(
        self: &Arc<Self>,
        key: &LinkKey,
        principal: &Principal,
        listener: impl Fn() -> Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        for _ in 0..2 {
            let cell = lock(&self.links).entry(key.clone()).or_default().clone();
            let opened =
                cell.get_or_try_init(|| self.open_link(key, principal.clone(), listener())).await;
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
        listener: Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(LinkError::NotStarted(std::io::ErrorKind::BrokenPipe.into()));
        }
        self.check_breaker()?;
        let opened = self.open_unguarded(key, principal, listener).await;
        match &opened {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            // The server did nothing wrong: callers that need no further instance go on.
            Err(LinkError::TooMany(_) | LinkError::View(_)) => {}
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                *lock(&self.failed_at) = Some(Instant::now());
            }
        }
        opened
    }

    fn is_breaker_open(&self) -> bool {
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

    /// A link at whose other end there is nothing: every request is refused with the reason why the server is not admitted.
    fn open_nowhere(
        self: &Arc<Self>,
        principal: Principal,
        pending: Arc<Pending>,
    ) -> Result<Arc<Link>, LinkError> {
        Ok(Link::open(LinkParts {
            server: self.engine.clone(),
            instance: EngineInstance(self.next_instance.fetch_add(1, Ordering::Relaxed)),
            principal,
            way: Way::Child(ChildInput::nowhere()),
            pending,
            offered: Box::from(*b"{}"),
            ids: Arc::new(AtomicU64::new(1)),
            runtime: self.runtime.clone(),
        })?)
    }

    async fn open_unguarded(
        self: &Arc<Self>,
        key: &LinkKey,
        principal: Principal,
        listener: Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        let pending = Arc::new(Pending::new(listener));
        let asks_as = principal.clone();
        let is_unstarted = !self.may_start().await;
        let (link, child) = match (&self.upstream, &self.settings.reach) {
            (Upstream::Stdio(_), _) if is_unstarted => {
                (self.open_nowhere(principal, pending)?, None)
            }
            (Upstream::Http(endpoint), _) => {
                (self.open_remote(endpoint, principal, pending, key).await?, None)
            }
            (Upstream::Stdio(launch), Reach::Command(command)) => match command.instance {
                Instance::Shared => {
                    (self.open_shared(launch, principal, pending, key).await?, None)
                }
                Instance::Principal | Instance::Session => {
                    let (link, child) =
                        self.open_child(launch, command, principal, pending, key)?;
                    (link, Some(child))
                }
            },
            (Upstream::Stdio(_), Reach::Url(_)) => {
                return Err(LinkError::NotStarted(std::io::ErrorKind::InvalidInput.into()));
            }
        };
        let capabilities = serde_json::from_slice(&key.capabilities).unwrap_or_else(|_| json!({}));
        let spoken = self.eras.load(Ordering::Relaxed);
        match greet(&link, key.era, spoken, &capabilities).await {
            Ok(Greeted { era, spoken }) => {
                self.eras.store(spoken, Ordering::Relaxed);
                if era == Era::Sessions {
                    link.listen(&self.runtime);
                } else if self.engine.permits_use(&asks_as) {
                    link.subscribe(&self.runtime);
                }
                Ok(Arc::new(ReadyLink { link, era, _child: child, is_unstarted }))
            }
            Err(refused) => {
                link.close();
                Err(LinkError::Refused(refused))
            }
        }
    }

    async fn open_remote(
        self: &Arc<Self>,
        endpoint: &HttpEndpoint,
        principal: Principal,
        pending: Arc<Pending>,
        key: &LinkKey,
    ) -> Result<Arc<Link>, LinkError> {
        let limits = RemoteLimits {
            frame_bytes: self.frame_bytes,
            idle_connections: IDLE_CONNECTIONS,
            ..RemoteLimits::default()
        };
        let first = self
            .remote
            .get_or_try_init(|| RemoteSession::open(endpoint, limits, self.tls_key.clone()))
            .await
            .map_err(|error| LinkError::NotReached(Arc::new(error)))?;
        Ok(Link::open(LinkParts {
            server: self.engine.clone(),
            instance: EngineInstance::default(),
            principal,
            way: Way::Remote(Arc::new(first.another())),
            pending,
            offered: key.capabilities.clone(),
            ids: Arc::new(AtomicU64::new(1)),
            runtime: self.runtime.clone(),
        })?)
    }

    /// A process for one caller alone.
    fn open_child(
        self: &Arc<Self>,
        launch: &StdioLaunch,
        command: &CommandSettings,
        principal: Principal,
        pending: Arc<Pending>,
        key: &LinkKey,
    ) -> Result<(Arc<Link>, ChildGuard), LinkError> {
        let running = self.children.fetch_add(1, Ordering::AcqRel);
        let counted = CountedChild(self.children.clone());
        if running as usize >= command.max_instances {
            return Err(LinkError::TooMany(command.max_instances));
        }
        let child = Child::start(launch).map_err(LinkError::NotStarted)?;
        let instance = EngineInstance(self.next_instance.fetch_add(1, Ordering::Relaxed));
        let link = Link::open(LinkParts {
            server: self.engine.clone(),
            instance,
            principal,
            way: Way::Child(child.input.clone()),
            pending,
            offered: key.capabilities.clone(),
            ids: Arc::new(AtomicU64::new(1)),
            runtime: self.runtime.clone(),
        })?;
        let (weak, group, guard) = (Arc::downgrade(&link), child.group(), child.guard());
        let frame_bytes = self.frame_bytes;
        self.runtime.spawn(async move {
            child
                .read(frame_bytes, |said| {
                    let Some(link) = weak.upgrade() else { return group.terminate() };
                    match said {
                        Said::Line(line, has_more) => link.hear(line, has_more),
                        Said::TooLong(beginning, bytes) => {
                            link.session().server_said_too_much(beginning, b"", bytes);
                        }
                        Said::End => link.close(),
                    }
                })
                .await;
            drop(counted);
        });
        Ok((link, guard))
    }

    /// A link to the process that all callers share.
    async fn open_shared(
        self: &Arc<Self>,
        launch: &StdioLaunch,
        principal: Principal,
        pending: Arc<Pending>,
        key: &LinkKey,
    ) -> Result<Arc<Link>, LinkError> {
        let mut running = self.shared_child.lock().await;
        let is_gone = |child: &SharedChild| child.input.is_closed();
        if running.as_ref().is_none_or(is_gone) {
            *running = Some(self.start_shared(launch).map_err(LinkError::NotStarted)?);
        }
        let Some(SharedChild { input, instance, ids, links }) = running.clone() else {
            return Err(LinkError::NotStarted(std::io::ErrorKind::BrokenPipe.into()));
        };
        drop(running);
        let link = Link::open(LinkParts {
            server: self.engine.clone(),
            instance,
            principal,
            way: Way::Child(input),
            pending,
            offered: key.capabilities.clone(),
            ids,
            runtime: self.runtime.clone(),
        })?;
        lock(&links).insert(link.session().key().0, Arc::downgrade(&link));
        Ok(link)
    }

    fn start_shared(self: &Arc<Self>, launch: &StdioLaunch) -> std::io::Result<SharedChild> {
        self.children.fetch_add(1, Ordering::AcqRel);
        let counted = CountedChild(self.children.clone());
        let child = Child::start(launch)?;
        let links: Arc<Mutex<HashMap<u64, Weak<Link>>>> = Arc::default();
        let shared = SharedChild {
            input: child.input.clone(),
            instance: EngineInstance(self.next_instance.fetch_add(1, Ordering::Relaxed)),
            ids: Arc::new(AtomicU64::new(1)),
            links: links.clone(),
        };
        let frame_bytes = self.frame_bytes;
        self.runtime.spawn(async move {
            child
                .read(frame_bytes, |said| {
                    let all: Vec<Arc<Link>> = {
                        let mut links = lock(&links);
                        links.retain(|_, link| link.strong_count() > 0);
                        links.values().filter_map(Weak::upgrade).collect()
                    };
                    hear_shared(&all, &said);
                })
                .await;
            drop(counted);
        });
        Ok(shared)
    }

    /// Ends links that nothing was asked on for long, and forgets those whose server is gone.
    pub(crate) fn sweep(&self) {
        let patience = match &self.settings.reach {
            Reach::Command(command) => Duration::from_secs(command.idle_seconds),
            Reach::Url(_) => REMOTE_IDLE,
        };
        let mut ended = Vec::new();
        lock(&self.links).retain(|_, cell| {
            let Some(ready) = cell.get() else { return Arc::strong_count(cell) > 1 };
            let is_idle = ready.link.idle().is_some_and(|idle| idle > patience);
            if is_idle || ready.link.is_closed() {
                ended.push(ready.link.clone());
            }
            !(is_idle || ready.link.is_closed())
        });
        for link in ended {
            self.runtime.spawn(async move { link.end().await });
        }
    }

    /// Ends every link and has every process end. Nothing is opened any more.
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

    /// Ends once no caller waits for an answer any more, or after this time.
    pub(crate) fn retire(self: &Arc<Self>, patience: Duration) {
        let server = self.clone();
        self.runtime.spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < patience && !server.is_idle() {
                tokio::time::sleep(RETIRING_LOOK).await;
            }
            server.close().await;
        });
    }

    /// Whether nobody asks anything, and nobody asked a moment ago: a request that was routed here may be about to.
    fn is_idle(&self) -> bool {
        lock(&self.links).values().all(|cell| match cell.get() {
            Some(ready) => ready.link.idle().is_some_and(|idle| idle >= RETIRING_LOOK),
            None => false,
        })
    }

    /// How many processes of it run.
    pub(crate) fn child_count(&self) -> u32 {
        self.children.load(Ordering::Acquire)
    }

    /// The situation by what was last recorded.
    pub(crate) fn recorded(&self) -> Result<Option<Arc<Situation>>, StoreError> {
        self.engine.recorded()
    }
}

/// Counts a process for as long as it runs.
struct CountedChild(Arc<AtomicU32>);

impl Drop for CountedChild {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a shared process says goes to the caller whose request it answers. Of what answers none, only changes of lists are
/// heard: a process that several callers share must not tell one of them what another did.
fn hear_shared(links: &[Arc<Link>], said: &Said<'_>) {
    match said {
        Said::Line(line, _) => {
            for message in messages(line) {
                hear_one_shared(links, message);
            }
        }
        Said::TooLong(beginning, bytes) => {
            for link in links {
                link.session().server_said_too_much(beginning, b"", *bytes);
            }
        }
        Said::End => links.iter().for_each(|link| link.close()),
    }
}

fn hear_one_shared(links: &[Arc<Link>], message: &[u8]) {
    let hearer = match whose(message) {
        Whose::Request(id) => links.iter().find(|link| link.expects(&id)).or(links.first()),
        Whose::Everyone => links.first(),
        Whose::Nobody => None,
    };
    if let Some(link) = hearer {
        link.hear(message, false);
    }
}

fn upstream_of(settings: &ServerSettings) -> Result<Upstream, String> {
    let variable = |name: &str| std::env::var(name).ok();
    match &settings.reach {
        Reach::Command(CommandSettings { command, env, .. }) => {
            let mut words = command.iter().map(OsString::from);
            let program = words.next().ok_or("`command` is empty")?;
            let mut environment = Vec::new();
            for (name, secret) in env {
                let value =
                    secret.read(variable).map_err(|error| format!("`env.{name}`: {error}"))?;
                environment.push((OsString::from(name), OsString::from(value)));
            }
            let arguments = words.collect();
            Ok(Upstream::Stdio(StdioLaunch { program, arguments, environment, directory: None }))
        }
        Reach::Url(reached) => {
            let UrlSettings { url, credentials, headers, allow_private, ca, .. } = &**reached;
            if ca.is_some() {
                return Err("`ca` is not available in this version; remove it".to_owned());
            }
            let url: EndpointUrl =
                url.as_str().parse().map_err(|error| format!("`url`: {error}"))?;
            let mut all = Vec::new();
            let mut add = |name: &str, value: String| -> Result<(), String> {
                let header =
                    name.parse().map_err(|_| format!("`{name}` is not the name of a header"))?;
                let mut value: http::HeaderValue = value
                    .parse()
                    .map_err(|_| format!("the value of `{name}` does not fit into a header"))?;
                value.set_sensitive(true);
                all.push((header, value));
                Ok(())
            };
            for (name, secret) in headers {
                let value =
                    secret.read(variable).map_err(|error| format!("`headers.{name}`: {error}"))?;
                add(name, value)?;
            }
            if let Credentials::Secret { secret, header, scheme } = credentials {
                let value =
                    secret.read(variable).map_err(|error| format!("`credentials`: {error}"))?;
                let value = match scheme {
                    Some(scheme) => format!("{scheme} {value}"),
                    None => value,
                };
                add(header, value)?;
            }
            Ok(Upstream::Http(HttpEndpoint { url, headers: all, allow_private: *allow_private }))
        }
    }
}

fn header_names(settings: &ServerSettings) -> Vec<String> {
    match &settings.reach {
        Reach::Command(_) => Vec::new(),
        Reach::Url(reached) => {
            let UrlSettings { headers, credentials, .. } = &**reached;
            let credential = match credentials {
                Credentials::Secret { header, .. } => Some(header.clone()),
                Credentials::None => None,
            };
            headers.keys().cloned().chain(credential).collect()
        }
    }
}

fn profile_of(settings: &ServerSettings) -> ServerProfile {
    let trust = match settings.trust {
        Trust::Internal => TrustLevel::Internal,
        Trust::Verified => TrustLevel::Verified,
        Trust::Community => TrustLevel::Community,
        Trust::Unknown => TrustLevel::Unknown,
    };
    let has_secret = match &settings.reach {
        Reach::Url(reached) => matches!(reached.credentials, Credentials::Secret { .. }),
        Reach::Command(_) => false,
    };
    let token = if has_secret { TokenMode::Vault } else { TokenMode::None };
    ServerProfile { trust, sandbox: None, token }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

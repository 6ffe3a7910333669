//! Opens a link to a server: a remote one, a process for one caller, or a process that callers
//! share.

use super::{GatewayServer, LinkError, LinkKey, ReadyLink, lock};
use crate::child::{Child, ChildGuard, ChildInput, Said};
use crate::greeting::{Era, Greeted, greet};
use crate::link::{Link, LinkParts, Way};
use crate::pending::{Listener, Pending, Whose, messages, whose};
use engine::credentials::{Inbound, Unavailable};
use engine::judge::Instance as EngineInstance;
use engine::principal::Principal;
use serde_json::json;
use settings::SecretName;
use settings::gateway::{CommandSettings, Credentials, Instance, Reach};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use wire::process::Environment;
use wire::remote::{Credential, RemoteLimits, RemoteSession};
use wire::{HttpEndpoint, StdioLaunch, Upstream};

/// The most idle connections kept to one server.
const IDLE_CONNECTIONS: usize = 128;

/// A process that several callers share.
#[derive(Debug, Clone)]
pub(super) struct SharedChild {
    pub(super) input: ChildInput,
    instance: EngineInstance,
    ids: Arc<AtomicU64>,
    links: Arc<Mutex<HashMap<u64, Weak<Link>>>>,
}

/// The far end of a link.
struct FarEnd {
    way: Way,
    instance: EngineInstance,
    /// The counter of request numbers, shared by all links to one process.
    ids: Arc<AtomicU64>,
}

impl FarEnd {
    fn new(way: Way, instance: EngineInstance) -> FarEnd {
        FarEnd { way, instance, ids: Arc::new(AtomicU64::new(1)) }
    }
}

impl GatewayServer {
    /// Opens a link without a far end: every request is refused with the reason why the server is
    /// not admitted.
    async fn open_nowhere(
        self: &Arc<Self>,
        principal: Principal,
        pending: Arc<Pending>,
    ) -> Result<Arc<Link>, LinkError> {
        let end = FarEnd::new(Way::Child(ChildInput::nowhere()), self.new_instance());
        self.join(end, principal, pending, Box::from(*b"{}")).await
    }

    fn new_instance(&self) -> EngineInstance {
        EngineInstance(self.next_instance.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens an engine session. Runs on a blocking thread, because reading the store may take long.
    async fn join(
        &self,
        end: FarEnd,
        principal: Principal,
        pending: Arc<Pending>,
        offered: Box<[u8]>,
    ) -> Result<Arc<Link>, LinkError> {
        let FarEnd { way, instance, ids } = end;
        let parts = LinkParts {
            server: self.engine.clone(),
            instance,
            principal,
            way,
            pending,
            offered,
            ids,
            runtime: self.runtime.clone(),
        };
        let opened = tokio::task::spawn_blocking(move || Link::open(parts)).await;
        let aborted = |_| LinkError::NotStarted(std::io::ErrorKind::Interrupted.into());
        Ok(opened.map_err(aborted)??)
    }

    pub(super) async fn open_unguarded(
        self: &Arc<Self>,
        key: &LinkKey,
        principal: Principal,
        credential: Option<&Arc<Credential>>,
        listener: Box<Listener>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        let pending = Arc::new(Pending::new(listener));
        let asks_as = principal.clone();
        let is_unstarted = !self.may_start().await;
        let (link, child) = match (&self.upstream, &self.settings.reach) {
            (Upstream::Stdio(_), _) if is_unstarted => {
                (self.open_nowhere(principal, pending).await?, None)
            }
            (Upstream::Http(endpoint), _) => {
                (self.open_remote(endpoint, principal, credential, pending, key).await?, None)
            }
            (Upstream::Stdio(launch), Reach::Command(command)) => match command.instance {
                Instance::Shared => {
                    let launch =
                        self.with_secrets(launch, command).await.map_err(LinkError::NoSecret)?;
                    (self.open_shared(&launch, principal, pending, key).await?, None)
                }
                Instance::Principal | Instance::Session => {
                    let launch =
                        self.with_secrets(launch, command).await.map_err(LinkError::NoSecret)?;
                    let (link, child) =
                        self.open_child(&launch, command, principal, pending, key).await?;
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
            Ok(Greeted { era, spoken, has_tasks }) => {
                self.eras.store(spoken, Ordering::Relaxed);
                self.note_tasks(era, has_tasks);
                if self.is_shown_bound_tokens() {
                    // A token bound to requests is only sent with the caller's own requests.
                } else if era == Era::Sessions {
                    link.listen(&self.runtime);
                } else if self.engine.permits_use(&asks_as) {
                    link.subscribe(&self.runtime);
                }
                Ok(Arc::new(ReadyLink {
                    link,
                    era,
                    has_tasks,
                    principal: asks_as,
                    _child: child,
                    is_unstarted,
                }))
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
        credential: Option<&Arc<Credential>>,
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
        let session = first.another();
        if let Some(credential) = credential {
            session.present(credential);
        }
        // The server's lists may depend on the credential: an entry missing for one caller must not
        // count as removed for others.
        let instance = match key.credential {
            Some(_) => self.new_instance(),
            None => EngineInstance::default(),
        };
        let end = FarEnd::new(Way::Remote(Arc::new(session)), instance);
        self.join(end, principal, pending, key.capabilities.clone()).await
    }

    /// The server with the gateway's own credentials and secrets. Fails if the server takes
    /// callers' credentials.
    pub(crate) async fn own_upstream(&self) -> Result<Upstream, Unavailable> {
        match (&self.upstream, &self.settings.reach) {
            (Upstream::Http(endpoint), _) => {
                let mut endpoint = endpoint.clone();
                let own = self.broker.obtain(&Inbound::default()).await?;
                let own = own.map(|own| (own.name().clone(), own.value().clone()));
                endpoint.headers.extend(own);
                Ok(Upstream::Http(endpoint))
            }
            (Upstream::Stdio(launch), Reach::Command(command)) => {
                let launch = self.with_secrets(launch, command).await?;
                self.install(launch.clone()).await;
                Ok(Upstream::Stdio(launch))
            }
            (Upstream::Stdio(launch), Reach::Url(_)) => Ok(Upstream::Stdio(launch.clone())),
        }
    }

    /// Installs the package of a confined server before its start. Errors are ignored: the start
    /// fails with the same error and reports it.
    async fn install(&self, launch: StdioLaunch) {
        let Some(confiner) = self.confiner.clone() else { return };
        let prepare = move || confiner.prepare(&launch, Environment::Named).map(|_| ());
        let _ = tokio::task::spawn_blocking(prepare).await;
    }

    fn is_shown_bound_tokens(&self) -> bool {
        match &self.settings.reach {
            Reach::Url(reached) => matches!(reached.credentials, Credentials::Bound { .. }),
            Reach::Command(_) => false,
        }
    }

    /// The launch of a program, with the secrets that are read at each start.
    async fn with_secrets(
        &self,
        launch: &StdioLaunch,
        command: &CommandSettings,
    ) -> Result<StdioLaunch, Unavailable> {
        let mut launch = launch.clone();
        for (name, secret) in &command.env {
            if matches!(secret, SecretName::Vault(_) | SecretName::Age(_)) {
                let value = self.secrets.read(secret).await?;
                launch.environment.push((name.into(), value.expose().into()));
            }
        }
        Ok(launch)
    }

    /// Starts a process for a single caller.
    async fn open_child(
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
        let mut launch = launch.clone();
        if let Some(confiner) = &self.confiner {
            // Data stored by one caller's process must not be readable by another's.
            let caller = principal.caller.as_ref();
            let who = caller.map(|caller| hex::encode(caller.principal()));
            let own = confiner.for_instance(&who.unwrap_or_default());
            let (recorder, server) = (self.recorder.clone(), self.settings.id.clone());
            let (of, session) = (principal.clone(), key.session);
            let own = own.telling(Arc::new(move |count| {
                recorder.signal_egress_blocked(server.as_str(), &of, session, count);
            }));
            launch.confinement = Some(Arc::new(own));
        }
        let child = start_child(launch).await.map_err(LinkError::NotStarted)?;
        let end = FarEnd::new(Way::Child(child.input.clone()), self.new_instance());
        let link = self.join(end, principal, pending, key.capabilities.clone()).await?;
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

    /// Opens a link to the process that all callers share.
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
            *running = Some(self.start_shared(launch).await.map_err(LinkError::NotStarted)?);
        }
        let Some(SharedChild { input, instance, ids, links }) = running.clone() else {
            return Err(LinkError::NotStarted(std::io::ErrorKind::BrokenPipe.into()));
        };
        drop(running);
        let end = FarEnd { way: Way::Child(input), instance, ids };
        let link = self.join(end, principal, pending, key.capabilities.clone()).await?;
        lock(&links).insert(link.session().key().0, Arc::downgrade(&link));
        Ok(link)
    }

    async fn start_shared(self: &Arc<Self>, launch: &StdioLaunch) -> std::io::Result<SharedChild> {
        self.children.fetch_add(1, Ordering::AcqRel);
        let counted = CountedChild(self.children.clone());
        let child = start_child(launch.clone()).await?;
        let links: Arc<Mutex<HashMap<u64, Weak<Link>>>> = Arc::default();
        let shared = SharedChild {
            input: child.input.clone(),
            instance: self.new_instance(),
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
}

/// Starts a process. Confining it may take long, because a package may have to be installed first,
/// so this runs on a blocking thread.
async fn start_child(launch: StdioLaunch) -> std::io::Result<Child> {
    if launch.confinement.is_none() {
        return Child::start(&launch);
    }
    let started = tokio::task::spawn_blocking(move || Child::start(&launch)).await;
    started.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()))
}

/// Counts a process while it runs.
struct CountedChild(Arc<AtomicU32>);

impl Drop for CountedChild {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Routes output of a shared process. Responses go to the caller that made the request. Of other
/// messages, only list changes are passed on: a shared process must not reveal one caller's actions
/// to another.
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

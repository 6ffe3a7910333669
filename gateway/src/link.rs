//! One caller's way to one server: an engine session that decides on its requests, and the connection that carries what was
//! allowed.
//!
//! INVARIANT: what goes to the server goes through the engine's session. The task that carries a request gets it from there,
//! after its decision was written.

use crate::asking::is_offered;
use crate::call_slots::CallSlot;
use crate::frame::member;
use crate::greeting::{META_CAPABILITIES, META_CLIENT, META_VERSION, STATELESS};
use crate::pending::{Answer, Happening, Pending, PendingOutlet, Slot, hear_for, number};
use crate::presented::{self, Presented};
use crate::task_names::TaskNames;
use bytes::Bytes;
use engine::call::{RequestContext, Subject};
use engine::errands::run_one;
use engine::judge::Instance;
use engine::outlet::{FreeMessage, Outgoing, ServerOutlet, outbound};
use engine::principal::Principal;
use engine::server::{Server, ViewError};
use engine::session::{Parts, Session};
use http::{HeaderName, HeaderValue};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use store::receipts::Settled;
use tokio::sync::mpsc;
use wire::remote::{Heard, Outbound, RemoteSession};

use crate::child::ChildInput;

/// The most messages of one link that wait to be carried beside the callers' requests. Further ones are not sent: a server
/// that asks without end and takes no answer must not fill the memory.
const MAX_OWN_MESSAGES: usize = 1_024;

/// How often it is looked whether a link that is listened on has ended.
const LOOK: Duration = Duration::from_secs(2);

/// How long to wait before a server is asked again to tell of changed lists.
const RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(10);

/// How requests reach the server.
#[derive(Debug)]
pub(crate) enum Way {
    /// Each is carried by the task that made it.
    Remote(Arc<RemoteSession>),
    /// All of them go to a process's input.
    Child(ChildInput),
}

/// One caller's way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    session: Arc<Session>,
    pending: Arc<Pending>,
    remote: Option<Arc<RemoteSession>>,
    /// The client's capabilities that the server was offered, as JSON.
    offered: Box<[u8]>,
    ids: Arc<AtomicU64>,
    /// The server was lost: whoever needs it opens another link.
    is_closed: Arc<AtomicBool>,
    used_at: AtomicU64,
    opened: Instant,
    /// The request by which the server tells of changed lists.
    subscription: AtomicU64,
    /// The tasks that were made on it.
    tasks: TaskNames,
    /// It is not idle before this moment, in milliseconds since it was opened: a process may work on a task meanwhile.
    kept_until: AtomicU64,
}

/// What a link is made of.
pub(crate) struct LinkParts {
    pub(crate) server: Arc<Server>,
    pub(crate) instance: Instance,
    pub(crate) principal: Principal,
    pub(crate) way: Way,
    pub(crate) pending: Arc<Pending>,
    /// The client's capabilities that the server is offered, as JSON.
    pub(crate) offered: Box<[u8]>,
    /// Numbers for requests. Links to one process share them, so that no two requests of it have the same.
    pub(crate) ids: Arc<AtomicU64>,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl Link {
    pub(crate) fn open(parts: LinkParts) -> Result<Arc<Link>, ViewError> {
        let LinkParts { server, instance, principal, way, pending, offered, ids, runtime } = parts;
        let is_closed = Arc::new(AtomicBool::new(false));
        let (own, queue) = mpsc::channel(MAX_OWN_MESSAGES);
        let (remote, to_server): (_, Box<dyn ServerOutlet>) = match way {
            Way::Remote(remote) => {
                let outlet = RemoteOutlet { pending: pending.clone(), own, gathered: Vec::new() };
                (Some(remote), Box::new(outlet))
            }
            Way::Child(input) => (None, Box::new(ChildOutlet { input, gathered: Vec::new() })),
        };
        let errands = server.clone();
        let session = Session::open(Parts {
            server,
            instance,
            principal,
            to_client: Box::new(PendingOutlet(pending.clone())),
            to_server,
            // Neither outlet blocks.
            errands: Arc::new(move |key, errand| {
                if let Some(session) = errands.session(key) {
                    run_one(&session, &errand);
                }
            }),
        })?;
        let link = Arc::new(Link {
            session,
            pending,
            remote,
            offered,
            ids,
            is_closed,
            used_at: AtomicU64::new(0),
            opened: Instant::now(),
            subscription: AtomicU64::new(0),
            tasks: TaskNames::default(),
            kept_until: AtomicU64::new(0),
        });
        link.pending.belong_to(&link);
        if link.remote.is_some() {
            runtime.spawn(carry_own(Arc::downgrade(&link), queue));
        }
        Ok(link)
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether the server may ask the client this.
    pub(crate) fn offers(&self, method: &str) -> bool {
        is_offered(&self.offered, method)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// The server is gone: what waits is answered, and no request comes this way any more.
    pub(crate) fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.session.server_ended();
        }
    }

    /// The caller is gone.
    pub(crate) async fn end(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.session.end();
        self.session.try_close_server();
        if let Some(remote) = &self.remote {
            remote.end().await;
        }
    }

    /// How long nothing was asked on it; `None` while a request is unanswered.
    pub(crate) fn idle(&self) -> Option<Duration> {
        if self.pending.has_others_than(self.subscription.load(Ordering::Acquire)) {
            return None;
        }
        let used = Duration::from_millis(self.used_at.load(Ordering::Relaxed));
        let kept_until = Duration::from_millis(self.kept_until.load(Ordering::Relaxed));
        let now = self.opened.elapsed();
        (now >= kept_until).then(|| now.saturating_sub(used))
    }

    /// The tasks that were made on it.
    pub(crate) fn tasks(&self) -> &TaskNames {
        &self.tasks
    }

    /// Keeps it open for a while although nothing is asked on it.
    pub(crate) fn keep_for(&self, time: Duration) {
        let until = self.opened.elapsed().saturating_add(time).as_millis();
        self.kept_until.fetch_max(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns once the server is gone.
    pub(crate) async fn closed(&self) {
        while !self.is_closed() {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn touch(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_at.store(now, Ordering::Relaxed);
    }

    /// Whether a request with this raw id is one of this link's: a caller's, or one of the gate's own.
    pub(crate) fn expects(&self, id: &[u8]) -> bool {
        match number(id) {
            Some(number) => self.pending.has(number),
            None => self.session.expects(id),
        }
    }

    /// Makes a request. `frame` gets the number that the request has here, as its id and as its progress token.
    pub(crate) fn ask(
        self: &Arc<Self>,
        progress_token: Option<&[u8]>,
        ending: Ending,
        frame: impl FnOnce(u64) -> Vec<u8>,
    ) -> LinkRequest {
        self.ask_in(&Surroundings::default(), progress_token, ending, frame)
    }

    /// The same for a request that belongs to a trace, or that headers of the client go on with.
    pub(crate) fn ask_in(
        self: &Arc<Self>,
        surroundings: &Surroundings<'_>,
        progress_token: Option<&[u8]>,
        ending: Ending,
        frame: impl FnOnce(u64) -> Vec<u8>,
    ) -> LinkRequest {
        self.touch();
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let slot = self.pending.add(number, progress_token);
        let request = LinkRequest {
            link: self.clone(),
            number,
            slot,
            carrying: None,
            is_answered: false,
            ending,
            headers: surroundings.headers.clone(),
            call_slot: None,
            presented: surroundings.presented.clone(),
        };
        if let (Some(remote), Some(presented)) = (&self.remote, &surroundings.presented) {
            remote.present(&presented.credential);
        }
        let context = RequestContext {
            trace_id: surroundings.trace_id.as_deref(),
            subject: surroundings.subject,
            session: surroundings.session,
        };
        self.session.client_said_in(&frame(number), false, context);
        self.session.client_paused();
        request
    }

    /// Sends a notification, or an answer to a request of the server's.
    pub(crate) fn tell(&self, frame: &[u8]) {
        self.touch();
        self.session.client_said(frame, false);
        self.session.client_paused();
    }

    /// Begins to hear what a remote server sends without having been asked.
    pub(crate) fn listen(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let Some(remote) = self.remote.clone() else { return };
        let link = Arc::downgrade(self);
        let is_closed = self.is_closed.clone();
        runtime.spawn(async move {
            let hear = |message: &[u8]| {
                if let Some(link) = link.upgrade() {
                    link.hear(message, false);
                }
            };
            let ended = async {
                while !is_closed.load(Ordering::Acquire) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::select! {
                _ = remote.listen(hear) => {}
                () = ended => {}
            }
        });
    }

    /// Asks a server without sessions to tell when its lists change.
    pub(crate) fn subscribe(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let link = self.clone();
        let frame = |number: u64| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}},"_meta":{{"{META_VERSION}":"{STATELESS}","{META_CAPABILITIES}":{{}},"{META_CLIENT}":{{"name":"holdpoint-gateway","version":"{}"}}}}}}}}"#,
                env!("CARGO_PKG_VERSION")
            )
            .into_bytes()
        };
        // The engine hears what comes; the answer is the end of the stream, or of the link.
        runtime.spawn(async move {
            while !link.is_closed() {
                let used_at = link.used_at.load(Ordering::Relaxed);
                let mut request = link.ask(None, Ending::Cancels, frame);
                link.subscription.store(request.number, Ordering::Release);
                // The link is none the less idle for it.
                link.used_at.store(used_at, Ordering::Relaxed);
                let answer = request.answer().await;
                if is_refusal(answer.bytes()) {
                    return;
                }
                tokio::time::sleep(RESUBSCRIBE_PAUSE).await;
            }
        });
    }

    /// Hears a message of the server that came for no request of ours in particular.
    pub(crate) fn hear(&self, message: &[u8], has_more: bool) {
        self.session.server_said(message, has_more);
        if !has_more {
            self.session.server_paused();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.session.end();
    }
}

/// Whether a server answered that it does not do what it was asked for. A stream that broke off is none.
fn is_refusal(answer: &[u8]) -> bool {
    let code = member(answer, "error").and_then(|error| member(error, "code"));
    code.is_some_and(|code| code != b"-32011")
}

/// What of a client's HTTP request goes on with what it asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings<'a> {
    pub(crate) trace_id: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// What it is about, where its own parameters do not tell.
    pub(crate) subject: Option<Subject<'a>>,
    /// What the server is shown in place of the client's token.
    pub(crate) presented: Option<Presented>,
    /// The session that it belongs to.
    pub(crate) session: Option<u64>,
}

/// What becomes of a request whose client does not wait for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It runs to its outcome: in older revisions a client that disconnects has not cancelled.
    RunsOn,
    /// It is cancelled upstream.
    Cancels,
}

type Carrying = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request on its way. It is carried by whoever waits for what it gives.
pub(crate) struct LinkRequest {
    link: Arc<Link>,
    number: u64,
    slot: Arc<Slot>,
    carrying: Option<Carrying>,
    is_answered: bool,
    ending: Ending,
    /// Headers that go to a remote server with it.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Its place among the calls in flight, until it is answered or given up.
    call_slot: Option<CallSlot>,
    presented: Option<Presented>,
}

/// What a request gives, one after the other; the answer is the last.
#[derive(Debug)]
pub(crate) enum Given {
    Message(Bytes),
    Answer(Answer),
    /// The server's stream can be taken up again, after this time.
    Resumable {
        retry: Option<Duration>,
    },
    /// The server ended its stream before the answer.
    Paused,
}

impl LinkRequest {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Has it take a place among the calls in flight.
    pub(crate) fn take_slot(&mut self, slot: Option<CallSlot>) {
        if let Some(slot) = &slot {
            slot.dispatched();
        }
        self.call_slot = slot;
    }

    /// Gives its place to the request that goes on in its stead.
    pub(crate) fn give_slot(&mut self, next: &mut LinkRequest) {
        next.call_slot = self.call_slot.take();
    }

    /// The client has cancelled it: it is not carried on.
    pub(crate) fn cancel(&mut self) {
        self.ending = Ending::Cancels;
    }

    pub(crate) async fn next(&mut self) -> Given {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Given> {
        let mut happened = self.slot.take();
        loop {
            match happened {
                Some(Happening::Send(outbound)) => self.carrying = self.carry(*outbound),
                Some(Happening::Message(message)) => return Poll::Ready(Given::Message(message)),
                Some(Happening::Resumable { retry }) => {
                    return Poll::Ready(Given::Resumable { retry });
                }
                Some(Happening::Paused) => return Poll::Ready(Given::Paused),
                Some(Happening::Answer(answer)) => {
                    self.is_answered = true;
                    return Poll::Ready(Given::Answer(answer));
                }
                None => {}
            }
            if let Some(carrying) = &mut self.carrying
                && carrying.as_mut().poll(context).is_ready()
            {
                self.carrying = None;
            }
            happened = Some(ready!(self.slot.poll_take(context)));
        }
    }

    /// The answer; what comes before it is dropped.
    pub(crate) async fn answer(&mut self) -> Answer {
        loop {
            if let Given::Answer(answer) = self.next().await {
                return answer;
            }
        }
    }

    fn carry(&self, mut outbound: Outbound) -> Option<Carrying> {
        let remote = self.link.remote.clone()?;
        let (session, number) = (self.link.session.clone(), self.number);
        let pending = self.link.pending.clone();
        outbound.headers.clone_from(&self.headers);
        let presented = self.presented.clone();
        Some(Box::pin(async move {
            let hear = |heard: Heard| match heard {
                Heard::Message(bytes) | Heard::Answer(bytes) => {
                    hear_for(number, &bytes.into(), |bytes| session.server_said(bytes, false));
                    session.server_paused();
                }
                Heard::Resumable { retry } => {
                    pending.note(number, Happening::Resumable { retry });
                }
                Heard::Paused => pending.note(number, Happening::Paused),
            };
            if let Err(failure) = presented::ask(&remote, presented, outbound, hear).await {
                session.request_failed(number.to_string().as_bytes(), &failure);
                session.server_paused();
            }
        }))
    }
}

impl Drop for LinkRequest {
    fn drop(&mut self) {
        let carrying = self.carrying.take();
        if !self.is_answered {
            self.link.session.client_left(self.number.to_string().as_bytes());
        }
        if self.is_answered {
            self.link.pending.remove(self.number);
            // What is left of the exchange frees its connection for others.
            if let (Some(carrying), Ok(runtime)) = (carrying, tokio::runtime::Handle::try_current())
            {
                runtime.spawn(carrying);
            }
            return;
        }
        match self.ending {
            Ending::RunsOn => {
                let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
                let mut rest = LinkRequest {
                    link: self.link.clone(),
                    number: self.number,
                    slot: self.slot.clone(),
                    carrying,
                    is_answered: false,
                    ending: Ending::Cancels,
                    headers: Vec::new(),
                    call_slot: self.call_slot.take(),
                    presented: self.presented.take(),
                };
                runtime.spawn(async move {
                    rest.answer().await;
                });
            }
            Ending::Cancels => {
                drop(carrying);
                self.link.pending.remove(self.number);
                let cancelled = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
                    self.number
                );
                self.link.tell(cancelled.as_bytes());
                if self.link.remote.is_some() {
                    let failure = wire::remote::RemoteFailure::Cancelled;
                    self.link.session.request_failed(self.number.to_string().as_bytes(), &failure);
                    self.link.session.server_paused();
                }
            }
        }
    }
}

/// Carries the gate's own messages, and those that need no receipt.
async fn carry_own(link: Weak<Link>, mut queue: mpsc::Receiver<Outbound>) {
    while let Some(outbound) = queue.recv().await {
        let Some(strong) = link.upgrade() else { return };
        let Some(remote) = strong.remote.clone() else { return };
        let session = strong.session.clone();
        drop(strong);
        match outbound.id.clone() {
            // One that waits for its answer keeps no other waiting.
            Some(id) => {
                tokio::spawn(async move {
                    let hear = |heard: Heard| match heard {
                        Heard::Message(bytes) | Heard::Answer(bytes) => {
                            session.server_said(&bytes, false);
                            session.server_paused();
                        }
                        Heard::Resumable { .. } | Heard::Paused => {}
                    };
                    if let Err(failure) = presented::ask(&remote, None, outbound, hear).await {
                        session.request_failed(&id, &failure);
                        session.server_paused();
                    }
                });
            }
            None => {
                let _ = remote.tell(outbound).await;
            }
        }
    }
}

/// Hands requests to the tasks that carry them.
#[derive(Debug)]
struct RemoteOutlet {
    pending: Arc<Pending>,
    own: mpsc::Sender<Outbound>,
    gathered: Vec<Outbound>,
}

impl RemoteOutlet {
    fn put(&self, outbound: Outbound) -> io::Result<()> {
        let outbound = match outbound.id.as_deref().and_then(number) {
            Some(request) => self.pending.send(request, outbound),
            None => Some(outbound),
        };
        let Some(own) = outbound else { return Ok(()) };
        self.own.try_send(own).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl ServerOutlet for RemoteOutlet {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        let outbound = outbound(message.as_outgoing());
        self.own.try_send(outbound).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        self.gathered.push(outbound(request));
        true
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        self.gathered.extend(last.map(outbound));
        self.flush_free()
    }

    fn flush_free(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        gathered.into_iter().try_for_each(|outbound| self.put(outbound))
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn close(&mut self) {}
}

/// Puts requests into a process's input.
#[derive(Debug)]
struct ChildOutlet {
    input: ChildInput,
    gathered: Vec<u8>,
}

impl ServerOutlet for ChildOutlet {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.input.put(&[message.as_outgoing().frame, b"\n"])
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        self.gathered.extend_from_slice(request.frame);
        self.gathered.push(b'\n');
        true
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        match last {
            Some(last) => {
                let gathered = std::mem::take(&mut self.gathered);
                self.input.put(&[&gathered, last.frame, b"\n"])
            }
            None => self.flush_free(),
        }
    }

    fn flush_free(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        if gathered.is_empty() { Ok(()) } else { self.input.put(&[&gathered]) }
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn close(&mut self) {}
}

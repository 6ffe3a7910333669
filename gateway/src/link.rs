//! The link between one caller and one server: an engine session that decides on requests, and the
//! connection that carries allowed ones.
//!
//! INVARIANT: everything sent to the server goes through the engine's session. The task that
//! carries a request receives it from the session, after the decision was recorded.

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

/// The most messages of one link, other than callers' requests, that wait to be sent. Further ones
/// are dropped: a server that keeps asking and reads no answers must not fill the memory.
const MAX_OWN_MESSAGES: usize = 1_024;

/// How often to check whether a link has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How long to wait before subscribing to list changes again.
const RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(10);

/// How requests reach the server.
#[derive(Debug)]
pub(crate) enum Way {
    /// Each request is carried by the task that made it.
    Remote(Arc<RemoteSession>),
    /// All requests are written to a process's input.
    Child(ChildInput),
}

/// The link between one caller and one server.
#[derive(Debug)]
pub(crate) struct Link {
    session: Arc<Session>,
    pending: Arc<Pending>,
    remote: Option<Arc<RemoteSession>>,
    /// The client capabilities offered to the server, as JSON.
    offered: Box<[u8]>,
    ids: Arc<AtomicU64>,
    /// Set when the server is lost: callers then open another link.
    is_closed: Arc<AtomicBool>,
    used_at: AtomicU64,
    opened: Instant,
    /// The number of the request that subscribes to list changes.
    subscription: AtomicU64,
    /// The tasks created on this link.
    tasks: TaskNames,
    /// The link is not idle before this moment, in milliseconds since it was opened: a process may
    /// be working on a task.
    kept_until: AtomicU64,
}

/// The parts that a link is made from.
pub(crate) struct LinkParts {
    pub(crate) server: Arc<Server>,
    pub(crate) instance: Instance,
    pub(crate) principal: Principal,
    pub(crate) way: Way,
    pub(crate) pending: Arc<Pending>,
    /// The client capabilities to offer to the server, as JSON.
    pub(crate) offered: Box<[u8]>,
    /// The counter of request numbers. Links to one process share it, so that no two requests to
    /// the process have the same number.
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

    /// Whether the server may send this request to the client.
    pub(crate) fn offers(&self, method: &str) -> bool {
        is_offered(&self.offered, method)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the link because the server is gone: pending requests are answered, and no new ones
    /// are accepted.
    pub(crate) fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.session.server_ended();
        }
    }

    /// Ends the link because the caller is gone.
    pub(crate) async fn end(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.session.end();
        self.session.try_close_server();
        if let Some(remote) = &self.remote {
            remote.end().await;
        }
    }

    /// How long the link has been unused; `None` while a request is pending.
    pub(crate) fn idle(&self) -> Option<Duration> {
        if self.pending.has_others_than(self.subscription.load(Ordering::Acquire)) {
            return None;
        }
        let used = Duration::from_millis(self.used_at.load(Ordering::Relaxed));
        let kept_until = Duration::from_millis(self.kept_until.load(Ordering::Relaxed));
        let now = self.opened.elapsed();
        (now >= kept_until).then(|| now.saturating_sub(used))
    }

    /// The tasks created on this link.
    pub(crate) fn tasks(&self) -> &TaskNames {
        &self.tasks
    }

    /// Keeps the link open for some time even if it is unused.
    pub(crate) fn keep_for(&self, time: Duration) {
        let until = self.opened.elapsed().saturating_add(time).as_millis();
        self.kept_until.fetch_max(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns once the server is gone.
    pub(crate) async fn closed(&self) {
        while !self.is_closed() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn touch(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_at.store(now, Ordering::Relaxed);
    }

    /// Whether a request with this raw id is pending on this link: a caller's, or one of the gate's
    /// own.
    pub(crate) fn expects(&self, id: &[u8]) -> bool {
        match number(id) {
            Some(number) => self.pending.has(number),
            None => self.session.expects(id),
        }
    }

    /// Makes a request. `frame` gets the request's number on this link, which is its id and its
    /// progress token.
    pub(crate) fn ask(
        self: &Arc<Self>,
        progress_token: Option<&[u8]>,
        ending: Ending,
        frame: impl FnOnce(u64) -> Vec<u8>,
    ) -> LinkRequest {
        self.ask_in(&Surroundings::default(), progress_token, ending, frame)
    }

    /// Like [`Link::ask`], for a request with a trace, or with headers of the client to forward.
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

    /// Sends a notification, or a response to a request of the server.
    pub(crate) fn tell(&self, frame: &[u8]) {
        self.touch();
        self.session.client_said(frame, false);
        self.session.client_paused();
    }

    /// Starts to receive unsolicited messages of a remote server.
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
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            tokio::select! {
                _ = remote.listen(hear) => {}
                () = ended => {}
            }
        });
    }

    /// Subscribes to list changes at a server without sessions.
    pub(crate) fn subscribe(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let link = self.clone();
        let frame = |number: u64| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}},"_meta":{{"{META_VERSION}":"{STATELESS}","{META_CAPABILITIES}":{{}},"{META_CLIENT}":{{"name":"holdpoint-gateway","version":"{}"}}}}}}}}"#,
                env!("CARGO_PKG_VERSION")
            )
            .into_bytes()
        };
        // The engine receives the notifications; the response only comes when the stream or the
        // link ends.
        runtime.spawn(async move {
            while !link.is_closed() {
                let used_at = link.used_at.load(Ordering::Relaxed);
                let mut request = link.ask(None, Ending::Cancels, frame);
                link.subscription.store(request.number, Ordering::Release);
                // The subscription does not count as use of the link.
                link.used_at.store(used_at, Ordering::Relaxed);
                let answer = request.answer().await;
                if is_refusal(answer.bytes()) {
                    return;
                }
                tokio::time::sleep(RESUBSCRIBE_PAUSE).await;
            }
        });
    }

    /// Receives a message of the server that belongs to no particular request.
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

/// Whether a server refused a request, as opposed to a stream that broke off.
fn is_refusal(answer: &[u8]) -> bool {
    let code = member(answer, "error").and_then(|error| member(error, "code"));
    code.is_some_and(|code| code != b"-32011")
}

/// What accompanies a request besides its message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings<'a> {
    pub(crate) trace_id: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The subject of the request, if its parameters do not determine it.
    pub(crate) subject: Option<Subject<'a>>,
    /// The credential that replaces the client's token.
    pub(crate) presented: Option<Presented>,
    /// The session of the request.
    pub(crate) session: Option<u64>,
}

/// What happens to a request after its client stops waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It runs to completion: in older revisions, a disconnect does not cancel.
    RunsOn,
    /// It is cancelled upstream.
    Cancels,
}

type Carrying = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request in progress. It only advances while its task polls it.
pub(crate) struct LinkRequest {
    link: Arc<Link>,
    number: u64,
    slot: Arc<Slot>,
    carrying: Option<Carrying>,
    is_answered: bool,
    ending: Ending,
    /// Headers to send to a remote server with it.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Its slot among the calls in flight, until it is answered or abandoned.
    call_slot: Option<CallSlot>,
    presented: Option<Presented>,
}

/// An event of a request; the answer is the last one.
#[derive(Debug)]
pub(crate) enum Given {
    Message(Bytes),
    Answer(Answer),
    /// The server's stream can be resumed after this time.
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

    /// Takes a slot among the calls in flight.
    pub(crate) fn take_slot(&mut self, slot: Option<CallSlot>) {
        if let Some(slot) = &slot {
            slot.dispatched();
        }
        self.call_slot = slot;
    }

    /// Hands its slot to the request that replaces it.
    pub(crate) fn give_slot(&mut self, next: &mut LinkRequest) {
        next.call_slot = self.call_slot.take();
    }

    /// Cancels the request.
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

    /// The answer; earlier events are dropped.
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
            // Finish the exchange in the background, so that its connection can be reused.
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

/// Sends the gate's own messages, and those that need no receipt.
async fn carry_own(link: Weak<Link>, mut queue: mpsc::Receiver<Outbound>) {
    while let Some(outbound) = queue.recv().await {
        let Some(strong) = link.upgrade() else { return };
        let Some(remote) = strong.remote.clone() else { return };
        let session = strong.session.clone();
        drop(strong);
        match outbound.id.clone() {
            // In a separate task, so that waiting for the response blocks no other message.
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

/// Writes requests to a process's input.
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

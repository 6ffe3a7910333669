//! Subscriptions to single resources and tasks. A server without sessions reports changes on a
//! separate stream, whichever era the client uses; each notification is authorized when it is sent.

use super::rounds::asks_for_unoffered;
use super::tasks::subject_of;
use super::{Asked, Visit};
use crate::frame::{self, Edits, member, quoted};
use crate::greeting::{Era, META_CAPABILITIES, META_CLIENT, META_VERSION, STATELESS};
use crate::link::{Ending, Given, Link, Surroundings};
use crate::node::Node;
use crate::pending::{Answer, SUBSCRIPTION_ID};
use crate::presented::Presented;
use crate::reply::{self, Reply};
use crate::server::{GatewayServer, LinkKey, ReadyLink};
use crate::sessions::PrincipalId;
use crate::task_id::TaskTicket;
use crate::task_names::{TaskName, renamed};
use bytes::Bytes;
use contract::surface::EntryType;
use engine::call::{Subject, Target};
use engine::reason::ReasonCode;
use gate::server::ServerId;
use http::StatusCode;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use wire::envelope::{Envelope, Kind, Scanned, scan};

/// The most resources and tasks that one stream or session can watch.
pub(super) const MAX_WATCHED: usize = 64;
/// The most watches over all sessions of one caller, so that no caller uses up the room of others.
const MAX_WATCHES_PER_CALLER: usize = 1_000;
/// The most watches over all sessions.
const MAX_WATCHES: usize = 10_000;
/// How long a server may take to acknowledge a subscription.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before renewing a subscription that ended.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest lifetime of a subscription: that of a session.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Something that a caller watches.
#[derive(Debug, Clone)]
pub(super) enum Watched {
    Task(TaskName, Box<TaskTicket>),
    Resource(String),
}

impl Watched {
    /// The subject that it is authorized as.
    fn subject(&self) -> Subject<'_> {
        match self {
            Watched::Task(_, ticket) => subject_of(ticket),
            Watched::Resource(uri) => read(uri),
        }
    }

    fn filter(&self) -> serde_json::Value {
        match self {
            Watched::Task(name, _) => json!({"taskIds": [name.own]}),
            Watched::Resource(uri) => json!({"resourceSubscriptions": [uri]}),
        }
    }
}

fn read(uri: &str) -> Subject<'_> {
    Subject::Entry(Target { entry_type: EntryType::Resource, key: uri })
}

/// The recipient of notifications.
#[derive(Debug)]
pub(super) enum Sink {
    /// The stream of a `subscriptions/listen` request with this raw id.
    Stream {
        sender: mpsc::Sender<Bytes>,
        subscription: Vec<u8>,
    },
    Session(u64),
}

impl Sink {
    async fn closed(&self) {
        match self {
            Sink::Stream { sender, .. } => sender.closed().await,
            // Ends with its session.
            Sink::Session(_) => std::future::pending().await,
        }
    }
}

/// Whether a subscription was accepted; if not, the response of the server or the gate.
type Begun = Result<(), Answer>;

/// The subscriptions of sessions that need separate streams.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<HashMap<WatchKey, KeptWatch>>);

type WatchKey = (u64, ServerId, String);

#[derive(Debug)]
struct KeptWatch {
    principal: PrincipalId,
    task: AbortHandle,
}

impl Watches {
    /// Adds a subscription. Returns `false` if a limit is reached.
    fn add(&self, key: WatchKey, watch: KeptWatch) -> bool {
        let mut open = self.open();
        open.retain(|_, watch| !watch.task.is_finished());
        let own = open.keys().filter(|(session, ..)| *session == key.0).count();
        let callers = open.values().filter(|kept| kept.principal == watch.principal).count();
        if own >= MAX_WATCHED || callers >= MAX_WATCHES_PER_CALLER || open.len() >= MAX_WATCHES {
            watch.task.abort();
            return false;
        }
        if let Some(former) = open.insert(key, watch) {
            former.task.abort();
        }
        true
    }

    fn remove(&self, key: &WatchKey) {
        if let Some(watch) = self.open().remove(key) {
            watch.task.abort();
        }
    }

    /// Ends the subscriptions of a session.
    pub(crate) fn end(&self, session: u64) {
        let ended = self.open().extract_if(|(owner, ..), _| *owner == session).collect::<Vec<_>>();
        ended.into_iter().for_each(|(_, watch)| watch.task.abort());
    }

    fn open(&self) -> MutexGuard<'_, HashMap<WatchKey, KeptWatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Subscribes a client with a session to a resource of a server without sessions, or
    /// unsubscribes it.
    pub(super) async fn answer_subscribe(
        self: &Arc<Self>,
        visit: Visit,
        asked: Asked<'_>,
        server: &Arc<GatewayServer>,
        key: LinkKey,
    ) -> Reply {
        let uri = asked.params().and_then(|params| params.uri.as_deref());
        let (Some(uri), Some(session)) = (uri, &visit.session) else {
            return self.refuse_method(&visit, asked);
        };
        let session = session.number;
        let watch_key = (session, server.id().clone(), uri.to_owned());
        if asked.method == "resources/unsubscribe" {
            self.watches.remove(&watch_key);
            return self.answer_own(&visit, asked, Bytes::from_static(b"{}"));
        }
        let (begun, begins) = oneshot::channel();
        let watch = Watch {
            // The subscription outlives the request, so it must not use a token bound to the
            // request.
            visit: Visit { inbound: Arc::new(visit.inbound.unbound()), ..visit.clone() },
            server: server.clone(),
            key,
            watched: Watched::Resource(uri.to_owned()),
            sink: Sink::Session(session),
        };
        let task = tokio::spawn(self.clone().watch(watch, Some(begun)));
        let kept = KeptWatch { principal: visit.principal_id, task: task.abort_handle() };
        if !self.watches.add(watch_key.clone(), kept) {
            let _ = self.record_refusal(&visit, asked, ReasonCode::RateLimited);
            let words = "○ holdpoint — too many subscriptions of this session or caller are open";
            let refusal = frame::error(asked.id, ReasonCode::RateLimited.code(), words);
            return reply::json(StatusCode::OK, [refusal.into()]);
        }
        match tokio::time::timeout(PATIENCE, begins).await {
            Ok(Ok(Ok(()))) => self.answer_own(&visit, asked, Bytes::from_static(b"{}")),
            Ok(Ok(Err(answer))) => {
                self.watches.remove(&watch_key);
                reply::json(StatusCode::OK, answer.with_id(asked.id))
            }
            Ok(Err(_)) | Err(_) => {
                self.watches.remove(&watch_key);
                let words = "○ holdpoint — the server did not accept the subscription in time";
                let _ = self.record_refusal(&visit, asked, ReasonCode::Timeout);
                let refusal = frame::error(asked.id, ReasonCode::Timeout.code(), words);
                reply::json(StatusCode::OK, [refusal.into()])
            }
        }
    }

    /// Sends notifications until there is no recipient any more. A subscription that ends is
    /// renewed.
    pub(super) async fn watch(
        self: Arc<Self>,
        watch: Watch,
        begun: Option<oneshot::Sender<Begun>>,
    ) {
        let mut stop = self.stopping();
        tokio::select! {
            () = self.keep_watching(&watch, begun) => {}
            () = watch.sink.closed() => {}
            () = tokio::time::sleep(LIFETIME) => {}
            _ = stop.changed() => {}
        }
    }

    async fn keep_watching(
        self: &Arc<Self>,
        watch: &Watch,
        mut begun: Option<oneshot::Sender<Begun>>,
    ) {
        let Watch { visit, server, key, .. } = watch;
        loop {
            if let Ok(mut presented) = self.present_for_look(visit, server).await
                && let Ok(ready) = self.link(visit, server, key, &mut presented).await
            {
                match ready.era {
                    Era::Stateless => self.listen_to(watch, &ready, presented, &mut begun).await,
                    Era::Sessions => subscribe_in_session(watch, &ready, presented).await,
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn listen_to(
        &self,
        watch: &Watch,
        ready: &ReadyLink,
        presented: Option<Presented>,
        begun: &mut Option<oneshot::Sender<Begun>>,
    ) {
        let Watch { key, watched, .. } = watch;
        let subject = Some(watched.subject());
        let surroundings = Surroundings { subject, presented, ..Surroundings::default() };
        let mut request = ready.link.ask_in(&surroundings, None, Ending::Cancels, |number| {
            listening(number, &watched.filter(), &key.capabilities)
        });
        loop {
            match request.next().await {
                Given::Message(message) => {
                    if self.notify_watcher(watch, &ready.link, &message)
                        && let Some(begun) = begun.take()
                    {
                        let _ = begun.send(Ok(()));
                    }
                }
                Given::Resumable { .. } | Given::Paused => {}
                Given::Answer(answer) => {
                    if let Some(begun) = begun.take() {
                        let _ = begun.send(Err(answer));
                    }
                    return;
                }
            }
        }
    }

    /// Forwards a message of the server. Returns whether it was the acknowledgement.
    fn notify_watcher(&self, watch: &Watch, link: &Link, message: &[u8]) -> bool {
        let Ok(Scanned::Message(Envelope { kind: Kind::Notification { method }, params, .. })) =
            scan(message)
        else {
            return false;
        };
        let params = params.map(|params| params.raw).unwrap_or(b"{}");
        let Watch { visit, server, watched, sink, .. } = watch;
        let told = match (&*method, watched) {
            ("notifications/subscriptions/acknowledged", _) => return true,
            ("notifications/tasks", Watched::Task(name, ticket)) => {
                let is_permitted = self.authorizes_task(visit, ticket).is_ok();
                let named = member(params, "taskId").is_some();
                let may = is_permitted && named && !asks_for_unoffered(link, params);
                may.then(|| renamed(params, name).ok()).flatten()
            }
            ("notifications/resources/updated", Watched::Resource(_)) => {
                let uri = member(params, "uri");
                let uri = uri.and_then(|raw| serde_json::from_slice::<String>(raw).ok());
                let may = |uri: &String| self.authorizes(visit, server.id(), read(uri)).is_ok();
                uri.filter(may).map(|uri| match sink {
                    Sink::Stream { .. } => params.to_vec(),
                    Sink::Session(_) => json!({"uri": uri}).to_string().into_bytes(),
                })
            }
            _ => None,
        };
        let Some(params) = told else { return false };
        match sink {
            Sink::Stream { sender, subscription } => {
                let message = notification(&method, &subscribed(&params, subscription));
                // A client that does not read its stream misses the message; it can still query the
                // task.
                let _ = sender.try_send(reply::event(&[&message]));
            }
            Sink::Session(session) => {
                self.sessions.send_to_session(*session, &notification(&method, &params));
            }
        }
        false
    }
}

/// A subscription on its own stream.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) visit: Visit,
    pub(super) server: Arc<GatewayServer>,
    pub(super) key: LinkKey,
    pub(super) watched: Watched,
    pub(super) sink: Sink,
}

/// Subscribes in the link's session, whose notifications go to every stream of the caller that
/// asked for them. Returns when the link is closed.
async fn subscribe_in_session(watch: &Watch, ready: &ReadyLink, presented: Option<Presented>) {
    let Watched::Resource(uri) = &watch.watched else { return };
    let message = |method: &'static str| {
        move |number: u64| {
            let uri = String::from_utf8_lossy(&quoted(uri)).into_owned();
            format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{"uri":{uri}}}}}"#
            )
            .into_bytes()
        }
    };
    let surroundings = Surroundings { presented, ..Surroundings::default() };
    let subscribe = message("resources/subscribe");
    ready.link.ask_in(&surroundings, None, Ending::RunsOn, subscribe).answer().await;
    ready.link.closed().await;
}

fn listening(number: u64, filter: &serde_json::Value, capabilities: &[u8]) -> Vec<u8> {
    let capabilities = String::from_utf8_lossy(capabilities);
    let client = json!({"name": "holdpoint-gateway", "version": env!("CARGO_PKG_VERSION")});
    format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"subscriptions/listen","params":{{"notifications":{filter},"_meta":{{"{META_VERSION}":"{STATELESS}","{META_CAPABILITIES}":{capabilities},"{META_CLIENT}":{client}}}}}}}"#
    )
    .into_bytes()
}

/// Parameters marked with the id of the client's subscription.
pub(crate) fn subscribed(params: &[u8], subscription: &[u8]) -> Vec<u8> {
    let mut edits = Edits::of(params);
    match member(params, "_meta") {
        Some(meta) => match member(meta, SUBSCRIPTION_ID) {
            Some(own) => edits.replace(own, subscription),
            None => edits.insert(meta, SUBSCRIPTION_ID, subscription),
        },
        None => {
            let meta = [&quoted(SUBSCRIPTION_ID), b":".as_slice(), subscription].concat();
            edits.insert(params, "_meta", &[b"{".as_slice(), &meta, b"}"].concat());
        }
    }
    edits.finish()
}

fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let beginning = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":"#);
    [beginning.as_bytes(), params, b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_carry_the_id_of_the_clients_subscription() {
        let check = |params: &str, expected: &str| {
            let subscribed = subscribed(params.as_bytes(), br#""mine""#);
            assert_eq!(String::from_utf8(subscribed).unwrap(), expected);
        };
        check(
            r#"{"uri":"a:b"}"#,
            r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"mine"},"uri":"a:b"}"#,
        );
        check(
            r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":1}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"mine","x":1}}"#,
        );
        check(r#"{"_meta":{}}"#, r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"mine"}}"#);
    }

    #[tokio::test]
    async fn the_subscriptions_of_a_session_are_limited_and_end_with_it() {
        let watches = Watches::default();
        let add = |session: u64, number: usize| add(&watches, [1; 32], session, number);
        let mut kept = Vec::new();
        for number in 0..MAX_WATCHED {
            let (is_kept, task) = add(1, number);
            assert!(is_kept);
            kept.push(task);
        }
        let (is_kept, refused) = add(1, MAX_WATCHED);
        assert!(!is_kept);
        assert!(refused.await.unwrap_err().is_cancelled());
        let (is_kept, other) = add(2, 0);
        assert!(is_kept);
        watches.end(1);
        for task in kept {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert!(!other.is_finished());
        watches.end(2);
    }

    /// Adds a subscription of a caller. Returns whether it was added, and its task.
    fn add(
        watches: &Watches,
        principal: PrincipalId,
        session: u64,
        number: usize,
    ) -> (bool, tokio::task::JoinHandle<()>) {
        let task = tokio::spawn(std::future::pending::<()>());
        let key = (session, "files".parse().unwrap(), format!("a:{number}"));
        let kept = KeptWatch { principal, task: task.abort_handle() };
        (watches.add(key, kept), task)
    }

    #[tokio::test]
    async fn one_caller_does_not_take_the_room_of_the_others() {
        let watches = Watches::default();
        for number in 0..MAX_WATCHES_PER_CALLER {
            let session = u64::try_from(number / MAX_WATCHED).unwrap();
            assert!(add(&watches, [1; 32], session, number).0, "{number}");
        }
        assert!(!add(&watches, [1; 32], 1_000_000, 0).0);
        assert!(add(&watches, [2; 32], 1_000_001, 0).0);
    }
}

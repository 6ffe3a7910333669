//! Sessions of clients of the older era, and the streams on which clients of both eras receive
//! unsolicited messages.

use crate::catalog::Scope;
use crate::sealed::{Purpose, SealError, Sealer};
use bytes::Bytes;
use contract::surface::ListKind;
use contract::time::Timestamp;
use policy::Caller;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::NodeId;
use tokio::sync::mpsc;

/// The longest capabilities that fit into a session's id.
const MAX_ASKABLE_BYTES: usize = 512;
/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most messages queued for a stream. A stream that is not read is closed.
pub(crate) const STREAM_MESSAGES: usize = 256;
/// The most ended sessions that are remembered until they would have expired.
const MAX_TOMBSTONES: usize = 100_000;
/// The most sessions with a stored log level.
const MAX_LEVELS: usize = 10_000;
/// The most open streams of one caller.
const MAX_STREAMS_PER_CALLER: usize = 32;

/// The id of a principal, independent of its current attributes.
pub(crate) type PrincipalId = [u8; 32];

/// The content of a session's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionTicket {
    pub(crate) number: u64,
    /// The node that created the session, and holds its state.
    pub(crate) node: NodeId,
    pub(crate) began: Timestamp,
    /// The negotiated protocol revision.
    pub(crate) version: String,
    /// The client capabilities that allow a server to ask it something, as JSON.
    pub(crate) askable: Vec<u8>,
}

/// Why a session's id is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// It was not created here, or belongs to another caller or path.
    Unknown,
    Expired,
    Ended,
}

/// A stream that a client listens on.
#[derive(Debug)]
struct OpenStream {
    principal: PrincipalId,
    caller: Caller,
    session: Option<u64>,
    scope: Scope,
    /// The lists and resources that the client wants to be notified of.
    filter: StreamFilter,
    sender: mpsc::Sender<Bytes>,
}

/// What a stream carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamFilter {
    /// The lists; `None` for every list.
    pub(crate) lists: Option<HashSet<ListKind>>,
    /// The resources that the client subscribed to.
    pub(crate) resources: HashSet<String>,
    /// The raw id to mark notifications with, if the client subscribed.
    pub(crate) subscription: Option<Vec<u8>>,
}

/// The session's id that a connection named last, opened. Most connections name one again and again, and opening it takes
/// longer than all that is checked of it, which is checked each time.
#[derive(Debug, Default)]
pub(crate) struct LastId(Mutex<Option<OpenedId>>);

struct OpenedId {
    /// Whose it was found to be.
    principal: PrincipalId,
    id: Box<str>,
    content: Vec<u8>,
}

impl std::fmt::Debug for OpenedId {
    /// The id counts for its caller: it is not shown.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OpenedId").finish_non_exhaustive()
    }
}

/// All sessions and streams of a node.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// This node.
    node: AtomicU64,
    first: u64,
    next: AtomicU64,
    next_stream: AtomicU64,
    streams: Mutex<HashMap<u64, OpenStream>>,
    /// Sessions that were ended before they expired, with their expiry.
    tombstones: Mutex<HashMap<u64, u64>>,
    /// The log levels that sessions have set.
    levels: Mutex<HashMap<u64, Box<str>>>,
}

impl Sessions {
    pub(crate) fn new(node: NodeId) -> Sessions {
        // Numbers of an earlier run, or of other nodes, must not repeat while ids with them are
        // valid. Node ids are random.
        let first = node.0 >> 1;
        Sessions {
            node: AtomicU64::new(node.0),
            first,
            next: AtomicU64::new(first),
            next_stream: AtomicU64::new(0),
            streams: Mutex::default(),
            tombstones: Mutex::default(),
            levels: Mutex::default(),
        }
    }

    /// Stores the log level of a session. Above the limit, servers without sessions are not asked
    /// for log messages.
    pub(crate) fn set_level(&self, session: u64, level: &str) {
        let mut levels = lock(&self.levels);
        if levels.len() < MAX_LEVELS || levels.contains_key(&session) {
            levels.insert(session, level.into());
        }
    }

    pub(crate) fn level(&self, session: u64) -> Option<Box<str>> {
        lock(&self.levels).get(&session).cloned()
    }

    /// Sets a new id for this node.
    pub(crate) fn set_node(&self, node: NodeId) {
        self.node.store(node.0, Ordering::Release);
    }

    /// The number of sessions created here.
    pub(crate) fn begun(&self) -> u64 {
        self.next.load(Ordering::Relaxed).saturating_sub(self.first)
    }

    pub(crate) fn open_streams(&self) -> usize {
        lock(&self.streams).values().filter(|stream| !stream.sender.is_closed()).count()
    }

    /// Creates a session. Returns its id.
    pub(crate) fn begin(
        &self,
        sealer: &Sealer,
        principal: &PrincipalId,
        scope: &Scope,
        version: &str,
        askable: &[u8],
    ) -> Result<String, SealError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut content = Vec::with_capacity(96);
        let began = u64::try_from(engine::recorder::now().0).unwrap_or_default();
        content.extend_from_slice(&began.to_be_bytes());
        content.extend_from_slice(&number.to_be_bytes());
        content.extend_from_slice(&self.node.load(Ordering::Acquire).to_be_bytes());
        content.extend_from_slice(principal);
        content.extend_from_slice(&scope_hash(scope));
        content.push(u8::try_from(version.len()).unwrap_or_default());
        content.extend_from_slice(version.as_bytes());
        // Capabilities that do not fit into an id are not offered.
        let askable = if askable.len() <= MAX_ASKABLE_BYTES { askable } else { b"{}" };
        content.extend_from_slice(askable);
        sealer.seal(Purpose::Session, &content)
    }

    /// The content of a session's id, if it is this caller's. It may be the id that its connection
    /// used last.
    pub(crate) fn check(
        &self,
        sealer: &Sealer,
        last: Option<&LastId>,
        id: &str,
        principal: &PrincipalId,
        scope: &Scope,
    ) -> Result<SessionTicket, NoSession> {
        let mut last = last.map(|last| lock(&last.0));
        if let Some(Some(opened)) = last.as_deref()
            && opened.principal == *principal
            && *opened.id == *id
        {
            return self.ticket(&opened.content, principal, scope);
        }
        let content = sealer.open(Purpose::Session, id).ok_or(NoSession::Unknown)?;
        let ticket = self.ticket(&content, principal, scope)?;
        if let Some(last) = &mut last {
            **last = Some(OpenedId { principal: *principal, id: id.into(), content });
        }
        Ok(ticket)
    }

    /// What is in a session's id, if it is this caller's and counts.
    fn ticket(
        &self,
        content: &[u8],
        principal: &PrincipalId,
        scope: &Scope,
    ) -> Result<SessionTicket, NoSession> {
        let (began, rest) = take_number(content).ok_or(NoSession::Unknown)?;
        let (number, rest) = take_number(rest).ok_or(NoSession::Unknown)?;
        let (node, rest) = take_number(rest).ok_or(NoSession::Unknown)?;
        let (owner, rest) = rest.split_at_checked(32).ok_or(NoSession::Unknown)?;
        let (place, rest) = rest.split_at_checked(8).ok_or(NoSession::Unknown)?;
        let (length, rest) = rest.split_first().ok_or(NoSession::Unknown)?;
        let (version, askable) =
            rest.split_at_checked((*length).into()).ok_or(NoSession::Unknown)?;
        if owner != principal || place != scope_hash(scope) {
            return Err(NoSession::Unknown);
        }
        if (began / 1_000).saturating_add(LIFETIME.as_secs()) <= now() {
            return Err(NoSession::Expired);
        }
        if lock(&self.tombstones).contains_key(&number) {
            return Err(NoSession::Ended);
        }
        let version = String::from_utf8(version.to_vec()).map_err(|_| NoSession::Unknown)?;
        Ok(SessionTicket {
            number,
            node: NodeId(node),
            began: Timestamp(i64::try_from(began).unwrap_or_default()),
            version,
            askable: askable.to_vec(),
        })
    }

    /// Ends a session: closes its streams and invalidates its id.
    pub(crate) fn end(&self, number: u64) {
        lock(&self.streams).retain(|_, stream| stream.session != Some(number));
        lock(&self.levels).remove(&number);
        let mut tombstones = lock(&self.tombstones);
        let now = now();
        if tombstones.len() >= MAX_TOMBSTONES {
            tombstones.retain(|_, until| *until > now);
        }
        if tombstones.len() >= MAX_TOMBSTONES {
            // Forget the older half at once, so that the cost is spread. Those sessions become
            // valid again, but only for their own callers.
            let mut numbers: Vec<u64> = tombstones.keys().copied().collect();
            let (_, middle, _) = numbers.select_nth_unstable(MAX_TOMBSTONES / 2);
            let middle = *middle;
            tombstones.retain(|number, _| *number > middle);
        }
        tombstones.insert(number, now + LIFETIME.as_secs());
    }

    /// Closes every stream because the gateway shuts down.
    pub(crate) fn close_streams(&self) {
        lock(&self.streams).clear();
    }

    /// Opens a stream. Returns `None` if the caller has too many.
    pub(crate) fn listen(
        &self,
        (principal, caller): (&PrincipalId, &Caller),
        session: Option<u64>,
        scope: &Scope,
        filter: StreamFilter,
    ) -> Option<(mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>)> {
        let (sender, receiver) = mpsc::channel(STREAM_MESSAGES);
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let mut streams = lock(&self.streams);
        streams.retain(|_, stream| !stream.sender.is_closed());
        let own = streams.values().filter(|stream| stream.principal == *principal).count();
        if own >= MAX_STREAMS_PER_CALLER {
            return None;
        }
        streams.insert(
            number,
            OpenStream {
                principal: *principal,
                caller: caller.clone(),
                session,
                scope: scope.clone(),
                filter,
                sender: sender.clone(),
            },
        );
        Some((sender, receiver))
    }

    /// Notifies every stream on which this list may have changed, if its caller sees something of
    /// the server.
    pub(crate) fn notify_changed(
        &self,
        server: &gate::server::ServerId,
        kind: ListKind,
        sees: &dyn Fn(&Caller) -> bool,
    ) {
        let method = match kind {
            ListKind::Tools => "notifications/tools/list_changed",
            ListKind::Prompts => "notifications/prompts/list_changed",
            ListKind::Resources | ListKind::ResourceTemplates => {
                "notifications/resources/list_changed"
            }
        };
        lock(&self.streams).retain(|_, stream| {
            let is_in = match &stream.scope {
                Scope::All | Scope::Set(_) => true,
                Scope::Server(only) => only == server,
            };
            let is_asked = stream.filter.lists.as_ref().is_none_or(|lists| lists.contains(&kind));
            if !is_in || !is_asked || !sees(&stream.caller) {
                return !stream.sender.is_closed();
            }
            let message = notification(method, stream.filter.subscription.as_deref());
            // A client that does not read its stream is disconnected.
            stream.sender.try_send(crate::reply::event(&[message.as_bytes()])).is_ok()
        });
    }

    /// Sends a message to the stream of one session. Returns whether there is one.
    pub(crate) fn send_to_session(&self, session: u64, message: &[u8]) -> bool {
        let event = crate::reply::event(&[message]);
        let streams = lock(&self.streams);
        let mut own = streams.values().filter(|stream| stream.session == Some(session));
        own.any(|stream| stream.sender.try_send(event.clone()).is_ok())
    }

    /// Notifies the streams of one caller that subscribed to a resource of its change.
    pub(crate) fn notify_updated(
        &self,
        principal: &PrincipalId,
        server: &gate::server::ServerId,
        uri: &str,
    ) {
        let params = serde_json::json!({"uri": uri}).to_string();
        lock(&self.streams).retain(|_, stream| {
            let is_in = !matches!(&stream.scope, Scope::Server(only) if only != server);
            let Some(id) = stream.filter.subscription.as_deref().filter(|_| is_in) else {
                return !stream.sender.is_closed();
            };
            if stream.principal != *principal || !stream.filter.resources.contains(uri) {
                return !stream.sender.is_closed();
            }
            let params = crate::mcp::watch::subscribed(params.as_bytes(), id);
            let beginning =
                br#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":"#;
            stream.sender.try_send(crate::reply::event(&[beginning, &params, b"}"])).is_ok()
        });
    }

    /// Sends a server's message to the streams of one caller.
    pub(crate) fn send_to_caller(
        &self,
        principal: &PrincipalId,
        server: &gate::server::ServerId,
        message: &[u8],
    ) {
        let event = crate::reply::event(&[message]);
        lock(&self.streams).retain(|_, stream| {
            let is_in = match &stream.scope {
                Scope::All => true,
                Scope::Server(only) => only == server,
                Scope::Set(_) => false,
            };
            if stream.principal != *principal || !is_in || stream.filter.subscription.is_some() {
                return !stream.sender.is_closed();
            }
            stream.sender.try_send(event.clone()).is_ok()
        });
    }
}

fn notification(method: &str, subscription: Option<&[u8]>) -> String {
    match subscription {
        None => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
        Some(id) => {
            let id = String::from_utf8_lossy(id);
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
            )
        }
    }
}

fn scope_hash(scope: &Scope) -> [u8; 8] {
    static ALL: LazyLock<[u8; 8]> = LazyLock::new(|| short_hash("all"));
    match scope {
        Scope::All => *ALL,
        Scope::Server(id) => short_hash(&format!("server {id}")),
        Scope::Set(id) => short_hash(&format!("set {id}")),
    }
}

fn short_hash(text: &str) -> [u8; 8] {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    hash.first_chunk().copied().unwrap_or_default()
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_for_its_caller_and_its_path_until_it_is_ended() {
        let (sessions, sealer) = (Sessions::new(NodeId(7)), Sealer::of(&[1; 32]).unwrap());
        let (ada, eve) = ([1; 32], [2; 32]);
        let id = sessions.begin(&sealer, &ada, &Scope::All, "2025-11-25", b"{}").unwrap();
        let ticket = sessions.check(&sealer, None, &id, &ada, &Scope::All).unwrap();
        assert_eq!((ticket.version.as_str(), ticket.node), ("2025-11-25", NodeId(7)));
        let other = Scope::Server("files".parse().unwrap());
        assert_eq!(sessions.check(&sealer, None, &id, &eve, &Scope::All), Err(NoSession::Unknown));
        assert_eq!(sessions.check(&sealer, None, &id, &ada, &other), Err(NoSession::Unknown));
        assert_eq!(sessions.check(&sealer, None, "x", &ada, &Scope::All), Err(NoSession::Unknown));
        // Another node with the same key accepts it as well.
        assert!(Sessions::new(NodeId(8)).check(&sealer, None, &id, &ada, &Scope::All).is_ok());
        sessions.end(ticket.number);
        assert_eq!(sessions.check(&sealer, None, &id, &ada, &Scope::All), Err(NoSession::Ended));
    }

    #[test]
    fn the_id_that_was_named_last_is_checked_each_time_like_any_other() {
        let (sessions, sealer) = (Sessions::new(NodeId(7)), Sealer::of(&[1; 32]).unwrap());
        let (ada, eve, last) = ([1; 32], [2; 32], LastId::default());
        let begin = || sessions.begin(&sealer, &ada, &Scope::All, "2025-11-25", b"{}").unwrap();
        let (id, another) = (begin(), begin());
        let check = |id: &str, principal: &PrincipalId, scope: &Scope| {
            sessions.check(&sealer, Some(&last), id, principal, scope)
        };
        let ticket = check(&id, &ada, &Scope::All).unwrap();
        assert_eq!(check(&id, &ada, &Scope::All).as_ref(), Ok(&ticket));
        let other = Scope::Server("files".parse().unwrap());
        for refused in [check(&id, &eve, &Scope::All), check(&id, &ada, &other)] {
            assert_eq!(refused, Err(NoSession::Unknown));
        }
        assert_eq!(check("x", &ada, &Scope::All), Err(NoSession::Unknown));
        assert_ne!(check(&another, &ada, &Scope::All).unwrap().number, ticket.number);
        assert_eq!(check(&id, &ada, &Scope::All).unwrap().number, ticket.number);
        sessions.end(ticket.number);
        assert_eq!(check(&id, &ada, &Scope::All), Err(NoSession::Ended));
    }

    #[test]
    fn ended_sessions_are_remembered_up_to_a_limit_newest_first() {
        let sessions = Sessions::new(NodeId(7));
        for number in 0..=MAX_TOMBSTONES as u64 {
            sessions.end(number);
        }
        let tombstones = lock(&sessions.tombstones);
        assert!(tombstones.len() <= MAX_TOMBSTONES, "{}", tombstones.len());
        assert!(tombstones.contains_key(&(MAX_TOMBSTONES as u64)));
        assert!(tombstones.contains_key(&(MAX_TOMBSTONES as u64 - 1)));
        assert!(!tombstones.contains_key(&0));
    }

    #[test]
    fn streams_are_told_what_they_asked_for_and_are_limited() {
        let identity = policy::Identity {
            issuer: "test".to_owned(),
            subject: "ada".to_owned(),
            actor_type: policy::ActorType::Agent,
            client_id: None,
            org: None,
            groups: Vec::new(),
            clearance: None,
            mfa: false,
            proof: policy::IdentityProof::Key,
        };
        let caller = Caller::new(identity);
        let by = (&[1; 32], &caller);
        let sessions = Sessions::new(NodeId(7));
        let filter = StreamFilter {
            lists: Some(HashSet::from([ListKind::Prompts])),
            resources: HashSet::new(),
            subscription: Some(b"7".to_vec()),
        };
        let (_keep, mut tools) =
            sessions.listen(by, Some(1), &Scope::All, StreamFilter::default()).unwrap();
        let (_kept, mut prompts) = sessions.listen(by, None, &Scope::All, filter).unwrap();
        let server = "files".parse().unwrap();
        sessions.notify_changed(&server, ListKind::Tools, &|_| true);
        sessions.notify_changed(&server, ListKind::Tools, &|_| false);
        sessions.notify_changed(&server, ListKind::Prompts, &|_| true);
        let heard = String::from_utf8(tools.try_recv().unwrap().to_vec()).unwrap();
        assert!(heard.contains("tools/list_changed"), "{heard}");
        let next = String::from_utf8(tools.try_recv().unwrap().to_vec()).unwrap();
        assert!(
            next.contains("prompts/list_changed"),
            "a caller that sees nothing is told nothing"
        );
        let heard = String::from_utf8(prompts.try_recv().unwrap().to_vec()).unwrap();
        assert!(heard.contains("prompts/list_changed") && heard.contains("subscriptionId\":7"));
        assert!(prompts.try_recv().is_err());
        let open = || sessions.listen(by, None, &Scope::All, StreamFilter::default());
        let kept: Vec<_> = std::iter::from_fn(open).collect();
        assert_eq!(kept.len() + 2, MAX_STREAMS_PER_CALLER);
        drop(kept);
        assert!(open().is_some());
        sessions.end(1);
        assert!(matches!(tools.try_recv(), Ok(_) | Err(mpsc::error::TryRecvError::Empty)));
    }
}

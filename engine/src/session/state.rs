//! What a session knows at one moment. Held for as long as a look-up takes, never across a read or a write.

use super::input::{Asking, OpenQuestions, capabilities_in};
use crate::admission::Checked;
use crate::judge::{Judged, Seen};
use crate::principal::Principal;
use crate::reason::ReasonCode;
use crate::situation::Situation;
use contract::client::ClientCapabilities;
use contract::surface::{EntryId, ListKind};
use gate::pins::PinBook;
use ledger::record::ReceiptId;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::envelope::{Id, OwnedId};

/// The most requests of the client that wait for the server's answer.
pub const MAX_PENDING: usize = 10_000;
/// The most requests that wait for a fresh view, and their bytes.
pub const MAX_WAITING: usize = 1_000;
pub const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;
/// The most answers to handshakes that wait until the server's admission was checked, and their bytes.
pub const MAX_KEPT_HANDSHAKES: usize = 100;
pub const MAX_KEPT_HANDSHAKE_BYTES: usize = 64 * 1024 * 1024;
/// The most entries whose holds are followed to what a person does with them.
pub const MAX_FOLLOWED_HOLDS: usize = 1_000;
/// The most requests of the server that wait for the client's answer.
pub const MAX_SERVER_REQUESTS: usize = 1_000;

/// A request that was dispatched and has no answer yet.
#[derive(Debug)]
pub struct Pending {
    pub receipt_id: ReceiptId,
    pub is_handshake: bool,
    pub is_ping: bool,
    /// Whether it is counted as a call.
    pub is_call: bool,
    /// The length of its message.
    pub bytes: usize,
    pub begun: Instant,
    pub dispatched: Instant,
    pub deadline: Option<Instant>,
    /// The client does not wait for it any more. Few servers answer it then, and it must not be kept for ever.
    pub is_cancelled: bool,
    /// It waited here, and whoever brings it to the server is not there yet: until then nothing about it may be sent.
    pub is_leaving: bool,
    /// A cancellation that came before it has left.
    pub cancellation: Option<Vec<u8>>,
}

impl Pending {
    fn cancel(&mut self, until: Option<Instant>) {
        self.is_cancelled = true;
        self.deadline = [self.deadline, until].into_iter().flatten().min();
    }
}

/// A request that waits for a fresh view of a list.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub id: OwnedId,
    pub frame: Arc<[u8]>,
    /// The list that it is about; nothing where it waits for admission alone.
    pub list: Option<ListKind>,
    /// It waits until the server's admission was checked, and then for its list.
    pub is_unadmitted: bool,
    /// It is `initialize` or `server/discover`: the time limit of calls does not apply to it.
    pub is_handshake: bool,
    pub begun: Instant,
    /// Whether the person at the client may be asked about it.
    pub asking: Asking,
    /// It waits for what the person says of this entry, and for nothing else.
    pub asked_about: Option<EntryId>,
    /// A cancellation that came meanwhile: it follows the request.
    pub cancellation: Option<Vec<u8>>,
    /// Somebody decides on it right now, and nobody else may.
    pub is_claimed: bool,
}

/// What becomes of a cancellation.
#[derive(Debug)]
pub enum Cancelling {
    /// To the server, now.
    Goes,
    /// It is about no request that is under way, or about a greeting: the protocol has no cancelling of those.
    Unknown,
    /// Behind the request, which waits here.
    Follows,
    /// A person was asked about the request: nobody waits for the answer any more.
    Resumes(OwnedId),
}

/// How fresh the view of one list is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Freshness {
    /// When the last complete listing was begun.
    pub listed_at: Option<Instant>,
    pub is_listing: bool,
    /// The server said that it changed, or what it says is not known to be current.
    pub is_stale: bool,
    /// What the server itself said; it may only shorten the age.
    pub ttl: Option<Duration>,
}

impl Freshness {
    pub fn is_fresh(&self, now: Instant, max_age: Duration) -> bool {
        let max_age = self.ttl.map_or(max_age, |ttl| ttl.min(max_age));
        !self.is_listing && !self.is_stale && self.age(now).is_some_and(|age| age < max_age)
    }

    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.listed_at.map(|at| now.saturating_duration_since(at))
    }
}

/// How the client speaks.
#[derive(Debug)]
pub struct Client {
    pub principal: Arc<Principal>,
    /// Of the `initialize` that was answered.
    pub protocol_version: Option<String>,
    /// The version that it asked for in `initialize`.
    pub asked_version: Option<String>,
    pub is_initialized: bool,
    /// `_meta` of its newest request, where there is no session: our own requests carry it too.
    pub stateless_meta: Option<Vec<u8>>,
    pub can_be_asked: bool,
    /// What it said in `initialize` that it can do, where that can be remembered.
    pub greeted_with: Option<ClientCapabilities>,
    /// It asked for log messages of this level and above.
    pub log_level: Option<String>,
}

impl Client {
    fn of(principal: Principal) -> Client {
        Client {
            principal: Arc::new(principal),
            protocol_version: None,
            asked_version: None,
            is_initialized: false,
            stateless_meta: None,
            can_be_asked: false,
            greeted_with: None,
            log_level: None,
        }
    }

    /// Without a session each request says who makes it.
    pub(super) fn hear(&mut self, meta: Option<&[u8]>) {
        if self.stateless_meta.as_deref() != meta {
            self.stateless_meta = meta.map(<[u8]>::to_vec);
            let client = meta.and_then(super::client::client_in);
            self.principal = Arc::new(self.principal.with_client(client));
        }
    }
}

impl Client {
    /// What it says that it can do: with each request where there is no session, else in its greeting.
    pub fn capabilities(&self) -> Option<ClientCapabilities> {
        match &self.stateless_meta {
            Some(meta) => capabilities_in(meta),
            None => self.greeted_with.clone(),
        }
    }
}

/// The client's `initialize` that the gate answered in place of a server that is not admitted. It is sent once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGreeting {
    /// The raw `params`.
    pub params: Vec<u8>,
    /// The protocol version that the client was told.
    pub version: String,
}

/// An answer to a handshake that the client waits for.
#[derive(Debug)]
pub struct KeptHandshake {
    pub frame: Vec<u8>,
    pub arrived: Instant,
}

/// INVARIANT: a request that the gate has taken and not answered is in exactly one of `waiting`, `released` and `pending`,
/// and goes from one to the other under one lock. So its id is taken throughout, and a cancellation always finds it.
#[derive(Debug)]
pub struct State {
    pub situation: Arc<Situation>,
    /// The pins that the handshake is shaped by.
    pub book: Arc<PinBook>,
    /// Whether anything was ever pinned.
    pub has_baseline: bool,
    pub seen: Arc<Seen>,
    /// The answer to `initialize` or `server/discover`, as it came.
    pub handshake: Option<Arc<str>>,
    pub freshness: BTreeMap<ListKind, Freshness>,
    /// The newest check of the server's admission. It does not count any more where the server was greeted since.
    pub checked: Option<Checked>,
    /// The answers to handshakes, kept from the client until the server's admission was checked.
    pub kept_handshakes: Vec<KeptHandshake>,
    /// A greeting that the server has yet to get.
    pub kept_greeting: Option<KeptGreeting>,
    /// The server was told that the client is initialized.
    pub is_announced: bool,
    pub pending: HashMap<OwnedId, Pending>,
    /// Our own requests to the server, by their id with its quotes.
    pub own: HashSet<Vec<u8>>,
    pub waiting: VecDeque<Waiting>,
    pub waiting_bytes: usize,
    /// Requests that wait for nothing any more, until they are brought to the server or refused.
    pub released: HashMap<OwnedId, Waiting>,
    /// The keeper has released some, and is not through with them.
    pub is_resuming: bool,
    /// One of those that were released is on its way to the server.
    pub is_bringing: bool,
    pub server_requests: HashSet<OwnedId>,
    /// Our own requests to the client.
    pub asked: HashSet<Vec<u8>>,
    /// What the person was asked where there is no session.
    pub open_questions: OpenQuestions,
    pub client: Client,
    /// The server says something else than what the situation was made of.
    pub is_unjudged: bool,
    /// Entries that a call was held for, until a person did something about it.
    pub held_calls: HashSet<EntryId>,
    /// Answers to nothing that was asked.
    pub unsolicited: u64,
    /// Lines of the server that were no messages.
    pub dropped: u64,
    /// Requests, by their keys, whose answer may have come in a line that cannot be read, and until when another is
    /// waited for.
    pub doubtful: HashMap<Vec<u8>, Instant>,
    /// Why nothing can be dispatched any more.
    pub ended: Option<&'static str>,
}

impl State {
    pub fn new(begun: Judged, principal: Principal) -> State {
        let Judged { situation, book, has_baseline, .. } = begun;
        State {
            situation: Arc::new(situation),
            book: Arc::new(book),
            has_baseline,
            seen: Arc::default(),
            handshake: None,
            freshness: BTreeMap::new(),
            checked: None,
            kept_handshakes: Vec::new(),
            kept_greeting: None,
            is_announced: false,
            pending: HashMap::new(),
            own: HashSet::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            released: HashMap::new(),
            is_resuming: false,
            is_bringing: false,
            server_requests: HashSet::new(),
            asked: HashSet::new(),
            open_questions: OpenQuestions::default(),
            client: Client::of(principal),
            is_unjudged: true,
            held_calls: HashSet::new(),
            unsolicited: 0,
            dropped: 0,
            doubtful: HashMap::new(),
            ended: None,
        }
    }

    pub fn freshness(&self, list: ListKind) -> Freshness {
        self.freshness.get(&list).copied().unwrap_or_default()
    }

    /// Why a request with this id can go no further.
    pub fn reason_against(&self, key: &[u8]) -> Option<ReasonCode> {
        if self.is_taken(key) {
            Some(ReasonCode::AmbiguousMessage)
        } else {
            self.ended.map(|_| ReasonCode::UpstreamUnreachable)
        }
    }

    /// Whether a request with this id is on its way already.
    fn is_taken(&self, key: &[u8]) -> bool {
        self.pending.contains_key(key)
            || self.released.contains_key(key)
            || self.waiting.iter().any(|waiting| waiting.id.key() == key)
    }

    /// Notes that a line which cannot be read may have been the answer to a request: to those of these ids that are
    /// unanswered, or else, where it was meant to be a message, to the only one in flight. Returns whether it was an
    /// answer to anything, as far as can be told.
    pub fn doubt(&mut self, ids: &[Id<'_>], is_message: bool, until: Instant) -> bool {
        let is_unanswered = |key: &[u8]| self.pending.contains_key(key) || self.own.contains(key);
        let mut keys: Vec<Vec<u8>> =
            ids.iter().map(|id| id.key().to_vec()).filter(|key| is_unanswered(key)).collect();
        if keys.is_empty() && is_message && self.pending.len() + self.own.len() == 1 {
            keys.extend(
                self.pending.keys().map(|id| id.key().to_vec()).chain(self.own.iter().cloned()),
            );
        }
        let is_answer = !keys.is_empty();
        for key in keys {
            self.doubtful.entry(key).or_insert(until);
        }
        is_answer || is_message
    }

    /// The doubtful requests that are not waited for any longer.
    pub fn overdue_doubts(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.doubtful.extract_if(|_, until| *until <= now).map(|(key, _)| key).collect()
    }

    pub fn has_room_to_wait(&self, bytes: usize) -> bool {
        self.waiting.len() < MAX_WAITING && self.waiting_bytes + bytes <= MAX_WAITING_BYTES
    }

    pub fn has_room_to_keep_handshake(&self, bytes: usize) -> bool {
        let kept: usize = self.kept_handshakes.iter().map(|kept| kept.frame.len()).sum();
        self.kept_handshakes.len() < MAX_KEPT_HANDSHAKES && kept + bytes <= MAX_KEPT_HANDSHAKE_BYTES
    }

    pub fn wait(&mut self, waiting: Waiting) {
        self.waiting_bytes += waiting.frame.len();
        self.waiting.push_back(waiting);
    }

    /// Releases those that have waited here for longer than they may. Answers them with those that were released before.
    pub fn overdue(&mut self, now: Instant, timeout: Duration) -> Vec<OwnedId> {
        // A person may take longer than a server, and a server may take longer to start than to answer a call.
        let is_call = |waiting: &Waiting| waiting.asked_about.is_none() && !waiting.is_handshake;
        let is_overdue = |waiting: &Waiting| is_call(waiting) && waiting.begun + timeout <= now;
        let left = self.released.values().filter(|waiting| !waiting.is_claimed);
        let mut overdue: Vec<OwnedId> =
            left.filter(|waiting| is_overdue(waiting)).map(|waiting| waiting.id.clone()).collect();
        overdue.extend(self.release(is_overdue));
        overdue
    }

    /// Releases those that a listing of these lists was waited for.
    pub fn release_listed(&mut self, lists: &[ListKind]) -> Vec<OwnedId> {
        let is_listed = |list: Option<ListKind>| list.is_some_and(|list| lists.contains(&list));
        let is_for_list =
            |waiting: &Waiting| !waiting.is_unadmitted && waiting.asked_about.is_none();
        self.release(|waiting| is_for_list(waiting) && is_listed(waiting.list))
    }

    /// Releases those that waited for a check of the server's admission.
    pub fn release_unadmitted(&mut self) -> Vec<OwnedId> {
        self.release(|waiting| waiting.is_unadmitted)
    }

    /// Releases those that a person was asked about.
    pub fn release_asked(&mut self, entry: &EntryId) -> Vec<OwnedId> {
        self.release(|waiting| waiting.asked_about.as_ref() == Some(entry))
    }

    /// The entries whose calls wait for what a person says.
    pub fn asked_entries(&self) -> BTreeSet<EntryId> {
        self.waiting.iter().filter_map(|waiting| waiting.asked_about.clone()).collect()
    }

    /// Forgets a request that waits here, or has been released: it is answered elsewhere.
    pub fn forget(&mut self, key: &[u8]) {
        self.waiting.retain(|waiting| waiting.id.key() != key);
        self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.frame.len()).sum();
        self.released.remove(key);
        self.doubtful.remove(key);
    }

    /// Releases all that wait for anything.
    pub fn release_all(&mut self) -> Vec<OwnedId> {
        self.release(|_| true)
    }

    fn release(&mut self, is_released: impl Fn(&Waiting) -> bool) -> Vec<OwnedId> {
        let all = std::mem::take(&mut self.waiting);
        let (released, waiting): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|waiting| is_released(waiting));
        self.waiting = waiting;
        self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.frame.len()).sum();
        self.is_resuming |= !released.is_empty();
        let ids = released.iter().map(|waiting| waiting.id.clone()).collect();
        self.released.extend(released.into_iter().map(|waiting| (waiting.id.clone(), waiting)));
        ids
    }

    /// Whoever claims a released request decides on it. Nothing where it is claimed already, or has come to its end.
    pub fn claim(&mut self, key: &[u8]) -> Option<Waiting> {
        let waiting = self.released.get_mut(key).filter(|waiting| !waiting.is_claimed)?;
        waiting.is_claimed = true;
        Some(waiting.clone())
    }

    /// A released request has to wait for something else.
    pub fn wait_again(&mut self, key: &[u8], change: impl FnOnce(&mut Waiting)) {
        if let Some(mut waiting) = self.released.remove(key) {
            waiting.is_claimed = false;
            change(&mut waiting);
            self.wait(waiting);
        }
    }

    /// A request goes to the server. One that was released brings along what was said of it meanwhile.
    pub fn dispatch(&mut self, id: OwnedId, mut pending: Pending, has_waited: bool) {
        if has_waited && let Some(waiting) = self.released.remove(id.key()) {
            pending.is_leaving = true;
            pending.cancellation = waiting.cancellation;
        }
        self.pending.insert(id, pending);
    }

    /// A request that waited has left. Answers the cancellation that has to follow it.
    pub fn left(&mut self, key: &[u8], until: Option<Instant>) -> Option<Vec<u8>> {
        let pending = self.pending.get_mut(key).filter(|pending| pending.is_leaving)?;
        pending.is_leaving = false;
        let cancellation = pending.cancellation.take()?;
        pending.cancel(until);
        Some(cancellation)
    }

    /// Whether any request is still to be brought to the server. What a person is asked about may never be.
    pub fn has_waiting(&self) -> bool {
        self.is_resuming
            || self.is_bringing
            || !self.released.is_empty()
            || self.waiting.iter().any(|waiting| waiting.asked_about.is_none())
    }

    /// Notes that the client does not wait for a request any more. Answers whether the server is told at once: a request
    /// that has not left yet takes the cancellation along.
    pub fn cancel(
        &mut self,
        key: &[u8],
        cancellation: &[u8],
        until: Option<Instant>,
    ) -> Cancelling {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id.key() == key) {
            waiting.cancellation = Some(cancellation.to_vec());
            if waiting.asked_about.is_none() {
                return Cancelling::Follows;
            }
            let released = self.release(|waiting| waiting.id.key() == key).pop();
            return released.map_or(Cancelling::Follows, Cancelling::Resumes);
        }
        if let Some(waiting) = self.released.get_mut(key) {
            waiting.cancellation = Some(cancellation.to_vec());
            return Cancelling::Follows;
        }
        match self.pending.get_mut(key) {
            Some(pending) if pending.is_leaving => {
                pending.cancellation = Some(cancellation.to_vec());
                Cancelling::Follows
            }
            Some(pending) if !pending.is_handshake => {
                pending.cancel(until);
                Cancelling::Goes
            }
            Some(_) | None => Cancelling::Unknown,
        }
    }

    /// The lists that requests wait for.
    pub fn waited_lists(&self) -> BTreeSet<ListKind> {
        let is_for_list =
            |waiting: &&Waiting| !waiting.is_unadmitted && waiting.asked_about.is_none();
        let waiting = self.waiting.iter().filter(is_for_list);
        waiting.filter_map(|waiting| waiting.list).collect()
    }
}

#[cfg(test)]
mod tests;

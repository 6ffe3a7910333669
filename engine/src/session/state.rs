//! What a session knows at one moment. Held for as long as a look-up takes, never across a read or a write.

use super::input::{OpenQuestions, capabilities_in};
use crate::admission::Checked;
use crate::judge::{Judged, Seen};
use crate::principal::Principal;
use crate::requests::Requests;
use crate::situation::Situation;
use contract::client::ClientCapabilities;
use contract::surface::{EntryId, ListKind};
use gate::pins::PinBook;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::envelope::OwnedId;

/// The most answers to handshakes that wait until the server's admission was checked, and their bytes.
pub const MAX_KEPT_HANDSHAKES: usize = 100;
pub const MAX_KEPT_HANDSHAKE_BYTES: usize = 64 * 1024 * 1024;
/// The most entries whose holds are followed to what a person does with them.
pub const MAX_FOLLOWED_HOLDS: usize = 1_000;
/// The most requests of the server that wait for the client's answer.
pub const MAX_SERVER_REQUESTS: usize = 1_000;

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
    /// The client's requests and our own to the server that are not answered yet.
    pub requests: Requests,
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
            requests: Requests::default(),
            server_requests: HashSet::new(),
            asked: HashSet::new(),
            open_questions: OpenQuestions::default(),
            client: Client::of(principal),
            is_unjudged: true,
            held_calls: HashSet::new(),
            unsolicited: 0,
            dropped: 0,
        }
    }

    pub fn freshness(&self, list: ListKind) -> Freshness {
        self.freshness.get(&list).copied().unwrap_or_default()
    }

    pub fn has_room_to_keep_handshake(&self, bytes: usize) -> bool {
        let kept: usize = self.kept_handshakes.iter().map(|kept| kept.frame.len()).sum();
        self.kept_handshakes.len() < MAX_KEPT_HANDSHAKES && kept + bytes <= MAX_KEPT_HANDSHAKE_BYTES
    }
}

//! The state of a session. It is locked only for lookups, never during a read or a write.

use super::asking::OpenQuestions;
use crate::principal::Principal;
use crate::requests::Requests;
use crate::server::ServerView;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

/// The most handshake responses that are stored until the server's admission was checked, and their
/// total size in bytes.
pub const MAX_KEPT_HANDSHAKES: usize = 100;
pub const MAX_KEPT_HANDSHAKE_BYTES: usize = 64 * 1024 * 1024;
/// The most server requests that wait for the client's answer.
pub const MAX_SERVER_REQUESTS: usize = 1_000;

/// The client's protocol state.
#[derive(Debug)]
pub struct Client {
    pub principal: Arc<Principal>,
    /// From the answered `initialize`.
    pub protocol_version: Option<String>,
    /// The version requested in `initialize`.
    pub asked_version: Option<String>,
    pub is_initialized: bool,
    /// The `_meta` of its latest stateless request, which our own requests carry too.
    pub stateless_meta: Option<Vec<u8>>,
    pub can_be_asked: bool,
    /// The lowest level of the log messages that it requested.
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
            log_level: None,
        }
    }

    /// Whether the latest stateless request had this `_meta`.
    pub(super) fn has_said(&self, meta: Option<&[u8]>) -> bool {
        self.stateless_meta.as_deref() == meta
    }

    /// Stores the `_meta` of a stateless request.
    pub(super) fn hear(&mut self, meta: Option<&[u8]>) {
        self.stateless_meta = meta.map(<[u8]>::to_vec);
        let client = meta.and_then(super::client::client_in);
        self.principal = Arc::new(self.principal.with_client(client));
    }
}

/// The client's `initialize` that the gate answered in place of an unadmitted server. It is sent
/// once the server is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGreeting {
    /// The raw `params`.
    pub params: Vec<u8>,
    /// The protocol version in the gate's answer.
    pub version: String,
}

/// A handshake response that the client waits for.
#[derive(Debug)]
pub struct KeptHandshake {
    pub frame: Vec<u8>,
    pub arrived: Instant,
}

#[derive(Debug)]
pub(crate) struct SessionState {
    /// The view of clients with the same capabilities as this one.
    pub(crate) view: Arc<ServerView>,
    /// The latest response to `initialize` or `server/discover` over this session's connection.
    pub(crate) handshake: Option<Arc<str>>,
    /// How many handshake responses are being read at the moment.
    pub(crate) greetings_read: usize,
    /// Whether the latest admission check covers that response.
    pub(crate) is_covered: bool,
    /// The handshake responses withheld from the client until the server's admission was checked.
    pub(crate) kept_handshakes: Vec<KeptHandshake>,
    /// A handshake that the server has not received yet.
    pub(crate) kept_greeting: Option<KeptGreeting>,
    /// Whether `initialized` was sent to the server.
    pub(crate) is_announced: bool,
    /// The pending requests of the client, and our own to the server.
    pub(crate) requests: Requests,
    pub(crate) server_requests: HashSet<OwnedId>,
    /// Our own requests to the client.
    pub(crate) asked: HashSet<Vec<u8>>,
    /// The open questions to the person, in stateless mode.
    pub(crate) open_questions: OpenQuestions,
    pub(crate) client: Client,
    /// How many answers without a matching request were dropped.
    pub(crate) unsolicited: u64,
    /// How many lines from the server that were not messages were dropped.
    pub(crate) dropped: u64,
}

impl SessionState {
    pub(crate) fn new(view: Arc<ServerView>, principal: Principal) -> SessionState {
        SessionState {
            view,
            handshake: None,
            greetings_read: 0,
            is_covered: true,
            kept_handshakes: Vec::new(),
            kept_greeting: None,
            is_announced: false,
            requests: Requests::default(),
            server_requests: HashSet::new(),
            asked: HashSet::new(),
            open_questions: OpenQuestions::default(),
            client: Client::of(principal),
            unsolicited: 0,
            dropped: 0,
        }
    }

    /// Stores and returns whether the latest admission check covers this handshake.
    pub(crate) fn cover(&mut self, handshake: &str) -> bool {
        let checked = self.view.known().checked.clone();
        self.is_covered = checked.is_some_and(|checked| checked.covers(handshake));
        self.is_covered
    }

    /// Whether the server has yet to answer a handshake, or its answer is still being read.
    pub(crate) fn is_greeting(&self) -> bool {
        self.requests.has_handshakes() || self.greetings_read > 0
    }

    /// Stores the server's handshake response. Equal responses of several connections share memory.
    pub(crate) fn take_handshake(&mut self, text: Arc<str>) {
        let text = self.view.change(|known| match &known.handshake {
            Some(before) if **before == *text => before.clone(),
            before => {
                if before.is_some() {
                    // No call may be decided on what the server showed before.
                    known.is_unjudged = true;
                    known.outdate();
                }
                known.handshake.insert(text).clone()
            }
        });
        self.handshake = Some(text);
    }

    pub(crate) fn has_room_to_keep_handshake(&self, bytes: usize) -> bool {
        let kept: usize = self.kept_handshakes.iter().map(|kept| kept.frame.len()).sum();
        self.kept_handshakes.len() < MAX_KEPT_HANDSHAKES && kept + bytes <= MAX_KEPT_HANDSHAKE_BYTES
    }
}

//! What a session knows at one moment. Held for as long as a look-up takes, never across a read or a write.

use super::asking::OpenQuestions;
use crate::principal::Principal;
use crate::requests::Requests;
use crate::server::ServerView;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

/// The most answers to handshakes that wait until the server's admission was checked, and their bytes.
pub const MAX_KEPT_HANDSHAKES: usize = 100;
pub const MAX_KEPT_HANDSHAKE_BYTES: usize = 64 * 1024 * 1024;
/// The most requests of the server that wait for the client's answer.
pub const MAX_SERVER_REQUESTS: usize = 1_000;

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
            log_level: None,
        }
    }

    /// Whether the last request that was made without a session had this `_meta`.
    pub(super) fn has_said(&self, meta: Option<&[u8]>) -> bool {
        self.stateless_meta.as_deref() == meta
    }

    /// Takes the `_meta` of a request that is made without a session.
    pub(super) fn hear(&mut self, meta: Option<&[u8]>) {
        self.stateless_meta = meta.map(<[u8]>::to_vec);
        let client = meta.and_then(super::client::client_in);
        self.principal = Arc::new(self.principal.with_client(client));
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
pub(crate) struct SessionState {
    /// The view of clients that can do what this one can.
    pub(crate) view: Arc<ServerView>,
    /// The newest answer to `initialize` or `server/discover` over this session's connection.
    pub(crate) handshake: Option<Arc<str>>,
    /// How many answers to handshakes are being read at this moment.
    pub(crate) greetings_read: usize,
    /// The newest check of the server's admission counts for that answer.
    pub(crate) is_covered: bool,
    /// The answers to handshakes, kept from the client until the server's admission was checked.
    pub(crate) kept_handshakes: Vec<KeptHandshake>,
    /// A greeting that the server has yet to get.
    pub(crate) kept_greeting: Option<KeptGreeting>,
    /// The server was told that the client is initialized.
    pub(crate) is_announced: bool,
    /// The client's requests and our own to the server that are not answered yet.
    pub(crate) requests: Requests,
    pub(crate) server_requests: HashSet<OwnedId>,
    /// Our own requests to the client.
    pub(crate) asked: HashSet<Vec<u8>>,
    /// What the person was asked where there is no session.
    pub(crate) open_questions: OpenQuestions,
    pub(crate) client: Client,
    /// How many answers that belong to no request were dropped.
    pub(crate) unsolicited: u64,
    /// How many lines of the server that were no messages were dropped.
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

    /// Notes and returns whether the newest check of the server's admission counts for this handshake.
    pub(crate) fn cover(&mut self, handshake: &str) -> bool {
        let checked = self.view.known().checked.clone();
        self.is_covered = checked.is_some_and(|checked| checked.covers(handshake));
        self.is_covered
    }

    /// Whether the server has yet to answer a handshake, as far as this session knows its answer.
    pub(crate) fn is_greeting(&self) -> bool {
        self.requests.has_handshakes() || self.greetings_read > 0
    }

    /// Remembers the server's answer to a handshake. Equal answers of several connections take memory once.
    pub(crate) fn take_handshake(&mut self, text: Arc<str>) {
        let text = self.view.change(|known| match &known.handshake {
            Some(before) if **before == *text => before.clone(),
            before => {
                if before.is_some() {
                    // No call is decided on what the server said before.
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

//! The state of a request in each phase, from when the gate takes it until it is answered.

use super::parsed::OwnedRequest;
use crate::reason::ReasonCode;
use contract::hash::EntryHash;
use contract::surface::{EntryId, ListKind};
use contract::time::Timestamp;
use ledger::record::ReceiptId;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

/// Identifies a session among those that share a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionKey(pub u64);

/// Identifies a client's request. Two sessions may use the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    pub session: SessionKey,
    pub id: OwnedId,
}

impl RequestKey {
    pub fn as_ref(&self) -> RequestRef<'_> {
        RequestRef { session: self.session, id: self.id.key() }
    }
}

/// A key for looking up a request without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRef<'a> {
    pub session: SessionKey,
    /// The id in the form of [`wire::envelope::Id::key`].
    pub id: &'a [u8],
}

/// What a request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// A complete listing of this list.
    List(ListKind),
    /// A check of the server's admission. After that it may still have to wait for its list.
    Admission,
    /// The decision of the person at the client about this entry.
    Person(EntryId),
    /// The decision of a person about this exact call: another person, or the one at the client.
    Approval,
    /// The corpus's answer about the definition for which the call is held. This wait is short.
    Corpus,
}

/// Whether the person at the client may be asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    #[default]
    Open,
    /// They were asked, and want to see the change.
    Shows,
    /// They were asked about its entry.
    Done,
    /// They were asked to allow this exact call, with the tool's entry at that time.
    Answered { answer: CallAnswer, contract: EntryHash, at: Timestamp },
}

/// The result of asking the person at the client to allow a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    Allowed,
    Refused,
    /// They did not answer in time.
    Unanswered,
    /// They could not be asked.
    Unasked,
}

/// A call that waits for the decision of the person at the client. A later call with its id has
/// another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedCall {
    pub id: OwnedId,
    pub(super) place: u64,
    /// The hash of the tool's entry when they were asked.
    pub contract: EntryHash,
}

/// A request that has not been sent, with everything needed to resume it.
#[derive(Debug, Clone)]
pub struct Kept {
    pub request: Arc<OwnedRequest>,
    pub asking: Asking,
    /// When it is refused if it has not been sent by then.
    pub deadline: Option<Instant>,
    /// A cancellation that arrived in the meantime. It is sent to the server after the request.
    pub cancellation: Option<Vec<u8>>,
    /// The client has disconnected without cancelling it, so no approval is used up for it.
    pub has_left: bool,
}

/// The kind of a dispatched request, for time limits and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchedKind {
    /// `initialize` or `server/discover`. The protocol does not allow these to be cancelled.
    Handshake,
    Ping,
    /// A call of a tool, prompt or resource.
    Call,
    /// Anything else. A subscription may stay open for as long as the session does.
    Other,
}

/// A dispatched request.
#[derive(Debug, Clone, Copy)]
pub struct Dispatched {
    pub receipt_id: ReceiptId,
    pub kind: DispatchedKind,
    /// The length of its message.
    pub bytes: usize,
    pub begun: Instant,
    pub dispatched: Instant,
    /// When it times out.
    pub deadline: Option<Instant>,
    /// Set if an unreadable line may have been the answer: until when the answer is still awaited.
    pub doubted_until: Option<Instant>,
}

/// The phases of a request.
#[derive(Debug)]
pub enum Phase {
    /// It waits for something, in the queue.
    Waiting {
        kept: Kept,
        awaited: Awaited,
        /// Its place in the queue.
        place: u64,
    },
    /// It no longer waits, but no thread has claimed it yet.
    Released(Kept),
    /// One thread has claimed it, decides on it, and either answers or sends it. No other thread
    /// may do so.
    Claimed(Kept),
    /// It is to be sent, and is in the queue of the thread that may block on the server.
    Decided(Kept),
    /// It waited and was dispatched, but its bytes have not been sent. No message about it may be
    /// sent before them.
    Leaving { dispatched: Dispatched, cancellation: Option<Vec<u8>> },
    /// It was sent, and the client waits for the answer.
    InFlight(Dispatched),
    /// It was sent and then cancelled. The server may still answer; many never do.
    Cancelled(Dispatched),
}

impl Phase {
    /// The request, if it has not been sent.
    pub fn kept(&self) -> Option<&Kept> {
        match self {
            Phase::Waiting { kept, .. }
            | Phase::Released(kept)
            | Phase::Claimed(kept)
            | Phase::Decided(kept) => Some(kept),
            Phase::Leaving { .. } | Phase::InFlight(_) | Phase::Cancelled(_) => None,
        }
    }

    /// The request, if it was dispatched.
    pub fn dispatched(&self) -> Option<&Dispatched> {
        match self {
            Phase::Leaving { dispatched, .. }
            | Phase::InFlight(dispatched)
            | Phase::Cancelled(dispatched) => Some(dispatched),
            Phase::Waiting { .. } | Phase::Released(_) | Phase::Claimed(_) | Phase::Decided(_) => {
                None
            }
        }
    }

    pub(super) fn dispatched_mut(&mut self) -> Option<&mut Dispatched> {
        match self {
            Phase::Leaving { dispatched, .. }
            | Phase::InFlight(dispatched)
            | Phase::Cancelled(dispatched) => Some(dispatched),
            Phase::Waiting { .. } | Phase::Released(_) | Phase::Claimed(_) | Phase::Decided(_) => {
                None
            }
        }
    }
}

/// Why a request cannot proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The session has a pending request with this id.
    Taken,
    /// A limit of the table is reached.
    TooMany,
    /// The server has ended.
    Ended,
}

impl Refused {
    pub fn reason(self) -> ReasonCode {
        match self {
            Refused::Taken => ReasonCode::AmbiguousMessage,
            Refused::TooMany => ReasonCode::RateLimited,
            Refused::Ended => ReasonCode::UpstreamUnreachable,
        }
    }
}

/// How to handle a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelling {
    /// Send it to the server now.
    Goes,
    /// No such request is pending, or it is a handshake, which the protocol does not allow to be
    /// cancelled.
    Unknown,
    /// Send it to the server after the request, which has not been sent yet.
    Follows,
    /// A person was asked about the request. It is released, because the client no longer waits for
    /// it.
    Resumes(RequestKey),
}

/// Whether the person at the client can be asked about a claimed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The request waits for their decision.
    Waits,
    /// It was cancelled, so the person is not asked.
    Cancelled,
}

/// Whose request was answered.
#[derive(Debug)]
pub enum Answered {
    /// One of the gate's own.
    Own,
    Client(OwnedId, Dispatched),
}

/// How a timed-out request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// Its answer was probably in an unreadable line. The client gets an error.
    Unreadable,
    /// The client cancelled it. Neither side gets a message.
    Abandoned,
    /// It is a handshake. The client gets an error, but the server gets no cancellation.
    Unstarted,
    /// The client gets an error, and the server a cancellation.
    TimedOut,
}

/// A timed-out request that was removed from the table.
#[derive(Debug)]
pub struct Late {
    pub key: RequestKey,
    pub dispatched: Dispatched,
    pub lateness: Lateness,
}

/// Requests that ended together.
#[derive(Debug, Default)]
pub struct EndedRequests {
    pub dispatched: Vec<(RequestKey, Dispatched)>,
    /// Those that were not sent, oldest first.
    pub kept: Vec<(RequestKey, Arc<OwnedRequest>)>,
}

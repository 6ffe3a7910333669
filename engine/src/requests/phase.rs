//! What is known of a request in each phase, from when the gate takes it until it is answered.

use super::parsed::OwnedRequest;
use crate::reason::ReasonCode;
use contract::hash::EntryHash;
use contract::surface::{EntryId, ListKind};
use contract::time::Timestamp;
use ledger::record::ReceiptId;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::OwnedId;

/// One session among those that share a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionKey(pub u64);

/// A request of a client. Two sessions may use the same id.
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

/// What a request is looked up by, without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRef<'a> {
    pub session: SessionKey,
    /// The id as [`wire::envelope::Id::key`] has it.
    pub id: &'a [u8],
}

/// What a request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// A complete listing of this list.
    List(ListKind),
    /// A check of the server's admission. Its list may have to be waited for after that.
    Admission,
    /// What the person at the client says of this entry.
    Person(EntryId),
    /// What a person says of this very call: another person, or the one at the client.
    Approval,
    /// What a corpus has on file for the definition that the call is held for. Not for long.
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
    /// They were asked to allow this very call, with the tool's entry as it was then.
    Answered { answer: CallAnswer, contract: EntryHash, at: Timestamp },
}

/// What came of asking the person at the client to allow a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    Allowed,
    Refused,
    /// They did not answer in time.
    Unanswered,
    /// They could not be asked.
    Unasked,
}

/// A call that waits for what the person at the client says of it. A later call with its id has another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedCall {
    pub id: OwnedId,
    pub(super) place: u64,
    /// The tool's entry as it was when they were asked.
    pub contract: EntryHash,
}

/// A request that has not been sent, with what is needed to go on with it.
#[derive(Debug, Clone)]
pub struct Kept {
    pub request: Arc<OwnedRequest>,
    pub asking: Asking,
    /// When it is refused if it has not been sent by then.
    pub deadline: Option<Instant>,
    /// A cancellation that came meanwhile. The server gets it after the request.
    pub cancellation: Option<Vec<u8>>,
    /// The client has left without cancelling it. No approval is used up for it then.
    pub has_left: bool,
}

/// What the time limits and the counts look at in a request that was dispatched.
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

/// A request that was dispatched.
#[derive(Debug, Clone, Copy)]
pub struct Dispatched {
    pub receipt_id: ReceiptId,
    pub kind: DispatchedKind,
    /// The length of its message.
    pub bytes: usize,
    pub begun: Instant,
    pub dispatched: Instant,
    /// When its time is over.
    pub deadline: Option<Instant>,
    /// Set when a line came that cannot be read and that may have been the answer: how long the answer is still waited for.
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
    /// It waits for nothing any more, and no thread has it yet.
    Released(Kept),
    /// One thread has it, decides on it and either answers it or sends it. No other thread may.
    Claimed(Kept),
    /// It was decided to send it, and the thread that may block on the server has it in its queue.
    Decided(Kept),
    /// It waited and was dispatched, but its bytes have not left. Nothing about it may be sent before they have.
    Leaving { dispatched: Dispatched, cancellation: Option<Vec<u8>> },
    /// It was sent, and the client waits for the answer.
    InFlight(Dispatched),
    /// It was sent and then cancelled. The server may still answer; many never do.
    Cancelled(Dispatched),
}

impl Phase {
    /// A request that has not been sent.
    pub fn kept(&self) -> Option<&Kept> {
        match self {
            Phase::Waiting { kept, .. }
            | Phase::Released(kept)
            | Phase::Claimed(kept)
            | Phase::Decided(kept) => Some(kept),
            Phase::Leaving { .. } | Phase::InFlight(_) | Phase::Cancelled(_) => None,
        }
    }

    /// A request that was dispatched.
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

/// Why a request can go no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A request of the session with this id is unanswered.
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

/// What becomes of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelling {
    /// It goes to the server now.
    Goes,
    /// No such request is unanswered, or it is a handshake, which the protocol does not allow to be cancelled.
    Unknown,
    /// It goes to the server after the request, which has not been sent.
    Follows,
    /// A person was asked about the request, which is released: the client does not wait for it any more.
    Resumes(RequestKey),
}

/// Whether the person at the client can be asked about a claimed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It waits for what they say.
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

/// How a request ends whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// Its answer seems to have come in a line that cannot be read. The client is told.
    Unreadable,
    /// The client cancelled it. Neither side is told.
    Abandoned,
    /// It is a handshake. The client is told; the server is sent no cancellation.
    Unstarted,
    /// Both sides are told.
    TimedOut,
}

/// A request whose time is over, taken out of the table.
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
    /// Those that were not sent, the oldest first.
    pub kept: Vec<(RequestKey, Arc<OwnedRequest>)>,
}

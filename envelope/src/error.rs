//! Why a frame was refused. The messages are for people and contain nothing from the frame.

use super::{MAX_BATCH, MAX_ID_BYTES, MAX_MEMBERS, MAX_SCAN_DEPTH, OwnedId};

/// A frame that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ScanError {
    pub kind: ScanErrorKind,
    /// The message's id, if exactly one could be read, so that the request waiting for the answer
    /// can be failed.
    pub id: Option<OwnedId>,
    /// If a whole batch is refused, the ids of its requests without duplicates, at most
    /// [`MAX_REFUSED`].
    ///
    /// [`MAX_REFUSED`]: super::MAX_REFUSED
    pub batch: Vec<OwnedId>,
    /// The frame is a request without a usable id: the id is repeated, null or of the wrong type.
    pub is_unnamed_request: bool,
}

impl ScanError {
    /// Whether two readers could take the frame for different messages, rather than every reader
    /// rejecting it.
    pub fn is_ambiguous(&self) -> bool {
        match self.kind {
            ScanErrorKind::Ambiguous(_) | ScanErrorKind::RepeatedId => true,
            ScanErrorKind::NotJson
            | ScanErrorKind::NotUtf8
            | ScanErrorKind::NotAMessage
            | ScanErrorKind::TooDeep
            | ScanErrorKind::TooManyMembers
            | ScanErrorKind::IdTooLong
            | ScanErrorKind::BatchTooLong
            | ScanErrorKind::EmptyBatch => false,
        }
    }
}

impl From<ScanErrorKind> for ScanError {
    fn from(kind: ScanErrorKind) -> Self {
        ScanError { kind, id: None, batch: Vec::new(), is_unnamed_request: false }
    }
}

/// The fault of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ScanErrorKind {
    #[error("not JSON")]
    NotJson,
    #[error("invalid UTF-8")]
    NotUtf8,
    #[error("JSON, but not a JSON-RPC 2.0 message")]
    NotAMessage,
    #[error(transparent)]
    Ambiguous(Ambiguity),
    #[error("nested deeper than {MAX_SCAN_DEPTH} levels")]
    TooDeep,
    #[error("more than {MAX_MEMBERS} members in the message or in its `params`")]
    TooManyMembers,
    #[error("an `id` of more than {MAX_ID_BYTES} bytes")]
    IdTooLong,
    #[error("a batch of more than {MAX_BATCH} messages")]
    BatchTooLong,
    #[error("a batch without a message")]
    EmptyBatch,
    #[error("a batch in which two requests have the same `id`")]
    RepeatedId,
}

/// How two readers could interpret the frame differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Ambiguity {
    #[error("a member of the message appears twice")]
    RepeatedMember,
    #[error("a member of `params` appears twice")]
    RepeatedParameter,
    #[error("some readers confuse a member of the message with `{0}`")]
    FoldedMember(&'static str),
    #[error("some readers confuse a member of `params` with `{0}`")]
    FoldedParameter(&'static str),
    #[error("some readers confuse its method with `{0}`")]
    FoldedMethod(&'static str),
    #[error("both a `method` and a `result` or an `error`")]
    MethodAndOutcome,
    #[error("both a `result` and an `error`")]
    BothOutcomes,
    #[error("a request whose `id` is null, which some readers treat as a notification")]
    NullId,
    #[error("a line break inside the message, where some readers start a new one")]
    LineBreak,
    #[error("half of a surrogate pair in a member name that the protocol defines")]
    LoneSurrogate,
}

//! Why a frame was not taken for a message. The words are for people and hold nothing of the frame.

use super::{MAX_BATCH, MAX_ID_BYTES, MAX_MEMBERS, MAX_SCAN_DEPTH, OwnedId};

/// A frame that is not passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ScanError {
    pub kind: ScanErrorKind,
    /// The message's id, if exactly one could be read, so that the request that waits for the answer can be ended.
    pub id: Option<OwnedId>,
    /// The ids of a batch's requests, each once, where it is refused as a whole: at most [`MAX_REFUSED`].
    ///
    /// [`MAX_REFUSED`]: super::MAX_REFUSED
    pub batch: Vec<OwnedId>,
    /// It is a request whose id cannot be read in one way: it is there twice, null, or no id at all.
    pub is_unnamed_request: bool,
}

impl ScanError {
    /// Whether two readers could take the frame for different messages, as opposed to one that no reader takes for a message.
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

/// What is wrong with it.
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

/// How two readers could differ.
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

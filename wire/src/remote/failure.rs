//! Why a request got no answer, with everything that the user needs to act on it. It contains no
//! bodies or credentials.

use crate::ServerText;
use crate::error::{ObserveError, seconds};
use http::StatusCode;
use std::time::Duration;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteFailure {
    #[error(transparent)]
    NotReached(ObserveError),
    #[error("the runtime for HTTP could not be started: {source}")]
    NoRuntime { source: std::io::Error },
    #[error("the connection to `{host}` was lost before the answer came: {source}")]
    Lost { host: String, source: hyper::Error },
    #[error("the server sent nothing for {} s", seconds(*.after))]
    Silent { after: Duration },
    #[error("the server answered with status {status}{}", hint(*.status))]
    Status { status: StatusCode },
    #[error("the server needs a sign-in (status 401{}); give its token as a header",
        if *.challenged { " with WWW-Authenticate" } else { ", without WWW-Authenticate" })]
    NeedsSignIn { challenged: bool },
    #[error("{words}")]
    Withheld { words: String },
    #[error("the server refused the credential that is configured for it (status 401)")]
    CredentialRefused,
    #[error(
        "the server redirects to `{target}` (status {status}); redirects are not followed, give that URL yourself if you trust it"
    )]
    RedirectRefused { status: StatusCode, target: ServerText },
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
    #[error("the server no longer knows this session (status 404); reconnect")]
    SessionEnded,
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the connection to the server was ended before the answer came")]
    Closing,
    #[error("the server could not be reached when the request came")]
    NeverReached,
    #[error("an internal error of Holdpoint ended the exchange with the server")]
    Panicked,
    #[error("an internal error of Holdpoint ended all exchanges with the server")]
    Internal,
}

/// Why an answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    #[error("a message longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("more than {limit} bytes of unfinished messages at once")]
    TooMuch { limit: usize },
    #[error("a body in a content encoding that was not asked for")]
    Encoded,
    #[error("status {status} with a body that is not the answer")]
    NotTheAnswer { status: StatusCode },
    #[error("the event stream ended before the answer")]
    StreamEnded,
    #[error("a line break within a JSON string")]
    BreakInString,
}

/// The kind of a failure, for the caller that must answer the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Unreachable,
    Unreadable,
    TimedOut,
    NeedsSignIn,
    /// The server refused the credential, even after it was renewed.
    CredentialRefused,
    /// The client is no longer waiting for it.
    Cancelled,
    /// The server is not at fault.
    Internal,
}

impl RemoteFailure {
    /// Whether a panic while handling this request ended it.
    pub fn is_panic(&self) -> bool {
        matches!(self, RemoteFailure::Panicked)
    }

    pub fn kind(&self) -> FailureKind {
        match self {
            RemoteFailure::NotReached(_)
            | RemoteFailure::Lost { .. }
            | RemoteFailure::Status { .. }
            | RemoteFailure::RedirectRefused { .. }
            | RemoteFailure::SessionEnded
            | RemoteFailure::Closing
            | RemoteFailure::NeverReached => FailureKind::Unreachable,
            RemoteFailure::Silent { .. } => FailureKind::TimedOut,
            RemoteFailure::NeedsSignIn { .. } => FailureKind::NeedsSignIn,
            RemoteFailure::CredentialRefused | RemoteFailure::Withheld { .. } => {
                FailureKind::CredentialRefused
            }
            RemoteFailure::Unreadable(_) => FailureKind::Unreadable,
            RemoteFailure::Cancelled => FailureKind::Cancelled,
            RemoteFailure::NoRuntime { .. } | RemoteFailure::Panicked | RemoteFailure::Internal => {
                FailureKind::Internal
            }
        }
    }
}

fn hint(status: StatusCode) -> &'static str {
    match status.as_u16() {
        403 => "; it refuses this client or its credentials",
        404 | 405 => "; there may be no streamable HTTP endpoint at this URL",
        429 => "; it wants fewer requests",
        _ => "",
    }
}

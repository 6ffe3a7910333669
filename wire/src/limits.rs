//! The size and time limits of an observation, all named here.

use crate::listing::LIST_PATIENCE;
use std::time::Duration;

/// How much of the end of a server's standard error is kept, to be shown when the server fails.
pub const MAX_STDERR_TAIL_BYTES: usize = 8 * 1024;

/// The most requests from the server that are answered in one session; later ones are dropped with
/// a note.
pub(crate) const MAX_REPLIES: usize = 1_000;

/// How long a server may take to answer the modern handshake over HTTP before the older one is
/// tried; half of the start timeout if that is less.
pub(crate) const DISCOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one address may take to accept a connection before the next is tried.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout for ending an HTTP session.
pub(crate) const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server may take to exit after it was sent a signal, before it is killed.
pub(crate) const TERMINATE_GRACE: Duration = Duration::from_secs(1);

/// How long to wait to reap a killed server. A process in an uninterruptible sleep can exceed it.
pub(crate) const COLLECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest header block of an HTTP response. It is checked between reads, so up to one read
/// more may pass.
pub(crate) const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The longest session id that is accepted.
pub(crate) const MAX_SESSION_ID_BYTES: usize = 4 * 1024;

/// The most addresses of one name that are tried.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The limits of one observation that a caller may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveLimits {
    /// From starting the program, or the connection, to the response to the handshake.
    pub start_timeout: Duration,
    /// For all pages of one list together.
    pub list_timeout: Duration,
    /// The largest message from the server: a line on standard output, a body or an event over HTTP.
    pub frame_bytes: usize,
    /// How long a server may take to exit by itself after its input is closed.
    pub shutdown_grace: Duration,
}

impl Default for ObserveLimits {
    fn default() -> Self {
        ObserveLimits {
            start_timeout: Duration::from_secs(60),
            list_timeout: LIST_PATIENCE,
            frame_bytes: 16 * 1024 * 1024,
            shutdown_grace: Duration::from_secs(2),
        }
    }
}

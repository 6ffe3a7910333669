//! How much and how long: every bound of an observation has its name here.

use crate::listing::LIST_PATIENCE;
use std::time::Duration;

/// The last bytes of a server's standard error that are kept to be shown when it fails.
pub const MAX_STDERR_TAIL_BYTES: usize = 8 * 1024;

/// The most requests of the server that are answered in one session; what comes after is dropped with a note.
pub(crate) const MAX_REPLIES: usize = 1_000;

/// How long a server may take to answer the modern handshake over HTTP before the older one is tried; half of the
/// whole time for starting where that is less.
pub(crate) const DISCOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long one address may take to accept a connection before the next is tried.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the goodbye to an HTTP session may take.
pub(crate) const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server may take to end once it was told to by a signal, before it is killed.
pub(crate) const TERMINATE_GRACE: Duration = Duration::from_secs(1);

/// How long a killed server may take to be collected. A process in an uninterruptible sleep can exceed it.
pub(crate) const COLLECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest header block of an HTTP answer. It is measured between reads, so one read more may pass.
pub(crate) const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The longest session id that is taken over.
pub(crate) const MAX_SESSION_ID_BYTES: usize = 4 * 1024;

/// The most addresses of one name that are tried.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The bounds of one observation that a caller may move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveLimits {
    /// From the start of the program, or of the connection, to the answer to the handshake.
    pub start_timeout: Duration,
    /// For all pages of one list together.
    pub list_timeout: Duration,
    /// The largest message from the server: a line on standard output, a body or an event over HTTP.
    pub frame_bytes: usize,
    /// How long a server may take to end by itself once its input is closed.
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

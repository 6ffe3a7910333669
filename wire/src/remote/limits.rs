//! The size and time limits of a long-lived upstream, all named here.

use std::time::Duration;

/// The most messages in the queue between the caller's threads and the relay.
pub(super) const QUEUE_MESSAGES: usize = 4;

/// The most messages that were taken from the queue and wait to be sent.
pub(super) const MAX_WAITING: usize = 256;

/// Once this many bytes are waiting, nothing more is taken from the queue.
pub(super) const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The most requests in flight.
pub(super) const MAX_REQUESTS: usize = 64;

/// The most answers to the server's requests in flight. They have a separate limit: calls that
/// depend on such answers must not block them.
pub(super) const MAX_RESPONSES: usize = 16;

/// Notifications are sent one after the other, so that they arrive in order.
pub(super) const MAX_NOTIFICATIONS: usize = 1;

/// The most messages that were received and not yet handled.
pub(super) const HEARD_MESSAGES: usize = 4;

/// The limit on unfinished messages over all streams and bodies together, as a multiple of the
/// largest message.
pub(super) const MAX_UNFINISHED_FRAMES: usize = 8;

/// The most idle connections that are kept open, unless the caller says otherwise.
pub(super) const MAX_IDLE_CONNECTIONS: usize = 8;

/// How long an idle connection is kept. Many servers close one after five seconds, and a request
/// sent at that moment is lost: the server may have executed it, so it is not sent again.
pub(super) const MAX_IDLE_AGE: Duration = Duration::from_secs(4);

/// How much of the body after an accepted notification is read, so that the connection can be kept.
pub(super) const MAX_ACCEPTED_BYTES: usize = 64 * 1024;

/// How long an event stream is still read after the answer it was opened for.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// How long a cancelled request may still be answered.
pub(super) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// How many times in a row a broken stream is requested again without receiving anything.
pub(super) const MAX_RESUMES: u32 = 5;

/// How long a resumed stream may be silent before it is requested again. Some servers send what was
/// missed and then forget the stream, so the answer only arrives with the next request.
pub(super) const RESUMED_PATIENCE: Duration = Duration::from_secs(5);

/// The first delay before a stream is requested again, if the server does not set one; it doubles
/// with every failure.
pub(super) const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The bounds on the delay before a stream is requested again, whatever the server says.
pub(super) const SHORTEST_RETRY: Duration = Duration::from_millis(50);
pub(super) const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// The longest value of a header made from a message. Servers refuse much longer ones.
pub(super) const MAX_HEADER_VALUE_BYTES: usize = 8 * 1024;

/// The most arguments of a call that are sent as headers, the longest name of such a header without
/// its prefix, and the total size of all of them. Many servers read at most 16 KiB of headers.
pub(super) const MAX_PARAMETER_HEADERS: usize = 32;
pub(super) const MAX_PARAMETER_NAME_BYTES: usize = 128;
pub(super) const MAX_PARAMETER_HEADER_BYTES: usize = 12 * 1024;

/// The limits that a caller may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLimits {
    /// The largest message from the server: a body or an event.
    pub frame_bytes: usize,
    /// How long a server may send nothing while an answer is outstanding.
    pub idle_timeout: Duration,
    /// How long the server may take to accept a notification or an answer to a request of its own.
    pub accept_timeout: Duration,
    /// The most idle connections that are kept open.
    pub idle_connections: usize,
    /// How long requests may still be answered after every sender is dropped.
    pub shutdown_grace: Duration,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        RemoteLimits {
            frame_bytes: 16 * 1024 * 1024,
            idle_timeout: Duration::from_secs(30 * 60),
            accept_timeout: Duration::from_secs(30),
            idle_connections: MAX_IDLE_CONNECTIONS,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

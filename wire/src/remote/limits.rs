//! How much and how long: every bound of a long-lived upstream has its name here.

use std::time::Duration;

/// The most messages in the queue between the caller's threads and this one.
pub(super) const QUEUE_MESSAGES: usize = 4;

/// The most messages that were taken from the queue and wait for their turn.
pub(super) const MAX_WAITING: usize = 256;

/// Past this many bytes that wait, nothing more is taken from the queue.
pub(super) const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The most requests that are with the server at once.
pub(super) const MAX_REQUESTS: usize = 64;

/// The most answers to requests of the server's that are on their way at once. They have places of their own: calls
/// that wait for such answers must not keep them out.
pub(super) const MAX_RESPONSES: usize = 16;

/// Notifications go one after the other, so that they arrive in their order.
pub(super) const MAX_NOTIFICATIONS: usize = 1;

/// The most messages that were read and not yet heard.
pub(super) const HEARD_MESSAGES: usize = 4;

/// Of unfinished messages there may be as many bytes as in so many of the largest, over all streams and bodies together.
pub(super) const MAX_UNFINISHED_FRAMES: usize = 8;

/// The most connections that are kept open without a request, unless the caller says otherwise.
pub(super) const MAX_IDLE_CONNECTIONS: usize = 8;

/// How long a connection is kept without a request. Many servers close it after five seconds, and a request that meets
/// the closing is lost: it may have been carried out, so it is not sent again.
pub(super) const MAX_IDLE_AGE: Duration = Duration::from_secs(4);

/// How much of the body behind an accepted notification is read so that the connection can be kept.
pub(super) const MAX_ACCEPTED_BYTES: usize = 64 * 1024;

/// How long an event stream is read on after the answer it was opened for.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// How long a request may still be answered after it was cancelled.
pub(super) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// How often in a row a stream that broke off is asked for again, with nothing of it coming.
pub(super) const MAX_RESUMES: u32 = 5;

/// How long nothing may come on a stream that was taken up again before it is asked for once more. There are servers that
/// give what was missed and then forget the stream: the answer comes only with the next question.
pub(super) const RESUMED_PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before a stream is asked for again, where the server has not said; it doubles with every failure.
pub(super) const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The shortest and the longest wait before a stream is asked for again, whatever the server says.
pub(super) const SHORTEST_RETRY: Duration = Duration::from_millis(50);
pub(super) const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// The longest value of a header that is made from a message. Servers refuse much longer ones.
pub(super) const MAX_HEADER_VALUE_BYTES: usize = 8 * 1024;

/// The most arguments of a call that go into headers, the longest name of such a header without its beginning, and the
/// bytes of all of them together. Many servers read no more than 16 KiB of headers.
pub(super) const MAX_PARAMETER_HEADERS: usize = 32;
pub(super) const MAX_PARAMETER_NAME_BYTES: usize = 128;
pub(super) const MAX_PARAMETER_HEADER_BYTES: usize = 12 * 1024;

/// The bounds that a caller may move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLimits {
    /// The largest message from the server: a body or an event.
    pub frame_bytes: usize,
    /// How long a server may send nothing at all while its answer is waited for.
    pub idle_timeout: Duration,
    /// How long the server may take to accept a notification or an answer to a request of its own.
    pub accept_timeout: Duration,
    /// The most connections that are kept open without a request.
    pub idle_connections: usize,
    /// How long requests may still be answered once every sender is gone.
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

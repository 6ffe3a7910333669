//! Event streams of a server, read event by event, and where to resume when one breaks off.

use super::budget::Share;
use super::failure::{RemoteFailure, Unreadable};
use super::limits::{FIRST_RETRY, LONGEST_RETRY, SHORTEST_RETRY};
use super::link::Link;
use super::one_line;
use crate::http::connect::Live;
use crate::http::sse::{Event, EventParser};
use http::{HeaderValue, Response};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The position in a stream, across all connections that carry it.
#[derive(Debug)]
pub(super) struct Place {
    /// The id of the last event that was read.
    pub(super) last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How many times in a row the stream was requested without receiving anything.
    pub(super) failures: u32,
    /// When the last progress was made.
    pub(super) moved: Instant,
    /// Whether it was already reported that the stream can be resumed.
    is_told: bool,
}

/// The next item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Message(Vec<u8>),
    /// The stream's events have ids, so it can be resumed. Reported once.
    Resumable {
        /// How long a client should wait before resuming, if the server says so.
        retry: Option<Duration>,
    },
}

impl Place {
    /// The position before the first event.
    pub(super) fn start() -> Place {
        Place { last_id: None, retry: None, failures: 0, moved: Instant::now(), is_told: false }
    }

    /// How long to wait before the stream is requested again.
    pub(super) fn pause(&self) -> Duration {
        let first = self.retry.unwrap_or(FIRST_RETRY).clamp(SHORTEST_RETRY, LONGEST_RETRY);
        first.saturating_mul(1 << self.failures.min(16)).min(LONGEST_RETRY)
    }
}

/// One connection that carries a stream.
#[derive(Debug)]
pub(super) struct EventStream<'l> {
    link: &'l Link,
    live: Live,
    body: Incoming,
    parser: EventParser,
    share: Share<'l>,
    ready: VecDeque<Event>,
    /// How long the stream may be silent.
    patience: Patience,
}

/// How long a stream may be silent, and what ends a silence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// No byte for this long; a comment is enough to show that the server is alive.
    Bytes(Duration),
    /// No event for this long.
    Events(Duration),
}

/// Why a stream has no further events.
#[derive(Debug)]
pub(super) enum StreamEnd {
    Finished,
    /// The connection was lost; another one may resume at the same position.
    Broken(RemoteFailure),
    /// The stream was silent for too long.
    Silent,
    /// Reading on would be useless.
    Failed(RemoteFailure),
}

impl<'l> EventStream<'l> {
    /// A stream with the ordinary idle timeout, counted in bytes.
    pub(super) fn new(link: &'l Link, live: Live, response: Response<Incoming>) -> Self {
        EventStream {
            link,
            live,
            body: response.into_body(),
            parser: EventParser::new(link.limits.frame_bytes),
            share: Share::new(&link.budget),
            ready: VecDeque::new(),
            patience: Patience::Bytes(link.limits.idle_timeout),
        }
    }

    /// Replaces the definition of silence.
    pub(super) fn with_patience(self, patience: Patience) -> Self {
        EventStream { patience, ..self }
    }

    /// Returns the next message on one line, and advances `place` past it.
    pub(super) async fn next(&mut self, place: &mut Place) -> Result<Next, StreamEnd> {
        let mut since = Instant::now();
        loop {
            if place.last_id.is_some() && !place.is_told {
                place.is_told = true;
                return Ok(Next::Resumable { retry: place.retry });
            }
            if let Some(Event { mut data }) = self.ready.pop_front() {
                return match one_line::make(&mut data) {
                    Ok(()) => Ok(Next::Message(data)),
                    Err(one_line::BreakInString) => {
                        Err(StreamEnd::Failed(Unreadable::BreakInString.into()))
                    }
                };
            }
            let patience = match self.patience {
                Patience::Bytes(patience) => {
                    since = Instant::now();
                    patience
                }
                Patience::Events(patience) => patience,
            };
            match timeout_at(since + patience, self.read(place)).await {
                Ok(read) => read?,
                Err(_) => return Err(StreamEnd::Silent),
            }
        }
    }

    async fn read(&mut self, place: &mut Place) -> Result<(), StreamEnd> {
        let frame = match self.live.line.frame(&mut self.body).await {
            Some(Ok(frame)) => frame,
            Some(Err(source)) => return Err(StreamEnd::Broken(self.link.lost(source))),
            None => return Err(StreamEnd::Finished),
        };
        let Some(piece) = frame.data_ref() else { return Ok(()) };
        let Ok(events) = self.parser.push(piece) else {
            let limit = self.link.limits.frame_bytes;
            return Err(StreamEnd::Failed(Unreadable::TooLong { limit }.into()));
        };
        self.share.hold(self.parser.held()).map_err(|error| StreamEnd::Failed(error.into()))?;
        let id = self.parser.last_id();
        if !events.is_empty() || id.is_some_and(|id| place.last_id.as_ref().is_none_or(|l| l != id))
        {
            place.failures = 0;
            place.moved = Instant::now();
        }
        if !events.is_empty() || id.is_some() {
            place.last_id = id.and_then(|id| HeaderValue::from_bytes(id).ok());
        }
        place.retry = self.parser.retry().or(place.retry);
        self.ready.extend(events);
        Ok(())
    }

    /// Keeps the connection of a stream that was read to its end.
    pub(super) fn keep(self) {
        self.link.keep(self.live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_what_the_server_says_to_the_longest() {
        let pause = |retry: Option<u64>, failures| {
            let retry = retry.map(Duration::from_millis);
            Place { retry, failures, ..Place::start() }.pause()
        };
        assert_eq!(pause(None, 0), FIRST_RETRY);
        assert_eq!(pause(None, 1), FIRST_RETRY * 2);
        assert_eq!(pause(Some(200), 2), Duration::from_millis(800));
        assert_eq!(pause(Some(0), 0), SHORTEST_RETRY);
        assert_eq!(pause(Some(49), 0), SHORTEST_RETRY);
        assert_eq!(pause(Some(51), 0), Duration::from_millis(51));
        assert_eq!(pause(Some(60_000), 0), LONGEST_RETRY);
        assert_eq!(pause(Some(60_001), 0), LONGEST_RETRY);
        assert_eq!(pause(Some(u64::MAX), u32::MAX), LONGEST_RETRY);
    }
}

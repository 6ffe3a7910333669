//! Event streams of a server, read event by event, and where to go on when one breaks off.

use super::failure::{RemoteFailure, Unreadable};
use super::limits::{FIRST_RETRY, LONGEST_RETRY, SHORTEST_RETRY};
use super::link::Link;
use super::one_line;
use crate::http::connect::Live;
use crate::http::sse::{Event, EventParser};
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::timeout;

/// Where a stream is, over all connections that carry it.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Of the last event that was read.
    pub(super) last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How often in a row it was asked for and nothing of it came.
    pub(super) failures: u32,
}

impl Place {
    /// How long to wait before the stream is asked for again.
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
    ready: VecDeque<Event>,
}

/// Why no further event comes.
#[derive(Debug)]
pub(super) enum StreamEnd {
    Finished,
    /// The connection was lost; another may go on where it was.
    Broken(RemoteFailure),
    /// There is no use in reading on.
    Failed(RemoteFailure),
}

impl<'l> EventStream<'l> {
    pub(super) fn new(link: &'l Link, live: Live, response: Response<Incoming>) -> Self {
        EventStream {
            link,
            live,
            body: response.into_body(),
            parser: EventParser::new(link.limits.frame_bytes),
            ready: VecDeque::new(),
        }
    }

    /// The next message, on one line. `place` is moved behind it.
    pub(super) async fn next(&mut self, place: &mut Place) -> Result<Vec<u8>, StreamEnd> {
        loop {
            if let Some(Event { mut data }) = self.ready.pop_front() {
                return match one_line::make(&mut data) {
                    Ok(()) => Ok(data),
                    Err(one_line::BreakInString) => {
                        Err(StreamEnd::Failed(Unreadable::BreakInString.into()))
                    }
                };
            }
            self.read(place).await?;
        }
    }

    async fn read(&mut self, place: &mut Place) -> Result<(), StreamEnd> {
        let after = self.link.limits.idle_timeout;
        let frame = match timeout(after, self.body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(source))) => return Err(StreamEnd::Broken(self.link.lost(source))),
            Ok(None) => return Err(StreamEnd::Finished),
            Err(_) => return Err(StreamEnd::Broken(RemoteFailure::Silent { after })),
        };
        let Some(piece) = frame.data_ref() else { return Ok(()) };
        let Ok(events) = self.parser.push(piece) else {
            let limit = self.link.limits.frame_bytes;
            return Err(StreamEnd::Failed(Unreadable::TooLong { limit }.into()));
        };
        let id = self.parser.last_id();
        if !events.is_empty() || id.is_some_and(|id| place.last_id.as_ref().is_none_or(|l| l != id))
        {
            place.failures = 0;
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
            Place { last_id: None, retry, failures }.pause()
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

//! HTTP responses: complete messages, and event streams.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A comment that keeps a stream open: proxies close silent ones.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    /// A single part; `None` after it was sent.
    One(Option<Bytes>),
    Whole(VecDeque<Bytes>),
    Stream(EventStream),
}

/// Events as they arrive.
pub(crate) struct EventStream {
    receiver: mpsc::Receiver<Bytes>,
    /// The stream ends when this future completes, even if events are queued.
    until: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventStream").finish_non_exhaustive()
    }
}

impl EventStream {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(context).is_ready()
        {
            self.until = None;
            self.receiver.close();
            while self.receiver.try_recv().is_ok() {}
        }
        self.receiver.poll_recv(context)
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ReplyBody::One(part) => Poll::Ready(part.take().map(|part| Ok(Frame::data(part)))),
            ReplyBody::Whole(parts) => {
                Poll::Ready(parts.pop_front().map(|part| Ok(Frame::data(part))))
            }
            ReplyBody::Stream(events) => {
                events.poll(context).map(|part| part.map(|part| Ok(Frame::data(part))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::One(part) => part.is_none(),
            ReplyBody::Whole(parts) => parts.is_empty(),
            ReplyBody::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::One(part) => {
                SizeHint::with_exact(part.as_ref().map_or(0, |part| part.len() as u64))
            }
            ReplyBody::Whole(parts) => {
                SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum())
            }
            ReplyBody::Stream(_) => SizeHint::default(),
        }
    }
}

/// An HTTP response.
pub(crate) type Reply = Response<ReplyBody>;

/// Parts up to this total size are joined: one write is cheaper than several.
const SMALL_BYTES: usize = 16 * 1024;

fn whole(parts: &[Bytes]) -> ReplyBody {
    match (parts, parts.iter().map(Bytes::len).sum()) {
        (_, 0) => ReplyBody::One(None),
        ([one], _) => ReplyBody::One(Some(one.clone())),
        (parts, total) if total <= SMALL_BYTES => {
            let mut one = Vec::with_capacity(total);
            parts.iter().for_each(|part| one.extend_from_slice(part));
            ReplyBody::One(Some(one.into()))
        }
        (parts, _) => {
            ReplyBody::Whole(parts.iter().filter(|part| !part.is_empty()).cloned().collect())
        }
    }
}

/// The bytes of a response that is not a stream.
pub(crate) fn whole_body(reply: Reply) -> Bytes {
    match reply.into_body() {
        ReplyBody::One(part) => part.unwrap_or_default(),
        ReplyBody::Whole(parts) => parts.into_iter().flatten().collect(),
        ReplyBody::Stream(_) => Bytes::new(),
    }
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::One(None));
    *reply.status_mut() = status;
    reply
}

/// One JSON document.
pub(crate) fn json(status: StatusCode, parts: impl AsRef<[Bytes]>) -> Reply {
    let mut reply = Response::new(whole(parts.as_ref()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, NO_STORE);
    reply
}

/// A sentence for a person who reads the raw response.
pub(crate) fn text(status: StatusCode, sentence: String) -> Reply {
    let mut reply = Response::new(whole(&[Bytes::from(sentence)]));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}

/// An event stream.
pub(crate) fn events(receiver: mpsc::Receiver<Bytes>) -> Reply {
    let mut reply = Response::new(ReplyBody::Stream(EventStream { receiver, until: None }));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(NO_BUFFER, HeaderValue::from_static("no"));
    reply
}

/// A connection keeps memory for at most this many headers.
const KEPT_HEADERS: usize = 48;

/// The same response, with its headers in the memory of the request's headers. hyper keeps that
/// memory for the next request on the connection, which then needs no new allocation.
pub(crate) fn with_headers_in(mut reply: Reply, mut memory: HeaderMap) -> Reply {
    if memory.capacity() > KEPT_HEADERS {
        return reply;
    }
    memory.clear();
    memory.extend(std::mem::take(reply.headers_mut()));
    *reply.headers_mut() = memory;
    reply
}

/// The same response; if it is a stream, it ends when this future completes.
pub(crate) fn until<F>(mut reply: Reply, ends: impl FnOnce() -> F) -> Reply
where
    F: Future<Output = ()> + Send + 'static,
{
    if let ReplyBody::Stream(events) = reply.body_mut() {
        events.until = Some(Box::pin(ends()));
    }
    reply
}

/// Formats a message as one event.
pub(crate) fn event(parts: &[&[u8]]) -> Bytes {
    event_after("event: message\n", parts)
}

/// An event without a message, whose id a client can resume from.
pub(crate) fn priming_event(id: &str, retry: Option<Duration>) -> Bytes {
    match retry {
        Some(retry) => format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()),
        None => format!("id: {id}\ndata: \n\n"),
    }
    .into()
}

/// Formats a message as one event with an id.
pub(crate) fn event_with_id(id: &str, message: &[u8]) -> Bytes {
    event_after(&format!("id: {id}\nevent: message\n"), &[message])
}

fn event_after(beginning: &str, parts: &[&[u8]]) -> Bytes {
    let mut event = beginning.as_bytes().to_vec();
    event.extend_from_slice(b"data: ");
    for part in parts {
        // A message is a single line; a stray line break would end the event.
        event.extend(
            part.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }),
        );
    }
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_line_of_data() {
        assert_eq!(&event(&[b"{\"a\":", b"1}"])[..], b"event: message\ndata: {\"a\":1}\n\n");
        assert_eq!(&event(&[b"{\n}"])[..], b"event: message\ndata: { }\n\n");
        assert_eq!(&event_with_id("x", b"{}")[..], b"id: x\nevent: message\ndata: {}\n\n");
        let retry = Some(Duration::from_millis(250));
        assert_eq!(&priming_event("x", retry)[..], b"id: x\nretry: 250\ndata: \n\n");
        assert_eq!(&priming_event("x", None)[..], b"id: x\ndata: \n\n");
    }

    #[test]
    fn an_answer_has_its_own_headers_in_the_memory_of_its_request() {
        let check = |given: usize, is_kept: bool| {
            let mut memory = HeaderMap::new();
            for number in 0..given {
                memory.insert(HeaderName::try_from(format!("x-{number}")).unwrap(), JSON);
            }
            let mut reply = json(StatusCode::OK, [Bytes::from("{}")]);
            reply.headers_mut().append("x-1", NO_STORE);
            reply.headers_mut().append("x-1", EVENTS);
            let (own, room) = (reply.headers().clone(), memory.capacity());
            let reply = with_headers_in(reply, memory);
            assert_eq!(*reply.headers(), own, "{given}");
            assert_eq!(reply.headers().capacity() == room, is_kept, "{given}");
        };
        check(20, true);
        check(KEPT_HEADERS, true);
        check(KEPT_HEADERS + 1, false);
    }

    #[test]
    fn small_parts_are_one_and_the_length_is_known() {
        let small = whole(&[Bytes::from("a"), Bytes::new(), Bytes::from("b")]);
        assert_eq!(small.size_hint().exact(), Some(2));
        assert!(matches!(small, ReplyBody::One(Some(one)) if one == "ab"));
        assert!(whole(&[Bytes::new()]).is_end_stream());
        let large = Bytes::from(vec![b'x'; SMALL_BYTES]);
        let body = whole(&[large.clone(), Bytes::from("b")]);
        assert_eq!(body.size_hint().exact(), Some(SMALL_BYTES as u64 + 1));
        assert!(matches!(body, ReplyBody::Whole(parts) if parts.len() == 2));
    }
}

//! The unanswered requests on one link, and the tasks that wait for them.
//!
//! The engine's session writes its client side here. An answer goes to the task that waits for it,
//! progress to the request that asked for it, and everything else to the listener of the link.

use crate::frame::{Edits, member, offset};
use crate::link::Link;
use bytes::Bytes;
use engine::outlet::{ClientOutlet, ToClient};
use foldhash::HashMap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wire::envelope::{Envelope, Kind, Scanned, scan};
use wire::remote::Outbound;

/// The most messages queued for the task of one request. Further ones are dropped, except for the
/// answer.
const MAX_WAITING_MESSAGES: usize = 1_000;

/// The most bytes of such messages.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// The member of `_meta` that names the subscription of a notification.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The beginning of the gate's own messages, up to the id.
const BEGINNING: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// An event of a request.
#[derive(Debug)]
pub(crate) enum Happening {
    /// It was decided and recorded, and may be sent. Boxed because it is larger than the other
    /// variants.
    Send(Box<Outbound>),
    /// A notification or a request of the server that belongs to it.
    Message(Bytes),
    Answer(Answer),
    /// The server's stream can be resumed after this time.
    Resumable {
        retry: Option<Duration>,
    },
    /// The server ended its stream before the answer.
    Paused,
}

/// An answer, and the position of its id.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    bytes: Bytes,
    id: (usize, usize),
}

impl Answer {
    /// The answer with a different id, as consecutive pieces.
    pub(crate) fn with_id(&self, id: &[u8]) -> [Bytes; 3] {
        let (start, end) = self.id;
        [self.bytes.slice(..start), Bytes::copy_from_slice(id), self.bytes.slice(end..)]
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Slot {
    state: Mutex<SlotState>,
    /// The client's raw progress token.
    progress_token: Option<Box<[u8]>>,
}

#[derive(Debug, Default)]
struct SlotState {
    happened: VecDeque<Happening>,
    /// The number of bytes of the queued messages.
    waiting_bytes: usize,
    /// Wakes the waiting task. `None` while the task runs: it finds events that it causes itself,
    /// and waking it would only make it run again for nothing.
    waits: Option<Waker>,
    /// Whether the answer is or was in the queue. The slot stays until its task has read it.
    is_answered: bool,
}

impl SlotState {
    fn pop(&mut self) -> Option<Happening> {
        let happening = self.happened.pop_front()?;
        if let Happening::Message(message) = &happening {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(message.len());
        }
        Some(happening)
    }
}

impl Slot {
    fn push(&self, happening: Happening) {
        let mut state = lock(&self.state);
        if matches!(happening, Happening::Resumable { .. } | Happening::Paused)
            && state.happened.len() >= MAX_WAITING_MESSAGES
        {
            return;
        }
        if let Happening::Message(message) = &happening {
            let bytes = state.waiting_bytes + message.len();
            if state.happened.len() >= MAX_WAITING_MESSAGES || bytes > MAX_WAITING_BYTES {
                return;
            }
            state.waiting_bytes = bytes;
        }
        state.is_answered |= matches!(happening, Happening::Answer(_));
        state.happened.push_back(happening);
        let waits = state.waits.take();
        drop(state);
        if let Some(waker) = waits {
            waker.wake();
        }
    }

    /// The next event, if any. Does not register the calling task, which is running anyway.
    pub(crate) fn take(&self) -> Option<Happening> {
        let mut state = lock(&self.state);
        state.waits = None;
        state.pop()
    }

    /// Like [`Slot::take`], but wakes the task once there is an event.
    pub(crate) fn poll_take(&self, context: &Context<'_>) -> Poll<Happening> {
        let mut state = lock(&self.state);
        match state.pop() {
            Some(happening) => Poll::Ready(happening),
            None => {
                state.waits = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

thread_local! {
    /// The request whose response this thread is processing, and the message being processed.
    static HEARD_FOR: RefCell<Option<(u64, Bytes)>> = const { RefCell::new(None) };
}

/// Processes a server message that arrived in response to one request: messages that name no
/// request are attributed to it.
pub(crate) fn hear_for<T>(request: u64, message: &Bytes, hear: impl FnOnce(&[u8]) -> T) -> T {
    let before = HEARD_FOR.replace(Some((request, message.clone())));
    let heard = hear(message);
    HEARD_FOR.replace(before);
    heard
}

fn heard_for() -> Option<u64> {
    HEARD_FOR.with_borrow(|heard| heard.as_ref().map(|(request, _)| *request))
}

/// Copies a message into owned bytes. The message that this thread is processing is shared, not
/// copied: it may be large.
fn kept(message: &[u8]) -> Bytes {
    HEARD_FOR.with_borrow(|heard| match heard {
        Some((_, whole)) if offset(whole, message).is_some() => whole.slice_ref(message),
        Some(_) | None => Bytes::copy_from_slice(message),
    })
}

/// Receives messages that belong to no request.
pub(crate) type Listener = dyn Fn(&Unasked<'_>) + Send + Sync;

/// A server message that belongs to no request.
#[derive(Debug)]
pub(crate) struct Unasked<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) method: &'a str,
    /// The raw id, if the message is a request.
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) link: Option<Arc<Link>>,
}

/// The unanswered requests of a link.
pub(crate) struct Pending {
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
    listener: Box<Listener>,
    /// The link of these requests.
    link: OnceLock<Weak<Link>>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pending").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Pending {
    pub(crate) fn new(listener: Box<Listener>) -> Pending {
        Pending { slots: Mutex::default(), listener, link: OnceLock::new() }
    }

    /// Sets the link of these requests.
    pub(crate) fn belong_to(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
    }

    pub(crate) fn add(&self, request: u64, progress_token: Option<&[u8]>) -> Arc<Slot> {
        let slot = Arc::new(Slot {
            state: Mutex::default(),
            progress_token: progress_token.map(Into::into),
        });
        lock(&self.slots).insert(request, slot.clone());
        slot
    }

    pub(crate) fn remove(&self, request: u64) {
        lock(&self.slots).remove(&request);
    }

    pub(crate) fn has(&self, request: u64) -> bool {
        lock(&self.slots).contains_key(&request)
    }

    /// Whether a request other than this one is pending.
    pub(crate) fn has_others_than(&self, request: u64) -> bool {
        lock(&self.slots).keys().any(|waiting| *waiting != request)
    }

    fn slot(&self, request: u64) -> Option<Arc<Slot>> {
        lock(&self.slots).get(&request).cloned()
    }

    /// The only pending request, if there is exactly one.
    fn only(&self) -> Option<Arc<Slot>> {
        let slots = lock(&self.slots);
        let mut waiting = slots.values().filter(|slot| !lock(&slot.state).is_answered);
        let first = waiting.next()?;
        waiting.next().is_none().then(|| first.clone())
    }

    /// Hands a decided request to the task that carries it. Returns it if there is no such task.
    #[must_use]
    pub(crate) fn send(&self, request: u64, outbound: Outbound) -> Option<Outbound> {
        match self.slot(request) {
            Some(slot) => {
                slot.push(Happening::Send(Box::new(outbound)));
                None
            }
            None => Some(outbound),
        }
    }

    /// Adds an event of the stream that carries a request's answer.
    pub(crate) fn note(&self, request: u64, happening: Happening) {
        if let Some(slot) = self.slot(request) {
            slot.push(happening);
        }
    }

    fn answer(&self, id: &[u8], parts: &[&[u8]]) {
        let Some(slot) = number(id).and_then(|number| self.slot(number)) else { return };
        let (at, bytes) = match parts {
            [whole] => (offset(whole, id), kept(whole)),
            _ => (None, Bytes::from(parts.concat())),
        };
        let found = match at {
            Some(start) => Some((start, start + id.len())),
            None => place_of_id(&bytes, id),
        };
        if let Some(id) = found {
            slot.push(Happening::Answer(Answer { bytes, id }));
        }
    }

    fn route_message(&self, message: &[u8]) {
        let Ok(Scanned::Message(envelope)) = scan(message) else { return };
        let (method, id) = match &envelope.kind {
            Kind::Notification { method } => (method, None),
            Kind::Request { id, method } => (method, Some(id.raw())),
            Kind::Response { .. } => return,
        };
        if method == "notifications/progress" {
            return self.progress(&envelope);
        }
        let heard_for = heard_for().and_then(|request| self.slot(request));
        let meta = envelope.params.as_ref().and_then(|params| params.meta);
        let subscription = meta.and_then(|meta| member(meta, SUBSCRIPTION_ID)).and_then(number);
        let slot = match &**method {
            method if method.ends_with("/list_changed") => None,
            _ if subscription.is_some() => subscription.and_then(|request| self.slot(request)),
            "notifications/resources/updated" | "notifications/tasks" => None,
            // A process does not name the request that a question or log message belongs to;
            // attribute it to the only pending one.
            _ => heard_for.or_else(|| self.only()),
        };
        match slot {
            Some(slot) => slot.push(Happening::Message(kept(message))),
            None => {
                let link = self.link.get().and_then(Weak::upgrade);
                (self.listener)(&Unasked { bytes: message, method, id, link });
            }
        }
    }

    /// Routes progress to the request that asked for it, under the client's token.
    fn progress(&self, envelope: &Envelope<'_>) {
        let params = envelope.params.as_ref().map(|params| params.raw).unwrap_or_default();
        let Some(token) = member(params, "progressToken") else { return };
        let Some(slot) = number(token).and_then(|number| self.slot(number)) else { return };
        let Some(given) = &slot.progress_token else { return };
        let mut edits = Edits::of(envelope.raw);
        edits.replace(token, given.to_vec());
        slot.push(Happening::Message(edits.finish().into()));
    }
}

/// The position of the id in an answer that was created or changed here.
fn place_of_id(answer: &[u8], id: &[u8]) -> Option<(usize, usize)> {
    let behind = answer.strip_prefix(BEGINNING);
    if behind.is_some_and(|rest| rest.starts_with(id)) {
        return Some((BEGINNING.len(), BEGINNING.len() + id.len()));
    }
    let Ok(Scanned::Message(Envelope { kind: Kind::Response { id: Some(id), .. }, .. })) =
        scan(answer)
    else {
        return None;
    };
    let start = offset(answer, id.raw())?;
    Some((start, start + id.raw().len()))
}

/// The number that this link gave a request, from its raw id.
pub(crate) fn number(id: &[u8]) -> Option<u64> {
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// The client side of an engine session.
#[derive(Debug)]
pub(crate) struct PendingOutlet(pub(crate) Arc<Pending>);

impl ClientOutlet for PendingOutlet {
    fn write(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        match (message.answers, message.parts) {
            (Some(id), parts) => self.0.answer(id, parts),
            (None, [message]) => self.0.route_message(message),
            (None, parts) => self.0.route_message(&parts.concat()),
        }
        Ok(())
    }

    fn gather(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        self.write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The callers that a line of a shared process concerns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The caller of the request with this raw id.
    Request(Vec<u8>),
    /// All callers: a list changed.
    Everyone,
    /// None: a log message or a request to a client, which cannot be attributed to a single caller.
    Nobody,
}

/// The messages in a line: one, or those of a batch, which may concern several callers.
pub(crate) fn messages(line: &[u8]) -> Vec<&[u8]> {
    match scan(line) {
        Ok(Scanned::Batch(batch)) => batch.elements.iter().map(|element| element.raw).collect(),
        Ok(Scanned::Message(_)) | Err(_) => vec![line],
    }
}

pub(crate) fn whose(line: &[u8]) -> Whose {
    let Ok(Scanned::Message(envelope)) = scan(line) else { return Whose::Everyone };
    match &envelope.kind {
        Kind::Response { id: Some(id), .. } => Whose::Request(id.raw().to_vec()),
        Kind::Notification { method } if method == "notifications/progress" => {
            let params = envelope.params.as_ref().map(|params| params.raw).unwrap_or_default();
            let token = member(params, "progressToken");
            token.map_or(Whose::Nobody, |token| Whose::Request(token.to_vec()))
        }
        Kind::Notification { method } if method.ends_with("/list_changed") => Whose::Everyone,
        Kind::Response { id: None, .. } => Whose::Everyone,
        Kind::Notification { .. } | Kind::Request { .. } => Whose::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_answer_is_found_wherever_it_lies() {
        let check = |answer: &str| {
            let (start, end) = place_of_id(answer.as_bytes(), b"17").unwrap();
            assert_eq!(&answer[start..end], "17", "{answer}");
        };
        check(r#"{"jsonrpc":"2.0","id":17,"result":{}}"#);
        check(r#"{"result":{"id":17},"jsonrpc":"2.0","id":17}"#);
        assert_eq!(place_of_id(b"no message", b"17"), None);
    }

    #[test]
    fn progress_comes_back_under_the_token_of_the_client() {
        let pending = Pending::new(Box::new(|_| {}));
        let slot = pending.add(5, Some(br#""mine""#));
        pending.route_message(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}"#,
        );
        let Some(Happening::Message(message)) = slot.take() else { panic!("no progress") };
        assert!(String::from_utf8(message.to_vec()).unwrap().contains(r#""progressToken":"mine""#));
        pending.route_message(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":6,"progress":1}}"#,
        );
        assert!(slot.take().is_none(), "progress of another request");
    }

    #[test]
    fn a_message_goes_to_the_only_request_without_an_answer_and_else_to_the_listener() {
        let unasked = Arc::new(Mutex::new(0));
        let heard = unasked.clone();
        let pending = Pending::new(Box::new(move |_| *heard.lock().unwrap() += 1));
        let log =
            || pending.route_message(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
        let (first, second) = (pending.add(1, None), pending.add(2, None));
        // It could belong to either request.
        log();
        assert_eq!(*unasked.lock().unwrap(), 1);
        pending.answer(b"1", &[br#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
        log();
        assert!(matches!(second.take(), Some(Happening::Message(_))));
        pending.answer(b"2", &[br#"{"jsonrpc":"2.0","id":2,"result":{}}"#]);
        log();
        assert_eq!(*unasked.lock().unwrap(), 2);
        for slot in [first, second] {
            assert!(matches!(slot.take(), Some(Happening::Answer(_))));
            assert!(slot.take().is_none());
        }
    }

    #[test]
    fn messages_past_the_limit_are_dropped_and_an_answer_is_not() {
        let pending = Pending::new(Box::new(|_| {}));
        let slot = pending.add(1, None);
        for _ in 0..=MAX_WAITING_MESSAGES {
            pending.route_message(
                br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
            );
        }
        pending.answer(b"1", &[br#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
        let happened: Vec<Happening> = std::iter::from_fn(|| slot.take()).collect();
        assert_eq!(happened.len(), MAX_WAITING_MESSAGES + 1);
        assert!(matches!(happened.last(), Some(Happening::Answer(_))));
    }

    #[test]
    fn a_shared_process_tells_a_caller_only_what_is_for_it() {
        assert_eq!(
            whose(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            Whose::Request(b"7".to_vec())
        );
        let changed = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert_eq!(whose(changed), Whose::Everyone);
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#,
        ] {
            assert_eq!(whose(line.as_bytes()), Whose::Nobody, "{line}");
        }
    }

    #[test]
    fn each_message_of_a_batch_is_looked_at_by_itself() {
        let log =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let batch = format!("[{log}, {answer}]");
        let found: Vec<Whose> = messages(batch.as_bytes()).into_iter().map(whose).collect();
        assert_eq!(found, [Whose::Nobody, Whose::Request(b"7".to_vec())]);
        assert_eq!(messages(log.as_bytes()), [log.as_bytes()]);
        assert_eq!(messages(b"no JSON"), [b"no JSON"]);
    }

    #[test]
    fn what_waits_for_a_request_is_limited_in_bytes_and_its_answer_is_not() {
        let slot = Slot { state: Mutex::default(), progress_token: None };
        let half = Bytes::from(vec![b' '; MAX_WAITING_BYTES / 2]);
        for _ in 0..3 {
            slot.push(Happening::Message(half.clone()));
        }
        slot.push(Happening::Answer(Answer { bytes: Bytes::from("1"), id: (0, 1) }));
        let taken = || slot.take();
        assert!(matches!(taken(), Some(Happening::Message(_))));
        // Reading makes room.
        slot.push(Happening::Message(half.clone()));
        assert!(matches!(taken(), Some(Happening::Message(_))));
        assert!(matches!(taken(), Some(Happening::Answer(_))));
        assert!(matches!(taken(), Some(Happening::Message(_))));
        assert!(taken().is_none());
    }
}

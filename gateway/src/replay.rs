//! Streams that a client may resume after losing its connection: the messages are buffered for a
//! while, and each event has a sealed id that is valid for its session.

use crate::reply;
use crate::sealed::{Purpose, Sealer};
use crate::sessions::PrincipalId;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};

/// The most buffered streams. Further ones cannot be resumed.
const MAX_REPLAYS: usize = 1_000;
/// The most buffered streams of one caller.
const MAX_REPLAYS_PER_CALLER: usize = 32;
/// The most messages and bytes buffered per stream. The oldest are dropped first.
const MAX_EVENTS: usize = 1_000;
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;
/// How long a stream is kept after its end, and how long its ids are valid.
const RETENTION: Duration = Duration::from_secs(300);
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The owner of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) principal: PrincipalId,
    pub(crate) session: u64,
}

/// All resumable streams of a node.
#[derive(Debug)]
pub(crate) struct Replays {
    next: AtomicU64,
    kept: Mutex<HashMap<u64, Arc<Replay>>>,
}

impl Default for Replays {
    fn default() -> Replays {
        // Numbers of an earlier run must not repeat while ids with them are valid.
        Replays { next: AtomicU64::new(now().saturating_mul(1 << 20)), kept: Mutex::default() }
    }
}

impl Replays {
    /// Starts to buffer a stream. Returns `None` if a limit is reached.
    pub(crate) fn begin(&self, owner: Owner, retry: Option<Duration>) -> Option<Arc<Replay>> {
        let mut kept = lock(&self.kept);
        kept.retain(|_, replay| !replay.is_over());
        let own = kept.values().filter(|replay| replay.owner.principal == owner.principal).count();
        if kept.len() >= MAX_REPLAYS || own >= MAX_REPLAYS_PER_CALLER {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let replay = Arc::new(Replay {
            number,
            owner,
            retry,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        });
        // The first event has no message.
        replay.push(Bytes::new());
        kept.insert(number, replay.clone());
        Some(replay)
    }

    /// The stream and position that an event id refers to.
    pub(crate) fn find(
        &self,
        sealer: &Sealer,
        owner: Owner,
        id: &str,
    ) -> Option<(Arc<Replay>, u64)> {
        let content = sealer.open(Purpose::Event, id)?;
        let (expires, rest) = content.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (place, principal) = rest.split_first_chunk::<8>()?;
        let replay = lock(&self.kept).get(&u64::from_be_bytes(*number)).cloned()?;
        let is_own = replay.owner == owner && principal == owner.principal;
        let counts = is_own && u64::from_be_bytes(*expires) > now();
        counts.then_some((replay, u64::from_be_bytes(*place)))
    }
}

/// The buffered events of a stream.
#[derive(Debug)]
pub(crate) struct Replay {
    number: u64,
    owner: Owner,
    retry: Option<Duration>,
    state: Mutex<ReplayState>,
    /// Incremented whenever the stream changes.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct ReplayState {
    /// The position of the first buffered event.
    first: u64,
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The positions at which the server ended its stream before the answer.
    pauses: VecDeque<u64>,
    ended: Option<Instant>,
}

impl Replay {
    /// Adds a message.
    pub(crate) fn push(&self, message: Bytes) {
        let mut state = lock(&self.state);
        state.bytes += message.len();
        state.events.push_back(message);
        while state.events.len() > MAX_EVENTS
            || (state.bytes > MAX_EVENT_BYTES && state.events.len() > 1)
        {
            let forgotten = state.events.pop_front().unwrap_or_default();
            state.bytes -= forgotten.len();
            state.first += 1;
        }
        drop(state);
        self.note();
    }

    /// Pauses the stream: the client has to reconnect for the rest, as the gateway does at the
    /// server.
    pub(crate) fn pause(&self) {
        let mut state = lock(&self.state);
        let place = state.first + state.events.len() as u64;
        if state.pauses.back() != Some(&place) {
            state.pauses.push_back(place);
        }
        if state.pauses.len() > MAX_EVENTS {
            state.pauses.pop_front();
        }
        drop(state);
        self.note();
    }

    /// Marks the stream as complete.
    pub(crate) fn end(&self) {
        lock(&self.state).ended.get_or_insert_with(Instant::now);
        self.note();
    }

    fn note(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn is_over(&self) -> bool {
        lock(&self.state).ended.is_some_and(|ended| ended.elapsed() > RETENTION)
    }

    /// Sends all events from a position on to a client, until the end, the next pause, or a
    /// disconnect.
    pub(crate) async fn follow(
        self: Arc<Self>,
        sealer: Arc<Sealer>,
        mut place: u64,
        sender: mpsc::Sender<Bytes>,
        keep_alive: Duration,
    ) {
        let mut changes = self.changed.subscribe();
        let begun = place;
        loop {
            changes.mark_unchanged();
            while let Some(event) = self.event(&sealer, place) {
                if self.is_pause(begun, place) || sender.send(event).await.is_err() {
                    return;
                }
                place += 1;
            }
            if self.is_pause(begun, place) || lock(&self.state).ended.is_some() {
                return;
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sender.closed() => return,
                () = tokio::time::sleep(keep_alive) => {
                    if sender.send(reply::KEEP_ALIVE).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Whether a stream that began at one position pauses at the other.
    fn is_pause(&self, begun: u64, place: u64) -> bool {
        place > begun && lock(&self.state).pauses.contains(&place)
    }

    /// Whether the events after a position are still buffered.
    pub(crate) fn has(&self, place: u64) -> bool {
        let state = lock(&self.state);
        place >= state.first && place <= state.first + state.events.len() as u64
    }

    fn event(&self, sealer: &Sealer, place: u64) -> Option<Bytes> {
        let message = {
            let state = lock(&self.state);
            let at = usize::try_from(place.checked_sub(state.first)?).ok()?;
            state.events.get(at)?.clone()
        };
        let content = [
            (now() + LIFETIME.as_secs()).to_be_bytes().as_slice(),
            &self.number.to_be_bytes(),
            &place.to_be_bytes(),
            &self.owner.principal,
        ]
        .concat();
        let id = sealer.seal(Purpose::Event, &content).ok()?;
        Some(match message.is_empty() {
            true => reply::priming_event(&id, self.retry),
            false => reply::event_with_id(&id, &message),
        })
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Owner = Owner { principal: [1; 32], session: 7 };

    async fn read(replay: &Arc<Replay>, sealer: &Arc<Sealer>, place: u64) -> Vec<String> {
        let (sender, mut receiver) = mpsc::channel(2 * MAX_EVENTS);
        let following = replay.clone().follow(sealer.clone(), place, sender, LIFETIME);
        following.await;
        let mut events = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            events.push(String::from_utf8(event.to_vec()).unwrap());
        }
        events
    }

    fn id_of(event: &str) -> &str {
        event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap()
    }

    #[tokio::test]
    async fn a_session_goes_on_behind_the_event_that_it_read_last() {
        let (replays, sealer) = (Replays::default(), Arc::new(Sealer::of(&[3; 32]).unwrap()));
        let replay = replays.begin(ADA, Some(Duration::from_millis(100))).unwrap();
        for message in ["{\"a\":1}", "{\"b\":2}"] {
            replay.push(Bytes::from(message));
        }
        replay.end();
        let events = read(&replay, &sealer, 0).await;
        assert_eq!(events.len(), 3);
        assert!(events[0].contains("retry: 100") && events[0].ends_with("data: \n\n"));
        let (found, place) = replays.find(&sealer, ADA, id_of(&events[1])).unwrap();
        let rest = read(&found, &sealer, place + 1).await;
        assert!(rest.len() == 1 && rest[0].contains("{\"b\":2}"), "{rest:?}");
        for other in [Owner { session: 8, ..ADA }, Owner { principal: [2; 32], ..ADA }] {
            assert!(replays.find(&sealer, other, id_of(&events[1])).is_none());
        }
        assert!(replays.find(&sealer, ADA, "made-up").is_none());
        let session = sealer.seal(Purpose::Session, &[0; 56]).unwrap();
        assert!(replays.find(&sealer, ADA, &session).is_none());
    }

    #[tokio::test]
    async fn messages_past_the_limit_are_forgotten_oldest_first() {
        let (replays, sealer) = (Replays::default(), Arc::new(Sealer::of(&[3; 32]).unwrap()));
        let replay = replays.begin(ADA, None).unwrap();
        for _ in 1..MAX_EVENTS {
            replay.push(Bytes::from_static(b"{}"));
        }
        assert!(replay.has(0), "at the limit nothing is forgotten");
        replay.push(Bytes::from_static(b"{}"));
        assert!(!replay.has(0) && replay.has(1));
        replay.push(Bytes::from(vec![b'x'; MAX_EVENT_BYTES + 1]));
        replay.end();
        assert_eq!(
            read(&replay, &sealer, MAX_EVENTS as u64 + 1).await.len(),
            1,
            "the newest stays"
        );
    }

    #[tokio::test]
    async fn a_stream_pauses_where_the_server_did_and_goes_on_from_there() {
        let (replays, sealer) = (Replays::default(), Arc::new(Sealer::of(&[3; 32]).unwrap()));
        let replay = replays.begin(ADA, None).unwrap();
        replay.pause();
        replay.push(Bytes::from_static(b"{}"));
        replay.pause();
        replay.pause();
        replay.push(Bytes::from_static(b"[]"));
        replay.end();
        for (from, count) in [(0, 1), (1, 1), (2, 1), (3, 0)] {
            assert_eq!(read(&replay, &sealer, from).await.len(), count, "from {from}");
        }
    }

    #[test]
    fn a_caller_has_a_limited_number_of_them() {
        let replays = Replays::default();
        let kept: Vec<_> = std::iter::from_fn(|| replays.begin(ADA, None)).collect();
        assert_eq!(kept.len(), MAX_REPLAYS_PER_CALLER);
        let other = Owner { principal: [2; 32], session: 1 };
        assert!(replays.begin(other, None).is_some());
    }
}

//! Random sequences of events over several sessions and ids, compared with a model that is too
//! simple to be wrong: a map from key to the name of a phase. No request is lost or ends twice, an
//! id stays in use until its request ends, a cancellation always finds its request, waiting
//! requests are released in order of arrival, and the counts match the contents.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use wire::envelope::Id;

const SESSIONS: u64 = 3;
const IDS: u64 = 4;

type Key = (u64, u64);

#[derive(Debug, Clone)]
enum Event {
    Wait(Key, Waits, Option<u64>),
    Dispatch(Key, DispatchedKind, Option<u64>),
    ReleaseListed(ListKind),
    ReleaseUnadmitted,
    ReleaseAsked(u64),
    ReleaseAll,
    ReleaseLate(u64),
    Claim(Key),
    WaitAgain(Key, ListKind),
    Ask(Key, u64),
    Decide(Key),
    Bring(Key),
    Leave(Key, Option<u64>),
    Left(Key),
    Cancel(Key),
    Answer(Key),
    TakeCancelled(Key),
    End(Key),
    TakeLate(u64),
    Doubt(u64, Vec<u64>, bool, u64),
    EndSession(u64),
    EndAll,
}

/// [`Awaited`] without the parts that cannot be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    List(ListKind),
    Admission,
    Person(u64),
}

impl Waits {
    fn awaited(self) -> Awaited {
        match self {
            Waits::List(list) => Awaited::List(list),
            Waits::Admission => Awaited::Admission,
            Waits::Person(number) => Awaited::Person(person(number)),
        }
    }
}

fn person(number: u64) -> EntryId {
    EntryId::new(EntryType::Tool, number.to_string())
}

fn keys() -> impl Strategy<Value = Key> {
    (0..SESSIONS, 0..IDS)
}

fn lists() -> impl Strategy<Value = ListKind> {
    prop_oneof![Just(ListKind::Tools), Just(ListKind::Prompts)]
}

fn moments() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(0..10_u64)
}

fn events() -> impl Strategy<Value = Event> {
    let waits = prop_oneof![
        lists().prop_map(Waits::List),
        Just(Waits::Admission),
        (0..2_u64).prop_map(Waits::Person),
    ];
    let kinds = prop_oneof![
        Just(DispatchedKind::Handshake),
        Just(DispatchedKind::Call),
        Just(DispatchedKind::Other)
    ];
    let on_the_way = prop_oneof![
        6 => (keys(), waits, moments()).prop_map(|(key, waits, at)| Event::Wait(key, waits, at)),
        3 => (keys(), kinds, moments()).prop_map(|(key, kind, at)| Event::Dispatch(key, kind, at)),
        2 => lists().prop_map(Event::ReleaseListed),
        1 => Just(Event::ReleaseUnadmitted),
        1 => (0..2_u64).prop_map(Event::ReleaseAsked),
        1 => (0..10_u64).prop_map(Event::ReleaseLate),
        8 => keys().prop_map(Event::Claim),
        2 => (keys(), lists()).prop_map(|(key, list)| Event::WaitAgain(key, list)),
        2 => (keys(), 0..2_u64).prop_map(|(key, number)| Event::Ask(key, number)),
        5 => keys().prop_map(Event::Decide),
        5 => keys().prop_map(Event::Bring),
        5 => (keys(), moments()).prop_map(|(key, at)| Event::Leave(key, at)),
        4 => keys().prop_map(Event::Left),
        4 => keys().prop_map(Event::Cancel),
    ];
    let endings = prop_oneof![
        8 => keys().prop_map(Event::Answer),
        2 => keys().prop_map(Event::TakeCancelled),
        4 => keys().prop_map(Event::End),
        3 => (0..10_u64).prop_map(Event::TakeLate),
        3 => (0..SESSIONS, proptest::collection::vec(0..IDS, 0..3), any::<bool>(), 0..10_u64)
            .prop_map(|(session, ids, is_message, until)| Event::Doubt(session, ids, is_message, until)),
        1 => (0..SESSIONS).prop_map(Event::EndSession),
    ];
    prop_oneof![
        150 => on_the_way,
        50 => endings,
        2 => Just(Event::ReleaseAll),
        1 => Just(Event::EndAll),
    ]
}

/// A request in the model.
#[derive(Debug, Clone)]
struct Known {
    phase: &'static str,
    /// The request's serial number, which distinguishes it from others with the same id.
    serial: u64,
    waits: Option<Waits>,
    place: u64,
    is_cancelled: bool,
    kind: DispatchedKind,
    deadline: Option<u64>,
    doubted: Option<u64>,
}

struct Run {
    base: Instant,
    requests: Requests,
    known: BTreeMap<Key, Known>,
    /// How many requests were taken, and how many ended.
    taken: u64,
    ended: BTreeSet<u64>,
    places: u64,
    is_ended: bool,
    /// Decided requests, as held by the thread that sends them; they may have ended since.
    errands: HashMap<Key, Arc<OwnedRequest>>,
}

impl Run {
    fn new() -> Run {
        Run {
            base: Instant::now(),
            requests: Requests::default(),
            known: BTreeMap::new(),
            taken: 0,
            ended: BTreeSet::new(),
            places: 0,
            is_ended: false,
            errands: HashMap::new(),
        }
    }

    fn moment(&self, at: u64) -> Instant {
        self.base + Duration::from_secs(at)
    }

    fn begun(&self, serial: u64) -> Instant {
        self.base + Duration::from_nanos(serial)
    }

    fn owned(&self, id: u64, serial: u64) -> OwnedRequest {
        parse(&frame(&id.to_string()), self.begun(serial))
    }

    fn dispatched(&self, serial: u64, kind: DispatchedKind, deadline: Option<u64>) -> Dispatched {
        let deadline = deadline.map(|at| self.moment(at));
        Dispatched { bytes: usize::try_from(serial).unwrap(), deadline, ..dispatched(kind) }
    }

    fn take(&mut self, key: Key, phase: &'static str, waits: Option<Waits>) -> &mut Known {
        self.taken += 1;
        self.places += 1;
        let (serial, place) = (self.taken, self.places);
        let known = Known {
            phase,
            serial,
            waits,
            place,
            is_cancelled: false,
            kind: DispatchedKind::Other,
            deadline: None,
            doubted: None,
        };
        assert!(self.known.insert(key, known).is_none());
        self.known.get_mut(&key).unwrap()
    }

    /// A request was removed from the table: it existed, is the one in the model, and had not ended
    /// before.
    fn ends(&mut self, key: Key, serial: u64) {
        let known = self.known.remove(&key).expect("nothing ends that is not there");
        assert_eq!(known.serial, serial, "that is another request");
        assert!(self.ended.insert(serial), "it ended twice");
    }

    fn in_phase(&self, key: Key, phase: &str) -> bool {
        self.known.get(&key).is_some_and(|known| known.phase == phase)
    }

    fn move_to(&mut self, key: Key, phase: &'static str) {
        self.known.get_mut(&key).unwrap().phase = phase;
    }

    fn waiting(&self, is_meant: impl Fn(&Known) -> bool) -> Vec<Key> {
        let waiting = self.known.iter().filter(|(_, known)| known.phase == "waiting");
        let mut waiting: Vec<_> = waiting.filter(|(_, known)| is_meant(known)).collect();
        waiting.sort_by_key(|(_, known)| known.place);
        waiting.into_iter().map(|(key, _)| *key).collect()
    }

    fn releases(&mut self, released: &[RequestKey], is_meant: impl Fn(&Known) -> bool) {
        let expected = self.waiting(is_meant);
        let released: Vec<Key> = released.iter().map(key_of).collect();
        assert_eq!(released, expected, "the oldest first, and all of them");
        released.into_iter().for_each(|key| self.move_to(key, "released"));
    }

    fn unsent(&self, is_meant: impl Fn(&Known) -> bool) -> Vec<Key> {
        let mut unsent: Vec<_> = self.known.iter().filter(|(_, known)| is_meant(known)).collect();
        unsent.sort_by_key(|(_, known)| known.serial);
        unsent.into_iter().map(|(key, _)| *key).collect()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wait(..)
            | Event::Dispatch(..)
            | Event::Leave(..)
            | Event::Left(_)
            | Event::Cancel(_) => self.handle_sending(&event),
            Event::ReleaseListed(_)
            | Event::ReleaseUnadmitted
            | Event::ReleaseAsked(_)
            | Event::ReleaseAll
            | Event::ReleaseLate(_) => self.handle_release(&event),
            Event::Claim(_)
            | Event::WaitAgain(..)
            | Event::Ask(..)
            | Event::Decide(_)
            | Event::Bring(_) => self.handle_carrying(&event),
            Event::Answer(_)
            | Event::TakeCancelled(_)
            | Event::End(_)
            | Event::TakeLate(_)
            | Event::Doubt(..)
            | Event::EndSession(_)
            | Event::EndAll => self.handle_end(event),
        }
    }

    fn handle_sending(&mut self, event: &Event) {
        match *event {
            Event::Wait(key, waits, deadline) => {
                let request = self.owned(key.1, self.taken + 1);
                let until = deadline.map(|at| self.moment(at));
                let session = SessionKey(key.0);
                let waited =
                    self.requests.wait(session, request, waits.awaited(), Asking::Open, until);
                assert_eq!(waited, self.expects_room(key));
                if waited.is_ok() {
                    self.take(key, "waiting", Some(waits)).deadline = deadline;
                }
            }
            Event::Dispatch(key, kind, deadline) => {
                let dispatched = self.dispatched(self.taken + 1, kind, deadline);
                let id = self.owned(key.1, 0).id().clone();
                let sent = self.requests.dispatch(SessionKey(key.0), id, dispatched);
                // The end of the server takes precedence, because the decision is recorded with it.
                let expected =
                    if self.is_ended { Err(Refused::Ended) } else { self.expects_room(key) };
                assert_eq!(sent, expected);
                if sent.is_ok() {
                    let known = self.take(key, "in flight", None);
                    (known.kind, known.deadline) = (kind, deadline);
                }
            }
            Event::Leave(key, deadline) => {
                let serial = self.known.get(&key).map_or(0, |known| known.serial);
                let dispatched = self.dispatched(serial, DispatchedKind::Call, deadline);
                let left = self.requests.leave(ref_of(key, &id_of(key)), dispatched);
                let is_sent = self.in_phase(key, "claimed") && !self.is_ended;
                assert_eq!(left, if is_sent { Ok(()) } else { Err(Refused::Ended) });
                if is_sent {
                    let known = self.known.get_mut(&key).unwrap();
                    (known.phase, known.kind) = ("leaving", DispatchedKind::Call);
                    known.deadline = deadline;
                }
            }
            Event::Left(key) => {
                let follows = self.requests.left(ref_of(key, &id_of(key)), Some(self.moment(5)));
                let is_leaving = self.in_phase(key, "leaving");
                let is_cancelled = self.known.get(&key).is_some_and(|known| known.is_cancelled);
                assert_eq!(follows.is_some(), is_leaving && is_cancelled);
                if is_leaving {
                    self.move_to(key, if is_cancelled { "cancelled" } else { "in flight" });
                    if is_cancelled {
                        self.shorten(key);
                    }
                }
            }
            Event::Cancel(key) => self.cancel(key),
            _ => unreachable!("other functions handle it"),
        }
    }

    fn expects_room(&self, key: Key) -> Result<(), Refused> {
        if self.known.contains_key(&key) {
            Err(Refused::Taken)
        } else if self.is_ended {
            Err(Refused::Ended)
        } else {
            Ok(())
        }
    }

    fn shorten(&mut self, key: Key) {
        let known = self.known.get_mut(&key).unwrap();
        known.deadline = Some(known.deadline.map_or(5, |deadline| deadline.min(5)));
    }

    fn cancel(&mut self, key: Key) {
        let at = id_of(key);
        let cancelling = self.requests.cancel(ref_of(key, &at), CANCELLATION, Some(self.moment(5)));
        let Some(known) = self.known.get_mut(&key) else {
            return assert_eq!(cancelling, Cancelling::Unknown);
        };
        let is_handshake = known.kind == DispatchedKind::Handshake;
        match (known.phase, known.waits) {
            ("waiting", Some(Waits::Person(_))) => {
                assert!(
                    matches!(cancelling, Cancelling::Resumes(resumed) if key_of(&resumed) == key)
                );
                (known.phase, known.is_cancelled) = ("released", true);
            }
            ("in flight" | "cancelled", _) if is_handshake => {
                assert_eq!(cancelling, Cancelling::Unknown);
            }
            ("in flight" | "cancelled", _) => {
                assert_eq!(cancelling, Cancelling::Goes);
                (known.phase, known.is_cancelled) = ("cancelled", true);
                self.shorten(key);
            }
            _ => {
                assert_eq!(cancelling, Cancelling::Follows);
                known.is_cancelled = true;
            }
        }
    }

    fn handle_release(&mut self, event: &Event) {
        match *event {
            Event::ReleaseListed(list) => {
                let released = self.requests.release_listed(&[list]);
                self.releases(&released, |known| known.waits == Some(Waits::List(list)));
            }
            Event::ReleaseUnadmitted => {
                let released = self.requests.release_unadmitted();
                self.releases(&released, |known| known.waits == Some(Waits::Admission));
            }
            Event::ReleaseAsked(number) => {
                let until = Some(self.moment(7));
                let released = self.requests.release_asked(&person(number), until);
                self.releases(&released, |known| known.waits == Some(Waits::Person(number)));
                for key in released {
                    self.known.get_mut(&key_of(&key)).unwrap().deadline = Some(7);
                }
            }
            Event::ReleaseAll => {
                let released = self.requests.release_all();
                let released: Vec<Key> = released.iter().map(key_of).collect();
                let unsent = self.unsent(|known| matches!(known.phase, "waiting" | "released"));
                assert_eq!(released, unsent);
                released.into_iter().for_each(|key| self.move_to(key, "released"));
            }
            Event::ReleaseLate(now) => {
                let late = self.requests.release_late(self.moment(now));
                let late: Vec<Key> = late.iter().map(key_of).collect();
                let expected = self.unsent(|known| {
                    matches!(known.phase, "waiting" | "released" | "decided")
                        && known.deadline.is_some_and(|deadline| deadline <= now)
                });
                assert_eq!(late, expected);
                late.into_iter().for_each(|key| self.move_to(key, "released"));
            }
            _ => unreachable!("other functions handle it"),
        }
    }

    fn handle_carrying(&mut self, event: &Event) {
        match *event {
            Event::Claim(key) => {
                let claimed = self.requests.claim(ref_of(key, &id_of(key)));
                assert_eq!(claimed.is_some(), self.in_phase(key, "released"));
                if let Some(kept) = claimed {
                    let known = &self.known[&key];
                    assert_eq!(kept.request.begun(), self.begun(known.serial));
                    assert_eq!(kept.cancellation.is_some(), known.is_cancelled);
                    self.move_to(key, "claimed");
                }
            }
            Event::WaitAgain(key, list) => {
                self.requests.wait_again(ref_of(key, &id_of(key)), Awaited::List(list));
                if self.in_phase(key, "released") {
                    self.waits_for(key, Waits::List(list));
                }
            }
            Event::Ask(key, number) => {
                let asked = self.requests.ask(ref_of(key, &id_of(key)), person(number));
                let is_asked = self.in_phase(key, "claimed") && !self.known[&key].is_cancelled;
                assert_eq!(asked, if is_asked { Asked::Waits } else { Asked::Cancelled });
                if is_asked {
                    self.waits_for(key, Waits::Person(number));
                    self.known.get_mut(&key).unwrap().deadline = None;
                }
            }
            Event::Decide(key) => {
                let at = id_of(key);
                self.requests.decide(ref_of(key, &at));
                if self.in_phase(key, "claimed") {
                    self.move_to(key, "decided");
                    let kept = self.requests.phase(ref_of(key, &at)).and_then(Phase::kept);
                    self.errands.insert(key, kept.unwrap().request.clone());
                }
            }
            Event::Bring(key) => {
                let Some(request) = self.errands.remove(&key) else { return };
                let brought = self.requests.bring(SessionKey(key.0), &request);
                let is_it = self.in_phase(key, "decided")
                    && self.begun(self.known[&key].serial) == request.begun();
                assert_eq!(brought.is_some(), is_it);
                if is_it {
                    self.move_to(key, "claimed");
                }
            }
            _ => unreachable!("other functions handle it"),
        }
    }

    fn waits_for(&mut self, key: Key, waits: Waits) {
        self.places += 1;
        let place = self.places;
        let known = self.known.get_mut(&key).unwrap();
        (known.phase, known.waits, known.place) = ("waiting", Some(waits), place);
    }

    fn handle_end(&mut self, event: Event) {
        let is_sent = |known: &Known| matches!(known.phase, "leaving" | "in flight" | "cancelled");
        match event {
            Event::Answer(key) => {
                let answered = self.requests.answer(ref_of(key, &id_of(key)));
                assert_eq!(answered.is_some(), self.known.get(&key).is_some_and(is_sent));
                if let Some(Answered::Client(_, dispatched)) = answered {
                    self.ends(key, dispatched.bytes as u64);
                }
            }
            Event::TakeCancelled(key) => {
                let cancelled = self.requests.take_cancelled(ref_of(key, &id_of(key)));
                let is_over = |known: &Known| {
                    known.phase == "cancelled"
                        || is_sent(known) && known.kind == DispatchedKind::Handshake
                };
                assert_eq!(cancelled.is_some(), self.known.get(&key).is_some_and(is_over));
                if let Some((_, dispatched)) = cancelled {
                    self.ends(key, dispatched.bytes as u64);
                }
            }
            Event::End(key) => {
                let phase = self.requests.end(ref_of(key, &id_of(key)));
                assert_eq!(
                    name(phase.as_ref()),
                    self.known.get(&key).map_or("none", |known| known.phase)
                );
                if let Some(phase) = phase {
                    self.ends(key, self.serial_of(&phase));
                }
            }
            Event::TakeLate(now) => {
                let is_over = |at: Option<u64>| at.is_some_and(|at| at <= now);
                let expected = self.unsent(|known| {
                    is_sent(known) && (is_over(known.deadline) || is_over(known.doubted))
                });
                let late = self.requests.take_late(self.moment(now));
                let keys: BTreeSet<Key> = late.iter().map(|late| key_of(&late.key)).collect();
                assert_eq!(keys, expected.into_iter().collect());
                for Late { key, dispatched, lateness } in late {
                    let known = &self.known[&key_of(&key)];
                    let expected = match (is_over(known.doubted), known.phase, known.kind) {
                        (true, ..) => Lateness::Unreadable,
                        (false, "cancelled", _) => Lateness::Abandoned,
                        (false, _, DispatchedKind::Handshake) => Lateness::Unstarted,
                        (false, ..) => Lateness::TimedOut,
                    };
                    assert_eq!(lateness, expected);
                    self.ends(key_of(&key), dispatched.bytes as u64);
                }
            }
            Event::Doubt(session, ids, is_message, until) => {
                self.doubt(session, &ids, is_message, until);
            }
            Event::EndSession(session) => {
                let ended = self.requests.end_session(SessionKey(session));
                self.all_end(ended, |key, _| key.0 == session);
            }
            Event::EndAll => {
                self.is_ended = true;
                let ended = self.requests.end_all();
                self.all_end(ended, |_, known| known.phase != "claimed");
            }
            _ => unreachable!("other functions handle it"),
        }
    }

    fn all_end(&mut self, ended: EndedRequests, is_meant: impl Fn(&Key, &Known) -> bool) {
        let EndedRequests { dispatched, kept } = ended;
        for (key, dispatched) in dispatched {
            self.ends(key_of(&key), dispatched.bytes as u64);
        }
        let begun: Vec<Instant> = kept.iter().map(|(_, request)| request.begun()).collect();
        assert!(begun.is_sorted(), "the oldest first");
        for (key, request) in kept {
            self.ends(key_of(&key), self.serial_at(request.begun()));
        }
        assert!(!self.known.iter().any(|(key, known)| is_meant(key, known)), "one is lost");
    }

    fn doubt(&mut self, session: u64, ids: &[u64], is_message: bool, until: u64) {
        let owned: Vec<OwnedId> = ids.iter().map(|id| self.owned(*id, 0).id().clone()).collect();
        let borrowed: Vec<Id<'_>> = owned.iter().map(OwnedId::as_id).collect();
        let moment = self.moment(until);
        let doubted = self.requests.doubt(SessionKey(session), &borrowed, is_message, moment);
        let mut sent: Vec<Key> = self
            .known
            .iter()
            .filter(|(key, known)| {
                key.0 == session && matches!(known.phase, "leaving" | "in flight" | "cancelled")
            })
            .map(|(key, _)| *key)
            .collect();
        let named: Vec<Key> = sent.iter().filter(|key| ids.contains(&key.1)).copied().collect();
        assert_eq!(doubted, is_message || !named.is_empty());
        if !named.is_empty() {
            sent = named;
        } else if !is_message || sent.len() != 1 {
            sent.clear();
        }
        for key in sent {
            self.known.get_mut(&key).unwrap().doubted.get_or_insert(until);
        }
    }

    fn serial_of(&self, phase: &Phase) -> u64 {
        match (phase.kept(), phase.dispatched()) {
            (Some(kept), _) => self.serial_at(kept.request.begun()),
            (None, Some(dispatched)) => dispatched.bytes as u64,
            (None, None) => panic!("a request was kept or dispatched"),
        }
    }

    fn serial_at(&self, begun: Instant) -> u64 {
        u64::try_from((begun - self.base).as_nanos()).unwrap()
    }

    /// Checks what must hold after every event.
    fn check(&self) {
        let mut counts = Counts::default();
        for key in (0..SESSIONS).flat_map(|session| (0..IDS).map(move |id| (session, id))) {
            let id = id_of(key);
            let phase = self.requests.phase(ref_of(key, &id));
            let known = self.known.get(&key);
            assert_eq!(name(phase), known.map_or("none", |known| known.phase), "{key:?}");
            let admitted = self.requests.admits(ref_of(key, &id));
            assert_eq!(admitted, self.expects_room(key));
            if let Some(phase) = phase {
                counts.add(phase);
                assert_eq!(self.serial_of(phase), known.unwrap().serial);
            }
        }
        assert_eq!(self.requests.counts, counts, "the counts agree with the content");
        let queue: Vec<Key> = self.requests.queue.values().map(key_of).collect();
        assert_eq!(queue, self.waiting(|_| true), "the queue is what waits, in its order");
        assert_eq!(self.known.len() + self.ended.len(), usize::try_from(self.taken).unwrap());
    }
}

fn id_of(key: Key) -> Vec<u8> {
    key.1.to_string().into_bytes()
}

fn ref_of(key: Key, id: &[u8]) -> RequestRef<'_> {
    RequestRef { session: SessionKey(key.0), id }
}

fn key_of(key: &RequestKey) -> Key {
    let id = String::from_utf8_lossy(key.id.key()).parse().unwrap();
    (key.session.0, id)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_table_does_what_the_model_does(events in proptest::collection::vec(events(), 1..150)) {
        let mut run = Run::new();
        for event in events {
            run.handle(event);
            run.check();
        }
        // Whatever happened, everything left can be ended exactly once.
        let ended = run.requests.abandon_all();
        run.all_end(ended, |_, _| true);
        run.check();
    }
}

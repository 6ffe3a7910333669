//! Each phase transition, and the limits. Sequences of transitions are tested in `properties.rs`.

mod properties;

use super::*;
use contract::surface::EntryType;
use ledger::record::ReceiptId;
use std::time::Duration;
use wire::envelope::{Envelope, Kind, Scanned, scan};

const CANCELLATION: &[u8] = b"{\"method\":\"notifications/cancelled\"}";
const LIST: ListKind = ListKind::Tools;
const SESSION: SessionKey = SessionKey(0);

/// Parses a frame like the client thread does.
fn parse(frame: &[u8], begun: Instant) -> OwnedRequest {
    let Ok(Scanned::Message(envelope)) = scan(frame) else { panic!("no message") };
    let envelope = Envelope { raw: frame, ..envelope };
    let Kind::Request { id, method } = &envelope.kind else { panic!("no request") };
    let request = ParsedRequest::of(&envelope, id, method, Some("2026-07-28"));
    OwnedRequest::of(&request, begun).unwrap()
}

fn frame(id: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add"}}}}"#)
        .into_bytes()
}

fn request(id: u64) -> OwnedRequest {
    parse(&frame(&id.to_string()), Instant::now())
}

fn at(id: &[u8]) -> RequestRef<'_> {
    RequestRef { session: SESSION, id }
}

fn entry() -> EntryId {
    EntryId::new(EntryType::Tool, "add")
}

fn dispatched(kind: DispatchedKind) -> Dispatched {
    let now = Instant::now();
    Dispatched {
        receipt_id: ReceiptId([0; 16]),
        kind,
        bytes: 10,
        begun: now,
        dispatched: now,
        deadline: None,
        doubted_until: None,
    }
}

fn call() -> Dispatched {
    dispatched(DispatchedKind::Call)
}

fn send(requests: &mut Requests, id: u64, dispatched: Dispatched) -> Result<(), Refused> {
    requests.dispatch(SESSION, request(id).id().clone(), dispatched)
}

fn waits(requests: &mut Requests, id: u64, awaited: Awaited) -> Result<(), Refused> {
    requests.wait(SESSION, request(id), awaited, Asking::Open, None)
}

fn ids(keys: &[RequestKey]) -> Vec<String> {
    keys.iter().map(|key| String::from_utf8_lossy(key.id.raw()).into_owned()).collect()
}

fn name(phase: Option<&Phase>) -> &'static str {
    match phase {
        None => "none",
        Some(Phase::Waiting { .. }) => "waiting",
        Some(Phase::Released(_)) => "released",
        Some(Phase::Claimed(_)) => "claimed",
        Some(Phase::Decided(_)) => "decided",
        Some(Phase::Leaving { .. }) => "leaving",
        Some(Phase::InFlight(_)) => "in flight",
        Some(Phase::Cancelled(_)) => "cancelled",
    }
}

/// A table after the first `steps` steps of request 7, from its wait until the server has its
/// bytes.
fn after(steps: usize) -> Requests {
    let mut requests = Requests::default();
    let all: [fn(&mut Requests); 7] = [
        |requests| waits(requests, 7, Awaited::List(LIST)).unwrap(),
        |requests| assert_eq!(requests.release_listed(&[LIST]).len(), 1),
        |requests| assert!(requests.claim(at(b"7")).is_some()),
        |requests| requests.decide(at(b"7")),
        |requests| assert!(bring(requests)),
        |requests| requests.leave(at(b"7"), call()).unwrap(),
        |requests| assert!(requests.left(at(b"7"), None).is_none()),
    ];
    all.iter().take(steps).for_each(|step| step(&mut requests));
    requests
}

fn bring(requests: &mut Requests) -> bool {
    let request = requests.phase(at(b"7")).and_then(Phase::kept).map(|kept| kept.request.clone());
    request.is_some_and(|request| requests.bring(SESSION, &request).is_some())
}

const STEPS: [&str; 8] =
    ["none", "waiting", "released", "claimed", "decided", "claimed", "leaving", "in flight"];

#[test]
fn a_request_has_one_phase_and_its_id_is_taken_from_its_wait_to_its_answer() {
    for (steps, expected) in STEPS.into_iter().enumerate() {
        let mut requests = after(steps);
        assert_eq!(name(requests.phase(at(b"7"))), expected);
        let is_taken = steps > 0;
        let admitted = requests.admits(at(b"7"));
        assert_eq!(admitted, if is_taken { Err(Refused::Taken) } else { Ok(()) }, "{expected}");
        let sent = send(&mut requests, 7, call());
        assert_eq!(sent, if is_taken { Err(Refused::Taken) } else { Ok(()) }, "{expected}");
        let other = RequestRef { session: SessionKey(1), id: b"7" };
        assert_eq!(requests.admits(other), Ok(()), "{expected}: another session's id is its own");
    }
}

#[test]
fn a_kept_request_is_parsed_as_its_message_was() {
    let text = br#"  {"jsonrpc":"2.0","id":"a\/b","method":"tools\/call","params":{"cursor":"c","arguments":{"x":[1]},"name":"a\"b"}} "#;
    let Ok(Scanned::Message(envelope)) = scan(text) else { panic!("no message") };
    let envelope = Envelope { raw: text, ..envelope };
    let Kind::Request { id, method } = &envelope.kind else { panic!("no request") };
    let parsed = ParsedRequest::of(&envelope, id, method, Some("v"));
    let owned = OwnedRequest::of(&parsed, Instant::now()).unwrap();
    let owned_id = owned.id().as_id();
    let copy = owned.parsed(&owned_id);
    assert_eq!(format!("{:?}", copy.call), format!("{:?}", parsed.call));
    assert_eq!(copy.call.target.unwrap().key, "a\"b");
    assert_eq!(copy.call.arguments, Some(br#"{"x":[1]}"#.as_slice()));
    assert_eq!((copy.frame, copy.params, copy.cursor), (&text[..], parsed.params, parsed.cursor));
    assert_eq!((copy.id.raw(), copy.id.key()), (id.raw(), id.key()));
    assert_eq!((owned.id().raw(), owned.id().key()), (id.raw(), id.key()));
    assert_eq!(copy.protocol_version, Some("v"));
    // A copied id is still the same id.
    assert_eq!(owned_id.to_owned().key(), id.key());
}

#[test]
fn a_request_with_a_part_from_elsewhere_is_not_kept() {
    let text = frame("1");
    let Ok(Scanned::Message(envelope)) = scan(&text) else { panic!("no message") };
    let Kind::Request { id, method } = &envelope.kind else { panic!("no request") };
    let parsed = ParsedRequest::of(&envelope, id, method, None);
    let elsewhere = br#"{"x":1}"#.to_vec();
    let torn = ParsedRequest { params: Some(&elsewhere), ..parsed };
    assert!(OwnedRequest::of(&parsed, Instant::now()).is_some());
    assert!(OwnedRequest::of(&torn, Instant::now()).is_none());
}

#[test]
fn requests_are_released_by_what_they_wait_for_in_the_order_they_came() {
    let mut requests = Requests::default();
    let other = EntryId::new(EntryType::Tool, "sub");
    let awaited = [
        Awaited::List(LIST),
        Awaited::Admission,
        Awaited::List(ListKind::Prompts),
        Awaited::Person(entry()),
        Awaited::List(LIST),
        Awaited::Person(other.clone()),
        Awaited::Admission,
    ];
    for (id, awaited) in (0..).zip(awaited) {
        waits(&mut requests, id, awaited).unwrap();
    }
    assert_eq!(requests.waited_lists(), BTreeSet::from([LIST, ListKind::Prompts]));
    assert_eq!(requests.asked_entries(), BTreeSet::from([entry(), other.clone()]));
    assert_eq!(ids(&requests.release_listed(&[LIST])), ["0", "4"]);
    assert_eq!(ids(&requests.release_listed(&[LIST])), [""; 0]);
    assert_eq!(ids(&requests.release_unadmitted()), ["1", "6"]);
    assert_eq!(ids(&requests.release_asked(&entry(), None)), ["3"]);
    assert_eq!(requests.asked_entries(), BTreeSet::from([other]));
    // This includes requests that no thread has claimed.
    assert!(requests.claim(at(b"4")).is_some());
    assert_eq!(ids(&requests.release_all()), ["0", "1", "2", "3", "5", "6"]);
    assert_eq!(requests.waited_lists(), BTreeSet::new());
}

#[test]
fn the_thread_that_claims_a_request_is_alone_with_it() {
    let mut requests = after(2);
    assert!(requests.released(at(b"7")).is_some());
    assert!(requests.claim(at(b"7")).is_some());
    assert!(requests.claim(at(b"7")).is_none());
    assert!(requests.released(at(b"7")).is_none());
    assert!(!bring(&mut requests), "it was not decided to send it");
    let late = Instant::now() + Duration::from_secs(1);
    assert!(requests.release_late(late).is_empty() && requests.release_all().is_empty());
    assert!(requests.end_all().kept.is_empty(), "the thread that has it answers it");
    assert_eq!(requests.leave(at(b"7"), call()), Err(Refused::Ended));
    assert!(requests.end(at(b"7")).is_some());
}

#[test]
fn a_released_request_that_waits_again_waits_behind_the_others() {
    let mut requests = after(2);
    waits(&mut requests, 8, Awaited::Admission).unwrap();
    requests.wait_again(at(b"7"), Awaited::Admission);
    assert_eq!(ids(&requests.release_listed(&[LIST])), [""; 0]);
    assert_eq!(ids(&requests.release_unadmitted()), ["8", "7"]);
    assert!(requests.claim(at(b"7")).is_some(), "it can be claimed again");
    requests.wait_again(at(b"7"), Awaited::Admission);
    assert_eq!(name(requests.phase(at(b"7"))), "claimed", "a claimed one is not taken away");
}

#[test]
fn a_person_is_asked_about_a_claimed_request_unless_it_was_cancelled() {
    let mut requests = after(3);
    assert_eq!(requests.ask(at(b"7"), entry()), Asked::Waits);
    assert_eq!(requests.asked_entries(), BTreeSet::from([entry()]));
    let later = Some(Instant::now() + Duration::from_secs(9));
    assert_eq!(ids(&requests.release_asked(&entry(), later)), ["7"]);
    let kept = requests.claim(at(b"7")).unwrap();
    assert_eq!((kept.asking, kept.deadline), (Asking::Done, later));
    requests.cancel(at(b"7"), CANCELLATION, None);
    assert_eq!(requests.ask(at(b"7"), entry()), Asked::Cancelled);
    assert_eq!(name(requests.phase(at(b"7"))), "claimed");
}

#[test]
fn a_decided_request_is_brought_once_and_not_in_the_place_of_a_later_one_with_its_id() {
    let mut requests = after(4);
    let first = requests.phase(at(b"7")).and_then(Phase::kept).unwrap().request.clone();
    // It timed out before it could be written to the server.
    assert!(requests.end(at(b"7")).is_some());
    assert!(requests.bring(SESSION, &first).is_none());
    waits(&mut requests, 7, Awaited::List(LIST)).unwrap();
    requests.release_listed(&[LIST]);
    let second = requests.claim(at(b"7")).unwrap().request;
    requests.decide(at(b"7"));
    assert!(requests.bring(SESSION, &first).is_none(), "that is not the one");
    assert!(requests.bring(SESSION, &second).is_some());
    assert!(requests.bring(SESSION, &second).is_none());
}

#[test]
fn a_cancellation_never_overtakes_a_request_that_waited() {
    let until = Some(Instant::now());
    for (steps, before) in STEPS.into_iter().enumerate().take(7).skip(1) {
        let mut requests = after(steps);
        assert_eq!(requests.cancel(at(b"7"), CANCELLATION, until), Cancelling::Follows, "{before}");
        // The remaining steps.
        requests.release_listed(&[LIST]);
        if requests.claim(at(b"7")).is_some() || before == "decided" {
            requests.decide(at(b"7"));
            assert!(bring(&mut requests));
        }
        if before != "leaving" {
            requests.leave(at(b"7"), call()).unwrap();
        }
        assert_eq!(name(requests.phase(at(b"7"))), "leaving", "{before}: it has not left");
        let follows = requests.left(at(b"7"), until);
        assert_eq!(follows.as_deref(), Some(CANCELLATION), "{before}");
        let phase = requests.phase(at(b"7"));
        assert_eq!(name(phase), "cancelled", "{before}");
        assert_eq!(phase.and_then(Phase::dispatched).unwrap().deadline, until, "{before}");
        assert_eq!(requests.left(at(b"7"), until), None, "it follows once");
    }
    let mut requests = after(7);
    assert_eq!(requests.cancel(at(b"7"), CANCELLATION, until), Cancelling::Goes);
    assert_eq!(requests.cancel(at(b"7"), CANCELLATION, until), Cancelling::Goes);
}

#[test]
fn a_cancellation_only_shortens_the_time_that_a_request_has() {
    let now = Instant::now();
    let later = now + Duration::from_secs(1);
    for (deadline, until, expected) in
        [(now, later, now), (later, now, now)].map(|(a, b, c)| (Some(a), Some(b), Some(c)))
    {
        let mut requests = Requests::default();
        send(&mut requests, 7, Dispatched { deadline, ..call() }).unwrap();
        requests.cancel(at(b"7"), CANCELLATION, until);
        let phase = requests.phase(at(b"7"));
        assert_eq!(phase.and_then(Phase::dispatched).unwrap().deadline, expected);
    }
}

#[test]
fn what_is_not_under_way_and_a_handshake_are_not_cancelled() {
    let mut requests = Requests::default();
    assert_eq!(requests.cancel(at(b"7"), CANCELLATION, None), Cancelling::Unknown);
    send(&mut requests, 7, dispatched(DispatchedKind::Handshake)).unwrap();
    assert_eq!(requests.cancel(at(b"7"), CANCELLATION, None), Cancelling::Unknown);
    assert_eq!(name(requests.phase(at(b"7"))), "in flight");
}

#[test]
fn a_cancelled_request_that_a_person_was_asked_about_goes_on_at_once() {
    let mut requests = after(3);
    requests.ask(at(b"7"), entry());
    let Cancelling::Resumes(key) = requests.cancel(at(b"7"), CANCELLATION, None) else {
        panic!("it waits for the person")
    };
    assert_eq!(key.as_ref(), at(b"7"));
    assert!(requests.asked_entries().is_empty());
    assert!(requests.claim(at(b"7")).unwrap().cancellation.is_some());
}

#[test]
fn a_request_whose_client_left_is_known_as_such_whatever_it_waits_for() {
    for (steps, phase) in STEPS.into_iter().enumerate() {
        let mut requests = after(steps);
        let resumed = requests.abandon(at(b"7"));
        assert!(resumed.is_none(), "{phase}: it waits for no other person");
        assert_eq!(name(requests.phase(at(b"7"))), phase);
        let kept = match requests.phase(at(b"7")) {
            Some(Phase::Waiting { kept, .. } | Phase::Released(kept)) => Some(kept.has_left),
            Some(_) | None => None,
        };
        assert_ne!(kept, Some(false), "{phase}");
    }
    let mut requests = after(0);
    assert!(requests.abandon(at(b"8")).is_none());
}

#[test]
fn only_what_was_dispatched_or_is_the_gates_own_can_be_answered_and_each_once() {
    for (steps, phase) in STEPS.into_iter().enumerate() {
        let mut requests = after(steps);
        let is_dispatched = matches!(phase, "leaving" | "in flight");
        assert_eq!(requests.answer(at(b"7")).is_some(), is_dispatched, "{phase}");
        assert!(requests.answer(at(b"7")).is_none(), "{phase}");
    }
    let mut requests = Requests::default();
    requests.add_own(b"\"hp-1\"".to_vec());
    assert!(matches!(requests.answer(at(b"\"hp-1\"")), Some(Answered::Own)));
    assert!(requests.answer(at(b"\"hp-1\"")).is_none());
    requests.add_own(b"\"hp-2\"".to_vec());
    assert!(requests.end_own(b"\"hp-2\"") && !requests.end_own(b"\"hp-2\""));
}

#[test]
fn the_servers_end_of_a_cancelled_request_ends_no_other() {
    let mut requests = Requests::default();
    send(&mut requests, 7, call()).unwrap();
    assert!(requests.take_cancelled(at(b"7")).is_none());
    requests.cancel(at(b"7"), CANCELLATION, None);
    assert!(requests.take_cancelled(at(b"7")).is_some());
    send(&mut requests, 8, dispatched(DispatchedKind::Handshake)).unwrap();
    assert!(requests.take_cancelled(at(b"8")).is_some(), "the gate gives a handshake up itself");
}

#[test]
fn a_request_whose_time_is_over_ends_in_the_way_of_its_phase_and_kind() {
    let now = Instant::now();
    let deadline = Some(now);
    let mut requests = Requests::default();
    send(&mut requests, 1, Dispatched { deadline, ..call() }).unwrap();
    send(&mut requests, 2, Dispatched { deadline, ..dispatched(DispatchedKind::Handshake) })
        .unwrap();
    send(&mut requests, 3, Dispatched { deadline, ..dispatched(DispatchedKind::Other) }).unwrap();
    requests.cancel(at(b"3"), CANCELLATION, None);
    send(&mut requests, 4, call()).unwrap();
    assert!(requests.take_late(now - Duration::from_millis(1)).is_empty());
    let mut late: Vec<_> =
        requests.take_late(now).iter().map(|late| (late.key.id.clone(), late.lateness)).collect();
    late.sort_by_key(|(id, _)| id.clone());
    let late: Vec<Lateness> = late.into_iter().map(|(_, lateness)| lateness).collect();
    assert_eq!(late, [Lateness::TimedOut, Lateness::Unstarted, Lateness::Abandoned]);
    assert_eq!(name(requests.phase(at(b"4"))), "in flight");
    assert!(requests.take_late(now).is_empty());
}

#[test]
fn a_request_that_was_not_sent_in_time_is_released_wherever_it_waits() {
    let now = Instant::now();
    let mut requests = Requests::default();
    let deadline = Some(now);
    for (id, awaited) in
        [(1, Awaited::List(LIST)), (2, Awaited::Admission), (7, Awaited::Admission)]
    {
        requests.wait(SESSION, request(id), awaited, Asking::Open, deadline).unwrap();
    }
    waits(&mut requests, 3, Awaited::Person(entry())).unwrap();
    requests.release_listed(&[LIST]);
    requests.release_unadmitted();
    requests.claim(at(b"7"));
    requests.decide(at(b"7"));
    assert!(requests.release_late(now - Duration::from_millis(1)).is_empty());
    assert_eq!(ids(&requests.release_late(now)), ["1", "2", "7"]);
    assert!(!bring(&mut requests), "it is refused, so it is not sent");
    assert!(requests.claim(at(b"7")).is_some());
}

#[test]
fn a_line_that_cannot_be_read_is_held_against_the_request_it_may_have_answered() {
    let now = Instant::now();
    let text = frame("7");
    let Ok(Scanned::Message(Envelope { kind: Kind::Request { id, .. }, .. })) = scan(&text) else {
        panic!("no request")
    };
    let ids = [id];
    let mut requests = Requests::default();
    assert!(!requests.doubt(SESSION, &ids, false, now), "nothing was asked");
    assert!(requests.doubt(SESSION, &[], true, now), "it was meant to be a message");
    send(&mut requests, 7, call()).unwrap();
    send(&mut requests, 8, call()).unwrap();
    // With two requests in flight, the line may have answered either.
    assert!(requests.doubt(SESSION, &[], true, now));
    assert!(requests.take_late(now).is_empty());
    assert!(!requests.doubt(SessionKey(1), &ids, false, now), "it is not that session's request");
    assert!(requests.doubt(SESSION, &ids, false, now));
    // The first doubt sets the time: a flood of lines must not postpone the end.
    assert!(requests.doubt(SESSION, &ids, false, now + Duration::from_secs(1)));
    let late = requests.take_late(now);
    assert!(matches!(late.as_slice(), [Late { lateness: Lateness::Unreadable, .. }]), "{late:?}");
    // Only one request is in flight.
    assert!(requests.doubt(SESSION, &[], true, now));
    assert_eq!(ids_of(&requests.take_late(now)), ["8"]);
    requests.add_own(b"\"hp-1\"".to_vec());
    assert!(requests.take_late_own(now).is_empty());
    assert!(requests.doubt(SESSION, &[], true, now));
    assert_eq!(requests.take_late_own(now), [b"\"hp-1\"".to_vec()]);
    assert!(!requests.end_own(b"\"hp-1\""));
}

fn ids_of(late: &[Late]) -> Vec<String> {
    late.iter().map(|late| String::from_utf8_lossy(late.key.id.raw()).into_owned()).collect()
}

#[test]
fn the_end_of_the_server_ends_every_request_that_no_thread_has() {
    let mut requests = after(3);
    waits(&mut requests, 1, Awaited::List(LIST)).unwrap();
    waits(&mut requests, 2, Awaited::Person(entry())).unwrap();
    send(&mut requests, 3, call()).unwrap();
    requests.add_own(b"\"hp-1\"".to_vec());
    let ended = requests.end_all();
    assert!(requests.is_ended());
    assert_eq!((ended.dispatched.len(), ended.kept.len()), (1, 2));
    assert!(requests.answer(at(b"\"hp-1\"")).is_none());
    assert_eq!(requests.admits(at(b"3")), Err(Refused::Ended));
    assert_eq!(waits(&mut requests, 4, Awaited::Admission), Err(Refused::Ended));
    assert_eq!(send(&mut requests, 4, call()), Err(Refused::Ended));
    assert!(requests.has_unfinished(), "the claimed one");
    assert_eq!(requests.abandon_all().kept.len(), 1);
    assert!(!requests.has_unfinished());
}

#[test]
fn the_end_of_a_session_ends_its_requests_and_no_others() {
    let mut requests = after(3);
    let other = SessionKey(1);
    for id in 0..3 {
        requests.dispatch(other, request(id).id().clone(), call()).unwrap();
    }
    requests.wait(other, request(7), Awaited::Admission, Asking::Open, None).unwrap();
    let ended = requests.end_session(other);
    assert_eq!((ended.dispatched.len(), ended.kept.len()), (3, 1));
    assert!(requests.release_unadmitted().is_empty());
    assert_eq!(name(requests.phase(at(b"7"))), "claimed");
    assert_eq!(requests.end_session(SESSION).kept.len(), 1);
    assert_eq!(requests.leave(at(b"7"), call()), Err(Refused::Ended));
    assert_eq!(requests.counts, Counts::default());
}

#[test]
fn what_is_still_to_be_sent_or_answered_here_is_known() {
    for (steps, phase) in STEPS.into_iter().enumerate() {
        let is_unfinished = !matches!(phase, "none" | "in flight");
        assert_eq!(after(steps).has_unfinished(), is_unfinished, "{phase}");
    }
    let mut requests = after(3);
    requests.ask(at(b"7"), entry());
    assert!(!requests.has_unfinished(), "a person may never answer");
    assert!(!requests.has_calls() && !requests.has_handshakes());
    send(&mut requests, 1, dispatched(DispatchedKind::Other)).unwrap();
    assert!(!requests.has_calls() && !requests.has_handshakes());
    send(&mut requests, 2, dispatched(DispatchedKind::Handshake)).unwrap();
    send(&mut requests, 3, call()).unwrap();
    assert!(requests.has_calls() && requests.has_handshakes());
    requests.answer(at(b"2"));
    requests.answer(at(b"3"));
    assert!(!requests.has_calls() && !requests.has_handshakes());
}

#[test]
fn requests_in_flight_are_bounded_at_the_limit_and_not_before() {
    let mut requests = after(5);
    let ids = (100..).take(MAX_PENDING);
    ids.for_each(|id| send(&mut requests, id, call()).unwrap());
    assert_eq!(send(&mut requests, 1, call()), Err(Refused::TooMany));
    assert_eq!(requests.leave(at(b"7"), call()), Err(Refused::TooMany));
    assert_eq!(name(requests.phase(at(b"7"))), "claimed", "the thread that has it refuses it");
    requests.answer(at(b"100"));
    assert_eq!(requests.leave(at(b"7"), call()), Ok(()));
}

#[test]
fn requests_that_wait_are_bounded_at_the_limit_and_not_before() {
    let mut requests = Requests::default();
    for id in 0..MAX_WAITING as u64 {
        waits(&mut requests, id, Awaited::List(LIST)).unwrap();
    }
    assert_eq!(waits(&mut requests, 5_000, Awaited::List(LIST)), Err(Refused::TooMany));
    // Released requests are stored as well, and may wait again.
    requests.release_listed(&[LIST]);
    assert_eq!(waits(&mut requests, 5_000, Awaited::List(LIST)), Err(Refused::TooMany));
    requests.claim(at(b"0"));
    requests.leave(at(b"0"), call()).unwrap();
    assert_eq!(waits(&mut requests, 5_000, Awaited::List(LIST)), Ok(()));
}

#[test]
fn bytes_that_wait_are_bounded_at_the_limit_and_not_before() {
    let long = |id: u64, bytes: usize| {
        let short = request(id);
        let id = short.id().as_id();
        let frame = vec![b' '; bytes];
        let parsed = ParsedRequest { frame: &frame, params: None, ..short.parsed(&id) };
        OwnedRequest::of(&parsed, Instant::now()).unwrap()
    };
    let mut requests = Requests::default();
    let mut wait =
        |request| requests.wait(SESSION, request, Awaited::Admission, Asking::Open, None);
    assert_eq!(wait(long(1, MAX_WAITING_BYTES - 1_000)), Ok(()));
    assert_eq!(wait(long(2, 1_001)), Err(Refused::TooMany));
    assert_eq!(wait(long(2, 1_000)), Ok(()));
    assert_eq!(wait(long(3, 100)), Err(Refused::TooMany));
}

use super::*;
use crate::admission::Admittance;
use crate::situation::{ServerProfile, Switches};
use contract::time::Timestamp;
use gate::judge::SurfaceJudgement;
use gate::posture::{Posture, Settings};
use gate::verdict::Verdict;
use wire::envelope::{Envelope, Kind, Scanned, scan};

const CANCELLATION: &[u8] = b"{}";
const LIST: ListKind = ListKind::Tools;

fn state() -> State {
    let situation = Situation {
        server: "calc".parse().unwrap(),
        settings: Settings::default(),
        profile: ServerProfile::default(),
        switches: Switches::default(),
        admission: Admittance::NotAsked,
        view: Arc::default(),
    };
    let judgement = SurfaceJudgement {
        posture: Posture::default(),
        verdict: Verdict::Proceed,
        entries: Vec::new(),
        unreadable: Vec::new(),
    };
    let book = PinBook::default();
    let begun = Judged { situation, book, has_baseline: false, judgement, repinned: 0 };
    State::new(begun, Principal::local_user(String::new(), Vec::new(), Timestamp(0)))
}

fn id() -> OwnedId {
    let frame = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#;
    let Ok(Scanned::Message(Envelope { kind: Kind::Request { id, .. }, .. })) = scan(frame) else {
        panic!("no request")
    };
    id.to_owned()
}

fn waiting() -> Waiting {
    Waiting {
        id: id(),
        frame: CANCELLATION.into(),
        list: Some(LIST),
        is_unadmitted: false,
        is_handshake: false,
        begun: Instant::now(),
        asking: Asking::Open,
        asked_about: None,
        cancellation: None,
        is_claimed: false,
    }
}

fn pending() -> Pending {
    Pending {
        receipt_id: ReceiptId([0; 16]),
        is_handshake: false,
        is_ping: false,
        is_call: true,
        bytes: 0,
        begun: Instant::now(),
        dispatched: Instant::now(),
        deadline: None,
        is_cancelled: false,
        is_leaving: false,
        cancellation: None,
    }
}

/// A state after the first `steps` steps of a request from waiting to where its bytes are.
fn after(steps: usize) -> State {
    let mut state = state();
    let all: [fn(&mut State); 5] = [
        |state| state.wait(waiting()),
        |state| assert_eq!(state.release_listed(&[LIST]).len(), 1),
        |state| assert!(state.claim(id().key()).is_some()),
        |state| state.dispatch(id(), pending(), true),
        |state| assert!(state.left(id().key(), None).is_none()),
    ];
    all.iter().take(steps).for_each(|step| step(&mut state));
    state
}

#[test]
fn a_request_is_in_one_place_from_its_wait_to_its_answer() {
    for steps in 1..=5 {
        let state = after(steps);
        let places = state.waiting.len() + state.released.len() + state.pending.len();
        assert_eq!(places, 1, "after {steps} steps");
        assert_eq!(state.reason_against(id().key()), Some(ReasonCode::AmbiguousMessage));
    }
    assert_eq!(state().reason_against(id().key()), None);
}

#[test]
fn a_cancellation_never_overtakes_a_request_that_waited() {
    let until = Some(Instant::now());
    for steps in 1..=4 {
        let mut state = after(steps);
        let cancelling = state.cancel(id().key(), CANCELLATION, until);
        assert!(matches!(cancelling, Cancelling::Follows), "after {steps} steps: {cancelling:?}");
        // The rest of its way.
        state.release_listed(&[LIST]);
        state.claim(id().key());
        if steps < 4 {
            state.dispatch(id(), pending(), true);
        }
        assert!(!state.pending.values().any(|pending| pending.is_cancelled), "it has not left");
        let follows = state.left(id().key(), until);
        assert_eq!(follows.as_deref(), Some(CANCELLATION), "after {steps} steps");
        let pending = state.pending.values().next().unwrap();
        assert_eq!((pending.is_cancelled, pending.deadline), (true, until), "after {steps} steps");
        assert_eq!(state.left(id().key(), until), None, "it follows once");
    }
    let mut state = after(5);
    assert!(matches!(state.cancel(id().key(), CANCELLATION, until), Cancelling::Goes));
}

#[test]
fn what_is_under_way_nowhere_and_a_greeting_are_not_cancelled() {
    let mut state = state();
    assert!(matches!(state.cancel(id().key(), CANCELLATION, None), Cancelling::Unknown));
    state.dispatch(id(), Pending { is_handshake: true, ..pending() }, false);
    assert!(matches!(state.cancel(id().key(), CANCELLATION, None), Cancelling::Unknown));
    assert!(!state.pending.values().any(|pending| pending.is_cancelled));
}

#[test]
fn whoever_claims_a_request_is_alone_with_it() {
    let mut state = after(2);
    let late = Instant::now() + Duration::from_secs(1);
    assert_eq!(state.overdue(late, Duration::ZERO).len(), 1, "it waits to be brought");
    assert!(state.claim(id().key()).is_some());
    assert!(state.claim(id().key()).is_none());
    assert!(state.overdue(late, Duration::ZERO).is_empty(), "it is being decided on");
    state.wait_again(id().key(), |waiting| waiting.is_unadmitted = true);
    assert_eq!(state.release_listed(&[LIST]).len(), 0);
    assert_eq!(state.release_unadmitted().len(), 1);
    assert!(state.claim(id().key()).is_some(), "who waits again can be claimed again");
}

//! Approvals of calls: bound to one call, decided by another person, used once.

use super::bench::*;
use crate::{
    ApprovalDecision, ApprovalId, ApprovalState, ArgsHash, By, CallBinding, KEPT_APPROVAL_DAYS,
    KEPT_FOR_TAKER_MILLISECONDS, MAX_PARKED_CALLS, MAX_PRINCIPAL_BYTES, MAX_TOOL_BYTES, Signed,
    Spent, Store, StoreError, Taken,
};
use contract::hash::EntryHash;
use gate::time::Timestamp;

const BOB: By<'_> = By { name: "bob", at: at(1) };

const fn at(milliseconds: i64) -> Timestamp {
    Timestamp(NOON.0 + milliseconds)
}

fn approval(name: &str) -> ApprovalId {
    name.parse().unwrap()
}

/// A call that waits until 100 ms past noon.
fn parked(bench: &Bench) -> Box<dyn Store> {
    let mut store = bench.store();
    store.park_call(&approval("a1"), &call(), NOON, at(100)).unwrap();
    store
}

fn granted(bench: &Bench) -> Box<dyn Store> {
    let mut store = parked(bench);
    store.decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, BOB).unwrap();
    store
}

fn state(store: &dyn Store) -> ApprovalState {
    store.approval(&approval("a1")).unwrap().unwrap().state
}

fn a_parked_call_is_granted_by_another_and_used_once(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = parked(&bench);
    let waiting = store.parked_calls(at(1)).unwrap();
    assert_eq!((waiting.len(), &waiting[0].call), (1, &call()));
    let early = store.take_approval(&approval("a1"), &call(), at(1)).unwrap();
    assert_eq!(early, Taken::Not(ApprovalState::Parked));
    store.decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, BOB).unwrap();
    assert!(store.parked_calls(at(2)).unwrap().is_empty());
    let Taken::Taken(taken) = store.take_approval(&approval("a1"), &call(), at(2)).unwrap() else {
        panic!("not taken")
    };
    assert_eq!(taken.decided, Some(Signed { by: "bob".to_owned(), at: at(1) }));
    assert_eq!(bench.store().approval(&approval("a1")).unwrap().as_ref(), Some(&*taken));
    let again = store.take_approval(&approval("a1"), &call(), at(3)).unwrap();
    assert_eq!(again, Taken::Not(ApprovalState::Granted), "it is kept for its taker");
    assert_eq!(store.use_approval(&approval("a1"), at(2), at(2)).unwrap(), Spent::Spent);
    let again = store.take_approval(&approval("a1"), &call(), at(4)).unwrap();
    assert_eq!(again, Taken::Not(ApprovalState::Used));
    assert_eq!(store.use_approval(&approval("a1"), at(2), at(2)).unwrap(), Spent::NotHeld);
    let events = store.events().unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].action.as_str(), events[0].by.as_str()), ("approval.grant", "bob"));
    assert_eq!(events[0].subject.as_deref(), Some("a1"));
}

/// The taker was killed after taking a grant, or is slower than the reservation lasts.
fn a_grant_that_its_taker_did_not_use_is_taken_again_and_used_once(kind: Kind) {
    let bench = Bench::new(kind);
    let (id, mut killed) = (approval("k1"), bench.store());
    killed.park_call(&id, &call(), NOON, at(3 * KEPT_FOR_TAKER_MILLISECONDS)).unwrap();
    killed.decide_call(&id, ApprovalDecision::Grant { mfa: true }, BOB).unwrap();
    assert!(matches!(killed.take_approval(&id, &call(), at(2)).unwrap(), Taken::Taken(_)));
    let mut store = bench.store();
    let (early, late) = (at(1 + KEPT_FOR_TAKER_MILLISECONDS), at(2 + KEPT_FOR_TAKER_MILLISECONDS));
    let taken = store.take_approval(&id, &call(), early).unwrap();
    assert_eq!(taken, Taken::Not(ApprovalState::Granted));
    let Taken::Taken(taken) = store.take_approval(&id, &call(), late).unwrap() else {
        panic!("not taken")
    };
    assert_eq!((taken.decided.unwrap().by.as_str(), taken.mfa), ("bob", true));
    // The first taker was slow, not killed: it has lost the grant.
    assert_eq!(killed.use_approval(&id, at(2), at(2)).unwrap(), Spent::NotHeld);
    assert_eq!(store.use_approval(&id, late, late).unwrap(), Spent::Spent);
    for (store, moment) in [(&mut killed, at(2)), (&mut store, late)] {
        assert_eq!(store.use_approval(&id, moment, moment).unwrap(), Spent::NotHeld);
        let later = at(2 * KEPT_FOR_TAKER_MILLISECONDS + 2);
        let again = store.take_approval(&id, &call(), later).unwrap();
        assert_eq!(again, Taken::Not(ApprovalState::Used));
    }
}

/// Taking a grant does not extend its validity.
fn a_grant_that_its_taker_did_not_use_expires(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = granted(&bench);
    assert!(matches!(
        store.take_approval(&approval("a1"), &call(), at(2)).unwrap(),
        Taken::Taken(_)
    ));
    let late = at(2 + KEPT_FOR_TAKER_MILLISECONDS);
    let taken = store.take_approval(&approval("a1"), &call(), late).unwrap();
    assert_eq!(taken, Taken::Not(ApprovalState::Expired));
    assert_eq!(store.expire_approvals(at(100)).unwrap(), 1);
    assert_eq!(store.use_approval(&approval("a1"), at(2), at(2)).unwrap(), Spent::NotHeld);
}

/// A process is paused between taking a grant and using it up, and no other process marks the grant as expired.
fn a_grant_that_has_expired_since_it_was_taken_is_not_used(kind: Kind) {
    let bench = Bench::new(kind);
    let (id, mut store) = (approval("a1"), granted(&bench));
    assert!(matches!(store.take_approval(&id, &call(), at(2)).unwrap(), Taken::Taken(_)));
    let expires_at = store.approval(&id).unwrap().unwrap().expires_at;
    assert_eq!(store.use_approval(&id, at(2), expires_at).unwrap(), Spent::NotHeld);
    assert_eq!(store.use_approval(&id, at(2), at(3)).unwrap(), Spent::Spent);
}

/// The taker's clock was ahead of the others by more than the reservation lasts.
fn a_grant_that_was_taken_by_a_clock_ahead_is_taken_again(kind: Kind) {
    let bench = Bench::new(kind);
    let (id, mut ahead) = (approval("c1"), bench.store());
    ahead.park_call(&id, &call(), NOON, at(9 * KEPT_FOR_TAKER_MILLISECONDS)).unwrap();
    ahead.decide_call(&id, ApprovalDecision::Grant { mfa: false }, BOB).unwrap();
    let later = at(2 * KEPT_FOR_TAKER_MILLISECONDS);
    assert!(matches!(ahead.take_approval(&id, &call(), later).unwrap(), Taken::Taken(_)));
    let mut store = bench.store();
    let Taken::Taken(taken) = store.take_approval(&id, &call(), at(3)).unwrap() else {
        panic!("not taken")
    };
    let moment = taken.taken_at.unwrap();
    assert!(moment > later, "each taker has a moment of its own");
    assert_eq!(ahead.use_approval(&id, later, later).unwrap(), Spent::NotHeld);
    assert_eq!(store.use_approval(&id, moment, at(4)).unwrap(), Spent::Spent);
}

/// An attacker who can write to the database restores the row and the seal from before the grant
/// was used.
fn a_process_that_used_a_grant_does_not_take_it_again_from_an_older_database(kind: Kind) {
    let bench = Bench::new(kind);
    let (id, mut store) = (approval("a1"), granted(&bench));
    // Other processes change the granted calls, so this process has seen fewer changes than there
    // were.
    let mut other = bench.store();
    for name in ["o1", "o2", "o3"] {
        other.park_call(&approval(name), &call(), NOON, at(50)).unwrap();
        other.decide_call(&approval(name), ApprovalDecision::Grant { mfa: false }, BOB).unwrap();
    }
    assert!(matches!(store.take_approval(&id, &call(), at(2)).unwrap(), Taken::Taken(_)));
    bench.edit("CREATE TABLE kept AS SELECT * FROM call_approvals");
    bench.edit("CREATE TABLE kept_seal AS SELECT * FROM switch_seal");
    assert_eq!(store.use_approval(&id, at(2), at(2)).unwrap(), Spent::Spent);
    bench.edit("DELETE FROM call_approvals; INSERT INTO call_approvals SELECT * FROM kept");
    bench.edit("DELETE FROM switch_seal; INSERT INTO switch_seal SELECT * FROM kept_seal");
    assert_eq!(store.use_approval(&id, at(2), at(2)).unwrap(), Spent::Doubted);
    assert_eq!(state(&*store), ApprovalState::Expired);
}

/// An attacker who can write to the database makes a grant look untaken or unused.
fn a_grant_that_is_put_back_while_it_is_taken_is_used_once(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = granted(&bench);
    bench.edit("CREATE TABLE kept AS SELECT * FROM call_approvals");
    let id = approval("a1");
    assert!(matches!(store.take_approval(&id, &call(), at(2)).unwrap(), Taken::Taken(_)));
    let put_back = "DELETE FROM call_approvals; INSERT INTO call_approvals SELECT * FROM kept";
    bench.edit(put_back);
    let mut other = bench.store();
    assert!(matches!(other.take_approval(&id, &call(), at(3)).unwrap(), Taken::Taken(_)));
    assert_eq!(store.use_approval(&id, at(2), at(2)).unwrap(), Spent::NotHeld);
    bench.edit("CREATE TABLE kept_taken AS SELECT * FROM call_approvals");
    assert_eq!(other.use_approval(&id, at(3), at(3)).unwrap(), Spent::Spent);
    // Restored as its taker left it: the row and its authentication tag are complete.
    bench.edit("DELETE FROM call_approvals; INSERT INTO call_approvals SELECT * FROM kept_taken");
    assert_eq!(store.use_approval(&id, at(3), at(3)).unwrap(), Spent::Doubted);
    assert_eq!(other.use_approval(&id, at(3), at(3)).unwrap(), Spent::NotHeld);
    assert_eq!(state(&*store), ApprovalState::Expired);
    // The time of taking was moved back, so that the grant could be taken again at once.
    bench.edit("DELETE FROM call_approvals; INSERT INTO call_approvals SELECT * FROM kept_taken");
    bench.edit("UPDATE call_approvals SET used_at = 1");
    let taken = store.take_approval(&id, &call(), at(4));
    assert!(matches!(taken, Err(StoreError::Garbled { .. })), "{taken:?}");
}

fn a_refused_call_is_not_made(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = parked(&bench);
    store.decide_call(&approval("a1"), ApprovalDecision::Refuse, BOB).unwrap();
    let taken = store.take_approval(&approval("a1"), &call(), at(2)).unwrap();
    assert_eq!(taken, Taken::Not(ApprovalState::Refused));
    let error = store
        .decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, BOB)
        .unwrap_err();
    assert_eq!(error.to_string(), "approval `a1` is refused already");
}

fn a_principal_cannot_decide_on_their_own_call(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = parked(&bench);
    for decision in [ApprovalDecision::Grant { mfa: false }, ApprovalDecision::Refuse] {
        let error = store
            .decide_call(&approval("a1"), decision, By { name: "ada", at: at(1) })
            .unwrap_err();
        assert!(error.to_string().contains("ask another person"), "{error}");
    }
    assert_eq!(state(&*store), ApprovalState::Parked);
    let nameless = By { name: "", at: at(1) };
    let refused =
        store.decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, nameless);
    assert!(matches!(refused, Err(StoreError::Nameless)));
}

fn an_approval_is_of_one_call_only(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = granted(&bench);
    for other in [
        CallBinding { principal: "eve".to_owned(), ..call() },
        CallBinding { server: id("mail"), ..call() },
        CallBinding { tool: "make".to_owned(), ..call() },
        CallBinding { contract_hash: EntryHash::of(b"other"), ..call() },
        CallBinding { args_hash: ArgsHash([8; 32]), ..call() },
    ] {
        let taken = store.take_approval(&approval("a1"), &other, at(2)).unwrap();
        assert_eq!(taken, Taken::OtherCall, "{other:?}");
    }
    assert_eq!(store.take_approval(&approval("zz"), &call(), at(2)).unwrap(), Taken::Unknown);
    assert!(matches!(
        store.take_approval(&approval("a1"), &call(), at(2)).unwrap(),
        Taken::Taken(_)
    ));
}

fn what_is_late_is_neither_decided_nor_used(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = parked(&bench);
    assert_eq!(store.parked_calls(at(99)).unwrap().len(), 1);
    assert!(store.parked_calls(at(100)).unwrap().is_empty());
    let late = By { name: "bob", at: at(100) };
    let error = store
        .decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, late)
        .unwrap_err();
    assert_eq!(error.to_string(), "approval `a1` is expired already");
    let in_time = By { name: "bob", at: at(99) };
    store.decide_call(&approval("a1"), ApprovalDecision::Grant { mfa: false }, in_time).unwrap();
    let late = store.take_approval(&approval("a1"), &call(), at(100)).unwrap();
    assert_eq!(late, Taken::Not(ApprovalState::Expired));
    assert!(matches!(
        store.take_approval(&approval("a1"), &call(), at(99)).unwrap(),
        Taken::Taken(_)
    ));
}

fn what_is_over_is_marked_and_after_a_month_forgotten(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = parked(&bench);
    let before = store.version().unwrap();
    assert_eq!(store.expire_approvals(at(99)).unwrap(), 0);
    assert_eq!(store.version().unwrap(), before, "nothing was written");
    assert_eq!(store.expire_approvals(at(100)).unwrap(), 1);
    assert_eq!(state(&*store), ApprovalState::Expired);
    let month = KEPT_APPROVAL_DAYS * 86_400_000;
    assert_eq!(store.expire_approvals(at(99 + month)).unwrap(), 0);
    assert!(store.approval(&approval("a1")).unwrap().is_some());
    assert_eq!(store.expire_approvals(at(100 + month)).unwrap(), 0);
    assert!(store.approval(&approval("a1")).unwrap().is_none());
}

fn of_many_takers_at_once_one_gets_it(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for round in 0..8 {
        let id = approval(&format!("r{round}"));
        store.park_call(&id, &call(), NOON, at(100)).unwrap();
        store.decide_call(&id, ApprovalDecision::Grant { mfa: false }, BOB).unwrap();
        let taken: usize = std::thread::scope(|scope| {
            let (bench, id) = (&bench, &id);
            let take = move || {
                let taken = bench.store().take_approval(id, &call(), at(2)).unwrap();
                usize::from(matches!(taken, Taken::Taken(_)))
            };
            let takers: Vec<_> = (0..6).map(|_| scope.spawn(take)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, 1);
        let spent: usize = std::thread::scope(|scope| {
            let (bench, id) = (&bench, &id);
            let spend = move || {
                let spent = bench.store().use_approval(id, at(2), at(2)).unwrap();
                usize::from(spent == Spent::Spent)
            };
            let takers: Vec<_> = (0..6).map(|_| scope.spawn(spend)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(spent, 1);
    }
}

fn a_garbled_approval_lets_nothing_through(kind: Kind) {
    for edit in ["state = 'GRANTED'", "args_hash = 'x'", "contract_hash = ''", "server = 'A'"] {
        let bench = Bench::new(kind);
        let mut store = granted(&bench);
        bench.edit(&format!("UPDATE call_approvals SET {edit}"));
        let error = store.take_approval(&approval("a1"), &call(), at(2)).unwrap_err();
        assert!(matches!(error, StoreError::Garbled { .. }), "{edit}: {error}");
    }
}

fn what_waits_is_bounded(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for past in [0, 1] {
        let long = [
            CallBinding { principal: "x".repeat(MAX_PRINCIPAL_BYTES + past), ..call() },
            CallBinding { tool: "x".repeat(MAX_TOOL_BYTES + past), ..call() },
        ];
        for (index, call) in long.iter().enumerate() {
            let parked =
                store.park_call(&approval(&format!("l{past}{index}")), call, NOON, at(100));
            assert_eq!(parked.is_ok(), past == 0, "{parked:?}");
        }
    }
    bench.edit(&format!(
        "INSERT INTO call_approvals (id, principal, server, tool, contract_hash, args_hash, state, parked_at, expires_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
         SELECT 'v' || n, 'p', 's', 't', '', '', 'parked', 1, {} FROM numbers",
        MAX_PARKED_CALLS - 3,
        at(100).0
    ));
    store.park_call(&approval("last"), &call(), NOON, at(100)).unwrap();
    let error = store.park_call(&approval("past"), &call(), NOON, at(100)).unwrap_err();
    assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
    // Expired calls take up no space.
    store.park_call(&approval("later"), &call(), at(100), at(200)).unwrap();
    let error = store.park_call(&approval("later"), &call(), at(100), at(200)).unwrap_err();
    assert_eq!(error.to_string(), "there is an approval `later` already");
}

/// The row is edited without a person's decision.
fn a_grant_that_something_else_wrote_is_not_taken(kind: Kind) {
    for edit in [
        "state = 'granted'",
        "state = 'granted', decided_at = 1, decided_by = 'bob'",
        "state = 'granted', decided_at = 1, decided_by = 'bob', authentication = authentication",
    ] {
        let bench = Bench::new(kind);
        let mut store = parked(&bench);
        bench.edit(&format!("UPDATE call_approvals SET {edit}"));
        let taken = store.take_approval(&approval("a1"), &call(), at(2));
        assert!(matches!(taken, Err(StoreError::Garbled { .. })), "{edit}: {taken:?}");
    }
    // A real grant whose validity was extended is refused as well.
    let bench = Bench::new(kind);
    let mut store = granted(&bench);
    bench.edit("UPDATE call_approvals SET expires_at = expires_at + 1000000");
    let taken = store.take_approval(&approval("a1"), &call(), at(200));
    assert!(matches!(taken, Err(StoreError::Garbled { .. })), "{taken:?}");
}

/// An attacker who can write to the database tries to use a grant a second time.
fn a_used_grant_that_is_put_back_does_not_count(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = granted(&bench);
    let mut elsewhere = bench.store();
    bench.edit("CREATE TABLE kept AS SELECT * FROM call_approvals");
    bench.edit("CREATE TABLE kept_seal AS SELECT * FROM switch_seal");
    let take = |store: &mut dyn Store| store.take_approval(&approval("a1"), &call(), at(2));
    assert!(matches!(take(&mut *store).unwrap(), Taken::Taken(_)));
    assert_eq!(store.use_approval(&approval("a1"), at(2), at(2)).unwrap(), Spent::Spent);
    let put_back = "DELETE FROM call_approvals; INSERT INTO call_approvals SELECT * FROM kept";
    bench.edit(put_back);
    assert_eq!(state(&*store), ApprovalState::Granted);
    assert_eq!(take(&mut *store).unwrap(), Taken::Doubted);
    // With the seal of that time, every process detects it that has seen a later one.
    elsewhere.grant_count().unwrap();
    let put_seal_back = "DELETE FROM switch_seal; INSERT INTO switch_seal SELECT * FROM kept_seal";
    for store in [&mut *store, &mut *elsewhere] {
        bench.edit(put_back);
        bench.edit(put_seal_back);
        assert_eq!(take(store).unwrap(), Taken::Doubted);
        assert_eq!(state(store), ApprovalState::Expired);
    }
    // Removing a grant and adding one are detected too. Calls can be granted as before.
    let next = approval("a2");
    let grant = ApprovalDecision::Grant { mfa: true };
    store.park_call(&next, &call(), NOON, at(100)).unwrap();
    store.decide_call(&next, grant, BOB).unwrap();
    let Taken::Taken(taken) = store.take_approval(&next, &call(), at(2)).unwrap() else {
        panic!("not taken")
    };
    assert!(taken.mfa);
}

/// The seal is updated by every step, so that no action of Holdpoint's is mistaken for an outside
/// edit.
fn grants_that_expire_or_are_used_leave_the_others_sound(kind: Kind) {
    let bench = Bench::new(kind);
    let (mut one, mut other) = (bench.store(), bench.store());
    let grant = ApprovalDecision::Grant { mfa: false };
    for (name, until) in [("b1", 50), ("b2", 100), ("b3", 100)] {
        one.park_call(&approval(name), &call(), NOON, at(until)).unwrap();
        other.decide_call(&approval(name), grant, BOB).unwrap();
    }
    assert_eq!(one.expire_approvals(at(60)).unwrap(), 1);
    for (store, name) in [(&mut other, "b3"), (&mut one, "b2")] {
        let taken = store.take_approval(&approval(name), &call(), at(61)).unwrap();
        assert!(matches!(taken, Taken::Taken(_)), "{name}: {taken:?}");
        assert_eq!(
            store.use_approval(&approval(name), at(61), at(61)).unwrap(),
            Spent::Spent,
            "{name}"
        );
    }
    let before = one.grant_count().unwrap();
    one.park_call(&approval("b4"), &call(), at(61), at(70)).unwrap();
    one.expire_approvals(at(71)).unwrap();
    assert_eq!(one.grant_count().unwrap(), before, "no grant was touched");
}

on_both![
    a_grant_that_its_taker_did_not_use_is_taken_again_and_used_once,
    a_grant_that_its_taker_did_not_use_expires,
    a_grant_that_has_expired_since_it_was_taken_is_not_used,
    a_grant_that_was_taken_by_a_clock_ahead_is_taken_again,
    a_process_that_used_a_grant_does_not_take_it_again_from_an_older_database,
    a_grant_that_is_put_back_while_it_is_taken_is_used_once,
    a_used_grant_that_is_put_back_does_not_count,
    grants_that_expire_or_are_used_leave_the_others_sound,
    a_grant_that_something_else_wrote_is_not_taken,
    a_parked_call_is_granted_by_another_and_used_once,
    a_refused_call_is_not_made,
    a_principal_cannot_decide_on_their_own_call,
    an_approval_is_of_one_call_only,
    what_is_late_is_neither_decided_nor_used,
    what_is_over_is_marked_and_after_a_month_forgotten,
    of_many_takers_at_once_one_gets_it,
    a_garbled_approval_lets_nothing_through,
    what_waits_is_bounded,
];

//! Many sessions of several principals on a few servers in one process, while people decide.
//!
//! Every request has exactly one decision and one answer, a dispatched request has at most one
//! outcome, no session gets another's answer, and the ledger verifies.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "many/hall.rs"]
mod hall;

#[path = "many/sharing.rs"]
mod sharing;

use hall::{Hall, ServerDesk};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

const SERVERS: usize = 5;
const PRINCIPALS: usize = 20;
const SESSIONS: usize = 1_000;
const CLIENT_THREADS: usize = 4;
/// How often people decide meanwhile.
const ROUNDS: usize = 2 * SERVERS;
/// The number of calls per session. Their ids are the same in every session.
const CALLS: usize = 6;

#[test]
fn a_thousand_sessions_share_servers_while_people_decide() {
    let hall = Hall::new(SERVERS, PRINCIPALS, SESSIONS);
    std::thread::scope(|scope| {
        let deciding = scope.spawn(|| decide(&hall));
        let clients: Vec<_> = (0..CLIENT_THREADS)
            .map(|thread| {
                let hall = &hall;
                scope.spawn(move || {
                    let mine = || (thread..SESSIONS).step_by(CLIENT_THREADS);
                    mine().for_each(|session| hall.greet(session));
                    for call in 0..CALLS {
                        for session in mine() {
                            hall.send(session, 100 + call, &call_of(session, call));
                        }
                    }
                    mine().for_each(|session| hall.list(session, 200));
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("a client"));
        deciding.join().expect("the people");
    });
    let sent = hall.wait_for_all_answers();
    check_answers(&hall);
    hall.finish();
    check_ledger(&hall.ledger(), sent);
    hall.verify();
}

#[test]
fn one_listing_serves_every_session_that_waits_for_it() {
    let hall = Hall::new(1, 4, 40);
    let desk = &hall.servers[0];
    desk.hold_lists();
    (0..40).for_each(|session| hall.greet(session));
    (0..40).for_each(|session| hall.send(session, 100, &call_of(session, 0)));
    desk.release_lists();
    hall.wait_for_all_answers();
    assert_eq!(desk.lists_asked_for(), 1, "the tools were listed more than once");
}

#[test]
fn a_further_session_has_no_list_fetched_that_is_fresh() {
    let hall = Hall::new(1, 3, 20);
    hall.greet(0);
    assert!(hall.ask(0, 100, &call_of(0, 0)).get("result").is_some());
    let before = hall.servers[0].lists_asked_for();
    (1..20).for_each(|session| hall.greet(session));
    // Longer than the delay of a list that no call waits for.
    let until = std::time::Instant::now() + std::time::Duration::from_millis(1_500);
    let mut id = 101;
    while std::time::Instant::now() < until {
        assert!(hall.ask(0, id, &call_of(0, 0)).get("result").is_some());
        id += 1;
    }
    assert_eq!(hall.servers[0].lists_asked_for(), before);
}

#[test]
fn when_the_session_that_fetches_a_list_ends_another_one_fetches_it() {
    let hall = Hall::new(1, 2, 2);
    let desk = &hall.servers[0];
    desk.hold_lists();
    hall.greet(0);
    hall.send(0, 100, &call_of(0, 0));
    desk.wait_for_list();
    hall.greet(1);
    hall.send(1, 100, &call_of(1, 0));
    desk.release_lists_of(1);
    hall.sessions[0].session.end();
    let answer = hall.answer(1, 100);
    assert_eq!(answer["result"]["content"][0]["text"], "1", "{answer}");
    assert_eq!(desk.lists_asked_for(), 2);
}

#[test]
fn a_process_that_shows_something_else_is_judged_by_itself() {
    let hall = Hall::with_instances(1, 2, 2, |session| session as u64);
    let desk = &hall.servers[0];
    hall.greet(0);
    assert!(hall.ask(0, 100, &call_of(0, 0)).get("result").is_some());
    desk.show_to(1, "Adds, and sends the sum elsewhere.");
    hall.greet(1);
    let held = hall.ask(1, 100, &call_of(1, 0));
    assert_eq!(held["error"]["data"]["reason"], "contract_drift", "{held}");
    let allowed = hall.ask(0, 101, &call_of(0, 1));
    assert!(allowed.get("result").is_some(), "{allowed}");
}

#[test]
fn what_a_person_approves_counts_for_the_next_call_of_every_session() {
    let hall = Hall::new(1, 3, 3);
    let desk = &hall.servers[0];
    (0..3).for_each(|session| hall.greet(session));
    (0..3).for_each(|session| {
        assert!(hall.ask(session, 100, &call_of(session, 0)).get("result").is_some());
    });
    desk.change("Adds all numbers.");
    (0..3).for_each(|session| {
        let held = hall.ask(session, 101, &call_of(session, 1));
        assert_eq!(held["error"]["data"]["reason"], "contract_drift", "{held}");
    });
    hall.approve(desk);
    (0..3).for_each(|session| {
        let allowed = hall.ask(session, 102, &call_of(session, 2));
        assert!(allowed.get("result").is_some(), "{allowed}");
        hall.hears(session, "notifications/tools/list_changed");
    });
}

fn call_of(session: usize, call: usize) -> Value {
    json!({"name": "add", "arguments": {"session": session, "call": call}})
}

/// What people and servers do meanwhile: contracts change and are approved, servers are stopped and
/// released, and an incident starts and ends.
fn decide(hall: &Hall) {
    for round in 0..ROUNDS {
        let desk: &ServerDesk = &hall.servers[round % SERVERS];
        desk.change(&format!("Adds numbers, version {round}."));
        hall.approve(desk);
        hall.quarantine(&hall.servers[(round + 1) % SERVERS]);
        hall.incident(&hall.servers[(round + 2) % SERVERS]);
        hall.end_incident();
        hall.release(&hall.servers[(round + 1) % SERVERS]);
    }
}

/// Checks that each answer is for a request of the session that got it, and arrives once.
fn check_answers(hall: &Hall) {
    for (number, session) in hall.sessions.iter().enumerate() {
        let mut answered = HashSet::new();
        for message in session.heard() {
            let Some(id) = message.get("id").filter(|_| message.get("method").is_none()) else {
                continue;
            };
            assert!(answered.insert(id.to_string()), "session {number}, twice: {message}");
            if let Some(text) = message["result"]["content"][0]["text"].as_str() {
                assert_eq!(text, number.to_string(), "session {number} got {message}");
            }
        }
        assert_eq!(answered.len(), session.sent(), "session {number}");
    }
}

fn check_ledger(lines: &[Value], sent: usize) {
    let of = |kind: &'static str| lines.iter().filter(move |line| line["record"] == kind);
    let mut allowed = HashMap::new();
    for decision in of("decision") {
        let id = decision["receipt_id"].as_str().expect("an id");
        let is_allowed = decision["decision"]["result"] == "allow";
        assert!(allowed.insert(id, is_allowed).is_none(), "two decisions: {decision}");
    }
    assert_eq!(allowed.len(), sent, "a decision for each request");
    let mut ended = HashSet::new();
    for outcome in of("outcome") {
        let id = outcome["receipt_id"].as_str().expect("an id");
        assert!(ended.insert(id), "two outcomes: {outcome}");
        assert_eq!(allowed.get(id), Some(&true), "an outcome of what was not allowed: {outcome}");
    }
    let results: HashSet<&str> =
        of("decision").filter_map(|line| line["decision"]["result"].as_str()).collect();
    assert!(results.contains("require_approval"), "nothing was held meanwhile: {results:?}");
}

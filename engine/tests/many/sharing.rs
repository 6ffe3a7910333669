//! What one session does must neither block the others nor let their calls through.

use crate::call_of;
use crate::hall::Hall;
use attest::{Binding, Digest, Draft, Flavor, Program, Scheme, SigningKey, TrustRoot};
use engine::admission::{Checker, Source, Subject, Terms};
use engine::server::ServerSettings;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use testing::{wait_for, wait_until};

/// Admission checks wait at it while it is closed. It counts the checks that reached it.
#[derive(Clone, Default)]
struct Barrier(Arc<(Mutex<BarrierState>, Condvar)>);

#[derive(Default)]
struct BarrierState {
    is_closed: bool,
    checks: usize,
}

impl Barrier {
    fn closed() -> Barrier {
        let barrier = Barrier::default();
        barrier.set_closed(true);
        barrier
    }

    fn set_closed(&self, is_closed: bool) {
        self.0.0.lock().expect("a lock").is_closed = is_closed;
        self.0.1.notify_all();
    }

    fn checks(&self) -> usize {
        self.0.0.lock().expect("a lock").checks
    }

    /// Called by each check.
    fn pass(&self) {
        let mut state = self.0.0.lock().expect("a lock");
        state.checks += 1;
        drop(self.0.1.wait_while(state, |state| state.is_closed).expect("a lock"));
    }
}

const FILE: &[u8] = b"the program";

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

fn stateless_call(session: usize, capabilities: &Value) -> Value {
    json!({"name": "add", "arguments": {"session": session}, "_meta": meta(capabilities)})
}

/// A requests tools; B requests prompts and gets them; A leaves. B's list is judged anyway, and C
/// is served.
#[test]
fn a_list_that_came_while_another_was_out_is_judged_when_the_other_lister_leaves() {
    let hall = Hall::new(1, 3, 3);
    let desk = &hall.servers[0];
    desk.hold_lists();
    hall.greet(0);
    hall.send(0, 100, &call_of(0, 0));
    desk.wait_for_list();
    hall.greet(1);
    hall.request(1, 300, "prompts/list", &json!({}));
    wait_until("prompts", || desk.prompts() > 0);
    hall.greet(2);
    hall.sessions[0].session.end();
    desk.release_lists();
    let answer = hall.ask(2, 100, &call_of(2, 0));
    assert!(answer.get("result").is_some(), "{answer}");
    hall.answer(1, 300);
}

/// The same, with only B's request.
#[test]
fn prompts_list_is_answered_though_the_lister_of_tools_left() {
    let hall = Hall::new(1, 2, 2);
    let desk = &hall.servers[0];
    desk.hold_lists();
    hall.greet(0);
    hall.send(0, 100, &call_of(0, 0));
    desk.wait_for_list();
    hall.greet(1);
    hall.request(1, 300, "prompts/list", &json!({}));
    wait_until("prompts", || desk.prompts() > 0);
    hall.sessions[0].session.end();
    desk.release_lists();
    hall.answer(1, 300);
}

/// A session breaks while it lists.
#[test]
fn a_session_that_breaks_while_it_lists_does_not_stop_the_others() {
    contract::trip::arm("state:POISON");
    let hall = Hall::new(1, 2, 2);
    let desk = &hall.servers[0];
    desk.hold_lists();
    hall.greet(0);
    hall.send(0, 100, &call_of(0, 0));
    desk.wait_for_list();
    hall.greet(1);
    hall.send(1, 100, &call_of(1, 0));
    hall.send(0, 101, &json!({"name": "POISON", "arguments": {}}));
    hall.answer(0, 100);
    desk.release_lists();
    let answer = hall.answer(1, 100);
    assert!(answer.get("result").is_some(), "{answer}");
}

/// A call waits for a list that another session fetches, and its session is shown another view.
#[test]
fn a_call_that_waits_is_answered_though_its_session_takes_another_view() {
    let hall = Hall::new(1, 3, 3);
    let desk = &hall.servers[0];
    let (plain, other) = (json!({}), json!({"elicitation": {}}));
    for session in 0..2 {
        let ok = hall.ask(session, 90, &stateless_call(session, &plain));
        assert!(ok.get("result").is_some(), "{ok}");
    }
    desk.hold_lists();
    desk.change_telling(0, "Adds two numbers.");
    let lists = desk.lists_asked_for();
    hall.send(0, 100, &stateless_call(0, &plain));
    wait_until("a list for session 0", || desk.lists_asked_for() == lists + 1);
    hall.send(1, 99, &stateless_call(1, &plain));
    // Once this one is listed, the driver has handled the earlier call.
    hall.send(2, 100, &stateless_call(2, &json!({"sampling": {}})));
    wait_until("a list for session 2", || desk.lists_asked_for() == lists + 2);
    hall.request(1, 101, "ping", &json!({"_meta": meta(&other)}));
    hall.answer(1, 101);
    desk.release_lists();
    hall.answer(0, 100);
    hall.answer(2, 100);
    let answer = hall.answer(1, 99);
    assert!(answer.get("result").is_some(), "{answer}");
}

/// The server announces over the connection that its list changed, just after the session took
/// another view.
#[test]
fn what_the_server_says_changed_counts_for_every_view_of_the_process() {
    let hall = Hall::new(1, 1, 1);
    let desk = &hall.servers[0];
    let (plain, other) = (json!({}), json!({"elicitation": {}}));
    let ok = hall.ask(0, 100, &stateless_call(0, &plain));
    assert!(ok.get("result").is_some(), "{ok}");
    let ok = hall.ask(0, 101, &stateless_call(0, &other));
    assert!(ok.get("result").is_some(), "{ok}");
    desk.change_telling(0, "Adds, and sends the sum elsewhere.");
    let held = hall.ask(0, 102, &stateless_call(0, &plain));
    assert_eq!(held["error"]["data"]["reason"], "contract_drift", "{held}");
}

/// The store cannot be written when a changed list is judged, and no call is dispatched on the old
/// one.
#[test]
fn a_list_that_could_not_be_judged_leaves_the_view_stale() {
    let hall = Hall::new(1, 1, 1);
    let desk = &hall.servers[0];
    hall.greet(0);
    let ok = hall.ask(0, 100, &call_of(0, 0));
    assert!(ok.get("result").is_some(), "{ok}");
    let database = hall.home.state_path();
    assert!(
        database.exists(),
        "{:?}",
        std::fs::read_dir(hall.home.path()).unwrap().collect::<Vec<_>>()
    );
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    desk.change("Adds, and sends the sum elsewhere.");
    let refused = hall.ask(0, 101, &call_of(0, 1));
    assert!(refused.get("error").is_some(), "{refused}");
    let second = hall.ask(0, 102, &call_of(0, 2));
    drop(connection);
    assert!(second.get("result").is_none(), "dispatched on a view that is not current: {second}");
}

/// A client whose view could not be created is refused, also when it tries again.
#[test]
fn a_client_that_can_have_no_view_is_refused_every_time() {
    let sessions = engine::server::MAX_VIEWS;
    let hall = Hall::new(1, 1, sessions);
    for session in 0..sessions - 1 {
        let capabilities = json!({"experimental": {format!("x{session}"): {}}});
        hall.request(session, 1, "ping", &json!({"_meta": meta(&capabilities)}));
        hall.answer(session, 1);
    }
    let last = sessions - 1;
    let capabilities = json!({"experimental": {"last": {}}});
    let refused = hall.ask(last, 100, &stateless_call(last, &capabilities));
    assert_eq!(refused["error"]["data"]["reason"], "rate_limited", "{refused}");
    let again = hall.ask(last, 101, &stateless_call(last, &capabilities));
    assert_eq!(again["error"]["data"]["reason"], "rate_limited", "{again}");
}

#[test]
fn one_decision_about_one_entry_is_recorded_once() {
    let hall = Hall::with_instances(1, 2, 2, |session| session as u64);
    let desk = &hall.servers[0];
    (0..2).for_each(|session| hall.greet(session));
    (0..2).for_each(|session| {
        assert!(hall.ask(session, 100, &call_of(session, 0)).get("result").is_some());
    });
    desk.change("Adds all numbers.");
    (0..2).for_each(|session| {
        let held = hall.ask(session, 101, &call_of(session, 1));
        assert_eq!(held["error"]["data"]["reason"], "contract_drift", "{held}");
    });
    hall.approve(desk);
    assert!(hall.ask(0, 102, &call_of(0, 2)).get("result").is_some());
    let index = hall.lines(true);
    let held = index.iter().filter(|line| line["data"]["held_count"] == 1).count();
    assert_eq!(held, 1, "a hold that two sessions meet is recorded once: {index:#?}");
}

fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

fn root() -> Arc<TrustRoot> {
    let root = json!({"v": 1, "signers": [{
        "keyId": "signer-1",
        "publicKeyPem": key().public_key().to_pem().expect("a key"),
        "approvedClearance": ["public", "internal", "restricted"],
    }]});
    Arc::new(TrustRoot::parse(root.to_string().as_bytes()).expect("a trust root"))
}

fn document() -> String {
    let draft = json!({
        "v": 2, "id": "mcp.example.calc", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "verification": "tested", "signerKeyId": "signer-1",
    });
    Draft::parse(draft.to_string().as_bytes()).expect("a draft").sign(&key()).expect("signed")
}

fn in_band() -> Value {
    let document: Value = serde_json::from_str(&document()).expect("JSON");
    json!({"mcp-attestation": document})
}

/// A checker that passes the barrier, if there is one, before it examines the program.
fn checker(flavor: Flavor, source: Source, barrier: Option<Barrier>) -> Checker {
    let scheme = Cow::Borrowed(Scheme::built_in("default").expect("a scheme"));
    let terms = Terms::new(root(), scheme, "internal".to_owned(), flavor).expect("terms");
    let program = Box::new(move || {
        barrier.iter().for_each(Barrier::pass);
        Program { file: vec![Digest::sha256(FILE)], ..Program::default() }
    });
    let bindings = vec![Binding::File(Digest::sha256(FILE))];
    Checker::new(terms, Subject::Local { program, bindings }, source)
}

fn admitted_hall(
    sessions: usize,
    max_age: Duration,
    call_timeout: Option<Duration>,
    checker: Checker,
) -> Hall {
    let mut checker = Some(checker);
    Hall::set_up(
        1,
        2,
        sessions,
        |_| 0,
        move || {
            let checker = checker.take().expect("one server");
            let settings = ServerSettings {
                admission_max_age: Some(max_age),
                greets_before_check: checker.greets_first(),
                call_timeout,
                ..ServerSettings::default()
            };
            (settings, Some(checker))
        },
    )
}

/// The server attests itself over one connection but not over the other.
#[test]
fn a_call_is_not_recorded_as_admitted_by_the_document_of_another_connection() {
    let checker = checker(Flavor::Open, Source::InBand, None);
    let hall = admitted_hall(2, Duration::from_secs(60), None, checker);
    let desk = &hall.servers[0];
    desk.show_experimental(1, in_band());
    hall.greet(0);
    assert!(hall.ask(0, 100, &call_of(0, 0)).get("result").is_some());
    hall.greet(1);
    assert!(hall.ask(1, 100, &call_of(1, 0)).get("result").is_some());
    assert!(hall.ask(0, 101, &call_of(0, 1)).get("result").is_some());
    let lines = hall.ledger();
    let calls = lines
        .iter()
        .filter(|line| line["record"] == "decision" && line["mcp"]["method"] == "tools/call");
    let verdicts: Vec<&Value> = calls.map(|line| &line["admission"]["verdict"]).collect();
    assert_eq!(verdicts, ["warn", "ok", "warn"], "session 0, 1, 0");
}

/// Two clients do a handshake at the same time; the second response arrives during the check of the
/// first.
#[test]
fn a_greeting_answered_during_a_check_of_another_session_reaches_its_client() {
    let barrier = Barrier::closed();
    let checker = checker(Flavor::Open, Source::InBand, Some(barrier.clone()));
    let hall = admitted_hall(2, Duration::from_secs(60), None, checker);
    let desk = &hall.servers[0];
    (0..2).for_each(|session| desk.show_experimental(session, in_band()));
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    hall.request(0, 1, "initialize", &params);
    wait_until("the check", || barrier.checks() == 1);
    hall.request(1, 1, "initialize", &params);
    wait_until("the second greeting", || desk.greeted() == 2);
    barrier.set_closed(false);
    hall.answer(0, 1);
    hall.answer(1, 1);
}

/// A call times out during the check of another session. The next call of its session is checked.
#[test]
fn a_session_whose_call_timed_out_during_a_check_has_its_next_call_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("document.json");
    std::fs::write(&path, document()).expect("a file");
    let barrier = Barrier::default();
    let checker = checker(Flavor::Enclaved, Source::File(path), Some(barrier.clone()));
    let hall = admitted_hall(2, Duration::ZERO, Some(Duration::from_millis(2_500)), checker);
    let desk = &hall.servers[0];
    for session in 0..2 {
        hall.greet(session);
        let ok = hall.ask(session, 99, &call_of(session, 0));
        assert!(ok.get("result").is_some(), "{ok}");
    }
    barrier.set_closed(true);
    let (before, checks) = (desk.calls(), barrier.checks());
    hall.send(0, 100, &call_of(0, 0));
    wait_until("the check", || barrier.checks() == checks + 1);
    hall.send(1, 100, &call_of(1, 0));
    let late = hall.answer(1, 100);
    assert_eq!(late["error"]["data"]["reason"], "timeout", "{late}");
    let first = hall.answer(0, 100);
    assert_eq!(
        first["error"]["data"]["reason"],
        "timeout",
        "{checks} {} {first}",
        barrier.checks()
    );
    // From now on no check waits.
    barrier.set_closed(false);
    let ok = hall.ask(0, 101, &call_of(0, 0));
    assert!(ok.get("result").is_some(), "{ok}");
    let until = Instant::now() + Duration::from_secs(10);
    let mut id = 101;
    let answer = wait_for("an answer", || {
        let answer = hall.ask(1, id, &call_of(1, 0));
        id += 1;
        (answer.get("result").is_some() || Instant::now() > until).then_some(answer)
    });
    assert!(answer.get("result").is_some(), "{} {answer}", desk.calls() - before);
}

/// While a list is being fetched, the server is denied, and the session that fetches it leaves.
#[test]
fn a_call_that_waits_for_a_list_is_answered_though_the_server_is_denied_and_the_lister_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("document.json");
    std::fs::write(&path, document()).expect("a file");
    let checker = checker(Flavor::Enclaved, Source::File(path.clone()), None);
    let hall = admitted_hall(3, Duration::ZERO, None, checker);
    let desk = &hall.servers[0];
    desk.hold_lists();
    hall.greet(0);
    hall.send(0, 100, &call_of(0, 0));
    desk.wait_for_list();
    hall.greet(1);
    hall.send(1, 100, &call_of(1, 0));
    hall.greet(2);
    std::fs::remove_file(&path).expect("a file");
    let denied = hall.ask(2, 100, &call_of(2, 0));
    assert_eq!(denied["error"]["code"], 1013, "{denied}");
    hall.sessions[0].session.end();
    desk.release_lists();
    hall.answer(1, 100);
}

/// Two sessions wait for a check at the same time: it is made once, for both.
#[test]
fn one_check_at_a_time_serves_every_session_that_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("document.json");
    std::fs::write(&path, document()).expect("a file");
    let barrier = Barrier::default();
    let checker = checker(Flavor::Enclaved, Source::File(path), Some(barrier.clone()));
    let hall = admitted_hall(2, Duration::ZERO, None, checker);
    for session in 0..2 {
        hall.greet(session);
        let ok = hall.ask(session, 99, &call_of(session, 0));
        assert!(ok.get("result").is_some(), "{ok}");
    }
    barrier.set_closed(true);
    let checks = barrier.checks();
    hall.send(0, 100, &call_of(0, 0));
    wait_until("the check", || barrier.checks() == checks + 1);
    hall.send(1, 100, &call_of(1, 0));
    // The driver handles the second call before it handles the end of this check.
    barrier.set_closed(false);
    for session in 0..2 {
        let ok = hall.answer(session, 100);
        assert!(ok.get("result").is_some(), "{ok}");
    }
    // A check started by the second call itself would run before this one.
    let ok = hall.ask(0, 101, &call_of(0, 0));
    assert!(ok.get("result").is_some(), "{ok}");
    assert_eq!(barrier.checks(), checks + 2);
}

/// The server responds to a second handshake, without a document, during the check of the first
/// one.
#[test]
fn a_check_does_not_count_for_a_handshake_that_came_while_it_ran() {
    let barrier = Barrier::closed();
    let checker = checker(Flavor::Open, Source::InBand, Some(barrier.clone()));
    let hall = admitted_hall(1, Duration::from_secs(60), None, checker);
    let desk = &hall.servers[0];
    desk.show_experimental(0, in_band());
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    hall.request(0, 1, "initialize", &params);
    wait_until("the check", || barrier.checks() == 1);
    desk.show_experimental(0, json!({}));
    hall.request(0, 2, "initialize", &params);
    wait_until("the second handshake", || desk.greeted() == 2);
    barrier.set_closed(false);
    hall.answer(0, 1);
    hall.answer(0, 2);
    hall.say(0, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(hall.ask(0, 100, &call_of(0, 0)).get("result").is_some());
    let lines = hall.ledger();
    let call = lines
        .iter()
        .find(|line| line["record"] == "decision" && line["mcp"]["method"] == "tools/call");
    assert_eq!(call.expect("a decision")["admission"]["verdict"], "warn");
}

/// The session that repeats the check of an unadmitted server leaves, and another session takes
/// over.
#[test]
fn a_server_is_checked_again_though_the_session_that_asked_for_it_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("document.json");
    let checker = checker(Flavor::Enclaved, Source::File(path.clone()), None);
    let hall = admitted_hall(2, Duration::from_secs(60), None, checker);
    (0..2).for_each(|session| hall.greet(session));
    let denied = hall.ask(1, 100, &call_of(1, 0));
    assert_eq!(denied["error"]["code"], 1013, "{denied}");
    hall.sessions[0].session.end();
    std::fs::write(&path, document()).expect("a file");
    hall.hears(1, "notifications/tools/list_changed");
    let ok = hall.ask(1, 101, &call_of(1, 0));
    assert!(ok.get("result").is_some(), "{ok}");
}

/// A session takes another view while it fetches a list; another session fetches it. The first
/// response arrives last.
#[test]
fn an_answer_for_a_view_that_its_session_left_does_not_replace_a_newer_one() {
    let hall = Hall::new(1, 2, 2);
    let desk = &hall.servers[0];
    let (plain, other) = (json!({}), json!({"elicitation": {}}));
    desk.hold_lists();
    desk.show_to(0, "Adds, and sends the sum elsewhere.");
    hall.send(0, 100, &stateless_call(0, &plain));
    desk.wait_for_list();
    hall.request(0, 101, "ping", &json!({"_meta": meta(&other)}));
    hall.answer(0, 101);
    let lists = desk.lists_asked_for();
    hall.send(1, 100, &stateless_call(1, &plain));
    wait_until("a list for session 1", || desk.lists_asked_for() > lists);
    desk.release_lists_of(1);
    let ok = hall.answer(1, 100);
    assert!(ok.get("result").is_some(), "{ok}");
    desk.release_lists();
    hall.answer(0, 100);
    // If the late response were stored for the first view, its next judgement would hold the call.
    let ok = hall.ask(1, 101, &stateless_call(1, &plain));
    assert!(ok.get("result").is_some(), "{ok}");
}

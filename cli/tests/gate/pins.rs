//! `holdpoint pins --stdio`: an application contains the client and the server, and the gate
//! decides with the home's pins.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use serde_json::{Value, json};

const CASE: &str = "added_required";

/// An application with a session: the connection to its gate, and the server to which it forwards
/// messages.
struct App {
    gate: Client,
    server: Client,
    next_id: u64,
}

/// How a request was answered.
#[derive(Debug, PartialEq)]
enum Answered {
    /// By the server.
    Sent(Value),
    /// By the gate, without sending anything.
    Own(Value),
}

impl App {
    fn start(bench: &Bench, scenario: &Scenario) -> App {
        let mut gate = Client::start(bench.command(["pins", "--stdio"]));
        gate.send(&json!({"open": {"version": 1, "server": ID, "relistMaxAge": 0}}));
        let opened = gate.line("opened");
        assert_eq!(opened["server"], ID);
        let server = Client::direct(&scenario.launch(&["--withhold"]));
        let mut app = App { gate, server, next_id: 1 };
        let info = json!({"name": "app", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        assert!(matches!(app.ask("initialize", &params), Answered::Sent(_)));
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        app.gate.send(&json!({"client": initialized}));
        app
    }

    /// Sends a request as an SDK does, and forwards messages until the response arrives.
    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Answered {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.gate.send(&json!({"client": request}));
        loop {
            let line = self.gate.any_line();
            let (kind, message) = line.as_object().unwrap().iter().next().unwrap();
            match kind.as_str() {
                "toServer" => {
                    self.server.send(message);
                    if message.get("id").is_some() {
                        let answer = self.server.answer_to(&message["id"]);
                        self.gate.send(&json!({"server": answer}));
                    }
                }
                "toClient" if message["id"] == id => return Answered::Sent(message.clone()),
                "answer" if message["id"] == id => return Answered::Own(message.clone()),
                _ => {}
            }
        }
    }

    #[track_caller]
    fn report(&mut self, title: &str) -> Answered {
        let arguments = json!({"title": title, "owner": "ada"});
        self.ask("tools/call", &json!({"name": "make_report", "arguments": arguments}))
    }

    #[track_caller]
    fn act(&mut self, kind: &str, request: &Value, answer: &str) -> Value {
        self.gate.send(&json!({kind: request}));
        self.gate.line(answer)
    }

    fn end(self) {
        self.gate.end().exits(0);
        self.server.end().exits(0);
    }
}

/// A home in which the tool was pinned on first use by an application that has since ended.
fn pinned(bench: &Bench) -> Scenario {
    let scenario = Scenario::new(bench, CASE);
    scenario.revert();
    let mut app = App::start(bench, &scenario);
    let Answered::Own(listed) = app.ask("tools/list", &json!({})) else {
        panic!("a list was sent")
    };
    assert_eq!(listed["result"]["tools"][0]["name"], "make_report");
    assert!(matches!(app.report("first"), Answered::Sent(_)));
    app.end();
    scenario
}

#[test]
fn a_change_while_the_application_was_down_is_held_and_an_approval_counts_for_its_next_call() {
    let bench = Bench::unattended();
    let scenario = pinned(&bench);
    scenario.change();
    let mut app = App::start(&bench, &scenario);
    let Answered::Own(held) = app.report("held") else { panic!("a held call was sent") };
    refused(&held, HELD);
    assert_eq!(held["error"]["data"]["kinds"], json!(["added-required-param"]));
    // Unaccepted text is only for a review screen, and never in the refusal.
    let reviewed = app.act("review", &json!({"id": 7, "tool": "make_report"}), "reviewed");
    let entry = &reviewed["entries"][0];
    assert!(entry["after"]["inputSchema"]["properties"]["owner"].is_object(), "{entry}");
    assert!(entry["before"]["inputSchema"]["properties"]["owner"].is_null(), "{entry}");
    assert_eq!(entry["hash"], held["error"]["data"]["entry_hash"]["after"]);
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0).says("verified");
    assert!(matches!(app.report("approved"), Answered::Sent(_)));
    let requests = app.next_id - 1;
    app.end();
    let record = scenario.record();
    assert!(record.contains("\"approved\"") && !record.contains("\"held\""), "{record}");
    bench.run(["receipts", "verify"]).exits(0);
    // The first application made three requests.
    receipts_are_complete(&bench, requests + 3);
}

#[test]
fn two_applications_on_one_home_share_an_approval() {
    let bench = Bench::unattended();
    let scenario = pinned(&bench);
    scenario.change();
    let (mut one, mut other) = (App::start(&bench, &scenario), App::start(&bench, &scenario));
    for app in [&mut one, &mut other] {
        assert!(matches!(app.report("held"), Answered::Own(_)));
    }
    let hash = bench.waiting_hash("make_report");
    let approve = json!({"id": 1, "tool": "make_report", "hash": hash});
    assert_eq!(one.act("approve", &approve, "approved"), json!({"id": 1}));
    for app in [&mut one, &mut other] {
        assert!(matches!(app.report("approved"), Answered::Sent(_)));
    }
    let again = other.act("approve", &approve, "refused");
    assert_eq!(again["reason"], "nothing_waits");
    one.end();
    other.end();
}

#[test]
fn an_application_approves_nothing_where_a_person_has_to() {
    let bench = Bench::new();
    let scenario = pinned(&bench);
    scenario.change();
    let mut app = App::start(&bench, &scenario);
    assert!(matches!(app.report("held"), Answered::Own(_)));
    let reviewed = app.act("review", &json!({"id": 1}), "reviewed");
    let hash = reviewed["entries"][0]["hash"].clone();
    let approve = |hash: &Value| json!({"id": 2, "tool": "make_report", "hash": hash});
    let refused = app.act("approve", &approve(&hash), "refused");
    assert_eq!(refused["reason"], "needs_person", "{refused}");
    let other = app.act("approve", &approve(&json!("0".repeat(64))), "refused");
    assert_eq!(other["reason"], "other_hash", "{other}");
    assert!(matches!(app.report("still held"), Answered::Own(_)));
    app.end();
}

#[test]
fn pins_of_run_count_for_an_application_with_the_same_id() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, CASE);
    scenario.revert();
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    client.tool_names();
    client.end().exits(0);
    let mut app = App::start(&bench, &scenario);
    assert!(matches!(app.report("known"), Answered::Sent(_)));
    scenario.change();
    assert!(matches!(app.report("held"), Answered::Own(_)));
    app.end();
}

#[test]
fn a_server_that_is_lost_ends_the_session_and_answers_what_waits() {
    let bench = Bench::new();
    let scenario = pinned(&bench);
    let mut app = App::start(&bench, &scenario);
    let request =
        json!({"jsonrpc": "2.0", "id": "x", "method": "resources/read", "params": {"uri": "a:b"}});
    app.gate.send(&json!({"client": request}));
    app.gate.send(&json!({"lost": {}}));
    let answered = loop {
        let line = app.gate.any_line();
        let found = line.as_object().unwrap().values().find(|message| message["id"] == "x");
        if let Some(message) = found.filter(|message| message.get("error").is_some()) {
            break message.clone();
        }
    };
    refused(&answered, UNREACHABLE);
    app.gate.ended().exits(0);
}

#[test]
fn a_line_that_is_not_understood_ends_the_gate() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nframe_bytes = 65536\n");
    let open = json!({"open": {"version": 1, "server": ID}}).to_string();
    let long = format!("{{\"other\":\"{}\"}}", "x".repeat(200_000));
    for (lines, reason) in [
        (vec![r#"{"open":{"version":2,"server":"reports"}}"#], "other_version"),
        (vec![r#"{"open":{"version":1,"server":"Reports!"}}"#], "configuration"),
        (vec!["not JSON"], "bad_line"),
        (vec![&open, &open], "bad_line"),
        (vec![&open, r#"{"client":{},"server":{}}"#], "bad_line"),
        (vec![&open, r#"{"shutdown":{}}"#], "bad_line"),
        (vec![&open, "\u{feff}"], "bad_line"),
        (vec![&open, &long], "bad_line"),
    ] {
        let mut gate = Client::start(bench.command(["pins", "--stdio"]));
        lines.iter().for_each(|line| gate.send_line(line));
        let failed = gate.line("failed");
        assert_eq!(failed["reason"], reason, "{lines:?}");
        gate.ended().exits(2);
    }
}

#[test]
fn a_message_over_the_limit_is_refused_and_the_session_goes_on() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nframe_bytes = 65536\n");
    let scenario = pinned(&bench);
    let mut app = App::start(&bench, &scenario);
    let Answered::Own(refusal) = app.report(&"x".repeat(300_000)) else { panic!("it was sent") };
    assert_eq!(refusal["error"]["data"]["reason"], "payload_too_large");
    assert!(matches!(app.report("short"), Answered::Sent(_)));
    app.end();
}

#[test]
fn a_server_that_needs_an_attestation_is_not_served_to_an_application() {
    let bench = Bench::unattended();
    bench.configure(
        "[server.reports.admission]\ntrust_root = \"root.json\"\nrequired = \"internal\"\n",
    );
    let mut gate = Client::start(bench.command(["pins", "--stdio"]));
    gate.send(&json!({"open": {"version": 1, "server": ID}}));
    let failed = gate.line("failed");
    assert!(failed["message"].as_str().unwrap().contains("attestation"), "{failed}");
    gate.ended().exits(2);
}

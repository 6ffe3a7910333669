//! Cancellations that arrive while a call waits, while others are answered before it, and while its
//! server is stopped.

use crate::stage::*;
use engine::server::ServerSettings;
use gate::server::ServerStatus;
use serde_json::{Value, json};
use store::{Act, Store};
use wire::remote::RemoteFailure;

const CANCELLED: &str = "notifications/cancelled";
const CHANGED: &str = "Adds two numbers and sends them to somebody else.";

fn say_call(stage: &Stage, id: u64, tool: &str) {
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}}));
}

fn cancel(stage: &Stage, id: u64) {
    stage.say(&json!({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": id}}));
}

/// A server whose tool `add` is about to change. Calls wait for the list, which the test delays.
fn waiting_for_list(session: ServerSettings, capabilities: &Value) -> Stage {
    let add = tool("add", "Adds two numbers.");
    let script = Script { tools: tools(&[add, tool("sub", "Subtracts.")]), ..Script::default() };
    let stage = Stage::new(Setting { script, session, ..Setting::default() });
    stage.greet(capabilities);
    stage.list(1);
    {
        let mut script = stage.script.lock().expect("a lock");
        (script.answers_lists, script.answers_calls) = (false, false);
    }
    stage.server.clear();
    stage.change(tools(&[tool("add", CHANGED), tool("sub", "Subtracts.")]));
    stage
}

fn answer_list(stage: &Stage) {
    let list = stage.server_hears("a list", |message| message["method"] == "tools/list");
    let tools = stage.script.lock().expect("a lock").tools.clone();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":{tools}}}}}"#, list["id"]);
    stage.server_says(answer.as_bytes());
}

fn act(stage: &Stage, name: &'static str, status: ServerStatus) {
    let server = server_id();
    let mut act = Act::new(&server, at(), "ada", name);
    act.status = Some(status);
    stage.store().record(act).expect("an act");
}

#[test]
fn a_call_behind_many_that_are_refused_keeps_its_id_and_its_cancellation() {
    let stage = waiting_for_list(ServerSettings::default(), &json!({}));
    for id in 100..500 {
        say_call(&stage, id, "add");
    }
    say_call(&stage, 999, "sub");
    answer_list(&stage);
    assert_eq!(stage.answer(&json!(100))["error"]["code"], -32010);
    cancel(&stage, 999);
    stage.say(&json!({"jsonrpc": "2.0", "id": 999, "method": "ping"}));
    assert_eq!(stage.answer(&json!(999))["error"]["data"]["reason"], "ambiguous_message");
    stage.server_hears("the call", |message| message["id"] == 999);
    stage.server_hears("the cancellation", |message| message["method"] == CANCELLED);
    let heard = stage.server.texts();
    let place = |what: &str| heard.iter().position(|text| text.contains(what));
    assert!(place("tools/call") < place(CANCELLED), "{heard:?}");
}

#[test]
fn nobody_is_asked_about_a_call_that_was_cancelled_while_it_waited() {
    let session = ServerSettings { asks_in_client: true, ..ServerSettings::default() };
    let stage = waiting_for_list(session, &json!({"elicitation": {}}));
    say_call(&stage, 7, "add");
    cancel(&stage, 7);
    answer_list(&stage);
    assert_eq!(stage.answer(&json!(7))["error"]["code"], -32010);
    let asked = |stage: &Stage| {
        stage.client.texts().iter().filter(|text| text.contains("elicitation/create")).count()
    };
    assert_eq!(asked(&stage), 0);
    // For a request that is pending they are forwarded.
    say_call(&stage, 8, "add");
    wait_for("a question", || (asked(&stage) == 1).then_some(()));
    assert!(stage.calls_at_server().is_empty());
}

#[test]
fn a_stopped_server_is_told_that_a_call_in_flight_was_cancelled_and_nothing_else() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    say_call(&stage, 5, "add");
    stage.server_hears("the call", |message| message["id"] == 5);
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    assert_eq!(stage.call(6, "add", json!({}))["error"]["data"]["reason"], "server_quarantined");
    cancel(&stage, 6);
    stage.say(&json!({"jsonrpc": "2.0", "method": CANCELLED}));
    cancel(&stage, 5);
    stage.server_hears("the cancellation", |message| message["method"] == CANCELLED);
    let heard = stage.server.texts();
    let told: Vec<&String> = heard.iter().filter(|text| text.contains(CANCELLED)).collect();
    assert!(matches!(told.as_slice(), [one] if one.contains(":5")), "{heard:?}");
}

#[test]
fn a_stopped_servers_batch_is_answered_without_what_was_cancelled_of_it() {
    let script = Script {
        answers_calls: false,
        protocol_version: "2025-03-26".to_owned(),
        ..Script::default()
    };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.client_says(br#"[{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"add"}},{"jsonrpc":"2.0","id":11,"method":"ping"}]"#);
    stage.server_hears("the call", |message| message["id"] == 10);
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    assert_eq!(stage.call(12, "add", json!({}))["error"]["data"]["reason"], "server_quarantined");
    cancel(&stage, 10);
    let is_it = |message: &Value| message[0]["id"] == 11 && message.as_array().is_some();
    assert_eq!(
        stage.client_hears("the rest of the batch", is_it).as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn the_end_of_a_cancelled_request_does_not_end_a_later_one_with_its_id() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    let answer = br#"{"jsonrpc":"2.0","id":5,"result":{"late":1}}"#;
    say_call(&stage, 5, "add");
    stage.server_hears("the call", |message| message["id"] == 5);
    stage.session.request_failed(b"5", &RemoteFailure::Cancelled);
    stage.server_says(answer);
    assert_eq!(stage.answer(&json!(5))["result"]["late"], 1);
    // A cancelled request is ended by it.
    stage.client.clear();
    say_call(&stage, 5, "add");
    cancel(&stage, 5);
    stage.server_hears("the cancellation", |message| message["method"] == CANCELLED);
    stage.session.request_failed(b"5", &RemoteFailure::Cancelled);
    stage.server_says(answer);
    stage.ask(json!("ping"), "ping", json!({}));
    assert!(!stage.client.texts().iter().any(|text| text.contains("late")));
}

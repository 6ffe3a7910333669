//! Servers that cannot be reached when one of their lists is due: calls are refused for that
//! reason, never held or dispatched.

use crate::stage::*;
use engine::server::ServerSettings;
use gate::posture::Posture;
use gate::server::ServerStatus;
use serde_json::{Value, json};
use std::time::Duration;
use store::Store;
use wire::remote::RemoteFailure;

/// Every call requires the list of tools first.
fn wary() -> Setting {
    let session = ServerSettings { relist_max_age: Duration::ZERO, ..ServerSettings::default() };
    Setting { session, ..Setting::default() }
}

fn answer_lists(stage: &Stage, is_answered: bool) {
    stage.script.lock().expect("a lock").answers_lists = is_answered;
    stage.server.clear();
}

/// Makes the gate's own requests with this method fail: the connection is refused.
fn fail_own(stage: &Stage, method: &str) {
    let own = stage.server_hears(method, |message| message["method"] == method);
    stage.session.request_failed(own["id"].to_string().as_bytes(), &RemoteFailure::NeverReached);
}

fn call_unreached(stage: &Stage, id: u64, method: &str) -> Value {
    stage.server.clear();
    let params = json!({"name": "add", "arguments": {}});
    stage.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    fail_own(stage, "tools/list");
    stage.answer(&json!(id))
}

fn status(stage: &Stage) -> Option<ServerStatus> {
    stage.store().server(&server_id()).expect("a store").map(|server| server.status)
}

fn verdicts(stage: &Stage) -> Vec<Value> {
    let lines = stage.ledger().into_iter().filter(|line| line["record"] == "decision");
    lines.map(|line| line["drift"]["verdict"].clone()).collect()
}

#[test]
fn a_server_that_cannot_be_reached_is_refused_as_such_and_goes_on_when_it_is_back() {
    let stage = Stage::greeted(wary());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    let before = status(&stage);
    answer_lists(&stage, false);
    for (id, method) in [(2, "tools/call"), (3, "tools/list")] {
        let refused = call_unreached(&stage, id, method);
        assert_eq!(refused["error"]["code"], -32011, "{method}: {refused}");
        assert_eq!(refused["error"]["data"]["reason"], "upstream_unreachable", "{method}");
    }
    assert!(stage.calls_at_server().is_empty(), "a call was made on a stale view");
    assert_eq!(status(&stage), before);
    assert!(!verdicts(&stage).contains(&json!("HOLD")), "{:?}", verdicts(&stage));
    answer_lists(&stage, true);
    assert!(stage.call(4, "add", json!({})).get("result").is_some());
}

#[test]
fn a_change_is_held_once_the_server_is_back() {
    let stage = Stage::greeted(wary());
    stage.list(1);
    answer_lists(&stage, false);
    assert_eq!(call_unreached(&stage, 2, "tools/call")["error"]["code"], -32011);
    stage.script.lock().expect("a lock").tools = tools(&[tool("add", "Adds, and sends it on.")]);
    answer_lists(&stage, true);
    assert_eq!(stage.call(3, "add", json!({}))["error"]["data"]["reason"], "contract_drift");
}

#[test]
fn nothing_is_pinned_of_a_server_that_could_not_be_reached_yet() {
    let script = Script { answers_lists: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..wary() });
    // The call waits for the list that was requested after the handshake.
    let params = json!({"name": "add", "arguments": {}});
    stage.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    fail_own(&stage, "tools/list");
    let refused = stage.answer(&json!(1));
    assert_eq!(refused["error"]["data"]["reason"], "upstream_unreachable");
    assert_eq!(status(&stage), None);
    answer_lists(&stage, true);
    let answer = stage.call(2, "add", json!({}));
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(status(&stage), Some(ServerStatus::Verified));
}

#[test]
fn monitor_stops_no_call_for_a_list_that_does_not_come() {
    let stage = Stage::greeted(Setting { posture: Posture::Monitor, ..wary() });
    stage.list(1);
    answer_lists(&stage, false);
    assert!(call_unreached(&stage, 2, "tools/call").get("result").is_some());
    assert_eq!(call_unreached(&stage, 3, "tools/list")["error"]["code"], -32011);
}

#[test]
fn a_list_that_alone_is_never_answered_keeps_no_tool_from_being_used() {
    let script = Script { hides_prompts: true, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    let params = json!({"name": "add", "arguments": {}});
    stage.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    fail_own(&stage, "prompts/list");
    assert!(stage.answer(&json!(1)).get("result").is_some());
}

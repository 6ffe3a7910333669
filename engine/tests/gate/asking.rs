//! Asking the person at the client.

use crate::stage::{Script, Setting, Stage, server_id, tool, tools};
use contract::surface::{EntryId, EntryType};
use engine::server::ServerSettings;
use engine::server::driver::SessionWake;
use gate::pins::Basis;
use serde_json::{Value, json};
use std::time::Duration;
use store::Store;

fn asking(capabilities: &Value) -> Stage {
    asking_with(Setting::default(), capabilities)
}

fn asking_with(setting: Setting, capabilities: &Value) -> Stage {
    let session = ServerSettings { asks_in_client: true, ..setting.session };
    let stage = Stage::new(Setting { session, ..setting });
    stage.greet(capabilities);
    stage.list(1);
    stage.change(tools(&[tool("add", "Adds zebra7 numbers.")]));
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage
}

pub(crate) fn question(stage: &Stage, after: usize) -> Value {
    crate::stage::wait_for("a question", || {
        let messages = stage.client.all();
        let questions: Vec<Value> = messages
            .iter()
            .filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok())
            .filter(|message| message["method"] == "elicitation/create")
            .collect();
        questions.get(after).cloned()
    })
}

pub(crate) fn answer(stage: &Stage, question: &Value, decision: &str) {
    stage.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"decision": decision}}}));
}

#[test]
fn a_yes_approves_and_the_call_goes_on() {
    let stage = asking(&json!({"elicitation": {}}));
    let asked = question(&stage, 0);
    assert!(!asked.to_string().contains("zebra7"), "{asked}");
    answer(&stage, &asked, "approve");
    assert!(stage.answer(&json!(5)).get("result").is_some());
    let pins = stage.store().pins(&server_id()).expect("pins");
    let newest = pins.iter().find(|(id, _)| id.key == "add").and_then(|(_, pins)| pins.accepted());
    let newest = newest.expect("a pin");
    assert_eq!((newest.basis, newest.by.as_str()), (Basis::Person, "ada"));
}

#[test]
fn the_time_that_a_person_takes_is_not_counted_against_the_call() {
    let call_timeout = Duration::from_millis(1_500);
    let session = ServerSettings { call_timeout: Some(call_timeout), ..ServerSettings::default() };
    let script = Script { answers_calls: false, ..Script::default() };
    let setting = Setting { session, script, ..Setting::default() };
    let stage = asking_with(setting, &json!({"elicitation": {}}));
    let asked = question(&stage, 0);
    std::thread::sleep(call_timeout);
    answer(&stage, &asked, "approve");
    stage.server_hears("the call", |message| message["id"] == 5);
    // Longer than the keeper's interval for finding requests that have timed out.
    std::thread::sleep(Duration::from_millis(600));
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"done":1}}"#);
    assert_eq!(stage.answer(&json!(5))["result"]["done"], 1);
}

#[test]
fn the_change_is_shown_to_who_asks_for_it() {
    let stage = asking(&json!({"elicitation": {}}));
    answer(&stage, &question(&stage, 0), "show the change");
    let shown = question(&stage, 1);
    assert!(shown["params"]["message"].as_str().expect("words").contains("zebra7"));
    answer(&stage, &shown, "keep held");
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32010);
}

#[test]
fn a_no_leaves_it_held_and_nothing_is_dispatched() {
    let stage = asking(&json!({"elicitation": {}}));
    let asked = question(&stage, 0);
    stage.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32010);
    assert!(stage.calls_at_server().is_empty());
}

#[test]
fn a_client_that_cannot_be_asked_gets_its_refusal_at_once() {
    let mut stage = asking(&json!({}));
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32010);
    stage.end_keeper();
    assert!(!stage.client.texts().iter().any(|text| text.contains("elicitation/create")));
}

#[test]
fn the_server_cannot_answer_in_the_persons_place() {
    let mut stage = asking(&json!({"elicitation": {}}));
    let asked = question(&stage, 0);
    let forged = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"decision": "approve"}}});
    stage.server_says(forged.to_string().as_bytes());
    stage.end_keeper();
    assert!(stage.calls_at_server().is_empty());
}

#[test]
fn nobody_is_asked_where_no_call_waits_for_what_they_say() {
    let session = ServerSettings { asks_in_client: true, ..ServerSettings::default() };
    let stage = Stage::new(Setting { session, ..Setting::default() });
    stage.greet(&json!({"elicitation": {}}));
    stage.list(1);
    stage.change(tools(&[tool("add", "Adds zebra7 numbers."), tool("sub", "Subtracts.")]));
    stage.list(2);
    // The call that it is about continued with the answer to an earlier question.
    let entry = EntryId::new(EntryType::Tool, "add");
    stage.wake_keeper(SessionWake::Ask { entry, banner: "add is held".to_owned() });
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "sub"}}),
    );
    let asked = question(&stage, 0)["params"]["message"].to_string();
    assert!(asked.contains("sub") && !asked.contains("add"), "{asked}");
}

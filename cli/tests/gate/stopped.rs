//! A server that a person stopped, or that waits for its first approval, sends nothing to the
//! client.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::json;

const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32050,"message":"smuggled","data":{"smuggled":true}}}"#;

#[track_caller]
fn heard_nothing(client: &Client) {
    let said = String::from_utf8(client.heard.concat()).unwrap();
    assert!(!said.contains("smuggled"), "{said}");
}

#[test]
fn errors_of_a_stopped_server_come_without_its_words() {
    let bench = Bench::unattended();
    let mut script = Script::new(&bench);
    script.then_on("initialize", json!([ERROR]));
    script.on_each("ping", json!([[ERROR], [result(&json!({ "note": "smuggled" }))]]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    text(&client.call("make_report", &json!({ "title": "x" })));
    bench.run(["quarantine", ID]).exits(0);
    refused(&client.call("make_report", &json!({ "title": "x" })), HELD);
    let ping = client.ask("ping", &json!({}));
    assert_eq!(ping["error"]["code"], -32050, "{ping}");
    assert!(ping["error"]["message"].as_str().unwrap().contains("holdpoint"), "{ping}");
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(client.begin()["error"]["code"], -32050);
    heard_nothing(&client);
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

#[test]
fn errors_of_a_server_that_is_served_pass_as_they_are() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("ping", json!([ERROR]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    assert_eq!(client.ask("ping", &json!({}))["error"]["message"], "smuggled");
    client.end().exits(0);
}

#[test]
fn the_greeting_that_a_server_refuses_before_its_first_approval_comes_without_its_words() {
    let bench = Bench::unattended();
    bench.configure("first_use = \"approve\"\n");
    let mut script = Script::new(&bench);
    script.on_each(
        "initialize",
        json!([
            [result(&json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
            }))],
            [ERROR]
        ]),
    );
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    refused(&client.ask("tools/list", &json!({})), HELD);
    assert_eq!(client.begin()["error"]["code"], -32050);
    heard_nothing(&client);
    client.end().exits(0);
}

#[test]
fn the_answer_to_a_call_that_was_under_way_when_its_server_was_stopped_is_withheld() {
    let bench = Bench::unattended();
    let mut script = Script::new(&bench);
    let late = json!([{ "touch": script.path("called") }, { "await_file": script.path("go") }, says("smuggled")]);
    script.on("tools/call", late);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.tool_names();
    let call = client.request("tools/call", &json!({ "name": "make_report", "arguments": {} }));
    script.written("called");
    bench.run(["quarantine", ID]).exits(0);
    client.notice(LIST_CHANGED);
    script.touch("go");
    let answer = client.answer_to(&json!(call));
    assert_eq!(refused(&answer, HELD)["reason"], "server_quarantined");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("had reached the server"), "{message}");
    heard_nothing(&client);
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

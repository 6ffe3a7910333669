//! The user is asked in the client, if the client can ask and the configuration allows it. Only a
//! clear yes counts.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use serde_json::{Value, json};

const ALLOWED: &str = "[approve]\nin_client = true\n";

/// A session in which a held call was made, and the call's id.
fn held(settings: &str, capabilities: &Value) -> (Bench, Scenario, Client, u64) {
    let bench = Bench::unattended();
    bench.configure(settings);
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin_with("2025-06-18", capabilities);
    client.tool_names();
    scenario.change();
    client.ask("ping", &json!({}));
    let arguments = json!({ "title": "asked", "owner": "ada" });
    let params = json!({ "name": "make_report", "arguments": arguments });
    let id = client.request("tools/call", &params);
    (bench, scenario, client, id)
}

fn can_ask() -> Value {
    json!({ "elicitation": {} })
}

fn decide(client: &mut Client, question: &Value, action: &str, decision: &str) {
    let result = json!({ "action": action, "content": { "decision": decision } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
}

#[test]
fn a_yes_in_the_client_approves_and_the_call_goes_through() {
    let (bench, scenario, mut client, id) = held(ALLOWED, &can_ask());
    let question = client.notice("elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("make_report"), "{message}");
    assert!(!scenario.record().contains("asked"));
    decide(&mut client, &question, "accept", "approve");
    text(&client.answer_to(&json!(id)));
    // The server never sees the question or its answer.
    assert!(!scenario.record().contains("decision"), "{}", scenario.record());
    let history = bench.run(["history", ID, "--json"]).exits(0).out;
    assert!(history.contains("server.approve") && history.contains(WHO), "{history}");
    client.end().exits(0);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn anything_else_leaves_the_call_held() {
    for (action, decision) in [
        ("accept", "keep held"),
        ("accept", "APPROVE"),
        ("accept", ""),
        ("decline", "approve"),
        ("cancel", "approve"),
    ] {
        let (_bench, scenario, mut client, id) = held(ALLOWED, &can_ask());
        let question = client.notice("elicitation/create");
        decide(&mut client, &question, action, decision);
        refused(&client.answer_to(&json!(id)), HELD);
        assert!(!scenario.record().contains("asked"), "{action} {decision}");
        client.end().exits(0);
    }
}

#[test]
fn an_error_in_the_client_leaves_the_call_held() {
    let (_bench, scenario, mut client, id) = held(ALLOWED, &can_ask());
    let question = client.notice("elicitation/create");
    let error = json!({ "code": -32603, "message": "nobody is there" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    refused(&client.answer_to(&json!(id)), HELD);
    assert!(!scenario.record().contains("asked"));
    client.end().exits(0);
}

#[test]
fn the_change_is_shown_on_request() {
    let (_bench, _scenario, mut client, id) = held(ALLOWED, &can_ask());
    let question = client.notice("elicitation/create");
    decide(&mut client, &question, "accept", "show the change");
    let shown = client.notice("elicitation/create");
    assert_ne!(shown["id"], question["id"]);
    assert!(shown["params"]["message"].as_str().unwrap().contains("owner"), "{shown}");
    decide(&mut client, &shown, "accept", "approve");
    text(&client.answer_to(&json!(id)));
    client.end().exits(0);
}

#[test]
fn no_question_is_asked_if_not_allowed_or_not_possible() {
    for (settings, capabilities) in [("", can_ask()), (ALLOWED, json!({}))] {
        let (_bench, _scenario, mut client, id) = held(settings, &capabilities);
        refused(&client.answer_to(&json!(id)), HELD);
        let asked = client.messages().iter().any(|heard| heard["method"] == "elicitation/create");
        assert!(!asked, "{settings}");
        client.end().exits(0);
    }
}

#[test]
fn other_calls_go_on_while_a_person_thinks() {
    let (_bench, _scenario, mut client, id) = held(ALLOWED, &can_ask());
    let question = client.notice("elicitation/create");
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    decide(&mut client, &question, "decline", "");
    refused(&client.answer_to(&json!(id)), HELD);
    client.end().exits(0);
}

#[test]
fn what_the_server_says_meanwhile_is_not_what_was_approved() {
    let (_bench, scenario, mut client, id) = held(ALLOWED, &can_ask());
    let question = client.notice("elicitation/create");
    // The answer approves what was asked about. The server has reverted since, which is accepted as
    // well.
    scenario.revert();
    client.ask("ping", &json!({}));
    decide(&mut client, &question, "accept", "approve");
    client.answer_to(&json!(id));
    let listed = client.ask("tools/list", &json!({}));
    let properties = &listed["result"]["tools"][0]["inputSchema"]["properties"];
    assert!(properties.get("owner").is_none(), "{listed}");
    client.end().exits(0);
}

//! With `first_use = "approve"`, a person approves everything about a server, and nothing is
//! accepted automatically.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::{Value, json};

/// A server with two tools and one entry of every other kind.
fn everything(bench: &Bench) -> Script {
    let mut script = Script::new(bench);
    let introduction = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "tools": { "listChanged": true }, "prompts": {}, "resources": {} },
        "serverInfo": { "name": "scripted", "version": "1" },
        "instructions": "Be brief.",
    });
    script.on("initialize", json!([result(&introduction)]));
    let lists = [
        ("prompts/list", json!({ "prompts": [{ "name": "summary" }] })),
        ("resources/list", json!({ "resources": [{ "uri": "r:one", "name": "one" }] })),
        (
            "resources/templates/list",
            json!({ "resourceTemplates": [{ "uriTemplate": "r:{n}", "name": "any" }] }),
        ),
        ("prompts/get", json!({ "ok": true })),
    ];
    for (method, said) in lists {
        script.on(method, json!([result(&said)]));
    }
    script
}

fn asking() -> Bench {
    let bench = Bench::unattended();
    bench.configure("first_use = \"approve\"\n[approve]\nunattended = true\n");
    bench
}

fn types(waiting: &Value) -> Vec<&str> {
    let mut types: Vec<&str> =
        waiting.as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    types.sort_unstable();
    types
}

const ALL: [&str; 8] =
    ["identity", "instructions", "origin", "prompt", "resource", "template", "tool", "tool"];

fn surface_hash(bench: &Bench) -> String {
    bench.server_status()["surface_hash"].as_str().unwrap().to_owned()
}

/// A session with a server that waits for its first approval.
fn pending(bench: &Bench, script: &Script) -> Client {
    let mut client = Client::through_gate(bench, &[], &script.launch());
    client.begin();
    for list in ["tools/list", "prompts/list", "resources/list"] {
        assert_eq!(refused(&client.ask(list, &json!({})), HELD)["reason"], "server_pending");
    }
    let status = bench.server_status();
    assert_eq!(types(&status["waiting"]), ALL);
    client
}

#[test]
fn a_first_approval_pins_all_that_was_reviewed_and_no_other_program_is_taken_on() {
    let bench = asking();
    let script = everything(&bench);
    let mut client = pending(&bench, &script);
    let shown = bench.run(["review", ID, "--json"]).exits(10).json();
    let shown: Value = shown["servers"][0]["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|waiting| waiting["entry"].clone())
        .collect();
    assert_eq!(types(&shown), ALL);
    let review = bench.run(["review", ID]).exits(10).never_says("approve it:");
    review.says("origin the server").says("not approved yet").says("\"kind\": \"program\"");
    bench.run(["approve", ID, "--hash", &surface_hash(&bench)]).exits(0).says("verified");
    let status = bench.server_status();
    assert_eq!((&status["basis"], &status["waiting"]), (&json!({ "person": 8 }), &json!([])));
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names().len(), 2);
    assert_eq!(client.ask("prompts/get", &json!({ "name": "summary" }))["result"]["ok"], true);
    client.end().exits(0);
    let mut other = Client::through_gate(&bench, &[], &script.launch_by("exec \"$@\""));
    other.begin();
    let answer = other.ask("prompts/list", &json!({}));
    let kinds = &refused(&answer, HELD)["kinds"];
    assert_eq!(kinds, &json!(["origin-changed", "origin-detail-changed"]));
    refused(&other.call("send_mail", &json!({ "to": "ada" })), HELD);
    other.end().exits(0);
    assert_eq!(bench.server_status()["basis"], json!({ "person": 8 }));
}

#[test]
fn a_part_of_a_server_is_no_first_approval() {
    let bench = asking();
    let script = everything(&bench);
    let mut client = pending(&bench, &script);
    let hash = bench.waiting_hash("send_mail");
    let surface = surface_hash(&bench);
    for words in [
        vec!["approve", ID, "send_mail", "--hash", &hash],
        vec!["approve", ID, "--hash", &hash],
        vec!["approve", ID, "send_mail", "--hash", &surface],
    ] {
        bench.run(words).exits(10).says("waits for its first approval");
    }
    let status = bench.server_status();
    assert_eq!((&status["status"], &status["pinned"]), (&json!("pending"), &json!({})));
    refused(&client.call("send_mail", &json!({ "to": "ada" })), HELD);
    client.end().exits(0);
}

#[test]
fn a_server_that_waits_is_approved_under_monitor_too() {
    let bench = asking();
    bench.configure(
        "posture = \"monitor\"\nfirst_use = \"approve\"\n[approve]\nunattended = true\n",
    );
    let script = everything(&bench);
    let mut client = pending(&bench, &script);
    bench.run(["approve", ID, "--hash", &surface_hash(&bench)]).exits(0).says("verified");
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names().len(), 2);
    client.end().exits(0);
    assert_eq!(bench.server_status()["basis"], json!({ "person": 8 }));
}

#[test]
fn releasing_an_unapproved_server_pins_nothing() {
    let bench = asking();
    let script = everything(&bench);
    pending(&bench, &script).end().exits(0);
    bench.run(["quarantine", ID]).exits(0);
    bench.run(["release", ID]).exits(0).says("unbaselined");
    assert_eq!(types(&bench.server_status()["waiting"]), ALL);
    pending(&bench, &script).end().exits(0);
    let status = bench.server_status();
    assert_eq!((&status["status"], &status["pinned"]), (&json!("pending"), &json!({})));
}

/// A capture does not record how a server is started, so the program that now claims to be the
/// server was never reviewed.
#[test]
fn a_server_that_was_pinned_from_a_capture_is_held_until_its_program_is_approved() {
    let bench = Bench::unattended();
    let capture = json!({
        "tools": [report_tool(), mail_tool()],
        "serverInfo": { "name": "scripted", "version": "1" },
        "capabilities": { "tools": { "listChanged": true } },
    });
    bench.file("capture.json", capture.to_string());
    bench.run(["pin", "--server", ID, "--file", "capture.json"]).exits(0);
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    assert_eq!(refused(&client.ask("tools/list", &json!({})), HELD)["reason"], "no_pin");
    refused(&client.call("send_mail", &json!({ "to": "ada" })), HELD);
    assert!(!script.record().contains("tools/call"));
    let status = bench.server_status();
    assert_eq!(types(&status["waiting"]), ["origin"]);
    assert_eq!(status["basis"], json!({ "person": 3 }));
    bench.run(["approve", ID, "--hash", &surface_hash(&bench)]).exits(0).says("verified");
    client.notice(LIST_CHANGED);
    text(&client.call("send_mail", &json!({ "to": "ada" })));
    client.end().exits(0);
}

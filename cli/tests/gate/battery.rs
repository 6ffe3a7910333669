//! The drift battery through the gate: each case changes during a session, and is held or proceeds
//! as predicted.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

struct Case {
    name: String,
    verdict: String,
    kinds: Value,
    tool: String,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/drift/battery");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut cases: Vec<Case> = files.map(|path| case(&fs::read(path).unwrap())).collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(cases.len(), 14);
    cases
}

fn case(file: &[u8]) -> Case {
    let document: Value = serde_json::from_slice(file).unwrap();
    let entry = &document["expect"]["entries"][0];
    Case {
        name: document["name"].as_str().unwrap().to_owned(),
        verdict: document["expect"]["verdict"]["guard"].as_str().unwrap().to_owned(),
        kinds: entry["kinds"].clone(),
        tool: entry["key"].as_str().unwrap_or("make_report").to_owned(),
    }
}

/// Arguments that can be found in the server's input.
fn arguments(word: &str) -> Value {
    json!({ "title": word })
}

#[track_caller]
fn is_as_predicted(case: &Case, answer: &Value, record: &str) {
    let name = &case.name;
    let is_held = case.verdict != "PROCEED";
    if is_held {
        let data = refused(answer, HELD);
        assert_eq!(data["verdict"], case.verdict.as_str(), "{name}");
        assert_eq!(data["server"], ID, "{name}");
        assert_eq!(data["tool"], case.tool.as_str(), "{name}");
        assert_eq!(data["kinds"], case.kinds, "{name}");
        assert!(data["framing"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        assert!(data["receipt_id"].is_string(), "{name}: {data}");
        assert_eq!(data["review"], json!(["holdpoint", "review", ID]), "{name}");
    } else {
        assert!(text(answer).contains("after-the-change"), "{name}");
    }
    assert_eq!(record.contains("after-the-change"), !is_held, "{name}: {record}");
}

#[test]
fn a_change_under_a_running_session_is_held_or_goes_on_as_predicted() {
    for case in cases() {
        let bench = Bench::new();
        let scenario = Scenario::new(&bench, &case.name);
        let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
        client.begin();
        assert_eq!(client.tool_names(), ["make_report"], "{}", case.name);
        let answer = client.call("make_report", &arguments("before-the-change"));
        assert!(text(&answer).contains("before-the-change"), "{}", case.name);
        scenario.change();
        client.ask("ping", &json!({}));
        let answer = client.call(&case.tool, &arguments("after-the-change"));
        is_as_predicted(&case, &answer, &scenario.record());
        let requests = client.requests();
        client.end().exits(0);
        receipts_are_complete(&bench, requests);
    }
}

#[test]
fn a_change_while_the_gate_was_down_is_held_at_the_first_call() {
    for case in cases() {
        let bench = Bench::new();
        let scenario = Scenario::new(&bench, &case.name);
        let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
        client.begin();
        client.call("make_report", &arguments("before-the-change"));
        client.kill();
        scenario.change();
        let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
        client.begin();
        // Not even a list was requested.
        let answer = client.call(&case.tool, &arguments("after-the-change"));
        is_as_predicted(&case, &answer, &scenario.record());
        client.end().exits(0);
        bench.run(["receipts", "verify"]).exits(0);
    }
}

#[test]
fn an_unannounced_change_is_held_once_the_view_is_too_old() {
    for case in cases() {
        let bench = Bench::new();
        let scenario = Scenario::new(&bench, &case.name);
        let options = ["--relist-max-age", "0"];
        let launch = scenario.launch(&["--withhold"]);
        let mut client = Client::through_gate(&bench, &options, &launch);
        client.begin();
        client.call("make_report", &arguments("before-the-change"));
        scenario.change();
        let answer = client.call(&case.tool, &arguments("after-the-change"));
        is_as_predicted(&case, &answer, &scenario.record());
        client.end().exits(0);
    }
}

#[test]
fn a_change_that_comes_with_an_answer_is_held_at_the_next_call() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client =
        Client::through_gate(&bench, &[], &scenario.launch(&["--change-on-call", "2"]));
    client.begin();
    for _ in 0..2 {
        text(&client.call("make_report", &json!({ "title": "x" })));
    }
    client.ask("ping", &json!({}));
    refused(&client.call("make_report", &json!({ "title": "x" })), HELD);
    client.end().exits(0);
}

#[test]
fn the_client_goes_on_seeing_what_was_accepted() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, "marker_input");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    let before = client.ask("tools/list", &json!({}))["result"].clone();
    scenario.change();
    client.ask("ping", &json!({}));
    assert_eq!(client.ask("tools/list", &json!({}))["result"], before);
    let answer = client.call("make_report", &json!({ "title": "x" }));
    refused(&answer, HELD);
    // The refusal does not contain unaccepted text either.
    let said = client.heard.iter().map(|line| String::from_utf8_lossy(line)).collect::<String>();
    assert!(!said.contains("id_rsa") && !said.contains("Do not tell"), "{said}");
    client.end().exits(0);
}

#[test]
fn under_monitor_the_change_goes_through_and_is_shown() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, "added_required");
    let launch = scenario.launch(&[]);
    let mut client = Client::through_gate(&bench, &["--posture", "monitor"], &launch);
    client.begin();
    client.tool_names();
    scenario.change();
    client.notice(LIST_CHANGED);
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"][0]["inputSchema"]["properties"]["owner"].is_object());
    assert!(text(&client.call("make_report", &json!({ "title": "x" }))).contains("got"));
    client.end().exits(0);
}

#[test]
fn a_client_of_the_stateless_era_is_held_too() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, "added_required");
    let options = ["--relist-max-age", "0"];
    let mut client = Client::through_gate(&bench, &options, &scenario.launch(&[]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let discovered = client.ask("server/discover", &json!({ "_meta": meta }));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    let listed = client.ask("tools/list", &json!({ "_meta": meta }));
    assert_eq!(listed["result"]["tools"][0]["name"], "make_report");
    let call = |word: &str| json!({ "name": "make_report", "arguments": { "title": word }, "_meta": meta });
    text(&client.ask("tools/call", &call("before-the-change")));
    scenario.change();
    refused(&client.ask("tools/call", &call("after-the-change")), HELD);
    assert!(!scenario.record().contains("after-the-change"));
    // The gate opened no session beyond the client's.
    assert!(!scenario.record().contains("\"initialize\""), "{}", scenario.record());
    client.end().exits(0);
}

#[test]
fn a_subscription_of_the_stateless_era_is_told_of_a_change_under_its_id() {
    let bench = Bench::new();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client.ask("server/discover", &json!({ "_meta": meta }));
    client.ask("tools/list", &json!({ "_meta": meta }));
    let wanted = json!({ "toolsListChanged": true });
    let id =
        client.request("subscriptions/listen", &json!({ "_meta": meta, "notifications": wanted }));
    let subscription = |notice: &Value| {
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    let notice = client.notice("notifications/subscriptions/acknowledged");
    assert_eq!(subscription(&notice), id);
    scenario.change();
    assert_eq!(subscription(&client.notice(LIST_CHANGED)), id);
    let call = json!({ "name": "make_report", "arguments": { "title": "x" }, "_meta": meta });
    refused(&client.ask("tools/call", &call), HELD);
    // A client without subscriptions gets no notifications.
    let mut other = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    other.ask("server/discover", &json!({ "_meta": meta }));
    scenario.revert();
    other.ask("tools/list", &json!({ "_meta": meta }));
    let told = other.messages().iter().filter(|message| message["method"] == LIST_CHANGED).count();
    assert_eq!(told, 0);
    other.end().exits(0);
    client.end().exits(0);
}

#[test]
fn the_demonstration_plays_through_the_real_gate() {
    let bench = Bench::new();
    for options in [vec![], vec!["--restart"], vec!["--withheld"]] {
        let words = || ["demo"].iter().chain(&options);
        bench.run(words()).exits(0).says("caught a silent change").says("PROCEED");
        let document = bench.run(words().chain(&["--json"])).exits(0).json();
        assert_eq!(document["held"]["verdict"], "HOLD", "{options:?}");
        assert_eq!(document["after_approval"]["verdict"], "PROCEED", "{options:?}");
    }
    let battery = bench.run(["demo", "--all"]).exits(0).says("14/14 scenarios PASS");
    let lines: Vec<&str> = battery.out.lines().collect();
    assert_eq!(lines.last(), Some(&"14/14 scenarios PASS"));
    assert!(lines.iter().any(|line| line.starts_with("base ") && line.ends_with("(baseline)")));
    assert_eq!(lines.iter().filter(|line| line.contains("INCONCLUSIVE  INCONCLUSIVE")).count(), 2);
    bench.run(["demo", "--all", "--restart"]).exits(2);
    assert!(!bench.home().exists(), "the demonstration keeps nothing");
}

//! How fresh the gate's view is: lists that are slow, paged, or change while they are read, and
//! calls that wait for one.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CALL: &str = "tools/call";

fn lists(script: &Script) -> usize {
    script.record().matches("tools/list").count()
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object" } })
}

fn page(names: &[&str], next: Option<&str>) -> String {
    let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    let mut page = json!({ "tools": tools });
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    result(&page)
}

#[test]
fn a_young_view_is_not_listed_again() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    for _ in 0..20 {
        text(&client.call("make_report", &json!({ "title": "x" })));
    }
    assert_eq!(lists(&script), 1, "{}", script.record());
    client.end().exits(0);
}

#[test]
fn an_age_of_zero_lists_before_each_call() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &["--relist-max-age", "0"], &script.launch());
    client.begin();
    for _ in 0..5 {
        text(&client.call("make_report", &json!({ "title": "x" })));
    }
    assert!(lists(&script) >= 5, "{}", script.record());
    // Each call was dispatched after a list that was requested after the previous call.
    let record = script.record();
    let order: Vec<&str> =
        record.lines().filter(|line| line.contains(CALL) || line.contains("tools/list")).collect();
    for pair in order.windows(2) {
        assert!(!(pair[0].contains(CALL) && pair[1].contains(CALL)), "{order:#?}");
    }
    client.end().exits(0);
}

#[test]
fn one_list_serves_all_that_wait_for_it() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let go = script.path("go");
    let answer = result(&json!({ "tools": [report_tool(), mail_tool()] }));
    script.on("tools/list", json!([{ "await_file": go }, answer]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let calls: Vec<u64> = (0..10)
        .map(|_| client.request(CALL, &json!({ "name": "make_report", "arguments": {} })))
        .collect();
    script.touch("go");
    for id in calls {
        text(&client.answer_to(&json!(id)));
    }
    assert_eq!(lists(&script), 1, "{}", script.record());
    client.end().exits(0);
}

#[test]
fn a_list_changed_is_heeded_before_the_next_call() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let before = result(&json!({ "tools": [report_tool()] }));
    let after = result(&json!({ "tools": [report_tool_with_owner()] }));
    script.on_each("tools/list", json!([[before], [after]]));
    let notice = json!({ "jsonrpc": "2.0", "method": LIST_CHANGED }).to_string();
    // The notification comes before the response, so it has been read when the client continues.
    script.on(CALL, json!([notice, echo()]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    text(&client.call("make_report", &json!({ "title": "first" })));
    refused(&client.call("make_report", &json!({ "title": "second" })), HELD);
    assert!(!script.record().contains("second"));
    client.end().exits(0);
}

#[test]
fn every_page_is_read() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let pages =
        json!([[page(&["a", "b"], Some("2"))], [page(&["c"], Some("3"))], [page(&["d"], None)]]);
    script.on_each("tools/list", pages);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let answer = client.ask("tools/list", &params);
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let Some(next) = answer["result"]["nextCursor"].as_str() else { break };
        params = json!({ "cursor": next });
    }
    assert_eq!(names, ["a", "b", "c", "d"]);
    text(&client.call("d", &json!({})));
    client.end().exits(0);
}

#[test]
fn a_list_that_contradicts_itself_is_held() {
    let changed =
        json!({ "name": "a", "description": "Another.", "inputSchema": { "type": "object" } });
    let second = result(&json!({ "tools": [changed] }));
    for (what, pages) in [
        ("two definitions of one tool", json!([[page(&["a"], Some("2"))], [second]])),
        (
            "a cursor that comes again",
            json!([[page(&["a"], Some("2"))], [page(&["b"], Some("2"))]]),
        ),
        (
            "a cursor that is no text",
            json!([[result(&json!({ "tools": [tool("a")], "nextCursor": 7 }))]]),
        ),
        ("no list at all", json!([[result(&json!({ "tools": {} }))]])),
    ] {
        let bench = Bench::new();
        let mut script = Script::new(&bench);
        script.on_each("tools/list", pages);
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin();
        let answer = client.call("a", &json!({ "title": "held" }));
        assert_eq!(refused(&answer, HELD)["reason"], "surface_unreadable", "{what}");
        assert!(!script.record().contains("held"), "{what}");
        client.end().exits(0);
    }
}

#[test]
fn a_list_that_changes_between_its_pages_is_held_to_what_was_approved() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let changed =
        json!({ "name": "b", "description": "Another.", "inputSchema": { "type": "object" } });
    let second = result(&json!({ "tools": [changed] }));
    let pages = json!([
        [page(&["a"], Some("2"))],
        [page(&["b"], None)],
        [page(&["a"], Some("2"))],
        [second],
    ]);
    script.on_each("tools/list", pages);
    let notice = json!({ "jsonrpc": "2.0", "method": LIST_CHANGED }).to_string();
    script.on_each(CALL, json!([[notice, echo()], [echo()]]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    text(&client.call("b", &json!({})));
    refused(&client.call("b", &json!({})), HELD);
    text(&client.call("a", &json!({})));
    client.end().exits(0);
}

#[test]
fn the_ids_of_the_gate_are_never_twice_the_same() {
    let ids = || {
        let bench = Bench::new();
        let script = Script::new(&bench);
        let mut client = Client::through_gate(&bench, &["--relist-max-age", "0"], &script.launch());
        client.begin();
        text(&client.call("make_report", &json!({ "title": "x" })));
        client.end().exits(0);
        let record = script.record();
        let lines = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let own = lines.filter(|line| line["method"] == "tools/list");
        own.map(|line| line["id"].to_string()).collect::<Vec<String>>()
    };
    let (first, second) = (ids(), ids());
    for id in first.iter().chain(&second) {
        assert!(id.len() >= 22, "{id} could be guessed");
        assert_eq!(first.iter().chain(&second).filter(|other| *other == id).count(), 1, "{id}");
    }
}

#[test]
fn the_client_cannot_answer_for_the_server() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let go = script.path("go");
    let answer = result(&json!({ "tools": [report_tool()] }));
    script
        .on("tools/list", json!([{ "touch": script.path("asked") }, { "await_file": go }, answer]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let call = client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    script.written("asked");
    // The client learns the gate's request id, as if it could read the server's record.
    let record = script.record();
    let list = record.lines().find(|line| line.contains("tools/list")).unwrap();
    let list: Value = serde_json::from_str(list).unwrap();
    let forged = json!({ "jsonrpc": "2.0", "id": list["id"], "result": { "tools": [] } });
    client.send(&forged);
    script.touch("go");
    text(&client.answer_to(&json!(call)));
    assert_eq!(client.tool_names(), ["make_report"]);
    client.end().exits(0);
}

#[test]
fn a_list_that_does_not_come_keeps_no_call_of_another_waiting() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.introduces("2025-06-18", &json!({ "tools": {}, "resources": { "listChanged": true } }));
    script.on_each("resources/list", json!([[result(&json!({ "resources": [] }))], []]));
    script.on("resources/templates/list", json!([result(&json!({ "resourceTemplates": [] }))]));
    let changed =
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" }).to_string();
    script.on_each("tools/call", json!([[changed, echo()], [echo()]]));
    let mut client = Client::through_gate(&bench, &["--relist-max-age", "0"], &script.launch());
    client.begin();
    text(&client.call("make_report", &json!({ "title": "x" })));
    testing::wait_until("another list", || script.record().matches("resources/list").count() == 2);
    let begun = Instant::now();
    text(&client.call("make_report", &json!({ "title": "x" })));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    client.end().exits(0);
}

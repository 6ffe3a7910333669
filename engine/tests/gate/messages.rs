//! Which messages are forwarded and which are not: bytes, ids, frames, batches, limits, receipts.

use crate::stage::{Script, Setting, Stage, tool, tools};
use engine::decide::PreflightLimits;
use engine::requests::MAX_WAITING;
use engine::session::state::MAX_SERVER_REQUESTS;
use serde_json::{Value, json};

/// Invariant 7: breaking it on purpose (parsing and printing messages) makes this fail.
#[test]
fn what_passes_keeps_its_bytes() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    let odd = br#"{ "id":1.50e1 ,"method":"x/unknown","zz":[1e2, "\u0041"],"jsonrpc":"2.0" ,"params":{"b":1,"a":0.10}}"#;
    stage.client_says(odd);
    assert!(stage.server.all().iter().any(|message| message == odd));
    let call = br#"{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{"arguments":{"a":1.0},"name":"add","extra":null}}"#;
    stage.client_says(call);
    stage.answer(&json!("c-1"));
    assert!(stage.server.all().iter().any(|message| message == call));
    let notification = br#"{"method":"notifications/whatever","jsonrpc":"2.0","params":{"q":1E5}}"#;
    stage.server_says(notification);
    assert!(stage.client.all().iter().any(|message| message == notification));
}

#[test]
fn an_only_page_is_shown_as_the_server_sent_it() {
    let raw = r#"[{"inputSchema":{"type":"object"},"description":"Adds \u0032 numbers." , "name":"add","x":1e2}]"#;
    let stage = Stage::greeted(Setting {
        script: Script { tools: raw.to_owned(), ..Script::default() },
        ..Setting::default()
    });
    stage.list(1);
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{raw}}}}}"#);
    assert!(stage.client.texts().contains(&expected), "{:?}", stage.client.texts());
}

/// Invariant 8: breaking it on purpose (forwarding every answer) makes this fail.
#[test]
fn only_answers_to_what_was_dispatched_are_heard_and_each_once() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.list(1);
    stage.server_says(br#"{"jsonrpc":"2.0","id":77,"result":{"forged":1}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"forged"}}"#);
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage.server_hears("the call", |message| message["id"] == 5);
    stage.server_says(br#"{"jsonrpc":"2.0","id":"5","result":{"forged":2}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5.0,"result":{"forged":3}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"real":1}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"forged":4}}"#);
    assert_eq!(stage.answer(&json!(5))["result"]["real"], 1);
    assert!(!stage.client.texts().iter().any(|text| text.contains("forged")));
    let dropped = stage.ledger().into_iter().filter(|line| line["name"] == "mcp.response.dropped");
    assert!(dropped.count() > 0);
}

#[test]
fn a_call_that_still_waits_at_the_gate_cannot_be_answered() {
    let script = Script { answers_lists: false, ..Script::default() };
    let mut stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage.server_says(br#"{"jsonrpc":"2.0","id":9,"result":{"forged":1}}"#);
    stage.end_keeper();
    assert!(!stage.client.texts().iter().any(|text| text.contains("forged")));
    assert!(stage.calls_at_server().is_empty());
}

#[test]
fn the_gates_own_requests_cannot_be_answered_by_the_client_and_are_not_shown_to_it() {
    let script = Script { answers_lists: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    let own = stage.server_hears("a list", |message| message["method"] == "tools/list");
    let id = own["id"].as_str().expect("an id").to_owned();
    assert!(id.len() > 32, "{id}");
    let forged = json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}});
    stage.say(&forged);
    stage.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    stage.ask(json!(2), "ping", json!({}));
    let answered =
        |id: u64| stage.client.texts().iter().any(|text| text.contains(&format!("\"id\":{id},")));
    assert!(answered(2) && !answered(1), "the list is still waited for");
    let answer = format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"tools":[]}}}}"#);
    stage.server_says(answer.as_bytes());
    assert!(stage.answer(&json!(1))["result"]["tools"].as_array().is_some_and(Vec::is_empty));
    assert!(!stage.client.texts().iter().any(|text| text.contains(&id)));
    assert!(!stage.server.texts().contains(&forged.to_string()));
}

#[test]
fn messages_that_two_readers_could_read_differently_are_refused() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    let count = stage.server.all().len();
    for (id, text) in [
        (10, r#"{"jsonrpc":"2.0","id":10,"method":"x","Method":"tools/call"}"#.to_owned()),
        (11, r#"{"jsonrpc":"2.0","id":11,"method":"x","method":"tools/call"}"#.to_owned()),
        (12, "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"x\",\"params\":\r{}\r}".to_owned()),
    ] {
        stage.client_says(text.as_bytes());
        let answer = stage.answer(&json!(id));
        assert_eq!(answer["error"]["code"], -32600, "{text}");
        assert_eq!(answer["error"]["data"]["reason"], "ambiguous_message");
    }
    let hidden = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\r{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"add\"}}\r}";
    stage.client_says(hidden.as_bytes());
    assert_eq!(stage.server.all().len(), count, "nothing of it was passed on");
    let from_server = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":\r{}}";
    stage.server_says(from_server.as_bytes());
    assert!(!stage.client.texts().iter().any(|text| text.contains("notifications/x")));
}

#[test]
fn a_method_that_some_readers_take_for_another_passes_in_neither_direction() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.list(1);
    let count = stage.server.all().len();
    let methods =
        ["TOOLS/CALL", "tools/call/", "tools/call\u{0}", "tool\u{17f}/call", "Tools/List"];
    for (id, method) in (10..).zip(methods) {
        stage
            .say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "add"}}));
        let answer = stage.answer(&json!(id));
        assert_eq!(answer["error"]["code"], -32600, "{method}: {answer}");
        assert_eq!(answer["error"]["data"]["reason"], "ambiguous_message");
        stage.say(&json!({"jsonrpc": "2.0", "method": method}));
    }
    assert_eq!(stage.server.all().len(), count, "nothing of it was passed on");
    // The server's request has an id of its own, so the client's call with the same id continues.
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage.server_hears("the call", |message| message["id"] == 5);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"method":"Sampling/createMessage","params":{}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","method":"notifications/tools/List_changed"}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"real":1}}"#);
    assert_eq!(stage.answer(&json!(5))["result"]["real"], 1);
    let told = stage.client.texts();
    assert!(!told.iter().any(|text| text.contains("Sampling") || text.contains("List_changed")));
}

#[test]
fn a_second_request_with_an_id_that_is_out_is_refused() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.list(1);
    let call =
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}});
    stage.say(&call);
    stage.say(&call);
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32600);
    assert_eq!(stage.calls_at_server().len(), 1);
}

#[test]
fn requests_of_the_server_are_answered_by_the_client_once_each() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    let request = br#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}"#;
    stage.server_says(request);
    assert!(stage.client.all().iter().any(|message| message == request));
    let answer = json!({"jsonrpc": "2.0", "id": "s1", "result": {"role": "assistant"}});
    stage.say(&answer);
    stage.say(&answer);
    stage.say(&json!({"jsonrpc": "2.0", "id": "other", "result": {}}));
    let heard = stage.server.texts();
    assert_eq!(heard.iter().filter(|text| text.contains("assistant")).count(), 1);
    assert!(!heard.iter().any(|text| text.contains("\"other\"")));
}

#[test]
fn requests_of_the_server_are_bounded_at_the_limit_and_not_before() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    for number in 0..=MAX_SERVER_REQUESTS {
        let request = format!(r#"{{"jsonrpc":"2.0","id":"s{number}","method":"ping"}}"#);
        stage.server_says(request.as_bytes());
    }
    let passed = stage.client.texts().into_iter().filter(|text| text.contains("\"ping\"")).count();
    assert_eq!(passed, MAX_SERVER_REQUESTS);
}

#[test]
fn requests_that_wait_for_a_view_are_bounded_at_the_limit_and_not_before() {
    let script = Script { answers_lists: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    for number in 0..=MAX_WAITING {
        stage.say(&json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "add"}}));
    }
    let refused = stage.answer(&json!(MAX_WAITING));
    assert_eq!(refused["error"]["code"], 1029);
    assert_eq!(refused["error"]["data"]["retry_after_ms"], 1000);
    let answered = stage.client.texts().into_iter().filter(|text| text.contains("1029")).count();
    assert_eq!(answered, 1);
}

#[test]
fn batches_are_for_the_revision_that_has_them() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;
    let modern = Stage::greeted(Setting::default());
    modern.list(0);
    modern.client_says(batch);
    for id in [1, 2] {
        assert_eq!(modern.answer(&json!(id))["error"]["data"]["reason"], "bad_frame");
    }
    assert!(modern.calls_at_server().is_empty());
    let script = Script { protocol_version: "2025-03-26".to_owned(), ..Script::default() };
    let old = Stage::greeted(Setting { script, ..Setting::default() });
    old.list(0);
    old.client_says(batch);
    let in_batch = |id: u64| {
        let answers = old.client_hears("a batch", |heard| {
            heard.as_array().is_some_and(|all| all.iter().any(|one| one["id"] == id))
        });
        answers.as_array().and_then(|all| all.iter().find(|one| one["id"] == id).cloned())
    };
    assert!(in_batch(1).expect("an answer").get("result").is_some());
    assert!(in_batch(2).expect("an answer").get("result").is_some());
    old.change(tools(&[tool("add", "Changed.")]));
    old.client_says(br#"[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}},{"jsonrpc":"2.0","id":4,"method":"ping"}]"#);
    assert_eq!(in_batch(3).expect("an answer")["error"]["code"], -32010);
    assert!(in_batch(4).expect("an answer").get("result").is_some());
}

#[test]
fn calls_are_refused_past_their_depth_and_size_and_not_at_them() {
    let limits = PreflightLimits { arguments_bytes: 100, depth: 8 };
    let stage = Stage::greeted(Setting { limits, ..Setting::default() });
    let nested = |levels: usize| {
        let text = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    // The message, its params and the arguments count as levels too.
    assert!(stage.call(1, "add", json!({"a": nested(5)})).get("result").is_some());
    let deep = stage.call(2, "add", json!({"a": nested(6)}));
    assert_eq!(
        (&deep["error"]["code"], &deep["error"]["data"]["reason"]),
        (&json!(1013), &json!("too_deep"))
    );
    let sized = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    assert!(stage.call(3, "add", sized(100)).get("result").is_some());
    assert_eq!(stage.call(4, "add", sized(101))["error"]["data"]["reason"], "payload_too_large");
}

/// Invariant 3: breaking it on purpose (recording after dispatch) makes this fail.
#[test]
fn without_a_receipt_nothing_is_dispatched() {
    let stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    stage.session.server().stop_recording();
    let refused = stage.call(2, "add", json!({}));
    assert_eq!(refused["error"]["code"], -32012);
    assert_eq!(refused["error"]["data"]["reason"], "ledger_unavailable");
    assert!(stage.errors().contains("ledger_unavailable"));
    assert_eq!(stage.calls_at_server().len(), 1);
}

#[test]
fn every_request_has_one_decision_and_what_is_dispatched_one_outcome() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    stage.call(2, "add", json!({"a": "known-secret"}));
    stage.ask(json!(3), "ping", json!({}));
    stage.ask(json!(4), "x/unknown", json!({}));
    stage.call(5, "nobody", json!({}));
    stage.client_says(br#"{"jsonrpc":"2.0","id":6,"method":"x","method":"y"}"#);
    stage.answer(&json!(6));
    let lines = crate::stage::wait_for("all receipts", || {
        let lines = stage.ledger();
        let outcomes = lines.iter().filter(|line| line["record"] == "outcome").count();
        (outcomes == 5).then_some(lines)
    });
    let decisions: Vec<&Value> = lines.iter().filter(|line| line["record"] == "decision").collect();
    assert_eq!(decisions.len(), 7, "the greeting and six requests");
    let results: Vec<&str> =
        decisions.iter().filter_map(|line| line["decision"]["result"].as_str()).collect();
    assert_eq!(results.iter().filter(|result| **result == "allow").count(), 5);
    assert!(!json!(lines).to_string().contains("known-secret"));
    let call =
        decisions.iter().find(|line| line["mcp"]["method"] == "tools/call").expect("the call");
    assert_eq!(call["mcp"]["tool_name"], "add");
    assert_eq!(call["drift"]["verdict"], "PROCEED");
    assert!(call["request"]["args_hash"].is_string());
}

#[test]
fn lists_in_pages_are_paged_again_with_cursors_of_our_own() {
    let all: Vec<Value> = (0..5).map(|number| tool(&format!("t{number}"), "Counts.")).collect();
    let script = Script { tools: tools(&all), page: Some(2), ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    for id in 1.. {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let answer = stage.ask(json!(id), "tools/list", params);
        found.extend(answer["result"]["tools"].as_array().cloned().expect("tools"));
        cursor = answer["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, all);
    let unknown = stage.ask(json!(99), "tools/list", json!({"cursor": "2"}));
    assert_eq!(unknown["error"]["code"], -32602, "the server's own cursor is not one of ours");
}

#[test]
fn each_request_of_a_batch_that_is_refused_as_a_whole_has_its_answer_and_its_decision() {
    let stage = Stage::new(Setting::default());
    let of = |ids: &mut dyn Iterator<Item = u64>| {
        let elements: Vec<Value> =
            ids.map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect();
        Value::from(elements).to_string()
    };
    stage.client_says(of(&mut (1..=101)).as_bytes());
    stage.client_says(of(&mut [200, 201, 200].into_iter()).as_bytes());
    for id in (1..=101).chain([200, 201]) {
        assert_eq!(stage.answer(&json!(id))["error"]["code"], -32600, "{id}");
    }
    let is_decision = |line: &&Value| line["record"] == "decision";
    assert_eq!(stage.ledger().iter().filter(is_decision).count(), 103);
    assert!(
        stage
            .server
            .all()
            .iter()
            .all(|message| !message.windows(6).any(|part| part == b"\"ping\""))
    );
}

fn call_is_out(stage: &Stage, id: u64) {
    let call =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "add"}});
    stage.say(&call);
    stage.server_hears("the call", |message| message["id"] == id);
}

/// The classes and sizes in the error log.
fn faults(stage: &Stage) -> Vec<(String, u64)> {
    let line = |line: &str| -> Value { serde_json::from_str(line).expect("a line") };
    let fault = |line: Value| {
        (
            line["class"].as_str().expect("a class").to_owned(),
            line["bytes"].as_u64().expect("bytes"),
        )
    };
    stage.errors().lines().map(line).map(fault).collect()
}

fn silent() -> Stage {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.list(1);
    stage
}

#[test]
fn a_broken_line_with_the_id_of_a_call_answers_that_call_and_no_other() {
    let stage = silent();
    call_is_out(&stage, 5);
    call_is_out(&stage, 6);
    let broken = br#"{"result":{"content":[{"type":"text","text":"x"}]},"id" : 5,,}"#;
    stage.server_says(broken);
    let answer = stage.answer(&json!(5));
    assert_eq!(answer["error"]["code"], -32011);
    assert_eq!(answer["error"]["data"]["reason"], "upstream_unreadable");
    assert!(!stage.client.texts().iter().any(|text| text.contains("\"id\":6")));
    assert_eq!(faults(&stage), [("upstream_unreadable".to_owned(), broken.len() as u64)]);
    stage.server_says(br#"{"jsonrpc":"2.0","id":6,"result":{}}"#);
    assert!(stage.answer(&json!(6)).get("result").is_some());
}

#[test]
fn a_broken_line_of_the_protocol_answers_the_only_call_in_flight() {
    let stage = silent();
    call_is_out(&stage, 5);
    stage.server_says(br#"{"jsonrpc":"2.0","result":{"content":[{"type":"te"#);
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32011);
}

#[test]
fn a_broken_line_is_no_answer_where_the_answer_comes_or_it_is_only_a_log() {
    let stage = silent();
    call_is_out(&stage, 5);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"broken""#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":5,"result":{"whole":1}}"#);
    assert_eq!(stage.answer(&json!(5))["result"]["whole"], 1);
    call_is_out(&stage, 6);
    let noted = faults(&stage).len();
    for log in [
        "starting up: id 6".as_bytes(),
        br#"{"level":"info","requestId":6}"#,
        br#"{"id":7,"level":"info"}"#,
        b"\xff\xfe",
        br#""id":"6""#,
    ] {
        stage.server_says(log);
    }
    assert_eq!(faults(&stage).len(), noted, "a log is no fault");
    // A later line that may be an answer is treated like the first one, and given up after it.
    call_is_out(&stage, 7);
    stage.server_says(br#"{"jsonrpc":"2.0","id":7,"result":{"broken""#);
    assert_eq!(stage.answer(&json!(7))["error"]["code"], -32011);
    assert!(!stage.client.texts().iter().any(|text| text.contains("\"id\":6")));
    stage.server_says(br#"{"jsonrpc":"2.0","id":6,"result":{}}"#);
    assert!(stage.answer(&json!(6)).get("result").is_some());
}

#[test]
fn a_broken_answer_to_a_list_of_our_own_holds_up_no_call() {
    let script = Script { answers_lists: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    let own = stage.server_hears("a list", |message| message["method"] == "tools/list");
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage.server_says(
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":["#, own["id"]).as_bytes(),
    );
    assert_eq!(stage.answer(&json!(9))["error"]["data"]["reason"], "surface_unreadable");
}

#[test]
fn a_request_whose_id_cannot_be_read_in_one_way_is_answered_without_one() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    let count = stage.server.all().len();
    let frames = [
        r#"{"jsonrpc":"2.0","id":21,"id":22,"method":"tools/call","params":{"name":"add"}}"#,
        r#"{"jsonrpc":"2.0","id":23,"ID":24,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":25,"method":"ping""#,
    ];
    for frame in frames {
        stage.client.clear();
        stage.client_says(frame.as_bytes());
        let answer = stage.answer(&Value::Null);
        assert_eq!(answer["error"]["code"], -32600, "{frame}: {answer}");
    }
    let sizes: Vec<u64> = frames.iter().map(|frame| frame.len() as u64).collect();
    assert_eq!(faults(&stage).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), sizes);
    // A message that expects no answer gets none.
    stage.client.clear();
    stage.client_says(br#"{"jsonrpc":"2.0","method":"notifications/x","Method":"y"}"#);
    stage.client_says(br#"{"jsonrpc":"2.0","id":26,"id":27,"result":{}}"#);
    stage.client_says(b"hello");
    assert!(stage.client.all().is_empty(), "{:?}", stage.client.texts());
    assert_eq!(stage.server.all().len(), count, "nothing of it was passed on");
}

#[test]
fn a_frame_over_the_limit_is_noted_with_its_own_length() {
    let stage = silent();
    stage.session.client_said_too_much(
        br#"{"jsonrpc":"2.0","id":31,"method":"x","p"#,
        b"}",
        20_000_000,
    );
    assert_eq!(stage.answer(&json!(31))["error"]["data"]["reason"], "payload_too_large");
    stage.session.client_said_too_much(br#"{"jsonrpc":"2.0","method":"x","p"#, b"}", 20_000_001);
    assert_eq!(stage.answer(&Value::Null)["error"]["code"], -32600);
    call_is_out(&stage, 32);
    stage.session.server_said_too_much(br#"{"jsonrpc":"2.0","result":"#, b"}", 20_000_002);
    assert_eq!(stage.answer(&json!(32))["error"]["code"], -32011);
    let expected = [
        ("payload_too_large".to_owned(), 20_000_000),
        ("bad_frame".to_owned(), 20_000_001),
        ("upstream_unreadable".to_owned(), 20_000_002),
    ];
    assert_eq!(faults(&stage), expected);
}

/// The URI of an unlisted resource reveals as much as an argument, and so does a name that the
/// client invented.
#[test]
fn a_name_that_nobody_accepted_is_recorded_by_its_hash() {
    let stage = Stage::greeted(Setting::default());
    let secret = "postgres://u:known-secret@h/db";
    stage.ask(json!(1), "resources/read", json!({ "uri": secret }));
    stage.call(2, "please tell known-secret", json!({}));
    let names = crate::stage::wait_for("both decisions", || {
        let lines = stage.ledger();
        let named = |line: &Value| line["mcp"]["tool_name"].as_str().map(str::to_owned);
        let names: Vec<String> = lines.iter().filter_map(named).collect();
        (names.len() == 2).then_some(names)
    });
    let hash = |name: &str| contract::hash::sha256_hex(name.as_bytes())[..8].to_owned();
    assert_eq!(names, [hash(secret), hash("please tell known-secret")]);
    assert!(!json!(stage.ledger()).to_string().contains("known-secret"));
}

//! What the application is shown in lists, and when a list is asked for again.

use super::*;

#[test]
fn a_list_is_answered_from_accepted_definitions_page_by_page() {
    let mut stage = Stage::guard();
    stage.per_page = 1;
    let first = stage.request("tools/list", json!({}));
    assert_eq!(stage.asked, ["tools/list", "tools/list"]);
    assert_eq!(first["result"]["tools"].as_array().unwrap().len(), 1);
    let cursor = first["result"]["nextCursor"].clone();
    let second = stage.request("tools/list", json!({"cursor": cursor}));
    assert_eq!(second["result"]["tools"][0]["name"], "send");
    assert_eq!(second["result"].get("nextCursor"), None);
    let unknown = stage.request("tools/list", json!({"cursor": "1"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(stage.asked.len(), 2);
}

#[test]
fn text_that_nobody_accepted_is_not_listed() {
    let mut stage = Stage::guard();
    assert_eq!(stage.list(), ["Makes a report.", "Sends it."]);
    stage.tools[0] = tool("make", "Smuggled.");
    stage.tools.push(tool("new", "New."));
    stage.pass_time(31);
    assert_eq!(stage.list(), ["Makes a report.", "Sends it."]);
}

#[test]
fn a_view_is_listed_again_at_its_age_and_not_before() {
    let mut stage = Stage::guard();
    stage.call("make", json!({}));
    stage.pass_time(29);
    stage.call("make", json!({}));
    assert_eq!(stage.asked.len(), 1);
    stage.pass_time(1);
    stage.call("make", json!({}));
    assert_eq!(stage.asked.len(), 2);
    // A clock that is set back makes no list younger.
    stage.pass_time(-10);
    stage.call("make", json!({}));
    assert_eq!(stage.asked.len(), 3);
}

#[test]
fn an_age_of_zero_lists_before_each_call() {
    let mut stage = Stage::new(&json!({"relistMaxAge": 0}));
    for count in 1..4 {
        assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
        assert_eq!(stage.asked.len(), count);
    }
}

/// The server answered the list before the second call came, and changed in between.
#[test]
fn with_an_age_of_zero_a_call_does_not_join_a_list_that_was_asked_for_before_it() {
    let mut stage = Stage::new(&json!({"relistMaxAge": 0}));
    stage.call("make", json!({}));
    let request = |id: u32| {
        json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"make"}}).to_string()
    };
    let asked = |actions: &str| -> Value {
        let actions: Value = serde_json::from_str(actions).unwrap();
        let mut sent = actions.as_array().unwrap().iter().filter_map(|it| it.get("toServer"));
        sent.next().unwrap_or_else(|| panic!("no list in {actions}")).clone()
    };
    let first = asked(&stage.session.client(11, &request(11), NOW).unwrap());
    assert_eq!(stage.session.client(12, &request(12), NOW).unwrap(), r#"[{"wait":12}]"#);
    let answer = |list: &Value, tools: &[Value]| {
        json!({"jsonrpc":"2.0","id":list["id"],"result":{"tools":tools}}).to_string()
    };
    let released = stage.session.server(&answer(&first, &stage.tools), NOW).unwrap();
    assert!(
        released.contains(r#"{"send":11}"#) && !released.contains(r#"{"send":12}"#),
        "{released}"
    );
    let second = asked(&released);
    stage.tools[0] = tool("make", "Other words.");
    let held = stage.session.server(&answer(&second, &stage.tools), NOW).unwrap();
    assert!(held.contains("contract_drift") && !held.contains("send"), "{held}");
}

#[test]
fn list_changed_is_followed_and_passed_on() {
    let mut stage = Stage::guard();
    stage.call("make", json!({}));
    stage.tools[0] = tool("make", "Other words.");
    let changed = json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"});
    stage.server(&changed);
    assert_eq!(stage.heard.last(), Some(&changed));
    assert_eq!(reason(&stage.call("make", json!({}))), "contract_drift");
}

#[test]
fn all_that_wait_are_served_by_one_list_and_a_cancelled_one_is_never_sent() {
    let mut stage = Stage::guard();
    let request = |id: u32, tool: &str| {
        json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":tool}}).to_string()
    };
    let first = stage.session.client(1, &request(1, "make"), NOW).unwrap();
    assert!(first.contains("toServer") && first.contains("\"wake\":30000"), "{first}");
    let second = stage.session.client(2, &request(2, "send"), NOW).unwrap();
    assert_eq!(second, r#"[{"wait":2}]"#);
    let cancel =
        json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}});
    let dropped = stage.session.client(3, &cancel.to_string(), NOW).unwrap();
    assert_eq!(dropped, r#"[{"drop":1},{"drop":3}]"#);
}

#[test]
fn a_server_that_does_not_answer_holds_what_waits_and_is_asked_again() {
    let mut stage = Stage::guard();
    let request = json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"make"}});
    stage.session.client(1, &request.to_string(), NOW).unwrap();
    assert_eq!(stage.session.tick(NOW + 29_999), None);
    let refused = stage.session.tick(NOW + 30_000).unwrap();
    assert!(refused.contains("\"timeout\"") && refused.contains("-32011"), "{refused}");
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
    stage.pass_time(31);
    stage.session.client(9, &request.to_string(), stage.now).unwrap();
    let refused = stage.session.lost().unwrap();
    assert!(refused.contains("upstream_unreachable"), "{refused}");
}

#[test]
fn a_list_that_cannot_be_read_in_one_way_holds_what_it_carries() {
    let mut stage = Stage::guard();
    stage.call("make", json!({}));
    stage.tools.push(tool("make", "Which one did the model read?"));
    stage.pass_time(31);
    assert_eq!(reason(&stage.call("make", json!({}))), "surface_unreadable");
    assert_eq!(reason(&stage.request("tools/list", json!({}))), "surface_unreadable");
}

#[test]
fn an_answer_to_a_request_that_is_not_out_reaches_nobody() {
    let mut stage = Stage::guard();
    stage.call("make", json!({}));
    let heard = stage.heard.len();
    stage.server(&json!({"jsonrpc":"2.0","id":"hp-s1-1","result":{"tools":[]}}));
    assert_eq!(stage.heard.len(), heard);
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
}

#[test]
fn a_handshake_is_shown_as_it_was_accepted_and_tells_which_lists_there_are() {
    let mut stage = Stage::guard();
    let greet = |stage: &mut Stage, instructions: &str| {
        stage.request("initialize", json!({"protocolVersion": "2025-06-18"}));
        let result = json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},
            "serverInfo":{"name":"far","version":"1"},"instructions":instructions});
        stage.server(&json!({"jsonrpc":"2.0","id":stage.ticket,"result":result}));
        stage.heard.last().cloned().unwrap()
    };
    assert_eq!(greet(&mut stage, "Be good.")["result"]["instructions"], "Be good.");
    stage.call("make", json!({}));
    assert!(stage.asked.contains(&"prompts/list".to_owned()), "{:?}", stage.asked);
    let mut stage = Stage::with_pins(&json!({}), stage.store);
    assert_ne!(greet(&mut stage, "Be bad.")["result"]["instructions"], "Be bad.");
    let twice = stage.session.greet(r#"{"instructions":"a","instructions":"b"}"#);
    assert!(!twice);
}

#[test]
fn the_requests_of_the_gate_say_what_the_clients_say_where_there_is_no_session() {
    let mut stage = Stage::guard();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 1});
    let request =
        json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"make","_meta":meta}});
    let actions = stage.session.client(1, &request.to_string(), NOW).unwrap();
    let actions: Value = serde_json::from_str(&actions).unwrap();
    let asked = &actions[1]["toServer"]["params"]["_meta"];
    assert_eq!(*asked, json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}));
}

#[test]
fn nothing_is_trusted_at_first_use_while_a_list_cannot_be_read() {
    let mut stage = Stage::guard();
    stage.request("initialize", json!({"protocolVersion": "2025-06-18"}));
    let result = json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}});
    stage.server(&json!({"jsonrpc":"2.0","id":stage.ticket,"result":result}));
    stage.tools.push(tool("make", "Which one?"));
    assert_eq!(reason(&stage.call("make", json!({}))), "surface_unreadable");
    assert_eq!(stage.store, None);
    stage.tools.pop();
    stage.pass_time(31);
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
}

/// The second copy of a resource may have members that do not count for its hash, so that nobody
/// accepted them.
#[test]
fn an_entry_that_is_listed_twice_is_shown_once() {
    let mut stage = Stage::guard();
    assert_eq!(stage.list().len(), 2);
    let again = stage.tools[0].clone();
    stage.tools.push(again);
    stage.pass_time(31);
    assert_eq!(stage.list(), ["Makes a report.", "Sends it."]);
}

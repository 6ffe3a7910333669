//! Limits on the arguments and rates of calls: a call is refused before the server sees it, with
//! the location and the rule but never the values.

use crate::stage::{Setting, Stage, until};
use serde_json::{Value, json};

/// A text that must not appear in any file, metric or error.
const CANARY: &str = "canary-7f3a91";

fn tools() -> Vec<Value> {
    vec![json!({"name": "write", "description": "Writes a file.", "inputSchema": {
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "maxLength": 40},
            "mode": {"enum": ["append", "replace"]},
            "source": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object", "properties": {"author": {"type": "string"}}},
        },
    }})]
}

const RULES: &str = "preflight = { path_args = [\"path\"], workspace = \"/srv/work\", url_args = [\"source\"], net_allow = [\"api.example.com\"], string_bytes = 200, array_items = 6 }";

async fn stage(server: &str) -> (Stage, String) {
    let stage = Stage::open(Setting { tools: tools(), server, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    (stage, session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_break_a_rule_are_refused_with_the_place_and_no_value() {
    let (stage, session) = stage(RULES).await;
    let long = "a".repeat(201);
    let cases = [
        (json!({}), "schema_violation", "/path", "required"),
        (json!({"path": 7}), "schema_violation", "/path", "type"),
        (json!({"path": "a", "mode": CANARY}), "schema_violation", "/mode", "enum"),
        (json!({"path": CANARY.repeat(4)}), "schema_violation", "/path", "maxLength"),
        (json!({"path": "a", "extra": CANARY}), "unknown_field", "/extra", "unknown_field"),
        (
            json!({"path": "a", "meta": {"author": "b", "more": CANARY}}),
            "unknown_field",
            "/meta/more",
            "unknown_field",
        ),
        (json!({"path": "a", "source": long}), "payload_too_large", "/source", "string_bytes"),
        (
            json!({"path": "a", "tags": [1, 2, 3, 4, 5, 6, 7]}),
            "payload_too_large",
            "/tags",
            "array_items",
        ),
        (json!({"path": format!("../{CANARY}")}), "path_outside_workspace", "/path", "path"),
        (json!({"path": format!("/etc/{CANARY}")}), "path_outside_workspace", "/path", "path"),
        (json!({"path": format!("..%2f{CANARY}")}), "path_outside_workspace", "/path", "path"),
        (
            json!({"path": "a", "source": format!("https://{CANARY}.example/")}),
            "egress_not_allowed",
            "/source",
            "url",
        ),
        (
            json!({"path": "a", "source": format!("https://api.example.com@{CANARY}/")}),
            "egress_not_allowed",
            "/source",
            "url",
        ),
    ];
    for (arguments, reason, pointer, rule) in &cases {
        let answer = stage.call("ada", &session, "reports__write", arguments).await;
        let error = &answer["error"];
        assert_eq!(error["code"], 1013, "{arguments}: {answer}");
        let told = (&error["data"]["reason"], &error["data"]["pointer"], &error["data"]["rule"]);
        assert_eq!(told, (&json!(reason), &json!(pointer), &json!(rule)), "{arguments}: {answer}");
        assert!(!answer.to_string().contains(CANARY), "{answer}");
    }
    let twice = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"reports__write","arguments":{{"path":"a","path":"{CANARY}"}}}}}}"#
    );
    let answer = stage.post("/mcp", "ada", &[("mcp-session-id", &session)], &twice).await.json();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(stage.script.lock().unwrap().count("tools/call"), 0, "the server saw none of it");
    let good = json!({
        "path": format!("/srv/work/{CANARY}.txt"), "mode": "append", "tags": [CANARY],
        "source": format!("https://api.example.com/{CANARY}"), "meta": {"author": CANARY},
    });
    let answer = stage.call("ada", &session, "reports__write", &good).await;
    assert!(answer.get("result").is_some(), "{answer}");
    // Each call has one decision, containing only the reason.
    let reasons: Vec<Value> = stage
        .decisions()
        .into_iter()
        .filter(|line| line["mcp"]["method"] == "tools/call")
        .map(|line| line["decision"]["reason_codes"].clone())
        .collect();
    let mut expected: Vec<Value> = cases.iter().map(|case| json!([case.1])).collect();
    expected.extend([json!(["ambiguous_message"]), json!([])]);
    assert_eq!(reasons, expected);
    let metrics = stage.send("GET", "/metrics", &[], "").await.body;
    assert!(metrics.contains("holdpoint") && !metrics.contains(CANARY));
    let text = stage.all_text();
    assert!(text.contains("path_outside_workspace") && !text.contains(CANARY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undeclared_arguments_pass_where_the_operator_allows_them() {
    let (stage, session) = stage("preflight = { unknown_fields = \"allow\" }").await;
    let extra = json!({"path": "a", "extra": 1});
    let answer = stage.call("ada", &session, "reports__write", &extra).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let answer = stage.call("ada", &session, "reports__write", &json!({"path": 1})).await;
    assert_eq!(answer["error"]["data"]["reason"], "schema_violation", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_a_rate_or_a_quota_are_refused_for_that_principal_alone() {
    for (rule, reason) in
        [("rate = \"2/hour\"", "rate_limited"), ("quota = \"2/day\"", "quota_exceeded")]
    {
        let (stage, session) = stage(&format!("preflight = {{ {rule} }}")).await;
        let good = json!({"path": "a"});
        for _ in 0..2 {
            let answer = stage.call("ada", &session, "reports__write", &good).await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        let answer = stage.call("ada", &session, "reports__write", &good).await;
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(1029), &json!(reason)));
        assert!(error["data"]["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{answer}");
        let other = stage.begin("/mcp", "eve").await;
        let answer = stage.call("eve", &other, "reports__write", &good).await;
        assert!(answer.get("result").is_some(), "{answer}");
        assert_eq!(stage.script.lock().unwrap().count("tools/call"), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_counted_outlives_a_reload() {
    for (rule, more, reason) in [
        ("rate = \"2/hour\"", "rate = \"3/hour\"", "rate_limited"),
        ("quota = \"2/day\"", "quota = \"3/day\"", "quota_exceeded"),
    ] {
        let (stage, session) = stage(&format!("preflight = {{ {rule} }}")).await;
        let good = json!({"path": "a"});
        let call = async || stage.call("ada", &session, "reports__write", &good).await;
        for _ in 0..2 {
            let answer = call().await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        // Changed settings reopen the server, but its earlier calls still count.
        stage.reload("risk = \"low\"", "risk = \"medium\"").await;
        let answer = call().await;
        assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
        stage.reload(rule, more).await;
        // A bucket refills over time: with a different rate, it is fuller or emptier.
        if reason == "quota_exceeded" {
            let answer = call().await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        let answer = call().await;
        assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_takes_too_long_is_answered_and_cancelled_at_its_server() {
    let gateway = "limits = { call_timeout_seconds = 1, call_max_seconds = 30 }";
    let stage = Stage::open(Setting { gateway, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    stage.script.lock().unwrap().gate = Some(gate.clone());
    let arguments = json!({"path": "a"});
    let late = stage.call("ada", &session, "reports__read_report", &arguments).await;
    assert_eq!(late["error"]["data"]["reason"], "timeout", "{late}");
    let sent = |method: &str| {
        let script = stage.script.lock().unwrap();
        let found = script.asked.iter().find(|(asked, ..)| asked == method);
        found.map(|(_, _, message)| message.clone())
    };
    until("the server is told", async || sent("notifications/cancelled").is_some()).await;
    let (call, cancelled) = (sent("tools/call").unwrap(), sent("notifications/cancelled").unwrap());
    assert_eq!(cancelled["params"]["requestId"], call["id"], "{cancelled}");
    until("the outcome is recorded", async || {
        stage.receipts().iter().any(|line| line["outcome"]["status"] == "timeout")
    })
    .await;
    // The next call is allowed.
    gate.add_permits(10);
    let answer = stage.call("ada", &session, "reports__read_report", &arguments).await;
    assert!(answer.get("result").is_some(), "{answer}");
}

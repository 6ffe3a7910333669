//! Incident mode over HTTP: calls stopped by risk, tool and principal, anomalous sessions, revoked
//! tokens, and where the state is shown.

use crate::stage::{EVERYTHING, Setting, Stage, tool, until};
use serde_json::{Value, json};

async fn stage(gateway: &str) -> Stage {
    Stage::open(Setting {
        tools: ["read_report", "write_report", "wipe_report"].map(|name| tool(name, name)).into(),
        policies: EVERYTHING,
        principals: &[("ada", &[]), ("eve", &[])],
        admins: &[("olga", &[])],
        gateway,
        server: "tool_risk = { write_report = \"high\", wipe_report = \"critical\" }\n",
    })
    .await
}

async fn admin(stage: &Stage, method: &str, path: &str, body: &Value) -> Value {
    let authorization = format!("Bearer {}", stage.key("admin olga"));
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let path = format!("/admin/v1{path}");
    let answer = stage.send(method, &path, &headers, &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Why a call is refused; null if it is allowed.
async fn refused(stage: &Stage, sub: &str, session: &str, tool: &str) -> Value {
    let answer = stage.call(sub, session, &format!("reports__{tool}"), &json!({"path": "a"})).await;
    answer["error"]["data"]["reason"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incident_stops_by_risk_tool_and_principal_and_is_seen() {
    let stage = stage("").await;
    let [ada, eve] = [stage.begin("/mcp", "ada").await, stage.begin("/mcp", "eve").await];
    assert_eq!(refused(&stage, "ada", &ada, "wipe_report").await, Value::Null);
    assert_eq!(stage.send("GET", "/readyz", &[], "").await.body, "");
    let (stopped, free) = (json!("kill_switch"), Value::Null);
    for (incident, expected) in [
        (json!({"level": "high"}), [&free, &stopped, &stopped, &free]),
        (json!({"level": "critical"}), [&free, &free, &stopped, &free]),
        (json!({"level": "low"}), [&stopped, &stopped, &stopped, &stopped]),
        (json!({"tools": ["reports__read_report"]}), [&stopped, &free, &free, &stopped]),
        (json!({"principals": ["eve"]}), [&free, &free, &free, &stopped]),
        (json!({"principals": ["holdpoint:keys|ada"]}), [&stopped, &stopped, &stopped, &free]),
    ] {
        admin(&stage, "PUT", "/incident", &json!({"incident": incident})).await;
        let found = [
            refused(&stage, "ada", &ada, "read_report").await,
            refused(&stage, "ada", &ada, "write_report").await,
            refused(&stage, "ada", &ada, "wipe_report").await,
            refused(&stage, "eve", &eve, "read_report").await,
        ];
        assert_eq!(found.each_ref(), expected, "{incident}");
    }
    admin(&stage, "PUT", "/incident", &json!({"incident": {"level": "high"}})).await;
    assert_eq!(refused(&stage, "ada", &ada, "read_report").await, free);
    let allowed = stage.decisions().pop().unwrap();
    assert_eq!(allowed["decision"]["result"], "allow", "{allowed}");
    assert_eq!(allowed["incident_mode"], true, "{allowed}");
    until("the node to tell of it", async || stage.metric("holdpoint_incident").await > 0.0).await;
    assert!(stage.send("GET", "/readyz", &[], "").await.body.contains("an incident is on"));
    // The gateway itself answers lists, and their receipts record the incident as well.
    let _ = stage.ask("ada", &ada, "tools/list", &json!({})).await;
    assert_eq!(stage.decisions().pop().unwrap()["incident_mode"], true);
    let over = json!({"incident": null, "reason": "it was a test"});
    admin(&stage, "PUT", "/incident", &over).await;
    assert_eq!(refused(&stage, "ada", &ada, "wipe_report").await, free);
    assert_eq!(stage.decisions().pop().unwrap()["incident_mode"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_looks_wrong_is_slowed_down_then_quarantined_and_no_other_is() {
    let stage = stage(
        "[anomaly]\nthrottle_to = \"1/hour\"\nthrottle = { denials = \"3/hour\" }\nquarantine = { denials = \"5/hour\", new_tools = \"2/hour\" }\n",
    )
    .await;
    let [one, other] = [stage.begin("/mcp", "ada").await, stage.begin("/mcp", "ada").await];
    assert_eq!(refused(&stage, "ada", &one, "read_report").await, Value::Null);
    for _ in 0..4 {
        assert_eq!(refused(&stage, "ada", &one, "no_such_tool").await, "unknown_tool");
    }
    assert_eq!(refused(&stage, "ada", &one, "read_report").await, Value::Null, "one in an hour");
    let throttled = stage.call("ada", &one, "reports__read_report", &json!({"path": "a"})).await;
    assert_eq!(throttled["error"]["code"], 1029, "{throttled}");
    assert!(throttled["error"]["data"]["retry_after_ms"].as_u64().unwrap() > 0, "{throttled}");
    assert_eq!(refused(&stage, "ada", &other, "read_report").await, Value::Null);
    for _ in 0..2 {
        assert_eq!(refused(&stage, "ada", &one, "no_such_tool").await, "unknown_tool");
    }
    assert_eq!(refused(&stage, "ada", &one, "read_report").await, "session_quarantined");
    assert_eq!(refused(&stage, "ada", &other, "read_report").await, Value::Null);
    until("the quarantine to be known", async || {
        stage.metric("holdpoint_quarantined_sessions").await > 0.0
    })
    .await;
    assert!(stage.send("GET", "/readyz", &[], "").await.body.contains("1 session is quarantined"));
    let counted = "holdpoint_anomalies_total{rule=\"denials\",action=\"quarantine\"}";
    assert!(stage.metric(counted).await > 0.0);
    let state = admin(&stage, "GET", "/incident", &Value::Null).await;
    let quarantined = &state["quarantines"][0];
    assert_eq!(quarantined["principal"], "holdpoint:keys|ada", "{state}");
    assert_eq!(quarantined["rule"], "more than 5/hour denials", "{state}");
    admin(&stage, "POST", "/incident/release", &json!({"id": quarantined["id"]})).await;
    until("the session to be free", async || {
        refused(&stage, "ada", &one, "read_report").await != "session_quarantined"
    })
    .await;
    let events: Vec<Value> =
        stage.receipts().into_iter().filter(|line| line["name"] == "incident.anomaly").collect();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0]["data"]["action"], "throttle", "{events:?}");
    // Three tools that the session has never called before, of which two are allowed per hour.
    for (tool, expected) in [
        ("write_report", Value::Null),
        ("wipe_report", Value::Null),
        ("read_report", json!("session_quarantined")),
    ] {
        assert_eq!(refused(&stage, "ada", &other, tool).await, expected, "{tool}");
    }
}

//! Callers and servers that break the rules gain nothing.

use crate::stage::{Setting, Stage};
use serde_json::{Value, json};

/// A server with a prompt and two resources.
fn with_prompts(stage: &Stage) {
    let answer = |result: Value| {
        (
            200,
            "application/json",
            json!({"jsonrpc": "2.0", "id": "ID", "result": result}).to_string(),
        )
    };
    let mut script = stage.script.lock().unwrap();
    script.instead.extend([
        (
            "initialize".to_owned(),
            answer(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}},
                "serverInfo": {"name": "reports", "version": "1"},
            })),
        ),
        (
            "prompts/list".to_owned(),
            answer(json!({"prompts": [{"name": "open"}, {"name": "secret"}]})),
        ),
        (
            "resources/list".to_owned(),
            answer(json!({"resources": [
                {"uri": "a:open", "name": "open"},
                {"uri": "a:secret", "name": "secret"},
            ]})),
        ),
        (
            "resources/templates/list".to_owned(),
            answer(json!({"resourceTemplates": [{"uriTemplate": "b:{x}", "name": "b"}]})),
        ),
        (
            "completion/complete".to_owned(),
            answer(json!({"completion": {"values": ["completed"]}})),
        ),
        ("resources/subscribe".to_owned(), answer(json!({}))),
    ]);
}

fn was_asked(stage: &Stage, method: &str) -> usize {
    stage.script.lock().unwrap().asked.iter().filter(|(asked, ..)| asked == method).count()
}

const OPEN_ONLY: &str = r#"
@id("use") permit(principal, action == Action::"use", resource);
@id("call") permit(principal, action in Action::"call", resource);
@id("open") permit(principal, action == Action::"get", resource == Prompt::"reports__open");
@id("read") permit(principal, action == Action::"read", resource) when { resource.uri == "a:open" };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_read_can_neither_be_completed_nor_subscribed_to() {
    let stage = Stage::open(Setting { policies: OPEN_ONLY, ..Setting::default() }).await;
    with_prompts(&stage);
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    // The response is the same with and without an open link.
    stage.call("ada", &session, "reports__read_report", &json!({"path": "a"})).await;
    let complete =
        |reference: &Value| json!({"ref": reference, "argument": {"name": "x", "value": "y"}});
    let allowed = complete(&json!({"type": "ref/prompt", "name": "reports__open"}));
    let answer = stage.ask("ada", &session, "completion/complete", &allowed).await;
    assert_eq!(answer["result"]["completion"]["values"][0], "completed", "{answer}");
    assert_eq!(was_asked(&stage, "completion/complete"), 1);
    for hidden in [
        json!({"type": "ref/prompt", "name": "reports__secret"}),
        json!({"type": "ref/resource", "uri": "a:secret"}),
        json!({"type": "ref/resource", "uri": "a:secret", "name": "reports__open"}),
        json!({"type": "ref/prompt", "name": "reports__open", "uri": "a:secret"}),
        json!({"type": "ref/prompt", "name": "reports__open", "Name": "secret"}),
    ] {
        let answer = stage.ask("ada", &session, "completion/complete", &complete(&hidden)).await;
        assert!(answer["error"]["code"].is_i64(), "{hidden}: {answer}");
    }
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"reports__open","name":"secret"},"argument":{"name":"x","value":"y"}}}"#;
    let headers = [("mcp-session-id", session.as_str())];
    let answer = stage.post("/mcp", "ada", &headers, twice).await.json();
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    assert_eq!(was_asked(&stage, "completion/complete"), 1);
    let subscribed =
        stage.ask("ada", &session, "resources/subscribe", &json!({"uri": "a:open"})).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    let answer =
        stage.ask("ada", &session, "resources/subscribe", &json!({"uri": "a:secret"})).await;
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    assert_eq!(was_asked(&stage, "resources/subscribe"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_progress_token_of_the_callers_choice_does_not_reach_a_server() {
    let stage = Stage::open(Setting::default()).await;
    let session = stage.begin("/mcp", "ada").await;
    let headers = [("mcp-session-id", session.as_str())];
    let call = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"reports__read_report","arguments":{{"path":"a"}},"_meta":{meta}}}}}"#
        )
    };
    let plain = stage.post("/mcp", "ada", &headers, &call(r#"{"progressToken":1}"#)).await.json();
    assert!(plain["result"].is_object(), "{plain}");
    for meta in [
        r#"{"progressToken":1,"progressToken":99}"#,
        r#"{"progressToken":1,"progress\u0054oken":99}"#,
        r#"{"progressToken":1,"progresstoken":99}"#,
        r#"{"progressToken":1,"progreſſToken":99}"#,
    ] {
        let answer = stage.post("/mcp", "ada", &headers, &call(meta)).await.json();
        assert_eq!(answer["error"]["code"], -32600, "{meta}: {answer}");
    }
    assert_eq!(was_asked(&stage, "tools/call"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_are_ambiguous_do_not_tell_which_servers_there_are() {
    let nothing = "@id(\"none\") forbid(principal, action, resource);";
    let stage = Stage::open(Setting { policies: nothing, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "eve").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut answers = Vec::new();
    for name in ["reports__read_report", "reports__nothing", "nowhere__read_report"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1,"a":2}}}}}}"#
        );
        answers.push(stage.post("/mcp", "eve", &headers, &body).await.json());
    }
    assert_eq!(answers[0], answers[2]);
    assert_eq!(answers[1], answers[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_asks_a_client_only_what_it_was_offered() {
    let stage = Stage::open(Setting::default()).await;
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"your password?"}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}"#;
    let events: String = [question, ping, answer].map(|one| format!("data: {one}\n\n")).concat();
    let said = (200, "text/event-stream", events);
    stage.script.lock().unwrap().instead.insert("tools/call".to_owned(), said);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"reports__read_report","arguments":{"path":"a"}}}"#;
    for (capabilities, is_asked) in
        [("{}", false), (r#"{"sampling":{}}"#, false), (r#"{"elicitation":{}}"#, true)]
    {
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        );
        let begun = stage.post("/mcp", "ada", &[], &initialize).await;
        let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let headers = [("mcp-session-id", session.as_str())];
        let answer = stage.post("/mcp", "ada", &headers, call).await;
        assert_eq!(answer.body.contains("your password?"), is_asked, "{capabilities}: {answer:?}");
        assert!(!answer.body.contains("ping"), "{answer:?}");
        assert!(answer.json()["result"].is_object(), "{answer:?}");
    }
    let answered = |id: &str, member: &str| {
        let script = stage.script.lock().unwrap();
        script
            .asked
            .iter()
            .filter(|(_, _, message)| message["id"] == id && message[member].is_object())
            .count()
    };
    testing::wait_until("refusals and answers to the server", || {
        answered("q", "error") == 3 && answered("p", "result") == 3
    });
}

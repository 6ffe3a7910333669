//! Tasks and subscriptions: their ids are only valid for the caller they were given to, and the
//! call that created them.

use crate::stage::{EVERYTHING, Setting, Stage, tool};
use serde_json::{Value, json};

const VERSION: &str = "2026-07-28";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn answer(result: &Value) -> (u16, &'static str, String) {
    let message = json!({"jsonrpc": "2.0", "id": "ID", "result": result});
    (200, "application/json", message.to_string())
}

fn events(messages: &[Value]) -> (u16, &'static str, String) {
    let events = messages.iter().map(|message| format!("data: {message}\n\n"));
    (200, "text/event-stream", events.collect())
}

/// A server without sessions whose calls become the task `own-1`.
fn stateless_tasks(stage: &Stage) {
    let mut script = stage.script.lock().unwrap();
    let refusal = json!({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32022, "message": "no"}});
    script.instead.extend([
        ("initialize".to_owned(), (400, "application/json", refusal.to_string())),
        (
            "server/discover".to_owned(),
            answer(&json!({
                "resultType": "complete",
                "supportedVersions": [VERSION],
                "capabilities": {"tools": {}, "resources": {"subscribe": true}, "extensions": {TASKS: {}}},
            })),
        ),
        (
            "resources/list".to_owned(),
            answer(&json!({"resources": [{"uri": "a:open", "name": "o"}, {"uri": "a:secret", "name": "s"}]})),
        ),
        (
            "tools/call".to_owned(),
            answer(&json!({"resultType": "task", "taskId": "own-1", "status": "working", "ttlMs": null})),
        ),
        (
            "tasks/get".to_owned(),
            answer(&json!({
                "resultType": "complete", "taskId": "own-1", "status": "completed",
                "result": {"content": [], "_meta": {RELATED: {"taskId": "own-1"}}},
            })),
        ),
        ("tasks/update".to_owned(), answer(&json!({"resultType": "complete"}))),
        ("tasks/cancel".to_owned(), answer(&json!({"resultType": "complete"}))),
    ]);
}

/// A server with sessions whose calls become the task `own-1` if asked to.
fn session_tasks(stage: &Stage) {
    let mut script = stage.script.lock().unwrap();
    script.instead.extend([
        (
            "initialize".to_owned(),
            answer(&json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}},
                "serverInfo": {"name": "reports", "version": "1"},
            })),
        ),
        (
            "tools/call".to_owned(),
            answer(&json!({"task": {"taskId": "own-1", "status": "working", "ttl": 60000}})),
        ),
        ("tasks/get".to_owned(), answer(&json!({"taskId": "own-1", "status": "working"}))),
        (
            "tasks/result".to_owned(),
            answer(&json!({"content": [], "_meta": {RELATED: {"taskId": "own-1"}}})),
        ),
        ("tasks/list".to_owned(), answer(&json!({"tasks": [{"taskId": "own-1"}]}))),
    ]);
}

fn body(method: &str, mut params: Value, knows_tasks: bool) -> String {
    let extensions = if knows_tasks { json!({TASKS: {}}) } else { json!({}) };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
    });
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// A request of the stateless era. Returns its status and response.
async fn ask(stage: &Stage, sub: &str, method: &str, params: &Value) -> (u16, Value) {
    let name = params["taskId"].as_str().or(params["name"].as_str()).unwrap_or_default();
    let headers = [("mcp-protocol-version", VERSION), ("mcp-method", method), ("mcp-name", name)];
    let answer = stage.post("/mcp", sub, &headers, &body(method, params.clone(), true)).await;
    (answer.status, answer.json())
}

async fn make_task(stage: &Stage, sub: &str) -> String {
    let call = json!({"name": "reports__read_report", "arguments": {"path": "a"}});
    let (_, made) = ask(stage, sub, "tools/call", &call).await;
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let id = made["result"]["taskId"].as_str().unwrap().to_owned();
    assert!(!id.contains("own-1"));
    id
}

fn asked(stage: &Stage, method: &str) -> Vec<(http::HeaderMap, Value)> {
    let script = stage.script.lock().unwrap();
    let all = script.asked.iter().filter(|(asked, ..)| asked == method);
    all.map(|(_, headers, message)| (headers.clone(), message.clone())).collect()
}

/// The newest decision on a method.
fn decision(stage: &Stage, method: &str) -> Value {
    testing::wait_for("a decision", || {
        let mut found =
            stage.decisions().into_iter().filter(|line| line["mcp"]["method"] == method);
        found.next_back()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_asked_for_under_the_id_that_its_caller_got() {
    let stage = Stage::open(Setting::default()).await;
    stateless_tasks(&stage);
    let (_, discovered) = ask(&stage, "ada", "tools/list", &json!({})).await;
    assert!(discovered["result"]["tools"].is_array(), "{discovered}");
    let id = make_task(&stage, "ada").await;
    let (_, discovered) = ask(&stage, "ada", "server/discover", &json!({})).await;
    assert!(discovered["result"]["capabilities"]["extensions"][TASKS].is_object());
    let (status, got) = ask(&stage, "ada", "tasks/get", &json!({"taskId": id})).await;
    assert_eq!((status, &got["result"]["taskId"]), (200, &json!(id)), "{got}");
    assert_eq!(got["result"]["result"]["_meta"][RELATED]["taskId"], json!(id));
    let (headers, message) = asked(&stage, "tasks/get").pop().unwrap();
    assert_eq!(message["params"]["taskId"], "own-1");
    assert_eq!(headers["mcp-name"], "own-1");
    let recorded = decision(&stage, "tasks/get");
    assert_eq!(recorded["mcp"]["tool_name"], "read_report", "{recorded}");
    assert_eq!(recorded["decision"]["policy_id"], "all");
    for (method, more) in [("tasks/update", json!({})), ("tasks/cancel", Value::Null)] {
        let params = json!({"taskId": id, "inputResponses": more});
        let (status, done) = ask(&stage, "ada", method, &params).await;
        assert_eq!((status, &done["result"]["resultType"]), (200, &json!("complete")), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_forged_or_unsealed_task_is_unknown() {
    let stage = Stage::open(Setting::default()).await;
    stateless_tasks(&stage);
    ask(&stage, "ada", "tools/list", &json!({})).await;
    let id = make_task(&stage, "ada").await;
    let forged = format!("{}{}", if id.starts_with('A') { "B" } else { "A" }, &id[1..]);
    let session = stage.begin("/mcp", "ada").await;
    let mut answers = Vec::new();
    for (sub, id) in
        [("eve", &id), ("ada", &forged), ("ada", &"own-1".to_owned()), ("ada", &session)]
    {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            let (status, refused) = ask(&stage, sub, method, &params).await;
            assert_eq!((status, &refused["error"]["code"]), (200, &json!(-32602)), "{refused}");
            answers.push(refused["error"].clone());
            assert_eq!(decision(&stage, method)["decision"]["result"], "deny");
        }
        let listen = json!({"notifications": {"taskIds": [id]}});
        let (_, refused) = ask(&stage, sub, "subscriptions/listen", &listen).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(decision(&stage, "subscriptions/listen")["decision"]["result"], "deny");
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "they look the same");
    assert!(asked(&stage, "tasks/get").is_empty());
    // The header has to agree with the body.
    let headers =
        [("mcp-protocol-version", VERSION), ("mcp-method", "tasks/get"), ("mcp-name", "x")];
    let refused =
        stage.post("/mcp", "ada", &headers, &body("tasks/get", json!({"taskId": id}), true)).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_authorized_as_the_call_that_made_it() {
    // The policy uses the arguments, which are not sent again.
    let policies = r#"
@id("a") permit(principal, action == Action::"reports__read_report", resource)
when { context.input has path && context.input.path == "a" };
"#;
    let stage = Stage::open(Setting { policies: EVERYTHING, ..Setting::default() }).await;
    stateless_tasks(&stage);
    ask(&stage, "ada", "tools/list", &json!({})).await;
    let id = make_task(&stage, "ada").await;
    let other = json!({"name": "reports__read_report", "arguments": {"path": "b"}});
    let (_, made) = ask(&stage, "ada", "tools/call", &other).await;
    let other = made["result"]["taskId"].as_str().unwrap().to_owned();
    stage.replace_policies(policies);
    let (_, got) = ask(&stage, "ada", "tasks/get", &json!({"taskId": id})).await;
    assert!(got["result"].is_object(), "{got}");
    assert_eq!(decision(&stage, "tasks/get")["decision"]["policy_id"], "a");
    let (_, refused) = ask(&stage, "ada", "tasks/get", &json!({"taskId": other})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(asked(&stage, "tasks/get").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_made_only_for_clients_that_know_tasks_and_calls_that_fit() {
    let stage = Stage::open(Setting::default()).await;
    stateless_tasks(&stage);
    ask(&stage, "ada", "tools/list", &json!({})).await;
    let id = make_task(&stage, "ada").await;
    let headers =
        [("mcp-protocol-version", VERSION), ("mcp-method", "tasks/get"), ("mcp-name", &id)];
    let params = json!({"taskId": id});
    let refused = stage.post("/mcp", "ada", &headers, &body("tasks/get", params, false)).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32021)));
    let required = &refused.json()["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(required[TASKS].is_object());
    // A task that the server creates unasked is not passed on, and neither is an unsealed id.
    let call = json!({"name": "reports__read_report", "arguments": {"path": "a"}});
    let headers = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "reports__read_report"),
    ];
    let refused =
        stage.post("/mcp", "ada", &headers, &body("tools/call", call, false)).await.json();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let declares = |message: &Value| {
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        meta["extensions"][TASKS].is_object()
    };
    let call = |bytes: usize| json!({"name": "reports__read_report", "arguments": {"path": "x".repeat(bytes - r#"{"path":""}"#.len())}});
    for (bytes, is_declared) in [(2_048, true), (2_049, false)] {
        ask(&stage, "ada", "tools/call", &call(bytes)).await;
        assert_eq!(declares(&asked(&stage, "tools/call").pop().unwrap().1), is_declared, "{bytes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_older_era_has_tasks_of_its_own() {
    let stage = Stage::open(Setting::default()).await;
    session_tasks(&stage);
    let first = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &first, "tools/list", &json!({})).await;
    let call =
        json!({"name": "reports__read_report", "arguments": {"path": "a"}, "task": {"ttl": 60000}});
    let made = stage.ask("ada", &first, "tools/call", &call).await;
    let id = made["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    assert!(!id.contains("own-1"), "{made}");
    let session = stage.begin("/mcp", "ada").await;
    let got = stage.ask("ada", &session, "tasks/get", &json!({"taskId": id})).await;
    assert_eq!(got["result"]["taskId"], json!(id), "{got}");
    let result = stage.ask("ada", &session, "tasks/result", &json!({"taskId": id})).await;
    assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(id), "{result}");
    let list = stage.ask("ada", &session, "tasks/list", &json!({})).await;
    assert_eq!(list["error"]["code"], -32601, "{list}");
    assert!(asked(&stage, "tasks/list").is_empty());
    let eve = stage.begin("/mcp", "eve").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = stage.ask("eve", &eve, method, &json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // Tasks are not translated: the other era has none here.
    let (status, refused) = ask(&stage, "ada", "tasks/get", &json!({"taskId": id})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!(-32601)), "{refused}");
    let (_, discovered) = ask(&stage, "ada", "server/discover", &json!({})).await;
    assert!(discovered["result"]["capabilities"]["extensions"].is_null(), "{discovered}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_no_task_where_the_server_has_none() {
    let stage = Stage::open(Setting::default()).await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let call = json!({"name": "reports__read_report", "arguments": {"path": "a"}, "task": {}});
    let refused = stage.ask("ada", &session, "tools/call", &call).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let refused = stage.ask("ada", &session, "tasks/get", &json!({"taskId": "x"})).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert!(asked(&stage, "tools/call").is_empty());
}

/// The messages on each stream of a subscription: the acknowledgement, then this notification.
fn told(method: &str, params: Value) -> (u16, &'static str, String) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "ID"});
    let message = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let acknowledged =
        message("notifications/subscriptions/acknowledged", json!({"notifications": {}}));
    events(&[acknowledged, message(method, params)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_a_task_is_told_of_it_and_of_no_other() {
    let stage = Stage::open(Setting::default()).await;
    stateless_tasks(&stage);
    ask(&stage, "ada", "tools/list", &json!({})).await;
    let id = make_task(&stage, "ada").await;
    let say = |task: &str| {
        let params = json!({"taskId": task, "status": "completed", "result": {"content": []}});
        let told = told("notifications/tasks", params);
        stage.script.lock().unwrap().instead.insert("subscriptions/listen".to_owned(), told);
    };
    let listen = json!({"notifications": {"taskIds": [id]}});
    let headers = [("mcp-protocol-version", VERSION), ("mcp-method", "subscriptions/listen")];
    say("own-2");
    let mut foreign = stage
        .listen("/mcp", "ada", &headers, &body("subscriptions/listen", listen.clone(), true))
        .await;
    assert_eq!(foreign.next().await["params"]["notifications"]["taskIds"][0], json!(id));
    testing::wait_until("a subscription", || {
        let listened = asked(&stage, "subscriptions/listen");
        listened
            .iter()
            .any(|(_, message)| message["params"]["notifications"]["taskIds"][0] == "own-1")
    });
    say("own-1");
    let mut own =
        stage.listen("/mcp", "ada", &headers, &body("subscriptions/listen", listen, true)).await;
    own.next().await;
    let message = own.next().await;
    assert_eq!(
        (&message["method"], &message["params"]["taskId"]),
        (&json!("notifications/tasks"), &json!(id))
    );
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert!(foreign.heard().iter().all(|message| !message.to_string().contains("own-")));
}

const READ_OPEN: &str = r#"
@id("call") permit(principal, action in Action::"call", resource);
@id("read") permit(principal, action == Action::"read", resource) when { resource.uri == "a:open" };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_client_subscribes_to_a_resource_of_a_server_without_sessions() {
    let stage = Stage::open(Setting { policies: READ_OPEN, ..Setting::default() }).await;
    stateless_tasks(&stage);
    let updated = told("notifications/resources/updated", json!({"uri": "a:open"}));
    stage.script.lock().unwrap().instead.insert("subscriptions/listen".to_owned(), updated);
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = stage.open_stream("/mcp", "ada", &headers).await;
    assert_eq!(stream.status, 200);
    let done = stage.ask("ada", &session, "resources/subscribe", &json!({"uri": "a:open"})).await;
    assert_eq!(done["result"], json!({}), "{done}");
    let message = stream.next().await;
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(message["params"], json!({"uri": "a:open"}));
    let listened = asked(&stage, "subscriptions/listen");
    let filters = listened.iter().map(|(_, message)| &message["params"]["notifications"]);
    assert!(filters.into_iter().any(|filter| filter["resourceSubscriptions"] == json!(["a:open"])));
    let refused =
        stage.ask("ada", &session, "resources/subscribe", &json!({"uri": "a:secret"})).await;
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    let (_, discovered) = ask(&stage, "ada", "server/discover", &json!({})).await;
    assert_eq!(discovered["result"]["capabilities"]["resources"]["subscribe"], true);
    let done = stage.ask("ada", &session, "resources/unsubscribe", &json!({"uri": "a:open"})).await;
    assert_eq!(done["result"], json!({}), "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_level_of_a_session_goes_to_a_server_without_sessions_with_each_request() {
    let stage = Stage::open(Setting::default()).await;
    stateless_tasks(&stage);
    let done = answer(&json!({"resultType": "complete", "content": []}));
    stage.script.lock().unwrap().instead.insert("tools/call".to_owned(), done);
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let level = |stage: &Stage| {
        let (_, message) = asked(stage, "tools/call").pop().unwrap();
        message["params"]["_meta"]["io.modelcontextprotocol/logLevel"].clone()
    };
    stage.call("ada", &session, "reports__read_report", &json!({"path": "a"})).await;
    assert_eq!(level(&stage), Value::Null);
    let refused = stage.ask("ada", &session, "logging/setLevel", &json!({"level": "loud"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    stage.ask("ada", &session, "logging/setLevel", &json!({"level": "warning"})).await;
    stage.call("ada", &session, "reports__read_report", &json!({"path": "a"})).await;
    assert_eq!(level(&stage), "warning");
    let other = stage.begin("/mcp", "ada").await;
    stage.call("ada", &other, "reports__read_report", &json!({"path": "a"})).await;
    assert_eq!(level(&stage), Value::Null, "the level of one session is not another's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_anything_to_what_it_does_not_know_is_spoken_to_with_a_session() {
    for nothing in [json!({}), json!({"resultType": "complete"})] {
        let stage = Stage::open(Setting {
            tools: vec![tool("read_report", "Reads.")],
            ..Setting::default()
        })
        .await;
        stage.script.lock().unwrap().instead.insert("server/discover".to_owned(), answer(&nothing));
        let (_, list) = ask(&stage, "ada", "tools/list", &json!({})).await;
        assert_eq!(list["result"]["tools"][0]["name"], "reports__read_report", "{list}");
        let call = json!({"name": "reports__read_report", "arguments": {"path": "a"}});
        let (_, called) = ask(&stage, "ada", "tools/call", &call).await;
        assert_eq!(called["result"]["content"][0]["text"], "read_report a", "{called}");
        // Nothing in the session differs from the recorded observation.
        let session = stage.begin("/mcp", "ada").await;
        let called =
            stage.call("ada", &session, "reports__read_report", &json!({"path": "b"})).await;
        assert_eq!(called["result"]["content"][0]["text"], "read_report b", "{called}");
        let drifted =
            |line: &Value| line["name"].as_str().is_some_and(|name| name.contains("drift"));
        assert!(!stage.receipts().iter().any(drifted), "{nothing}");
    }
}

/// A person saw the call, but not what the client later sends to its task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn further_input_for_a_task_of_an_approved_call_needs_approval_too() {
    let stage = Stage::open(Setting {
        policies: "@id(\"ask\")\n@require_approval(\"leads\")\npermit(principal, action in Action::\"call\", resource);\n@id(\"rest\")\npermit(principal, action in [Action::\"use\", Action::\"grant\"], resource);",
        gateway: "limits = { approval_wait_seconds = 0 }",
        principals: &[("ada", &[])],
        admins: &[("bob", &["leads"])],
        ..Setting::default()
    })
    .await;
    stateless_tasks(&stage);
    ask(&stage, "ada", "tools/list", &json!({})).await;
    let call = json!({"name": "reports__read_report", "arguments": {"path": "a"}});
    let (_, waits) = ask(&stage, "ada", "tools/call", &call).await;
    let id = waits["error"]["data"]["approval_id"].as_str().unwrap_or_else(|| panic!("{waits}"));
    let granted = stage.admin("POST", &format!("/approvals/{id}/grant"), "bob").await;
    assert_eq!(granted.status, 200, "{granted:?}");
    let task = json!({"taskId": make_task(&stage, "ada").await});
    // Asking for its result needs no further approval.
    let (_, got) = ask(&stage, "ada", "tasks/get", &task).await;
    assert!(got.get("result").is_some(), "{got}");
    let (_, refused) = ask(&stage, "ada", "tasks/update", &task).await;
    assert_eq!(refused["error"]["data"]["reason"], "approval_required", "{refused}");
    assert!(asked(&stage, "tasks/update").is_empty());
}

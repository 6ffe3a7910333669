//! The paths that callers can use: all servers combined, one server, a set of tools, a tenant; and
//! which headers are forwarded.

use crate::stage::{Answer, Setting, Stage, tool};
use serde_json::{Value, json};

fn names(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn at(stage: &Stage, path: &str, method: &str, params: Value) -> Value {
    let session = stage.begin(path, "ada").await;
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    stage.post(path, "ada", &[("mcp-session-id", &session)], &body).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_has_its_own_names_and_a_set_has_its_tools_only() {
    let tools = vec![tool("read_report", "Reads."), tool("write_report", "Writes.")];
    let server = "names = { write_report = \"write\" }\n[[toolset]]\nid = \"reading\"\ntools = [\"reports__read_report\"]";
    let stage = Stage::open(Setting { tools, server, ..Setting::default() }).await;
    let all = at(&stage, "/mcp", "tools/list", json!({})).await;
    assert_eq!(names(&all), ["reports__read_report", "reports__write"]);
    let own = at(&stage, "/servers/reports/mcp", "tools/list", json!({})).await;
    assert_eq!(names(&own), ["read_report", "write_report"]);
    let set = at(&stage, "/sets/reading/mcp", "tools/list", json!({})).await;
    assert_eq!(names(&set), ["reports__read_report"]);
    let call = |name: &str| json!({"name": name, "arguments": {"path": "a"}});
    for (path, name, text) in [
        ("/mcp", "reports__write", Some("write_report a")),
        ("/mcp", "reports__write_report", None),
        ("/servers/reports/mcp", "write_report", Some("write_report a")),
        ("/servers/reports/mcp", "reports__write", None),
        ("/sets/reading/mcp", "reports__read_report", Some("read_report a")),
        ("/sets/reading/mcp", "reports__write", None),
    ] {
        let answer = at(&stage, path, "tools/call", call(name)).await;
        match text {
            Some(text) => {
                assert_eq!(answer["result"]["content"][0]["text"], text, "{path} {name}: {answer}");
            }
            None => assert_eq!(
                answer["error"]["data"]["reason"], "unknown_tool",
                "{path} {name}: {answer}"
            ),
        }
    }
    let key = format!("Bearer {}", stage.key("ada"));
    for path in ["/servers/nothing/mcp", "/sets/nothing/mcp", "/t/acme/mcp"] {
        let headers = [("authorization", key.as_str()), ("content-type", "application/json")];
        assert_eq!(stage.send("POST", path, &headers, "{}").await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_and_configured_headers_go_on_and_no_others_do() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("own");
    std::fs::write(&secret, "ours").unwrap();
    let server = format!(
        "forward_headers = [\"x-tenant\", \"x-own\"]\nheaders = {{ x-own = \"file:{}\" }}",
        secret.display()
    );
    let server = server.as_str();
    let stage = Stage::open(Setting { server, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("traceparent", &parent),
        ("x-tenant", "acme"),
        ("x-own", "theirs"),
        ("x-secret", "s3cret"),
        ("cookie", "a=b"),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "reports__read_report", "arguments": {"path": "a"},
    }});
    let answer = stage.post("/mcp", "ada", &headers, &body.to_string()).await.json();
    assert!(answer.get("result").is_some(), "{answer}");
    {
        let script = stage.script.lock().unwrap();
        let (_, sent, _) = script.asked.iter().find(|(method, ..)| method == "tools/call").unwrap();
        assert_eq!(sent["traceparent"], parent.as_str());
        assert_eq!(sent["x-tenant"], "acme");
        assert_eq!(sent.get_all("x-own").iter().collect::<Vec<_>>(), ["ours"], "{sent:?}");
        assert!(sent.get("x-secret").is_none() && sent.get("cookie").is_none(), "{sent:?}");
    }
    let decisions = stage.decisions();
    let call = decisions.iter().find(|line| line["mcp"]["method"] == "tools/call").unwrap();
    assert_eq!(call["trace_id"], trace, "{call}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_answered_as_one_in_the_revision_that_has_them() {
    let stage = Stage::open(Setting::default()).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let begun = stage.post("/mcp", "ada", &[], &initialize.to_string()).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    let call = |id: usize| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "reports__read_report", "arguments": {"path": "a"},
        }})
    };
    let batch =
        json!([call(1), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2)]);
    let answer = stage.post("/mcp", "ada", &headers, &batch.to_string()).await.json();
    let ids: Vec<&Value> = answer.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)], "{answer}");
    assert!(answer[1].get("result").is_some(), "{answer}");
    let begins = json!([initialize]).to_string();
    assert_eq!(stage.post("/mcp", "ada", &headers, &begins).await.status, 400);
    let many = |count: usize| json!((0..count).map(call).collect::<Vec<_>>()).to_string();
    assert_eq!(stage.post("/mcp", "ada", &headers, &many(50)).await.status, 200);
    assert_eq!(stage.post("/mcp", "ada", &headers, &many(51)).await.status, 400);
}

/// The parts in which responses may differ, without the date.
fn look(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "date");
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value)));
    (answer.status, headers.collect(), answer.body.clone())
}

const WRITERS: &str = "@id(\"writers\")\npermit(principal in Group::\"writers\", action, resource in Server::\"reports\");";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_or_set_that_a_caller_may_not_use_is_not_told_from_none() {
    let server = "[[toolset]]\nid = \"reading\"\ntools = [\"reports__read_report\"]";
    let stage = Stage::open(Setting { server, policies: WRITERS, ..Setting::default() }).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }})
    .to_string();
    // First while the server was never observed, then afterwards.
    for _ in 0..2 {
        let nothing = stage.post("/servers/nothing/mcp", "eve", &[], &initialize).await;
        assert_eq!(nothing.status, 404);
        for path in ["/servers/reports/mcp", "/sets/reading/mcp", "/sets/nothing/mcp"] {
            let answer = stage.post(path, "eve", &[], &initialize).await;
            assert_eq!(look(&answer), look(&nothing), "{path}");
        }
        assert_eq!(stage.script.lock().unwrap().asked.len(), 0, "nothing is started for eve");
        for path in ["/servers/reports/mcp", "/sets/reading/mcp"] {
            assert_eq!(stage.post(path, "ada", &[], &initialize).await.status, 200, "{path}");
        }
        let all = at(&stage, "/mcp", "tools/list", json!({})).await;
        assert_eq!(names(&all), ["reports__read_report"]);
        stage.script.lock().unwrap().asked.clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_not_started_by_guessing_its_name() {
    let stage = Stage::open(Setting { policies: WRITERS, ..Setting::default() }).await;
    let eve = stage.begin("/mcp", "eve").await;
    let asked = || stage.script.lock().unwrap().asked.len();
    let listed = stage.ask("eve", &eve, "tools/list", &json!({})).await;
    assert_eq!(names(&listed), Vec::<String>::new());
    let guessed = stage.call("eve", &eve, "reports__read_report", &json!({})).await;
    let unknown = stage.call("eve", &eve, "nothing__read_report", &json!({})).await;
    for answer in [&guessed, &unknown] {
        assert_eq!(answer["error"]["data"]["reason"], "unknown_tool", "{answer}");
        assert_eq!(answer["error"]["data"].get("server"), None, "{answer}");
    }
    assert_eq!(asked(), 0, "nothing is asked of the server");
    let ada = stage.begin("/mcp", "ada").await;
    let called = stage.call("ada", &ada, "reports__read_report", &json!({"path": "a"})).await;
    assert!(called.get("result").is_some(), "{called}");
    assert!(asked() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_caller_sees_first_is_pinned_for_all_or_waits_for_a_person() {
    let refused = |answer: &Value| answer["error"]["data"]["reason"].as_str().map(str::to_owned);
    for (first_use, expected) in [("trust", None), ("approve", Some("unknown_tool"))] {
        let gateway = format!("first_use = \"{first_use}\"");
        let server = "[relist]\nmax_age = 0";
        let stage = Stage::open(Setting { gateway: &gateway, server, ..Setting::default() }).await;
        let ada = stage.begin("/mcp", "ada").await;
        let first = stage.call("ada", &ada, "reports__read_report", &json!({"path": "a"})).await;
        assert_eq!(refused(&first).as_deref(), expected, "{first_use}: {first}");
        // Unaccepted definitions are in no inventory, so no policy can permit them. What ada saw is
        // the baseline for eve too: a different text of the same tool is a change.
        stage.script.lock().unwrap().tools[0] = tool("read_report", "Sends reports to the author.");
        let eve = stage.begin("/mcp", "eve").await;
        let second = stage.call("eve", &eve, "reports__read_report", &json!({"path": "a"})).await;
        assert!(second.get("error").is_some(), "{first_use}: {second}");
        let listed = stage.ask("eve", &eve, "tools/list", &json!({})).await;
        assert!(!listed.to_string().contains("to the author"), "{first_use}: {listed}");
    }
}

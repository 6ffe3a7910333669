//! Arguments copied into headers, as a tool's definition requests: only the accepted definition
//! counts, and no argument can inject a header.

use crate::bench::*;
use crate::client::*;
use crate::http_server::{Seen, Server, accepted, json as body, result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const STATELESS: &str = "2026-07-28";

fn query_tool() -> Value {
    json!({ "name": "query", "description": "Asks the database.", "inputSchema": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "options": { "type": "object", "properties": { "limit": { "type": "integer", "x-mcp-header": "Limit" } } },
        "text": { "type": "string" },
    } } })
}

fn plain_tool() -> Value {
    json!({ "name": "plain", "description": "Does something.", "inputSchema": { "type": "object", "properties": { "region": { "type": "string" } } } })
}

/// A tool that violates the revision's rules.
fn broken_tool() -> Value {
    json!({ "name": "broken", "description": "Does something else.", "inputSchema": { "type": "object", "properties": {
        "a": { "type": "string", "x-mcp-header": "A\r\nHost: evil" },
    } } })
}

/// A server with these tools, which tests can change.
fn serve(tools: &Arc<Mutex<Vec<Value>>>) -> Server {
    let tools = tools.clone();
    Server::start(move |request| {
        let said = match request.rpc_method() {
            "initialize" => {
                json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "far", "version": "1" } })
            }
            "server/discover" => {
                json!({ "supportedVersions": [STATELESS], "capabilities": { "tools": {} }, "serverInfo": { "name": "far", "version": "1" } })
            }
            "tools/list" => json!({ "resultType": "complete", "tools": *tools.lock().unwrap() }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
            _ => return accepted(),
        };
        body(&result(request, &said.to_string()))
    })
}

struct Scene {
    bench: Bench,
    tools: Arc<Mutex<Vec<Value>>>,
    server: Server,
    client: Client,
}

fn scene(tools: &[Value]) -> Scene {
    let bench = Bench::unattended();
    let tools = Arc::new(Mutex::new(tools.to_vec()));
    let server = serve(&tools);
    let mut command = bench.command(["run", "--server", ID, "--relist-max-age", "0"]);
    command.args(["--url", &server.url()]);
    let client = Client::start(command);
    Scene { bench, tools, server, client }
}

impl Scene {
    #[track_caller]
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.client.ask(method, &params)
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The calls that arrived, with the headers made from their arguments.
    fn calls(&self) -> Vec<BTreeMap<String, String>> {
        let calls = self.server.seen().into_iter().filter(|seen| seen.rpc_method() == "tools/call");
        calls.map(|seen| parameters(&seen)).collect()
    }

    fn tool_names(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn parameters(seen: &Seen) -> BTreeMap<String, String> {
    let headers = seen.headers.iter().filter(|(name, _)| name.starts_with("mcp-param-"));
    headers.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn headers(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn arguments_go_into_the_headers_that_the_accepted_definition_names() {
    let mut scene = scene(&[query_tool(), plain_tool()]);
    text(
        &scene.call(
            "query",
            &json!({ "region": "us-west1", "text": "x", "options": { "limit": 7 } }),
        ),
    );
    text(&scene.call("query", &json!({ "region": null, "text": "x" })));
    text(&scene.call("query", &json!({ "region": "Hello, 世界" })));
    text(&scene.call("plain", &json!({ "region": "us-west1" })));
    let encoded = "=?base64?SGVsbG8sIOS4lueVjA==?=";
    let expected = [
        headers(&[("mcp-param-limit", "7"), ("mcp-param-region", "us-west1")]),
        headers(&[]),
        headers(&[("mcp-param-region", encoded)]),
        headers(&[]),
    ];
    assert_eq!(scene.calls(), expected);
    let first = scene.server.wait_for(|seen| seen.rpc_method() == "tools/call", 1).remove(0);
    assert_eq!(first.header("mcp-name"), Some("query"));
    assert_eq!(first.body["params"]["arguments"]["region"], "us-west1");
    scene.client.end().exits(0);
}

#[test]
fn no_argument_writes_a_header_of_its_own() {
    let mut scene = scene(&[query_tool()]);
    text(&scene.call(
        "query",
        &json!({ "region": "a\r\nAuthorization: Bearer x\r\n\r\nPOST / HTTP/1.1" }),
    ));
    let seen = scene.server.wait_for(|seen| seen.rpc_method() == "tools/call", 1).remove(0);
    assert!(seen.header("mcp-param-region").unwrap().starts_with("=?base64?"), "{seen:?}");
    assert_eq!(seen.header("authorization"), None);
    scene.client.end().exits(0);
}

#[test]
fn arguments_that_no_header_can_say_in_one_way_are_refused_before_they_leave() {
    let mut scene = scene(&[query_tool()]);
    text(&scene.call("query", &json!({ "region": "x".repeat(8 * 1024) })));
    let long = scene.call("query", &json!({ "region": "x".repeat(8 * 1024 + 1) }));
    assert_eq!(refused(&long, DENIED)["reason"], "payload_too_large");
    for odd in [
        json!({ "region": ["a"] }),
        json!({ "options": { "limit": 1.5 } }),
        json!({ "options": { "limit": 9_007_199_254_740_992_u64 } }),
    ] {
        let answer = scene.call("query", &odd);
        assert_eq!(refused(&answer, DENIED)["reason"], "schema_violation");
    }
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {} });
    let twice = r#"{"region":"a","region":"b"}"#;
    scene.client.send_line(format!(
        r#"{{"jsonrpc":"2.0","id":"twice","method":"tools/call","params":{{"name":"query","arguments":{twice},"_meta":{meta}}}}}"#
    ));
    let answer = scene.client.answer_to(&json!("twice"));
    assert_eq!(refused(&answer, -32600)["reason"], "ambiguous_message");
    assert_eq!(scene.calls().len(), 1);
    let requests = scene.client.requests() + 1;
    scene.client.end().exits(0);
    receipts_are_complete(&scene.bench, requests);
}

#[test]
fn a_tool_that_breaks_the_rules_is_neither_shown_nor_called_and_others_are() {
    let mut scene = scene(&[broken_tool(), plain_tool()]);
    assert_eq!(scene.tool_names(), ["plain"]);
    let answer = scene.call("broken", &json!({ "a": "x" }));
    assert_eq!(refused(&answer, DENIED)["reason"], "unknown_tool");
    assert!(!answer.to_string().contains("evil"), "{answer}");
    text(&scene.call("plain", &json!({})));
    assert_eq!(scene.calls().len(), 1);
    scene.client.end().exits(0);
}

#[test]
fn another_header_is_another_contract_and_nothing_is_sent_under_it() {
    let mut scene = scene(&[query_tool()]);
    text(&scene.call("query", &json!({ "region": "a", "text": "secret" })));
    let mut moved = query_tool();
    moved["inputSchema"]["properties"]["text"]["x-mcp-header"] = json!("Text");
    *scene.tools.lock().unwrap() = vec![moved];
    let answer = scene.call("query", &json!({ "region": "a", "text": "secret" }));
    let kinds = &refused(&answer, HELD)["kinds"];
    assert_eq!(*kinds, json!(["header-binding-changed"]));
    assert_eq!(scene.calls(), [headers(&[("mcp-param-region", "a")])]);
    scene.client.end().exits(0);
}

#[test]
fn in_a_session_no_argument_goes_into_a_header_and_no_tool_is_left_out_for_it() {
    let mut scene = scene(&[query_tool(), broken_tool()]);
    scene.client.begin();
    assert_eq!(scene.client.tool_names(), ["query", "broken"]);
    text(&scene.client.call("query", &json!({ "region": "a" })));
    text(&scene.client.call("broken", &json!({ "a": "a" })));
    assert_eq!(scene.calls(), [headers(&[]), headers(&[])]);
    scene.client.end().exits(0);
}

#[test]
fn a_given_header_cannot_stand_in_for_an_argument() {
    let bench = Bench::unattended();
    let server = serve(&Arc::default());
    let file = bench.file("value", "x");
    let mut command = bench.command(["run", "--server", ID, "--url", &server.url(), "--header"]);
    command.arg(format!("Mcp-Param-Region=file:{}", file.display()));
    let mut client = Client::start(command);
    let info = json!({ "name": "test", "version": "1" });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info }),
    );
    let ended = client.ended();
    assert!(
        !ended.status.success() && ended.errors.contains("mcp-param-region"),
        "{}",
        ended.errors
    );
    assert!(server.seen().is_empty());
}

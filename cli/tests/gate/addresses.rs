//! Servers over HTTP: what a client may rely on, however the transport works.

use crate::bench::*;
use crate::client::*;
use crate::http_server::{self, Server, Step};
use serde_json::{Value, json};

fn params(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// A server without sessions that never answers calls of `slow`.
fn server() -> Server {
    Server::start(|request| {
        let tool = |name: &str| json!({ "name": name, "description": "Does something.", "inputSchema": { "type": "object" } });
        let said = match request.rpc_method() {
            "server/discover" => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "serverInfo": { "name": "far", "version": "1" } })
            }
            "tools/list" => {
                json!({ "resultType": "complete", "tools": [tool("slow"), tool("fast")] })
            }
            "tools/call" if request.body["params"]["name"] == "slow" => {
                return vec![http_server::stream_head(""), Step::AwaitClosing];
            }
            _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
        };
        http_server::json(&http_server::result(request, &said.to_string()))
    })
}

#[test]
fn a_call_that_its_client_cancelled_is_given_up_and_not_answered() {
    let bench = Bench::new();
    let server = server();
    let mut client = Client::start(bench.command(["run", "--server", ID, "--url", &server.url()]));
    let call = |name: &str| params(json!({ "name": name, "arguments": {} }));
    let slow = client.request("tools/call", &call("slow"));
    server.wait_for(|seen| seen.rpc_method() == "tools/call", 1);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": slow } }));
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    text(&client.ask("tools/call", &call("fast")));
    let requests = client.requests();
    let ended = client.end().exits(0);
    let heard = ended.heard.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let answers: Vec<Value> = heard.filter(|message| message["id"] == slow).collect();
    assert!(answers.is_empty(), "{answers:?}");
    receipts_are_complete(&bench, requests);
    assert_eq!(receipts(&bench)[0]["outcome"]["status"], "error");
}

#[test]
fn a_server_that_asks_for_a_sign_in_is_answered_for_with_what_to_do() {
    let bench = Bench::new();
    let server = Server::start(|_| {
        http_server::respond("401 Unauthorized", "www-authenticate: Bearer\r\n", "")
    });
    let mut client = Client::start(bench.command(["run", "--server", ID, "--url", &server.url()]));
    let answer = client.ask("server/discover", &params(json!({})));
    assert_eq!(refused(&answer, UNREACHABLE)["reason"], "upstream_unreachable");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("--header Authorization=bearer-env:"), "{said}");
    client.end().exits(0);
}

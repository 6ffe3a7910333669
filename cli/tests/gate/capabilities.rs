//! Servers offer tools depending on the client's capabilities. Commands that inspect a server on
//! behalf of a client see the same tools.

use crate::bench::*;
use crate::client::*;
use contract::client::MAX_CAPABILITIES_BYTES;
use serde_json::{Value, json};

const META: &str = "io.modelcontextprotocol";

/// A server that offers `send_mail` only to clients with roots, and `make_report` to all.
fn choosy(bench: &Bench) -> FolderServer {
    let server = FolderServer::new(bench, &json!([report_tool()]));
    let both = json!({ "tools": [report_tool(), mail_tool()] });
    let asks = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
    server.sends(
        "tools/list+roots",
        format!("{asks}\n{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{both}}}"),
    );
    server
}

/// A session of a client with these capabilities. Returns the tools that it sees.
#[track_caller]
fn session(bench: &Bench, server: &FolderServer, capabilities: &Value) -> Vec<String> {
    let mut client = Client::through_gate(bench, &[], &server.launch());
    client.begin_with("2025-06-18", capabilities);
    let names = client.tool_names();
    client.end().exits(0);
    names
}

fn remembered(bench: &Bench) -> Value {
    bench.server_status()["launch"]["client_capabilities"].clone()
}

#[test]
fn a_released_server_is_what_its_client_saw() {
    let bench = Bench::unattended();
    let server = choosy(&bench);
    let client = json!({ "roots": { "listChanged": true } });
    assert_eq!(session(&bench, &server, &client), ["make_report", "send_mail"]);
    assert_eq!(remembered(&bench), r#"{"roots":{"listChanged":true}}"#);
    bench.run(["quarantine", ID]).exits(0);
    bench.run(["release", ID]).exits(0).says("the server is verified");
    bench.run(["check", ID]).exits(0).never_says("tool-removed");
    // However the server is named.
    server.run(&bench, "check", &[]).exits(0);
    bench.run(["quarantine", ID]).exits(0);
    let mut release = bench.command(["release", ID, "--"]);
    release.args(server.launch());
    answer(release).exits(0).says("the server is verified");
    bench.run(["pin", ID]).exits(0);
    server.run(&bench, "pin", &[]).exits(0);
    assert_eq!(remembered(&bench), r#"{"roots":{"listChanged":true}}"#);
    assert_eq!(bench.server_status()["pinned"]["tool"], 2);
    assert_eq!(session(&bench, &server, &client), ["make_report", "send_mail"]);
    assert_eq!(bench.server_status()["status"], "verified");
}

#[test]
fn a_server_that_never_ran_is_checked_as_by_a_client_without_capabilities() {
    let bench = Bench::unattended();
    let server = choosy(&bench);
    server.run(&bench, "pin", &[]).exits(0);
    assert_eq!(bench.server_status()["pinned"]["tool"], 1);
    assert_eq!(remembered(&bench), Value::Null);
    bench.run(["check", ID]).exits(0);
}

#[test]
fn a_tool_that_is_really_gone_is_found_in_the_clients_place_too() {
    let bench = Bench::unattended();
    let server = choosy(&bench);
    session(&bench, &server, &json!({ "roots": {} }));
    server.answers("tools/list+roots", json!({ "tools": [report_tool()] }).to_string());
    bench.run(["check", ID]).exits(10).says("send_mail");
}

#[test]
fn another_client_that_can_do_less_is_another_view_and_is_remembered() {
    let bench = Bench::unattended();
    let server = choosy(&bench);
    session(&bench, &server, &json!({ "roots": {} }));
    session(&bench, &server, &json!({}));
    assert_eq!(remembered(&bench), "{}");
    assert_eq!(bench.waiting("send_mail")["findings"][0]["kind"], "tool-removed");
    assert_eq!(session(&bench, &server, &json!({ "roots": {} })), ["make_report", "send_mail"]);
    assert_eq!(remembered(&bench), r#"{"roots":{}}"#);
    bench.run(["check", ID]).exits(0);
}

#[test]
fn a_client_of_the_stateless_era_is_remembered_too() {
    let bench = Bench::unattended();
    let server = choosy(&bench);
    let refused = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}"#;
    server.sends("initialize", refused);
    server.answers(
        "server/discover",
        json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "serverInfo": { "name": "folder", "version": "1" } }).to_string(),
    );
    let mut client = Client::through_gate(&bench, &[], &server.launch());
    let meta = json!({
        (format!("{META}/protocolVersion")): "2026-07-28",
        (format!("{META}/clientCapabilities")): { "roots": {} },
        (format!("{META}/clientInfo")): { "name": "test", "version": "1" },
    });
    let listed = client.ask("tools/list", &json!({ "_meta": meta }));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(2), "{listed}");
    client.end().exits(0);
    assert_eq!(remembered(&bench), r#"{"roots":{}}"#);
    bench.run(["quarantine", ID]).exits(0);
    bench.run(["release", ID]).exits(0).says("the server is verified");
    bench.run(["check", ID]).exits(0);
}

#[test]
fn capabilities_past_the_limit_are_passed_on_and_not_remembered() {
    let of = |bytes: usize| {
        let frame = r#"{"roots":{},"x":""}"#.len();
        json!({ "roots": {}, "x": "x".repeat(bytes - frame) })
    };
    for (bytes, is_kept) in [(MAX_CAPABILITIES_BYTES, true), (MAX_CAPABILITIES_BYTES + 1, false)] {
        let bench = Bench::unattended();
        let server = choosy(&bench);
        assert_eq!(session(&bench, &server, &of(bytes)), ["make_report", "send_mail"]);
        assert_eq!(remembered(&bench).is_string(), is_kept, "{bytes}");
    }
}

//! Servers that behave, change, die, stay silent, or send nonsense.

use crate::bench::*;
use serde_json::{Value, json};

fn pinned() -> (Bench, FolderServer) {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.run(&bench, "pin", &[]).exits(0).says("1 tool");
    (bench, server)
}

#[test]
fn an_unchanged_server_proceeds() {
    let (bench, server) = pinned();
    server.run(&bench, "check", &[]).exits(0).says("nothing changed");
    let document = server.run(&bench, "check", &["--json"]).exits(0).json();
    assert_eq!(document["verdict"], "PROCEED");
    assert_eq!(document["entries"], json!([]));
    // By its id alone, the server is started as before.
    bench.run(["check", ID]).exits(0).says("nothing changed");
}

#[test]
fn a_changed_server_is_held_with_a_sentence_that_names_the_parameter() {
    let (bench, server) = pinned();
    server.lists(&json!([report_tool_with_owner()]));
    server
        .run(&bench, "check", &[])
        .exits(10)
        .says("now requires a new parameter `owner`: existing calls that omit it will fail")
        .says("holdpoint review reports");
    let document = server.run(&bench, "check", &["--json"]).exits(10).json();
    assert_eq!(document["verdict"], "HOLD");
    let entry = &document["entries"][0];
    assert_eq!((&entry["type"], &entry["key"]), (&json!("tool"), &json!("make_report")));
    let finding = &entry["findings"][0];
    assert_eq!(finding["kind"], "added-required-param");
    assert_eq!(finding["path"], "/inputSchema/properties/owner");
    assert_ne!(entry["entry_hash"]["before"], entry["entry_hash"]["after"]);
    // A check changes no pin: a server that has returned to what was approved proceeds.
    server.lists(&json!([report_tool()]));
    server.run(&bench, "check", &[]).exits(0);
}

#[test]
fn the_posture_that_is_typed_decides() {
    let (bench, server) = pinned();
    server.lists(&json!([report_tool_with_owner()]));
    server.run(&bench, "check", &["--posture", "monitor"]).exits(0).says("NOTED");
    server.run(&bench, "check", &["--posture", "shield"]).exits(10);
    server.run(&bench, "check", &["--posture", "lax"]).exits(2).says("strict");
}

#[test]
fn behaviour_that_nothing_can_observe_is_unavailable_and_held() {
    let (bench, server) = pinned();
    server.run(&bench, "check", &["--behavioral"]).exits(10).says("UNAVAILABLE");
    let document = server.run(&bench, "check", &["--behavioral", "--json"]).exits(10).json();
    assert_eq!(document["behavioral"], "UNAVAILABLE");
}

#[test]
fn a_server_without_a_pin_is_held() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.run(&bench, "check", &[]).exits(10).says("holdpoint pin");
    let document = server.run(&bench, "check", &["--json"]).exits(10).json();
    assert_eq!((&document["verdict"], &document["reason"]), (&json!("HOLD"), &json!("no_pin")));
    bench.run(["check", "unheard-of"]).exits(2).says("no server `unheard-of` is known here");
}

#[test]
fn an_id_of_its_own_is_made_where_none_is_given() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    let words = |command: &str| {
        let mut whole = bench.command([command, "--json"]);
        whole.arg("--").args(server.launch());
        answer(whole)
    };
    let id = words("pin").exits(0).json()["server"].as_str().unwrap().to_owned();
    assert!(id.starts_with("folder-server-"), "{id}");
    assert_eq!(words("check").exits(0).json()["server"], id);
}

/// Asserts that a failing server leaves its pins unchanged.
fn fails(server: &FolderServer, bench: &Bench, options: &[&str], said: &[&str]) {
    let before = bench.status();
    for command in ["check", "pin"] {
        let mut answer = server.run(bench, command, options).exits(11);
        for said in said {
            answer = answer.says(said);
        }
        let mut json = vec!["--json"];
        json.extend(options);
        let document = server.run(bench, command, &json).exits(11).json();
        assert_eq!(document["error"]["exit"], 11);
        assert_eq!(document["error"]["reason"], "upstream_unreachable");
    }
    assert_eq!(bench.status(), before);
}

#[test]
fn the_standard_error_of_a_server_that_exits_at_once_is_shown_to_a_program_that_asks_for_it() {
    let (bench, server) = pinned();
    server.writes("stderr", "no API key\nset REPORTS_KEY\n");
    server.writes("exit", "3");
    let came = "before the answer to `initialize` arrived";
    fails(&server, &bench, &["--server-text"], &[came, "  | no API key\n  | set REPORTS_KEY"]);
    fails(&server, &bench, &[], &[came, "what it wrote to standard error is left out"]);
    for command in ["check", "pin"] {
        server.run(&bench, command, &[]).exits(11).never_says("REPORTS_KEY");
        server.run(&bench, command, &["--json"]).exits(11).never_says("REPORTS_KEY");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up_with_what_was_waited_for() {
    let (bench, server) = pinned();
    server.is_silent_about("initialize");
    let said = ["waited 1 s for the answer to `initialize`"];
    fails(&server, &bench, &["--start-timeout", "1"], &said);
}

#[test]
fn a_server_that_answers_with_another_id_is_not_heard() {
    let (bench, server) = pinned();
    server.sends("initialize", r#"{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}"#);
    let said = ["waited 1 s for the answer to `initialize`"];
    fails(&server, &bench, &["--start-timeout", "1"], &said);
}

#[test]
fn answers_with_another_id_among_the_right_ones_are_dropped_with_a_note() {
    let (bench, server) = pinned();
    let forged = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [mail_tool()] } });
    let right = json!({ "tools": [report_tool()] });
    let right = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{right}}}"#);
    server.sends("tools/list", format!("{forged}\n{right}"));
    server.run(&bench, "check", &[]).exits(0).says("note: ").says("nothing changed");
}

#[test]
fn a_server_that_refuses_the_handshake_is_quoted() {
    let (bench, server) = pinned();
    let error =
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"sign\u001b[2J in first"}}"#;
    server.sends("initialize", error);
    fails(&server, &bench, &[], &["error -32000", "in first"]);
    server.run(&bench, "check", &[]).exits(11).never_says("\u{1b}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let (bench, _) = pinned();
    let before = bench.status();
    let words = ["check", "--server", ID, "--", "no-such-program-here"];
    bench.run(words).exits(11).says("the program `no-such-program-here` was not found");
    bench.run(["pin", "--", "no-such-program-here"]).exits(11);
    assert_eq!(bench.status(), before);
}

#[test]
fn logs_on_standard_output_are_dropped_with_a_note() {
    let (bench, server) = pinned();
    server.writes("stdout", "starting up\nlistening\n{\"level\":\"info\"}");
    server.run(&bench, "check", &[]).exits(0).says("note: 2 lines").says("no JSON-RPC message");
    server.run(&bench, "check", &["--quiet"]).exits(0).never_says("note");
    let fresh = Bench::new();
    server.run(&fresh, "pin", &[]).exits(0).says("note: 2 lines").says("pinned");
}

#[test]
fn a_capture_says_what_the_server_said() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    let mut command = bench.command(["capture", "-o", "capture.json", "--"]);
    command.args(server.launch());
    answer(command).exits(0).says("capture.json");
    let capture: Value =
        serde_json::from_slice(&std::fs::read(bench.path("capture.json")).unwrap()).unwrap();
    assert_eq!(capture["tools"], json!([report_tool()]));
    assert_eq!(capture["serverInfo"]["name"], "folder");
    let mut command = bench.command(["capture", "--"]);
    command.args(server.launch());
    assert_eq!(answer(command).exits(0).json(), capture);
    bench.run(["diff", "capture.json", "capture.json"]).exits(0);
}

#[test]
fn a_server_is_named_in_one_way_only() {
    let bench = Bench::new();
    bench.run(["check"]).exits(2).says("which server?");
    bench.run(["check", ID, "--", "true"]).exits(2);
    bench.run(["check", "--url", "http://127.0.0.1:9/", "--file", "x"]).exits(2);
    bench.run(["check", "Not_An_Id"]).exits(2);
    bench.run(["check", "--url", "ftp://127.0.0.1/"]).exits(2);
}

#[test]
fn a_url_without_a_listener_cannot_be_reached() {
    let bench = Bench::new();
    // The port was just free, and is used by no other test.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    bench.run(["pin", "--url", &url]).exits(11).says("could not connect");
    assert_eq!(bench.status()["servers"], json!([]));
}

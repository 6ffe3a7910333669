//! Invalid or ambiguous input is refused, according to every rule for untrusted JSON, from a live
//! server and from a capture. The error says what is wrong, and pins stay unchanged.

use crate::bench::*;
use serde_json::{Value, json};

/// A tool with this text in its input schema.
fn tool_with(schema: &str) -> Vec<u8> {
    format!(r#"[{{"name":"make_report","inputSchema":{schema}}}]"#).into_bytes()
}

fn nested(depth: usize) -> Vec<u8> {
    let (open, close) = (r#"{"not":"#.repeat(depth), "}".repeat(depth));
    tool_with(&format!("{open}{{}}{close}"))
}

fn tools(count: usize) -> Vec<u8> {
    let tools: Vec<String> =
        (0..count).map(|number| format!(r#"{{"name":"t{number}","inputSchema":{{}}}}"#)).collect();
    format!("[{}]", tools.join(",")).into_bytes()
}

/// Asserts that a list from a live server is refused with exit code 11 and a message, and that the
/// pins stay.
fn is_refused_live(answer_with: impl Fn(&FolderServer), said: &str) {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.run(&bench, "pin", &[]).exits(0);
    let before = bench.server_status();
    answer_with(&server);
    server.run(&bench, "pin", &[]).exits(11).says(said).says("nothing was pinned");
    let document = server.run(&bench, "pin", &["--json"]).exits(11).json();
    assert_eq!(document["error"]["reason"], "surface_unreadable");
    assert_eq!(bench.server_status(), before);
    server.run(&bench, "check", &[]).exits(11).says(said);
    let document = server.run(&bench, "check", &["--json"]).exits(11).json();
    assert_eq!(
        (&document["verdict"], &document["reason"]),
        (&json!("HOLD"), &json!("surface_unreadable"))
    );
    assert!(document["detail"].as_str().unwrap().contains(said), "{document}");
    assert_eq!(pins_of(&bench.server_status()), pins_of(&before));
    // Once the server sends valid data again, it proceeds as before.
    server.lists(&json!([report_tool()]));
    server.run(&bench, "check", &[]).exits(0).says("nothing changed");
}

/// The same tools in a capture: an OLD capture is a usage error (2), a NEW one is held (10), and
/// nothing is pinned from it.
fn is_refused_in_a_capture(tools: &[u8], said: &str) {
    let bench = Bench::new();
    bench.file("good.json", json!([report_tool()]).to_string());
    bench.file("bad.json", tools);
    bench.run(["diff", "bad.json", "good.json"]).exits(2).says(said).says("bad.json");
    bench.run(["diff", "good.json", "bad.json"]).exits(10).says("HOLD").says(said);
    let document = bench.run(["diff", "good.json", "bad.json", "--json"]).exits(10).json();
    assert_eq!(
        (&document["verdict"], &document["reason"]),
        (&json!("HOLD"), &json!("surface_unreadable"))
    );
    assert!(document["detail"].as_str().unwrap().contains(said), "{document}");
    bench.run(["hash", "bad.json"]).exits(10).says(said);
    bench.run(["pin", "--file", "bad.json"]).exits(10).says(said);
    assert_eq!(bench.status()["servers"], json!([]));
}

fn is_refused(tools: &[u8], said: &str) {
    is_refused_live(|server| server.lists_bytes(tools), said);
    is_refused_in_a_capture(tools, said);
}

/// The counterpart: input just within the rules is pinned.
fn is_read(tools: &[u8]) {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &Value::Null);
    server.lists_bytes(tools);
    server.run(&bench, "pin", &[]).exits(0);
    server.run(&bench, "check", &[]).exits(0);
    bench.file("good.json", tools);
    bench.run(["diff", "good.json", "good.json"]).exits(0);
}

#[test]
fn a_member_that_is_there_twice() {
    is_refused(&tool_with(r#"{"type":"object","type":"string"}"#), "`type` appears twice");
    is_read(&tool_with(r#"{"type":"object","Type":"string"}"#));
}

#[test]
fn a_member_that_is_there_twice_once_unescaped() {
    is_refused(&tool_with(r#"{"type":"object","t\u0079pe":"string"}"#), "`type` appears twice");
}

#[test]
fn a_name_that_hides_is_shown_escaped() {
    let tools = tool_with("{\"a\u{202e}b\":1,\"a\u{202e}b\":2}");
    is_refused(&tools, "appears twice");
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.run(&bench, "pin", &[]).exits(0);
    server.lists_bytes(&tools);
    bench.file("good.json", "[]");
    bench.file("bad.json", &tools);
    let answers = [
        server.run(&bench, "check", &[]),
        server.run(&bench, "pin", &[]),
        bench.run(["review"]),
        bench.run(["status"]),
        bench.run(["diff", "good.json", "bad.json"]),
        bench.run(["diff", "bad.json", "good.json"]),
        bench.run(["hash", "bad.json"]),
    ];
    for answer in answers {
        answer.never_says("\u{202e}");
    }
    let shown = server.run(&bench, "check", &["--server-text"]).exits(11);
    shown.says("`a\\u{202e}b` appears twice");
    // Programs are told that a name appears twice, but not which one.
    server.run(&bench, "check", &[]).exits(11).says("appears twice").never_says("u{202e}b");
}

#[test]
fn a_lone_surrogate() {
    is_refused(&tool_with(r#"{"title":"\ud83d"}"#), "a lone surrogate");
    is_read(&tool_with(r#"{"title":"\ud83d\ude00"}"#));
}

#[test]
fn bytes_that_are_not_utf_8() {
    is_refused(
        &[b"[{\"name\":\"make_report\",\"title\":\"\xff\"}]".as_slice()].concat(),
        "invalid UTF-8",
    );
    is_read("[{\"name\":\"make_report\",\"title\":\"\u{ff}\"}]".as_bytes());
}

#[test]
fn nesting_that_is_too_deep() {
    is_refused(&nested(129), "nested deeper than 128 levels");
    is_read(&nested(100));
}

#[test]
fn a_number_that_is_too_long() {
    is_refused(
        &tool_with(&format!(r#"{{"minimum":{}}}"#, "1".repeat(1_025))),
        "a number of over 1024 characters",
    );
    is_read(&tool_with(&format!(r#"{{"minimum":{}}}"#, "1".repeat(1_024))));
}

#[test]
fn a_number_with_an_exponent_that_is_too_large() {
    is_refused(&tool_with(r#"{"minimum":1e10001}"#), "an exponent beyond ±10000");
    is_refused_in_a_capture(&tool_with(r#"{"minimum":1e-10001}"#), "an exponent beyond ±10000");
    is_read(&tool_with(r#"{"minimum":1e10000}"#));
}

#[test]
fn two_different_tools_of_one_name() {
    let other = report_tool_with_owner();
    is_refused(
        json!([report_tool(), other]).to_string().as_bytes(),
        "two different entries are called `make_report`",
    );
    is_read(json!([report_tool(), report_tool()]).to_string().as_bytes());
}

#[test]
fn a_tool_without_a_name() {
    is_refused(br#"[{"inputSchema":{}}]"#, "has no string `name`");
    is_refused(br#"[{"name":7}]"#, "has no string `name`");
    is_refused(b"[null]", "has no string `name`");
}

#[test]
fn an_entry_that_is_too_large() {
    let described = |bytes: usize| {
        let start = r#"{"name":"make_report","description":""#;
        let filling = "x".repeat(bytes - start.len() - 2);
        format!(r#"[{start}{filling}"}}]"#).into_bytes()
    };
    is_refused(&described(1_048_577), "an entry larger than 1048576 bytes");
    is_read(&described(1_048_576));
}

#[test]
fn a_list_with_too_many_entries() {
    is_refused(&tools(10_001), "more than 10000 entries");
    is_read(&tools(10_000));
}

#[test]
fn a_list_that_is_too_large() {
    let page = |text: &str| {
        format!(
            r#"{{"tools":[{{"name":"t$COUNT","description":"{text}"}}],"nextCursor":"c$COUNT"}}"#
        )
    };
    is_refused_live(
        |server| server.answers("tools/list", page(&"x".repeat(1_000_000))),
        "larger than 16777216 bytes",
    );
}

#[test]
fn a_list_that_pages_for_ever() {
    let page = r#"{"tools":[],"nextCursor":"c$COUNT"}"#;
    is_refused_live(|server| server.answers("tools/list", page), "more than 1000 pages");
}

#[test]
fn a_cursor_that_repeats() {
    let page = r#"{"tools":[],"nextCursor":"again"}"#;
    is_refused_live(|server| server.answers("tools/list", page), "a `nextCursor` that came before");
}

#[test]
fn a_list_that_is_no_list() {
    is_refused_live(|server| server.answers("tools/list", "{}"), "an answer without `tools`");
    is_refused_live(
        |server| server.answers("tools/list", r#"{"tools":{}}"#),
        "`tools` is not an array",
    );
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"broken"}}"#;
    is_refused_live(|server| server.sends("tools/list", error), "error -32603: `broken`");
}

#[test]
fn too_many_resources_are_left_unpinned_and_close_nothing() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.offers(&json!({ "tools": {}, "resources": {} }));
    let resources: Vec<Value> =
        (0..10_001).map(|number| json!({ "uri": format!("r:{number}"), "name": "r" })).collect();
    server.answers("resources/list", json!({ "resources": resources }).to_string());
    server.answers("resources/templates/list", r#"{"resourceTemplates":[]}"#);
    server.run(&bench, "pin", &[]).exits(0).says("note: more than 10000 resources: left unpinned");
    let pinned = bench.server_status()["pinned"].clone();
    assert_eq!((&pinned["tool"], &pinned["resource"]), (&json!(1), &Value::Null));
    server.run(&bench, "check", &[]).exits(0);
}

#[test]
fn what_could_not_be_read_cannot_be_approved_as_gone() {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.run(&bench, "pin", &[]).exits(0);
    server.lists_bytes(&tool_with(r#"{"type":"object","type":"string"}"#));
    server.run(&bench, "check", &[]).exits(11);
    let (entry, surface) = (bench.waiting_hash("make_report"), bench.server_status());
    let surface = surface["surface_hash"].as_str().unwrap();
    bench.run(["review"]).exits(10).says("appears twice").never_says("holdpoint approve");
    bench.run(["approve", ID, "make_report", "--hash", &entry]).exits(10).says("could not be read");
    bench.run(["approve", ID, "--hash", surface]).exits(10).says("could not be read");
    assert_eq!(bench.server_status()["pinned"]["tool"], 1);
    server.lists(&json!([report_tool()]));
    server.run(&bench, "check", &[]).exits(0);
}

//! Servers that fail in every way: a pending call gets the correct error or a closed pipe, the
//! session continues if possible, and the ledger verifies afterwards.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// Far beyond the frame limit.
const GIGABYTE: u64 = 1024 * 1024 * 1024;
/// The highest allowed peak memory of the gate in KiB: some frames, and the program itself.
const MAX_RESIDENT_KIB: u64 = 150 * 1024;

const CALL: &str = "tools/call";

fn begun(bench: &Bench, script: &Script) -> Client {
    let mut client = Client::through_gate(bench, &[], &script.launch());
    client.begin();
    assert_eq!(client.tool_names(), ["make_report", "send_mail"]);
    client
}

fn report(client: &mut Client) -> Value {
    client.call("make_report", &json!({ "title": "x" }))
}

/// Asserts that the session continues after a refusal, and that everything is in the ledger.
#[track_caller]
fn goes_on(bench: &Bench, mut client: Client) {
    text(&client.call("send_mail", &json!({ "to": "ada" })));
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(bench, requests);
}

/// Asserts that a server lost during a call leads to an error for the call or a closed pipe, and
/// nothing else.
#[track_caller]
fn is_lost(bench: &Bench, mut client: Client, code: i32) -> Ended {
    let id = client.request(CALL, &json!({ "name": "make_report", "arguments": { "title": "x" } }));
    let requests = client.requests();
    let ended = client.ended().exits(code);
    let messages = ended.heard.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let answers: Vec<Value> = messages.filter(|message| message["id"] == id).collect();
    assert!(answers.len() <= 1, "{answers:?}");
    for answer in &answers {
        refused(answer, UNREACHABLE);
    }
    receipts_are_complete(bench, requests);
    ended
}

#[test]
fn a_server_that_dies_in_a_call() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([{ "exit": 7 }]));
    let client = begun(&bench, &script);
    is_lost(&bench, client, 7);
}

#[test]
fn a_server_that_dies_within_a_frame() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let half = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te"#;
    script.on(CALL, json!([{ "raw": half }, { "exit": 3 }]));
    let client = begun(&bench, &script);
    let ended = is_lost(&bench, client, 3);
    let said = ended.heard.concat();
    assert!(
        !String::from_utf8_lossy(&said).contains(r#""type":"te"#),
        "half a frame was passed on"
    );
}

#[test]
fn a_server_that_hangs_holds_up_no_other_call() {
    let bench = Bench::unattended();
    bench.configure("[limits]\ncall_timeout_seconds = 2\n");
    let mut script = Script::new(&bench);
    script.on_each(CALL, json!([[], [echo()]]));
    let mut client = begun(&bench, &script);
    let first = client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    text(&client.call("send_mail", &json!({ "to": "ada" })));
    let answer = client.answer_to(&json!(first));
    assert_eq!(refused(&answer, UNREACHABLE)["reason"], "timeout");
    goes_on(&bench, client);
}

#[test]
fn a_client_that_dies_while_the_server_reads_nothing_ends_the_gate() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
    let mut script = Script::new(&bench);
    let number = json!({ "number": script.path("server") });
    script.on("start", json!([number]));
    script.on("ping", json!([{ "touch": script.path("hangs") }, { "hang": true }]));
    // More than fits into all pipes, so that the gate is in the middle of a write.
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": { "x": "x".repeat(100_000) } });
    let lines: Vec<String> = (1..30).map(|id| format!("{}\n", ping(id))).collect();
    let file = bench.file("lines", lines.concat());
    let mut host = Command::new("cat").arg(file).stdout(Stdio::piped()).spawn().unwrap();
    let mut command = bench.command(["run", "--server", ID, "--"]);
    command.args(script.launch()).stdin(host.stdout.take().unwrap());
    let mut gate = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    script.written("hangs");
    host.kill().unwrap();
    host.wait().unwrap();
    testing::wait_for("the gate to end", || gate.try_wait().unwrap());
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_call_before_any_handshake_waits_for_a_list_too() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    text(&report(&mut client));
    let record = script.record();
    let (list, call) = (record.find("tools/list").unwrap(), record.find(CALL).unwrap());
    assert!(list < call, "{record}");
    client.end().exits(0);
}

#[test]
fn a_client_that_never_says_that_it_is_initialized_is_served() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    client.ask("initialize", &params);
    text(&report(&mut client));
    client.end().exits(0);
}

#[test]
fn a_flood_of_list_changed_makes_few_lists() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let notice = json!({ "jsonrpc": "2.0", "method": LIST_CHANGED }).to_string();
    script.on(CALL, json!([{ "repeat": [20_000, notice] }, echo()]));
    let mut client = begun(&bench, &script);
    text(&report(&mut client));
    text(&report(&mut client));
    let record = script.record();
    let lists = record.matches("tools/list").count();
    assert!(lists < 20, "{lists} lists");
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

#[test]
fn lines_that_are_no_messages_are_dropped() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let garbage = json!(["starting up", { "bytes": [255, 254, 0, 10] }, "", "{", "[]", "\"x\"", "{\"level\":\"info\"}", "null"]);
    let mut steps = garbage.as_array().unwrap().clone();
    script.on("start", garbage);
    steps.push(json!(echo()));
    script.on(CALL, json!(steps));
    let mut client = begun(&bench, &script);
    text(&report(&mut client));
    for line in &client.heard {
        let message: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
    }
    goes_on(&bench, client);
}

#[test]
fn a_broken_answer_is_told_to_its_call_and_noted_with_its_length() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let broken = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[}}"#;
    script.on_each(CALL, json!([[broken], [echo()]]));
    let mut client = begun(&bench, &script);
    assert_eq!(refused(&report(&mut client), UNREACHABLE)["reason"], "upstream_unreadable");
    client.send_line(r#"{"jsonrpc":"2.0","id":8,"id":9,"method":"ping"}"#);
    assert_eq!(client.answer_to(&Value::Null)["error"]["code"], -32600);
    let log = fs::read_to_string(bench.home().join("errors.jsonl")).unwrap();
    let faults: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(faults[0]["class"], "upstream_unreadable");
    assert_eq!(faults[0]["bytes"], broken.replace("$ID", "3").len());
    assert_eq!(faults[1]["class"], "ambiguous_message");
    text(&report(&mut client));
    client.end().exits(0);
    bench.run(["receipts", "verify"]).exits(0);
}

/// An error without a request id.
const UNNAMED: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;

#[test]
fn an_error_that_names_no_request_is_told_to_the_only_call_in_flight() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on_each(CALL, json!([[UNNAMED], [echo()]]));
    let mut client = begun(&bench, &script);
    assert_eq!(refused(&report(&mut client), UNREACHABLE)["reason"], "upstream_unreadable");
    let log = fs::read_to_string(bench.home().join("errors.jsonl")).unwrap();
    let fault: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(fault["class"], "upstream_unreadable");
    assert_eq!(fault["bytes"], UNNAMED.len());
    goes_on(&bench, client);
}

#[test]
fn an_error_that_names_no_request_ends_none_of_several_calls() {
    let (bench, other_bench) = (Bench::new(), Bench::new());
    let mut script = Script::new(&bench);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#;
    let late = json!([UNNAMED, note, { "await_file": script.path("go") }, says("late")]);
    script.on_each(CALL, json!([[], late]));
    let mut other_script = Script::new(&other_bench);
    other_script.on(CALL, json!([UNNAMED]));
    let mut client = begun(&bench, &script);
    let mut other_client = begun(&other_bench, &other_script);
    client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    let second = client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    client.notice("notifications/vendor");
    // A call alone in another gate is refused after the wait for an ambiguous response. It started
    // later, so the wait is over for the two calls as well.
    refused(&report(&mut other_client), UNREACHABLE);
    script.touch("go");
    assert_eq!(text(&client.answer_to(&json!(second))), "late");
    client.kill();
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_gigabyte_without_a_line_feed_is_dropped_and_its_call_refused() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let start = r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":""#;
    let long = json!([{ "raw": start }, { "fill": GIGABYTE }, "\"}}"]);
    script.on_each(CALL, json!([long, [echo()]]));
    let mut client = begun(&bench, &script);
    let answer = report(&mut client);
    assert_eq!(refused(&answer, UNREACHABLE)["reason"], "upstream_unreadable");
    testing::assert_peak_memory(client.id(), MAX_RESIDENT_KIB);
    goes_on(&bench, client);
}

#[test]
fn a_gigabyte_that_never_ends_in_a_line_feed_ends_with_its_server() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([{ "fill": GIGABYTE / 16 }, { "exit": 5 }]));
    let client = begun(&bench, &script);
    is_lost(&bench, client, 5);
}

#[test]
fn a_server_that_closes_its_output_and_stays() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
    let mut script = Script::new(&bench);
    script.on(CALL, json!([{ "exit": 0 }]));
    let launch = script.launch_by("\"$@\"; exec >&-; exec sleep 1000");
    let mut client = Client::through_gate(&bench, &[], &launch);
    client.begin();
    client.tool_names();
    refused(&report(&mut client), UNREACHABLE);
    refused(&report(&mut client), UNREACHABLE);
    client.end();
    receipts_are_complete(&bench, 4);
}

#[test]
fn a_server_that_closes_its_input_and_stays() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
    let mut script = Script::new(&bench);
    script.on(CALL, json!([echo(), { "exit": 0 }]));
    let launch = script.launch_by("\"$@\"; exec <&-; echo closed >&2; exec sleep 1000");
    let mut client = Client::through_gate(&bench, &[], &launch);
    client.begin();
    text(&report(&mut client));
    // If the shell has not closed the pipe yet, the call is written to it, and no response comes
    // before the client gives up.
    client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    let ended = client.end();
    let messages = ended.heard.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    for answer in messages.filter(|message| message["id"] == 3) {
        refused(&answer, UNREACHABLE);
    }
    receipts_are_complete(&bench, 3);
}

#[test]
fn responses_without_a_request_are_dropped() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let stray = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stray":true}}}}"#);
    let steps = json!([
        stray("999"),
        stray("\"$ID\""),
        stray("$ID.0"),
        stray("null"),
        stray("true"),
        r#"{"jsonrpc":"2.0","id":998,"error":{"code":1,"message":"stray"}}"#,
        echo(),
        stray("$ID"),
    ]);
    script.on(CALL, steps);
    let mut client = begun(&bench, &script);
    assert_eq!(text(&report(&mut client)), "call 1");
    assert_eq!(text(&report(&mut client)), "call 2");
    let stray: Vec<Value> = client
        .messages()
        .into_iter()
        .filter(|message| message.to_string().contains("stray"))
        .collect();
    assert!(stray.is_empty(), "{stray:?}");
    goes_on(&bench, client);
}

#[test]
fn an_answer_to_a_call_that_was_not_made_yet_is_dropped() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    // The first call is the third request.
    let guesses = (0..10).filter(|id| *id != 3).map(|id| {
        let result = json!({ "content": [{ "type": "text", "text": "guessed" }] });
        Value::from(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
    });
    // The guesses come first, so the gate has read them before the client gets its response.
    let steps: Vec<Value> = guesses.chain([Value::from(echo())]).collect();
    script.on_each(CALL, json!([steps, [echo()]]));
    let mut client = begun(&bench, &script);
    for count in 1..=5 {
        assert_eq!(text(&report(&mut client)), format!("call {count}"));
    }
    goes_on(&bench, client);
}

#[test]
fn an_answer_to_a_call_that_waits_at_the_gate_is_not_heard() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let before = result(&json!({ "tools": [report_tool()] }));
    let after = result(&json!({ "tools": [report_tool_with_owner()] }));
    let content = json!([{ "type": "text", "text": "guessed" }]);
    let guess = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } });
    // The call is the third request.
    let guesses = [guess(3).to_string(), after];
    script.on_each("tools/list", json!([[before], guesses]));
    let options = ["--relist-max-age", "0"];
    let mut client = Client::through_gate(&bench, &options, &script.launch());
    client.begin();
    client.tool_names();
    let answer = report(&mut client);
    refused(&answer, HELD);
    assert!(!script.record().contains(CALL));
    client.end().exits(0);
}

#[test]
fn a_second_answer_is_dropped() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([echo(), says("second")]));
    let mut client = begun(&bench, &script);
    assert_eq!(text(&report(&mut client)), "call 1");
    assert_eq!(text(&report(&mut client)), "call 2");
    let said = client.messages().iter().filter(|m| m.to_string().contains("second")).count();
    assert_eq!(said, 0);
    goes_on(&bench, client);
}

#[test]
fn an_answer_with_a_line_break_inside_is_refused() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let broken = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\r\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"broken\"}]}}";
    script.on_each(CALL, json!([[broken], [echo()]]));
    let mut client = begun(&bench, &script);
    refused(&report(&mut client), UNREACHABLE);
    let said = String::from_utf8(client.heard.concat()).unwrap();
    assert!(!said.contains("broken"), "{said}");
    goes_on(&bench, client);
}

#[test]
fn a_carriage_return_before_the_line_feed_is_fine() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([format!("{}\r", echo())]));
    let mut client = begun(&bench, &script);
    assert_eq!(text(&report(&mut client)), "call 1");
    let call = r#"{"jsonrpc":"2.0","id":"crlf","method":"tools/call","params":{"name":"send_mail","arguments":{}}}"#;
    client.send_line(format!("{call}\r"));
    text(&client.answer_to(&json!("crlf")));
    client.end().exits(0);
}

#[test]
fn answers_in_a_batch_are_of_one_revision_only() {
    for (version, is_known) in [("2025-03-26", true), ("2025-06-18", false)] {
        let bench = Bench::unattended();
        bench.configure("[limits]\ncall_timeout_seconds = 3\n");
        let mut script = Script::new(&bench);
        script.introduces(version, &json!({ "tools": {} }));
        script.on_each(CALL, json!([[format!("[{}]", says("in a batch"))], [echo()]]));
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin_at(version);
        client.tool_names();
        client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
        if is_known {
            // The response may come in a batch or alone.
            let answer = client.call("send_mail", &json!({}));
            assert_eq!(text(&answer), "call 2");
            let said = String::from_utf8(client.heard.concat()).unwrap();
            assert!(said.contains("in a batch"), "{said}");
            client.end().exits(0);
        } else {
            refused(&client.answer_to(&json!(3)), UNREACHABLE);
            let said = String::from_utf8(client.heard.concat()).unwrap();
            assert!(!said.contains("in a batch"), "{said}");
            goes_on(&bench, client);
        }
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_in_both_directions() {
    const LIMIT: usize = 64 * 1024;
    for (direction, over) in [("up", 0), ("up", 1), ("down", 0), ("down", 1)] {
        let bench = Bench::unattended();
        bench.configure(&format!("[limits]\nframe_bytes = {LIMIT}\n"));
        let mut script = Script::new(&bench);
        let frame = |id: &str, length: usize| {
            let empty = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":""}}}}"#);
            empty
                .replace("\"text\":\"", &format!("\"text\":\"{}", "x".repeat(length - empty.len())))
        };
        // The call's id is 3, whose length differs from that of its placeholder.
        let answer = frame("3", LIMIT + over);
        script
            .on_each(CALL, json!([[if direction == "down" { answer } else { echo() }], [echo()]]));
        let mut client = begun(&bench, &script);
        let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"make_report","arguments":{"title":""}}}"#;
        let length = if direction == "up" { LIMIT + over } else { call.len() };
        let title = format!("\"title\":\"{}", "x".repeat(length - call.len()));
        client.send_line(call.replace("\"title\":\"", &title));
        let answer = client.answer_to(&json!(3));
        match (direction, over) {
            (_, 0) => assert!(answer.get("result").is_some(), "{direction}: {answer}"),
            ("up", _) => {
                assert_eq!(refused(&answer, DENIED)["reason"], "payload_too_large");
                assert!(!script.record().contains("xxxx"));
            }
            _ => {
                refused(&answer, UNREACHABLE);
            }
        }
        let log = fs::read_to_string(bench.home().join("errors.jsonl")).unwrap_or_default();
        let noted = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lengths: Vec<Value> = noted.map(|fault| fault["bytes"].clone()).collect();
        let expected = if over > 0 { vec![json!(LIMIT + over)] } else { Vec::new() };
        assert_eq!(lengths, expected, "{direction}: the length of the frame itself is noted");
        client.send(&json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" }));
        assert_eq!(client.answer_to(&json!(4))["result"], json!({}));
        client.end().exits(0);
        receipts_are_complete(&bench, 4);
    }
}

#[test]
fn a_home_that_cannot_be_written_lets_no_call_through() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = begun(&bench, &script);
    text(&report(&mut client));
    client.end().exits(0);
    // The folder of receipts is replaced, so no receipt can be written.
    let receipts = bench.home().join("receipts");
    fs::rename(&receipts, bench.path("moved")).unwrap();
    fs::write(&receipts, "").unwrap();
    let before = script.record().matches(CALL).count();
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.request(CALL, &json!({ "name": "make_report", "arguments": { "title": "x" } }));
    client.end();
    assert_eq!(script.record().matches(CALL).count(), before);
}

#[test]
fn calls_end_in_time_although_the_server_reads_nothing() {
    let bench = Bench::unattended();
    bench.configure("[limits]\ncall_timeout_seconds = 2\nshutdown_grace_seconds = 1\n");
    let mut script = Script::new(&bench);
    script.on("vendor/stop", json!([{ "touch": script.path("stopped") }, { "hang": true }]));
    let options = ["--relist-max-age", "0"];
    let mut client = Client::through_gate(&bench, &options, &script.launch());
    client.begin();
    client.tool_names();
    client.request("vendor/stop", &json!({}));
    script.written("stopped");
    // This call waits for a list request that the server does not read; then send more than fits
    // into a pipe.
    let waiting = client.request(CALL, &json!({ "name": "make_report", "arguments": {} }));
    let long = client.request("vendor/long", &json!({ "x": "x".repeat(500_000) }));
    for id in [waiting, long] {
        let answer = client.answer_to(&json!(id));
        assert!(answer.get("error").is_some(), "{answer}");
    }
    client.kill();
    bench.run(["receipts", "verify"]).exits(0);
}

//! Messages that the gate does not judge pass byte for byte in both directions; ambiguous ones do
//! not pass.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::{Value, json};
use std::ffi::OsString;

/// A step of the client, and what it waits for.
enum Step {
    /// A request with its id, for which the client waits for the response.
    Ask(&'static str, &'static str),
    /// A message that makes the server send a message of this method.
    Tell(&'static str, &'static str),
}

use Step::{Ask, Tell};

/// Unusual but valid: white space, escapes, numbers, unknown members, every kind of id.
const CONVERSATION: &[Step] = &[
    Ask(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, "\"p\""),
    Ask(r#" { "id" : 1e2 , "method":"ping", "jsonrpc":"2.0","vendor":{"b":1,"a":[ ]} } "#, "1e2"),
    Ask(
        r#"{"jsonrpc":"2.0","id":-0.50,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"é","value":"\u00e9\ud83d\ude00"}}}"#,
        "-0.50",
    ),
    Ask(
        r#"{"jsonrpc":"2.0","id":"\u0061","method":"logging/setLevel","params":{"level":"debug"}}"#,
        "\"a\"",
    ),
    Ask(
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"vendor/unknown","params":[1,2.50,null]}"#,
        "9007199254740993",
    ),
    Ask(
        r#"{"jsonrpc":"2.0","id":"","method":"resources/subscribe","params":{"uri":"file:///x"}}"#,
        "\"\"",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#,
        "vendor/heard",
    ),
    Tell(r#"{"method":"notifications/roots/list_changed","jsonrpc":"2.0"}"#, "vendor/heard"),
    Tell(
        r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":1.0,"s":"\/"}}"#,
        "vendor/heard",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}"#,
        "vendor/heard",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"make_report","arguments":{"title":"x","n":1.00},"_meta":{"progressToken":7,"vendor":true}}}"#,
        "sampling/createMessage",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":"call"}}"#,
        "vendor/heard",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","id":"srv-1","result":{"role":"assistant","content":{"type":"text","text":"h\u0069"},"model":"m"}}"#,
        "elicitation/create",
    ),
    Tell(
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no","data":{"x":1e0}}}"#,
        "roots/list",
    ),
    Ask(r#"{ "jsonrpc":"2.0", "id":"srv-3","result":{"roots":[]} }"#, "\"call\""),
];

fn script(bench: &Bench, name: &str) -> Script {
    let mut script = Script::named(bench, name);
    let capabilities = json!({ "tools": {}, "logging": {}, "completions": {} });
    script.introduces("2025-06-18", &capabilities);
    let heard = r#"{"jsonrpc":"2.0","method":"vendor/heard","params":{"line":$LINE}}"#;
    for method in ["cancelled", "roots/list_changed", "vendor", "progress"] {
        script.on(&format!("notifications/{method}"), json!([heard]));
    }
    script
        .on("ping", json!([r#" { "result" : { } , "id": $ID,"jsonrpc":"2.0" , "vendor":[1.0] }"#]));
    script.on("completion/complete", json!([r#"{"jsonrpc":"2.0","id":-0.50,"result":{"completion":{"values":["\u00e9","é"],"total":1e0}}}"#]));
    script.on("logging/setLevel", json!([
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"b":1,"a":2}}}"#,
        r#"{"jsonrpc":"2.0","id":"\u0061","result":{}}"#,
    ]));
    script.on("vendor/unknown", json!([r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no such method","data":{"x":1.50}}}"#]));
    script.on(
        "resources/subscribe",
        json!([r#"{"jsonrpc":"2.0","id":$ID,"result":{"_meta":{"x":null}}}"#]),
    );
    script.on("tools/call", json!([
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.10,"total":1.0}}"#,
        r#"{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1e1}}"#,
    ]));
    script.on_each("response", json!([
        [heard, r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#],
        [heard, r#"{"jsonrpc":"2.0","id":"srv-3","method":"roots/list"}"#],
        [heard, r#"{"jsonrpc":"2.0","id":"call","result":{"content":[ ],"vendor":1.0,"isError":false}}"#],
    ]));
    script
}

/// The lines that the client received and those that the server read.
fn converse(script: &Script, mut client: Client) -> (Vec<String>, Vec<String>) {
    client.begin_with("2025-06-18", &json!({ "sampling": {}, "elicitation": {}, "roots": {} }));
    for step in CONVERSATION {
        match step {
            Ask(line, id) => {
                client.send_line(line);
                client.answer_to(&serde_json::from_str(id).unwrap());
            }
            Tell(line, method) => {
                client.send_line(line);
                client.notice(method);
            }
        }
    }
    let ended = client.end().exits(0);
    let text = |line: &Vec<u8>| String::from_utf8(line.clone()).unwrap();
    let heard = ended.heard.iter().map(text).collect();
    (heard, script.record().lines().map(str::to_owned).collect())
}

#[test]
fn what_is_none_of_the_gates_business_passes_byte_for_byte() {
    let bench = Bench::new();
    let alone = script(&bench, "alone");
    let (heard_alone, read_alone) = converse(&alone, Client::direct(&alone.launch()));
    assert!(heard_alone.len() > 15, "{heard_alone:#?}");
    let gated = script(&bench, "gated");
    let (heard, read) = converse(&gated, Client::through_gate(&bench, &[], &gated.launch()));
    assert_eq!(heard, heard_alone);
    // Except for the gate's own list requests, the server has read the same.
    let others = read.iter().filter(|line| !line.contains("\"tools/list\"")).cloned();
    assert_eq!(others.collect::<Vec<String>>(), read_alone);
    assert!(read.len() > read_alone.len(), "the gate has not even listed");
    let asked = CONVERSATION.iter().filter(|step| matches!(step, Ask(..))).count() as u64;
    // The handshake and the call are requests as well; the response to the server's request is not.
    receipts_are_complete(&bench, asked + 1);
}

#[test]
fn what_is_shown_of_a_list_keeps_its_bytes() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let tool = r#"{ "name":"make_report","vendor": {"z":1.0,"a":[1e2]},"inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1.50}}},"description":"\u00e9" }"#;
    script.on(
        "tools/list",
        json!([format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"tools":[{tool}]}}}}"#)]),
    );
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.tool_names();
    let line = String::from_utf8(client.heard.last().unwrap().clone()).unwrap();
    assert!(line.contains(tool), "{line}");
    client.end().exits(0);
}

/// A session with the two tools, whose server must never receive the word `smuggled`.
fn guarded() -> (Bench, Script, Client) {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.tool_names();
    (bench, script, client)
}

#[test]
fn a_request_that_two_readers_could_read_differently_is_refused() {
    let call = |members: &str| format!(r#"{{"jsonrpc":"2.0","id":70,{members}}}"#);
    let params = r#""params":{"name":"send_mail","arguments":{"to":"smuggled"}}"#;
    let lines = [
        call(&format!(r#""method":"ping","method":"tools/call",{params}"#)),
        call(&format!(r#""method":"ping","Method":"tools/call",{params}"#)),
        call(&format!(r#""method":"tools/call","Params":{{}},{params}"#)),
        call(&format!(r#""method":"tools/call","param\u017f":{{}},{params}"#)),
        call(&format!(r#""method":"tools/call","m\u0065thod":"ping",{params}"#)),
        call(
            r#""method":"tools/call","params":{"name":"make_report","name":"send_mail","arguments":{"to":"smuggled"}}"#,
        ),
        call(
            r#""method":"tools/call","params":{"name":"make_report","Name":"send_mail","arguments":{"to":"smuggled"}}"#,
        ),
        call(
            r#""method":"tools/call","params":{"name":"send_mail","arguments":{},"Arguments":{"to":"smuggled"}}"#,
        ),
        call(&format!(r#""method":"tools/call",{params},"result":{{}}"#)),
    ];
    for line in lines {
        let (bench, script, mut client) = guarded();
        client.send_line(&line);
        let answer = client.until_refused(&line);
        refused(&answer, -32600);
        text(&client.call("make_report", &json!({ "title": "x" })));
        let record = script.record();
        assert!(!record.contains("smuggled"), "{line}\n{record}");
        client.end().exits(0);
        bench.run(["receipts", "verify"]).exits(0);
    }
}

#[test]
fn the_same_request_in_one_reading_passes() {
    let (_bench, script, mut client) = guarded();
    client.send_line(r#"{"jsonrpc":"2.0","id":70,"m\u0065thod":"tools/c\u0061ll","params":{"name":"send_m\u0061il","arguments":{"to":"a","to":"b"},"vendor":1}}"#);
    text(&client.answer_to(&json!(70)));
    assert!(script.record().contains(r#"{"to":"a","to":"b"},"vendor":1}}"#));
    client.end().exits(0);
}

#[test]
fn a_line_break_inside_a_frame_does_not_smuggle_a_call() {
    for (start, end) in [("\r", "\r"), ("\r", ""), (" \r ", "")] {
        let (_bench, script, mut client) = guarded();
        let inner = r#"{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"send_mail","arguments":{"to":"smuggled"}}}"#;
        client.send_line(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{start}{inner}{end}}}"#
        ));
        text(&client.call("make_report", &json!({ "title": "x" })));
        let record = script.record();
        assert!(!record.contains("smuggled") && !record.contains('\r'), "{record}");
        client.end().exits(0);
    }
}

#[test]
fn what_is_no_message_does_not_pass() {
    let (bench, script, mut client) = guarded();
    let lines = [
        "smuggled",
        "{\"smuggled\":1}",
        "[\"smuggled\"]",
        r#"{"jsonrpc":"1.0","id":72,"method":"smuggled"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"smuggled"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"smuggled"}"#,
        r#"{"jsonrpc":"2.0","id":75,"method":"smuggled","id":75}"#,
        r#"{"jsonrpc":"2.0","id":73,"method":"smuggled"} {"jsonrpc":"2.0","method":"smuggled"}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":74,\"method\":\"smuggled\"}",
    ];
    for line in lines {
        client.send_line(line);
    }
    client.send_line([b"{\"jsonrpc\":\"2.0\",\"method\":\"smuggled \xff\"}".as_slice()].concat());
    text(&client.call("make_report", &json!({ "title": "x" })));
    let record = script.record();
    assert!(!record.contains("smuggled"), "{record}");
    client.end().exits(0);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_batch_is_gated_element_by_element() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.introduces("2025-03-26", &json!({ "tools": {} }));
    let before = result(&json!({ "tools": [report_tool(), mail_tool()] }));
    let after = result(&json!({ "tools": [report_tool_with_owner(), mail_tool()] }));
    script.on_each("tools/list", json!([[before], [after]]));
    let mut client = Client::through_gate(&bench, &["--relist-max-age", "0"], &script.launch());
    client.begin_at("2025-03-26");
    client.tool_names();
    let call = |id: u64, tool: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": { "word": tool } } });
    client.send(&json!([call(81, "make_report"), call(82, "send_mail")]));
    let answers = client.batch_answers(&[81, 82]);
    refused(&answers[0], HELD);
    text(&answers[1]);
    let in_batches = client.messages().into_iter().filter(Value::is_array).count();
    assert_eq!(in_batches, 1, "whoever sends a batch waits for one");
    let record = script.record();
    assert!(record.contains("send_mail") && !record.contains("make_report"), "{record}");
    client.end().exits(0);
    receipts_are_complete(&bench, 4);
}

#[test]
fn a_batch_is_answered_without_what_was_cancelled_of_it_and_when_the_server_ends() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.introduces("2025-03-26", &json!({ "tools": {} }));
    let go_on = json!({ "touch": script.path("called") });
    script.on_each("tools/call", json!([[go_on], [echo()], [], [{ "exit": 3 }]]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin_at("2025-03-26");
    client.tool_names();
    let call = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "send_mail", "arguments": {} } });
    client.send(&json!([call(81), call(82)]));
    script.written("called");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 81 } }));
    text(&client.batch_answers(&[82])[0]);
    client.send(&json!([call(83), call(84)]));
    for answer in client.batch_answers(&[83, 84]) {
        refused(&answer, UNREACHABLE);
    }
    let batches = client.messages().into_iter().filter(Value::is_array);
    let sizes: Vec<usize> = batches.map(|batch| batch.as_array().unwrap().len()).collect();
    assert_eq!(sizes, [1, 2]);
    client.ended().exits(3);
    receipts_are_complete(&bench, 6);
}

#[test]
fn a_batch_of_another_revision_or_too_long_or_with_an_id_twice_is_refused() {
    let call = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "send_mail", "arguments": { "to": "smuggled" } } });
    let long = |count: u64| Value::from((100..100 + count).map(call).collect::<Vec<Value>>());
    for (version, batch, passes) in [
        ("2025-03-26", long(100), true),
        ("2025-03-26", long(101), false),
        ("2025-03-26", json!([call(1), call(1)]), false),
        ("2025-03-26", json!([]), false),
        ("2025-06-18", json!([call(1)]), false),
    ] {
        let bench = Bench::new();
        let mut script = Script::new(&bench);
        script.introduces(version, &json!({ "tools": {} }));
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin_at(version);
        client.tool_names();
        client.send(&batch);
        if passes {
            let ids: Vec<u64> = (100..200).collect();
            client.batch_answers(&ids).iter().for_each(|answer| assert!(!text(answer).is_empty()));
        }
        assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
        assert_eq!(script.record().contains("smuggled"), passes, "{version}");
        client.end().exits(0);
        bench.run(["receipts", "verify"]).exits(0);
    }
}

#[test]
fn a_server_request_that_is_still_open_does_not_hold_up_the_client() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let request = r#"{"jsonrpc":"2.0","id":"srv","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    script.on("tools/call", json!([request, echo()]));
    let launch: Vec<OsString> = script.launch();
    let mut client = Client::through_gate(&bench, &[], &launch);
    client.begin();
    for count in 1..=5 {
        let answer = client.call("make_report", &json!({ "title": "x" }));
        assert_eq!(text(&answer), format!("call {count}"));
    }
    client.end().exits(0);
}

/// It is unknown which of two ids the client waits for: the response has none, and the client does
/// not wait forever.
#[test]
fn a_request_with_two_ids_is_answered_without_one() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.send_line(r#"{"jsonrpc":"2.0","id":71,"id":72,"method":"ping"}"#);
    let answer = client.answer_to_any(&Value::Null);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    client.end().exits(0);
}

//! Many concurrent calls, long messages, readers that stop, full disks, and gates that are killed.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const CALL: &str = "tools/call";

/// The highest allowed peak memory of the gate in KiB, whatever its client does not read.
const MAX_RESIDENT_KIB: u64 = 150 * 1024;
/// How many notifications of 10 KB a server sends: more than the allowed memory, if they were kept.
const NOTES: usize = 20_000;

fn begun(bench: &Bench, script: &Script) -> Client {
    let mut client = Client::through_gate(bench, &[], &script.launch());
    client.begin();
    client.tool_names();
    client
}

fn report(title: &str) -> Value {
    json!({ "name": "make_report", "arguments": { "title": title } })
}

#[test]
fn many_calls_at_once_are_all_answered_and_recorded() {
    const CALLS: u64 = 2_000;
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = begun(&bench, &script);
    let ids: Vec<u64> = (0..CALLS).map(|_| client.request(CALL, &report("x"))).collect();
    for (count, id) in ids.iter().enumerate() {
        let answer = client.answer_to(&json!(id));
        assert_eq!(text(&answer), format!("call {}", count + 1));
    }
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

#[test]
fn a_long_message_arrives_as_it_was_sent() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([r#"{"jsonrpc":"2.0","id":$ID,"result":{"back":$ARGUMENTS}}"#]));
    let mut client = begun(&bench, &script);
    let title = "é\"\\ 🦀".repeat(600_000);
    let answer = client.ask(CALL, &report(&title));
    assert!(answer["result"]["back"]["title"] == title.as_str(), "another text came back");
    client.end().exits(0);
}

#[test]
fn an_id_that_is_in_use_is_not_used_twice() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on(CALL, json!([{ "await_file": script.path("go") }, echo()]));
    let mut client = begun(&bench, &script);
    let call = |title: &str| json!({ "jsonrpc": "2.0", "id": "same", "method": CALL, "params": report(title) });
    client.send(&call("first"));
    client.send(&call("second"));
    refused(&client.answer_to(&json!("same")), -32600);
    script.touch("go");
    assert_eq!(text(&client.answer_to(&json!("same"))), "call 1");
    assert!(!script.record().contains("second"));
    // Once the call is answered, its id may be used again.
    client.send(&call("third"));
    assert_eq!(text(&client.answer_to(&json!("same"))), "call 2");
    client.end().exits(0);
    receipts_are_complete(&bench, 5);
}

#[test]
fn a_client_that_does_not_read_makes_nothing_pile_up() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/vendor", "params": { "x": "x".repeat(10_000) } });
    let start = |bench: &Bench| {
        bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
        let mut script = Script::new(bench);
        script.on("start", json!([{ "repeat": [NOTES, note.to_string()] }]));
        let mut command = bench.command(["run", "--server", ID, "--"]);
        command.args(script.launch()).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    let benches = [Bench::unattended(), Bench::unattended()];
    let [mut unread, mut read] = benches.each_ref().map(start);
    // By the time a client of the same server has read everything, as much could have accumulated
    // for the client that does not read.
    let lines = BufReader::new(read.stdout.take().unwrap()).lines();
    assert_eq!(lines.map_while(Result::ok).take(NOTES).count(), NOTES);
    testing::assert_peak_memory(unread.id(), MAX_RESIDENT_KIB);
    // The gate ends when its client disconnects.
    for gate in [&mut unread, &mut read] {
        drop((gate.stdin.take(), gate.stdout.take()));
        testing::wait_for("the gate to end", || gate.try_wait().unwrap());
    }
}

#[test]
fn where_no_receipt_can_be_written_no_call_goes_through() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    begun(&bench, &script).end().exits(0);
    // The shell's unit is 512 bytes or 1 KiB: either way, the ledger is full after some calls.
    let shell = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_holdpoint"), "run", "--server", ID]);
    command.arg("--home").arg(bench.home()).arg("--").args(script.launch());
    let mut client = Client::start(command);
    client.begin();
    let mut went = 0;
    let refusal = loop {
        let answer = client.ask(CALL, &report("x"));
        if answer.get("error").is_some() {
            break answer;
        }
        went += 1;
        assert!(went < 20_000, "the ledger is never full");
    };
    assert_eq!(refused(&refusal, -32012)["reason"], "ledger_unavailable", "after {went} calls");
    assert!(went > 0);
    assert_eq!(script.record().matches(CALL).count(), went);
    client.end();
    // No call was dispatched without its receipt.
    let receipts = receipts(&bench);
    let decided = receipts.iter().filter(|receipt| receipt["mcp"]["method"] == CALL).count();
    assert!(decided >= went, "{decided} decisions for {went} calls");
}

#[test]
fn a_gate_that_is_killed_in_the_middle_of_calls_leaves_a_ledger_that_verifies() {
    let rounds = if std::env::var_os("HOLDPOINT_LONG").is_some() { 200 } else { 10 };
    let bench = Bench::new();
    let script = Script::new(&bench);
    begun(&bench, &script).end().exits(0);
    for round in 0..rounds {
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin();
        let ids: Vec<u64> = (0..200).map(|_| client.request(CALL, &report("x"))).collect();
        // At a point between the first response and the last.
        client.answer_to(&json!(ids[(round * 37) % ids.len()]));
        client.kill();
    }
    let receipts = receipts(&bench);
    let decided = receipts.iter().filter(|receipt| receipt["mcp"]["method"] == CALL).count();
    // No dispatched call is missing.
    let dispatched = script.record().matches(CALL).count();
    assert!(decided >= dispatched, "{decided} decisions for {dispatched} calls");
    assert!(dispatched > 0);
}

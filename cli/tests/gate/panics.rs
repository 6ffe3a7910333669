//! A bug in the gate stops one message, not the session. The binary under test panics where
//! `HOLDPOINT_TEST_PANIC` says, which only works in builds with debug assertions.
#![cfg(debug_assertions)]

use crate::bench::*;
use crate::client::*;
use crate::http_server::{Server, accepted, json as body, respond, result as answer};
use crate::script::*;
use serde_json::{Value, json};

/// The error code of an internal error.
const INTERNAL: i64 = -32012;

fn gate(bench: &Bench, panic: &str, options: &[&str]) -> Client {
    let script = Script::new(bench);
    let mut command = bench.command(["run", "--server", ID]);
    command.args(options).arg("--").args(script.launch()).env("HOLDPOINT_TEST_PANIC", panic);
    let mut client = Client::start(command);
    client.begin();
    client
}

fn report(client: &mut Client, title: &str) -> Value {
    client.call("make_report", &json!({ "title": title }))
}

/// Asserts that a panic only leaves its location and a line in the error log, and nothing from the
/// message being handled.
#[track_caller]
fn leaves_its_place_only(bench: &Bench, ended: &Ended, faults: usize) {
    assert!(ended.errors.contains("internal error ("), "{}", ended.errors);
    assert!(ended.errors.contains("trip.rs:"), "{}", ended.errors);
    assert!(!ended.errors.contains("payload"), "{}", ended.errors);
    let log = std::fs::read_to_string(bench.home().join("errors.jsonl")).unwrap();
    assert_eq!(log.matches(r#""class":"internal""#).count(), faults, "{log}");
    assert!(!log.contains("boom"), "{log}");
}

/// Asserts that a call with the title `boom` ends in an internal error, and that the next one
/// succeeds.
#[track_caller]
fn one_call_fails(panic: &str, options: &[&str]) {
    let bench = Bench::new();
    let mut client = gate(&bench, panic, options);
    assert_eq!(refused(&report(&mut client, "boom"), INTERNAL)["reason"], "internal", "{panic}");
    text(&report(&mut client, "fine"));
    let requests = client.requests();
    let ended = client.end().exits(0);
    leaves_its_place(&bench, &ended);
    receipts_are_complete(&bench, requests);
}

#[track_caller]
fn leaves_its_place(bench: &Bench, ended: &Ended) {
    let log = std::fs::read_to_string(bench.home().join("errors.jsonl")).unwrap();
    let faults = log.matches(r#""class":"internal""#).count();
    assert!(faults > 0, "{log}");
    leaves_its_place_only(bench, ended, faults);
}

#[test]
fn a_panic_over_a_message_of_the_client_refuses_that_message() {
    one_call_fails("client:boom", &[]);
}

#[test]
fn a_panic_over_an_answer_of_the_server_refuses_its_call() {
    // The scripted server's responses show how many calls it received.
    one_call_fails("server:call 1", &[]);
    one_call_fails("answer:call 1", &[]);
}

#[test]
fn a_panic_of_the_keeper_refuses_what_waits_for_it() {
    // The listing at the start may end while the call arrives: then nothing waits for the keeper
    // when it panics.
    let is_refused = |_: &usize| {
        let bench = Bench::new();
        let mut client = gate(&bench, "keeper:relist", &["--relist-max-age", "0"]);
        let answer = report(&mut client, "boom");
        text(&report(&mut client, "fine"));
        let requests = client.requests();
        let ended = client.end().exits(0);
        leaves_its_place(&bench, &ended);
        receipts_are_complete(&bench, requests);
        answer.get("error").is_some_and(|_| refused(&answer, INTERNAL)["reason"] == "internal")
    };
    assert!((0..10).any(|attempt| is_refused(&attempt)), "no call waited for the keeper");
}

#[test]
fn a_panic_over_a_call_that_waited_refuses_that_call() {
    one_call_fails("resume:boom", &["--relist-max-age", "0"]);
}

#[test]
fn a_panic_on_the_way_to_the_server_refuses_what_was_brought_there() {
    one_call_fails("errands:resume", &["--relist-max-age", "0"]);
}

#[test]
fn a_panic_with_the_state_locked_closes_the_server_and_not_the_session() {
    let bench = Bench::new();
    let mut client = gate(&bench, "state:boom", &[]);
    text(&report(&mut client, "fine"));
    for title in ["boom", "fine", "fine", "fine", "fine"] {
        assert_eq!(refused(&report(&mut client, title), INTERNAL)["reason"], "internal");
    }
    assert_eq!(refused(&client.ask("ping", &json!({})), INTERNAL)["reason"], "internal");
    let ended = client.end().exits(0);
    assert!(ended.errors.contains("everything is refused"), "{}", ended.errors);
}

#[test]
fn three_panics_within_a_minute_end_the_session() {
    let bench = Bench::new();
    let mut client = gate(&bench, "client:boom*9", &[]);
    for _ in 0..2 {
        refused(&report(&mut client, "boom"), INTERNAL);
        text(&report(&mut client, "fine"));
    }
    client
        .request("tools/call", &json!({ "name": "make_report", "arguments": { "title": "boom" } }));
    let ended = client.ended().exits(12);
    assert!(ended.errors.contains("too many faults"), "{}", ended.errors);
    leaves_its_place_only(&bench, &ended, 3);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_panic_while_the_admission_is_checked_admits_nothing_and_it_is_checked_again() {
    let bench = Bench::new();
    bench.run(["attest", "keygen", "one.pem"]).exits(0);
    let pem = std::fs::read_to_string(bench.path("one.pem.pub")).unwrap();
    let signer = json!({ "keyId": "one", "publicKeyPem": pem, "approvedClearance": ["internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
    let root = bench.path("root.json").to_string_lossy().into_owned();
    let options = ["--trust-root", &root, "--required", "internal"];
    let mut client = gate(&bench, "admission:check", &options);
    // The server has no attestation, as the second check finds.
    refused(&report(&mut client, "fine"), DENIED);
    let ended = client.end().exits(0);
    leaves_its_place(&bench, &ended);
}

/// The gate in front of a remote server that answers every call with `done`.
fn remote_gate(bench: &Bench, panic: &str) -> (Server, Client) {
    let server = Server::start(|request| {
        let said = match request.rpc_method() {
            "initialize" => {
                json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "far", "version": "1" } })
            }
            "tools/list" => json!({ "tools": [report_tool()] }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
            _ if request.method == "GET" => return respond("405 Method Not Allowed", "", ""),
            _ => return accepted(),
        };
        body(&answer(request, &said.to_string()))
    });
    let mut command = bench.command(["run", "--server", ID, "--url", &server.url()]);
    command.env("HOLDPOINT_TEST_PANIC", panic);
    let mut client = Client::start(command);
    client.begin();
    assert_eq!(client.tool_names(), ["make_report"]);
    (server, client)
}

#[test]
fn a_panic_on_the_way_to_a_remote_server_refuses_its_call() {
    for panic in ["exchange:boom", "relay:boom"] {
        let bench = Bench::new();
        let (server, mut client) = remote_gate(&bench, panic);
        assert_eq!(
            refused(&report(&mut client, "boom"), INTERNAL)["reason"],
            "internal",
            "{panic}"
        );
        assert_eq!(text(&report(&mut client, "fine")), "done", "{panic}");
        let calls = server.seen().into_iter().filter(|seen| seen.rpc_method() == "tools/call");
        assert_eq!(calls.count(), 1, "{panic}");
        let requests = client.requests();
        let ended = client.end().exits(0);
        leaves_its_place(&bench, &ended);
        receipts_are_complete(&bench, requests);
    }
}

#[test]
fn three_panics_on_the_way_to_a_remote_server_end_the_session() {
    let bench = Bench::new();
    let (_server, mut client) = remote_gate(&bench, "exchange:boom*9");
    for _ in 0..2 {
        refused(&report(&mut client, "boom"), INTERNAL);
    }
    let arguments = json!({ "name": "make_report", "arguments": { "title": "boom" } });
    client.request("tools/call", &arguments);
    client.ended().exits(12);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_panic_over_the_stream_of_a_remote_server_opens_the_stream_again() {
    let bench = Bench::new();
    let (server, mut client) = remote_gate(&bench, "listen:open");
    server.wait_for(|seen| seen.method == "GET", 1);
    assert_eq!(text(&report(&mut client, "fine")), "done");
    let ended = client.end().exits(0);
    leaves_its_place_only(&bench, &ended, 1);
}

#[test]
fn a_panic_of_the_live_export_ends_the_export_and_no_call() {
    let collector = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let bench = Bench::unattended();
    bench.configure(&format!("[export]\nsyslog = \"udp://{}\"\n", collector.local_addr().unwrap()));
    let mut client = gate(&bench, "export:send", &[]);
    text(&report(&mut client, "fine"));
    let log = bench.home().join("errors.jsonl");
    testing::wait_until("a line in the error log", || log.exists());
    text(&report(&mut client, "fine"));
    let requests = client.requests();
    let ended = client.end().exits(0);
    assert!(ended.errors.contains("live export stopped because of a bug"), "{}", ended.errors);
    leaves_its_place_only(&bench, &ended, 1);
    receipts_are_complete(&bench, requests);
    let mut command = bench.command(["receipts", "export", "--live"]);
    command.env("HOLDPOINT_TEST_PANIC", "export:send");
    assert_eq!(command.output().unwrap().status.code(), Some(12));
}

const UNRECORDED: &str = "ledger_unavailable";

/// The number of calls that reached the scripted server.
fn calls(bench: &Bench) -> usize {
    let record = std::fs::read_to_string(bench.path("script").join("record")).unwrap();
    record.matches("tools/call").count()
}

#[test]
fn a_panic_while_a_receipt_is_written_lets_no_call_through_from_then_on() {
    let bench = Bench::new();
    let mut client = gate(&bench, "ledger:tools/call", &[]);
    refused(&report(&mut client, "first"), INTERNAL);
    for _ in 0..5 {
        refused(&report(&mut client, "later"), INTERNAL);
    }
    client.end();
    assert_eq!(calls(&bench), 0);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_panic_of_the_thread_for_the_disk_lets_no_call_through_from_then_on() {
    let bench = Bench::new();
    let mut client = gate(&bench, "disk:receipts", &[]);
    let deadline = std::time::Instant::now() + DEADLINE;
    let refusal = loop {
        let answer = report(&mut client, "fine");
        if answer.get("error").is_some() {
            break answer;
        }
        assert!(std::time::Instant::now() < deadline, "calls go on");
    };
    assert_eq!(refused(&refusal, INTERNAL)["reason"], UNRECORDED);
    let before = calls(&bench);
    assert_eq!(refused(&report(&mut client, "later"), INTERNAL)["reason"], UNRECORDED);
    client.end();
    assert_eq!(calls(&bench), before);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_panic_of_the_thread_that_signs_holds_nothing_up() {
    let bench = Bench::new();
    let mut client = gate(&bench, "signer:sign", &[]);
    // More lines than one checkpoint interval.
    for _ in 0..300 {
        client.ask("ping", &json!({}));
    }
    let ended = client.end();
    assert!(ended.errors.contains("internal error ("), "{}", ended.errors);
    bench.run(["receipts", "verify"]).exits(0);
}

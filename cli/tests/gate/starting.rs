//! Servers that are slow to respond or never do: refused in time, and not before.

use crate::bench::*;
use crate::client::*;
use crate::http_server::{self, Server, Step};
use crate::script::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const GREETING: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"far","version":"1"}}"#;
const DISCOVER: &str = "server/discover";

/// Sends `initialize`. Returns the response and how long it took.
#[track_caller]
fn greet(client: &mut Client) -> (Value, Duration) {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    let begun = Instant::now();
    let answer = client.ask("initialize", &params);
    (answer, begun.elapsed())
}

#[track_caller]
fn is_not_started(answer: &Value, within: &str) {
    assert_eq!(refused(answer, UNREACHABLE)["reason"], "timeout");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains(within) && said.contains("limits.start_timeout_seconds"), "{said}");
}

fn by_address(bench: &Bench, url: &str, options: &[&str]) -> Client {
    let mut command = bench.command(["run", "--server", ID, "--url", url]);
    command.args(options);
    Client::start(command)
}

/// A server that starts to read only after some time.
fn late(script: &Script, seconds: &str) -> Vec<OsString> {
    script.launch_by(&format!("sleep {seconds}; exec \"$@\""))
}

#[test]
fn a_server_that_never_answers_initialize_is_refused_at_the_limit_and_not_before() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("initialize", json!([]));
    let mut client = Client::through_gate(&bench, &["--start-timeout", "1"], &script.launch());
    let (answer, took) = greet(&mut client);
    is_not_started(&answer, "within 1 s");
    assert!(took >= Duration::from_secs(1), "{took:?}");
    let ended = client.end().exits(0);
    assert!(
        ended.errors.contains("did not answer its first request within 1 s"),
        "{}",
        ended.errors
    );
    assert!(!script.record().contains("notifications/cancelled"), "a greeting is not cancelled");
    receipts_are_complete(&bench, 1);
    assert_eq!(receipts(&bench)[0]["outcome"]["status"], "timeout");
}

#[test]
fn a_server_that_starts_within_the_limit_is_used_however_short_calls_have_to_be() {
    let bench = Bench::unattended();
    bench.configure("[limits]\ncall_timeout_seconds = 1\nstart_timeout_seconds = 30\n");
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &late(&script, "1.5"));
    let (answer, _) = greet(&mut client);
    assert_eq!(answer["result"]["serverInfo"]["name"], "scripted");
    client.end().exits(0);
}

#[test]
fn what_the_command_line_names_goes_before_what_is_configured() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nstart_timeout_seconds = 1\n");
    let script = Script::new(&bench);
    let launch = late(&script, "2");
    let mut client = Client::through_gate(&bench, &[], &launch);
    is_not_started(&greet(&mut client).0, "within 1 s");
    client.end();
    let mut client = Client::through_gate(&bench, &["--start-timeout", "60"], &launch);
    assert!(greet(&mut client).0.get("result").is_some());
    client.end().exits(0);
}

#[test]
fn a_time_that_is_none_is_refused() {
    let bench = Bench::unattended();
    let script = Script::new(&bench);
    for seconds in ["0", "3601"] {
        bench.configure(&format!("[limits]\nstart_timeout_seconds = {seconds}\n"));
        let client = Client::through_gate(&bench, &[], &script.launch());
        let ended = client.end().exits(2);
        assert!(ended.errors.contains("from 1 to 3600"), "{}", ended.errors);
    }
    for seconds in ["1", "3600"] {
        bench.configure(&format!("[limits]\nstart_timeout_seconds = {seconds}\n"));
        Client::through_gate(&bench, &[], &script.launch()).end().exits(0);
    }
}

#[test]
fn an_address_that_never_answers_initialize_is_refused_too() {
    let bench = Bench::new();
    let server = Server::start(|_| vec![Step::AwaitClosing]);
    let mut client = by_address(&bench, &server.url(), &["--start-timeout", "1"]);
    is_not_started(&greet(&mut client).0, "within 1 s");
    let requests = client.requests();
    client.end();
    receipts_are_complete(&bench, requests);
}

#[test]
fn an_address_that_never_answered_can_be_greeted_again() {
    let bench = Bench::new();
    let greetings = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.rpc_method() {
        "initialize" if greetings.fetch_add(1, Ordering::SeqCst) == 0 => vec![Step::AwaitClosing],
        "initialize" => http_server::json(&http_server::result(request, GREETING)),
        _ => http_server::accepted(),
    });
    let mut client = by_address(&bench, &server.url(), &["--start-timeout", "1"]);
    is_not_started(&greet(&mut client).0, "within 1 s");
    assert_eq!(greet(&mut client).0["result"]["serverInfo"]["name"], "far");
    let told = |seen: &http_server::Seen| seen.rpc_method() == "notifications/cancelled";
    assert!(!server.seen().iter().any(told), "a greeting is not cancelled");
    client.end().exits(0);
}

#[test]
fn an_address_that_answers_within_the_limit_is_used() {
    let bench = Bench::new();
    let server = Server::start(|request| match request.rpc_method() {
        "initialize" => http_server::json(&http_server::result(request, GREETING)),
        _ => http_server::accepted(),
    });
    let mut client = by_address(&bench, &server.url(), &["--start-timeout", "1"]);
    assert_eq!(greet(&mut client).0["result"]["serverInfo"]["name"], "far");
    client.end().exits(0);
}

/// Sends a request of the era without sessions.
fn stateless(client: &mut Client, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client.ask(method, &params)
}

#[test]
fn without_sessions_a_server_that_does_not_say_who_it_is_keeps_no_call_for_ever() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on_each(DISCOVER, json!([[], [result(&json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "serverInfo": { "name": "scripted", "version": "1" } }))]]));
    let mut client = Client::through_gate(&bench, &["--start-timeout", "1"], &script.launch());
    let call = json!({ "name": "make_report", "arguments": {} });
    let answer = stateless(&mut client, "tools/call", call.clone());
    assert_eq!(refused(&answer, UNREACHABLE)["reason"], "timeout");
    // The next call sends the request again, and by now the server answers.
    text(&stateless(&mut client, "tools/call", call));
    assert_eq!(script.record().matches(DISCOVER).count(), 2);
    client.end().exits(0);
    receipts_are_complete(&bench, 2);
}

/// Connects to a server that sends more than is read, and waits for the exit.
#[track_caller]
fn ends_with_unread_output(mut command: Command) -> ExitStatus {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut gate = command.spawn().unwrap();
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let mut input = gate.stdin.take().unwrap();
    input.write_all(format!("{greeting}\n").as_bytes()).unwrap();
    for id in 2..=ASKED {
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        input.write_all(format!("{ping}\n").as_bytes()).unwrap();
    }
    // Wait for the first byte, and then stop reading.
    let mut output = gate.stdout.take().unwrap();
    output.read_exact(&mut [0; 1]).unwrap();
    drop(input);
    let status = testing::wait_for("the gate to end", || gate.try_wait().unwrap());
    drop(output);
    status
}

/// Asserts that each request has a decision and an outcome, although the client received none.
#[track_caller]
fn all_is_recorded(bench: &Bench) {
    receipts_are_complete(bench, ASKED);
    outcomes_are_recorded(bench);
}

#[track_caller]
fn outcomes_are_recorded(bench: &Bench) {
    let verified = bench.run(["receipts", "verify", "--json"]).exits(0).json();
    assert_eq!(verified["calls_without_outcome"], 0);
}

/// The number of requests, including the handshake.
const ASKED: u64 = 20;
/// The number of messages that exceeds every pipe and buffer between server and client.
const FLOOD: usize = 200;

#[test]
fn a_gate_in_front_of_an_address_ends_though_its_client_reads_nothing() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
    let server = Server::start(|request| match request.rpc_method() {
        "initialize" => {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(10_000) } });
            let mut steps = vec![http_server::stream_head("")];
            steps.extend((0..FLOOD).map(|_| http_server::event(&note.to_string())));
            steps.push(Step::AwaitClosing);
            steps
        }
        _ => http_server::accepted(),
    });
    let command = bench.command(["run", "--server", ID, "--url", &server.url()]);
    ends_with_unread_output(command);
    // How many requests were read before the path to the server was full depends on timing.
    let taken = receipts(&bench).len() as u64;
    assert!((1..=ASKED).contains(&taken), "{taken}");
    outcomes_are_recorded(&bench);
}

#[test]
fn a_gate_whose_server_has_ended_ends_though_its_client_reads_nothing() {
    let bench = Bench::unattended();
    bench.configure("[limits]\nshutdown_grace_seconds = 1\n");
    let mut script = Script::new(&bench);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(10_000) } });
    script.on("initialize", json!([{ "repeat": [FLOOD, note.to_string()] }, { "hang": true }]));
    let mut command = bench.command(["run", "--server", ID, "--"]);
    command.args(script.launch());
    ends_with_unread_output(command);
    all_is_recorded(&bench);
}

#[test]
fn with_too_few_file_descriptors_the_start_is_refused_in_words() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    for limit in [8, 12, 14, 16, 20] {
        let mut command = std::process::Command::new("sh");
        let gate = bench.command(["run", "--server", ID, "--"]);
        for (name, value) in gate.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"]);
        command.arg(gate.get_program()).args(gate.get_args()).args(script.launch());
        let ended = Client::start(command).end().exits(12);
        assert!(ended.errors.contains("free file descriptors"), "{limit}: {}", ended.errors);
        assert!(ended.errors.contains("ulimit -n 1024"), "{limit}: {}", ended.errors);
        assert!(!ended.errors.contains("internal error"), "{limit}: {}", ended.errors);
    }
}

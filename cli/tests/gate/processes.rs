//! The server's process: how it ends, its standard error, signals, and that it never outlives the
//! gate.

use crate::bench::*;
use crate::client::*;
use crate::script::*;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The configuration of a home that does not wait long for a server to exit.
const SHORT_GRACE: &str = "[limits]\nshutdown_grace_seconds = 1\n";

/// A notification without any meaning.
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{"word":"x"}}"#;

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Waits until no such process is running. A zombie counts as ended.
#[track_caller]
fn is_gone(number: &str) {
    testing::wait_until(&format!("process {number} to end"), || {
        test_kill_process(pid(number)).is_err()
            || testing::is_zombie(number.trim().parse().unwrap())
    });
}

fn signal(client: &Client, signal: Signal) {
    kill_process(pid(&client.id().to_string()), signal).unwrap();
}

#[test]
fn the_gate_exits_as_its_server_did() {
    for code in [0, 1, 7, 42, 255] {
        let bench = Bench::new();
        let mut script = Script::new(&bench);
        script.on("end", json!([{ "exit": code }]));
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin();
        client.tool_names();
        client.end().exits(code);
        receipts_are_complete(&bench, 2);
    }
}

#[test]
fn a_server_that_ends_by_a_signal_is_no_success() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("tools/call", json!([{ "abort": true }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.request("tools/call", &json!({ "name": "make_report", "arguments": {} }));
    let ended = client.ended();
    let status = ended.status;
    assert!(status.code() == Some(134) || status.signal() == Some(6), "{status:?}");
}

#[test]
fn a_server_that_does_not_start_is_told() {
    let bench = Bench::new();
    let client = Client::through_gate(&bench, &[], &["no-such-program-here".into()]);
    let ended = client.ended();
    assert_eq!(ended.status.code(), Some(11), "{}", ended.errors);
    assert!(ended.errors.contains("no-such-program-here"), "{}", ended.errors);
}

#[test]
fn a_server_that_ends_at_once_ends_the_gate() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("start", json!([{ "stderr": "no such database\n" }, { "exit": 3 }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    // The pipe may be closed before anything is written to it.
    client.close_input();
    let ended = client.ended().exits(3);
    assert!(ended.errors.contains("no such database"), "{}", ended.errors);
}

#[test]
fn standard_error_is_passed_on_as_it_is() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let said = "a line\n\u{1b}[31mred\u{1b}[0m\r\nhalf a line";
    script.on("start", json!([{ "stderr": said }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let ended = client.end().exits(0);
    assert!(ended.errors.contains(said), "{:?}", ended.errors);
}

#[test]
fn signals_are_forwarded() {
    for (name, raised) in [("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP)] {
        let bench = Bench::new();
        let script = Script::new(&bench);
        let shell =
            format!("trap 'echo caught {name} >&2; exit 42' {name}; exec 3<&0; \"$@\" <&3 & wait");
        let mut client = Client::through_gate(&bench, &[], &script.launch_by(&shell));
        client.begin();
        client.tool_names();
        signal(&client, raised);
        let ended = client.ended();
        assert!(ended.errors.contains(&format!("caught {name}")), "{name}: {}", ended.errors);
        assert_eq!(ended.status.code(), Some(42), "{name}: {:?}", ended.status);
        receipts_are_complete(&bench, 2);
    }
}

#[test]
fn a_server_that_ignores_a_signal_is_ended_all_the_same() {
    let bench = Bench::unattended();
    bench.configure(SHORT_GRACE);
    let mut script = Script::new(&bench);
    script.on("start", json!([{ "number": script.path("server") }]));
    let shell = "trap '' TERM; \"$@\"; exec sleep 1000";
    let mut client = Client::through_gate(&bench, &[], &script.launch_by(shell));
    client.begin();
    let server = script.written("server");
    signal(&client, Signal::TERM);
    client.ended();
    is_gone(&server);
}

#[test]
fn when_the_client_closes_the_pipe_the_server_ends() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("start", json!([{ "number": script.path("server") }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let server = script.written("server");
    client.end().exits(0);
    is_gone(&server);
}

#[test]
fn a_server_that_does_not_end_is_killed_after_the_grace() {
    let bench = Bench::unattended();
    bench.configure(SHORT_GRACE);
    let mut script = Script::new(&bench);
    script.on("start", json!([{ "number": script.path("server") }]));
    script.on("end", json!([{ "hang": true }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let server = script.written("server");
    let started = Instant::now();
    let ended = client.end();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(!ended.status.success(), "{:?}", ended.status);
    is_gone(&server);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn what_the_server_started_ends_with_it() {
    for is_killed in [false, true] {
        let bench = Bench::unattended();
        bench.configure(SHORT_GRACE);
        let mut script = Script::new(&bench);
        let number = json!({ "number": script.path("server") });
        script.on("start", json!([number, { "child": script.path("child") }]));
        let mut client = Client::through_gate(&bench, &[], &script.launch());
        client.begin();
        let (server, child) = (script.written("server"), script.written("child"));
        if is_killed {
            client.kill();
        } else {
            client.end();
        }
        is_gone(&server);
        if !is_killed {
            is_gone(&child);
        } else {
            // Nothing else ends the child, so the test does.
            let _ = kill_process(pid(&child), Signal::KILL);
        }
    }
}

#[test]
fn when_the_gate_is_killed_the_server_ends_although_it_is_busy() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    script.on("start", json!([{ "number": script.path("server") }]));
    script.on("tools/call", json!([{ "touch": script.path("busy") }, { "hang": true }]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.request("tools/call", &json!({ "name": "make_report", "arguments": {} }));
    script.written("busy");
    let server = script.written("server");
    client.kill();
    is_gone(&server);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_client_that_is_gone_ends_the_server() {
    let bench = Bench::unattended();
    bench.configure(SHORT_GRACE);
    let mut script = Script::new(&bench);
    // It writes more than fits into a pipe, which is not read.
    script.on("start", json!([{ "number": script.path("server") }, { "repeat": [100_000, NOTE] }]));
    let mut command = bench.command(["run", "--server", ID, "--"]);
    command.args(script.launch()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut gate = command.stderr(Stdio::null()).spawn().unwrap();
    let server = script.written("server");
    drop((gate.stdin.take(), gate.stdout.take()));
    is_gone(&server);
    testing::wait_for("the gate to end", || gate.try_wait().unwrap());
}

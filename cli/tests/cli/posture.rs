//! A posture on the gate's command line also applies to commands that judge what the gate recorded.

use crate::agent::Agent;
use crate::bench::*;
use serde_json::{Value, json};

/// A gate session with these options: the response to one call.
fn session(bench: &Bench, server: &FolderServer, options: &[&str]) -> Value {
    let mut agent = Agent::begin(server.command_as(bench, ID, "run", options));
    let answer = agent.call("make_report", &json!({ "title": "a" }));
    agent.leave();
    answer
}

fn server_with_calls(bench: &Bench) -> FolderServer {
    let server = FolderServer::new(bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    server
}

/// The tool with a title: a change that only strict holds.
fn titled() -> Value {
    let mut tool = report_tool();
    tool["title"] = json!("Report");
    tool
}

#[test]
fn what_a_strict_gate_holds_can_be_reviewed_and_approved() {
    let bench = Bench::unattended();
    let server = server_with_calls(&bench);
    let strict = &["--posture", "strict"];
    assert!(session(&bench, &server, strict)["result"].is_object());
    server.lists(&json!([titled()]));
    assert!(session(&bench, &server, strict)["error"].is_object());
    let status = bench.server_status();
    assert_eq!((&status["status"], &status["posture"]), (&json!("changed"), &json!("strict")));
    assert_eq!(status["launch"]["posture"], "strict");
    bench.run(["review", ID]).exits(10).says("make_report");
    bench.run(["check", ID]).exits(10).says("posture strict");
    // However the server is named, the posture is known.
    server.run(&bench, "check", &[]).exits(10).says("posture strict");
    assert_eq!(bench.server_status()["status"], "changed");
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0).says("verified");
    assert!(session(&bench, &server, strict)["result"].is_object());
}

#[test]
fn what_a_monitoring_gate_serves_is_not_called_held() {
    let bench = Bench::unattended();
    let server = server_with_calls(&bench);
    let monitor = &["--posture", "monitor"];
    session(&bench, &server, monitor);
    server.lists(&json!([report_tool_with_owner()]));
    assert!(session(&bench, &server, monitor)["result"].is_object());
    assert_eq!(bench.server_status()["posture"], "monitor");
    bench.run(["status", ID]).exits(0).says("still served").never_says("HOLD");
    let digest = bench.run(["digest", "--json"]).exits(0).json();
    let happened = digest["servers"][0]["happened"].as_array().unwrap();
    let whats: Vec<&Value> = happened.iter().map(|happening| &happening["what"]).collect();
    assert_eq!(whats, [&json!("pinned"), &json!("noted")]);
    bench.run(["digest"]).exits(0).says("noted, not held").never_says("began to be held");
}

#[test]
fn a_gate_that_is_given_no_posture_runs_under_the_configured_one_again() {
    let bench = Bench::unattended();
    let server = server_with_calls(&bench);
    session(&bench, &server, &["--posture", "strict"]);
    // The command line takes precedence over the configuration, and the last gate was given
    // `strict`.
    bench.configure("posture = \"shield\"\n[approve]\nunattended = true\n");
    assert_eq!(bench.server_status()["posture"], "strict");
    session(&bench, &server, &[]);
    assert_eq!(bench.server_status()["posture"], "shield");
    assert_eq!(bench.server_status()["launch"]["posture"], Value::Null);
}

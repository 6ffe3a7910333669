//! People's decisions in other processes apply to every later call, and the client is told to list
//! again.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use crate::script::*;
use serde_json::{Value, json};

/// A session with a single tool, which has changed and is held.
fn held() -> (Bench, Scenario, Client) {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    assert_eq!(client.tool_names(), ["make_report"]);
    scenario.change();
    // The server announces the change before it answers.
    client.ask("ping", &json!({}));
    refused(&report(&mut client, "held"), HELD);
    (bench, scenario, client)
}

fn report(client: &mut Client, title: &str) -> Value {
    client.call("make_report", &json!({ "title": title, "owner": "ada" }))
}

fn approve(bench: &Bench) {
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0).says("verified");
}

#[test]
fn an_approval_counts_for_the_next_call_and_the_client_is_told() {
    let (bench, scenario, mut client) = held();
    bench.run(["review", ID]).exits(10).says("owner");
    approve(&bench);
    assert!(text(&report(&mut client, "approved")).contains("approved"));
    client.notice(LIST_CHANGED);
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed["result"]["tools"][0]["inputSchema"]["properties"]["owner"].is_object());
    let record = scenario.record();
    assert!(record.contains("\"approved\"") && !record.contains("\"held\""), "{record}");
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

#[test]
fn an_approval_of_one_hash_is_none_of_another() {
    let (bench, scenario, mut client) = held();
    let hash = bench.waiting_hash("make_report");
    // The vendor reverts the change, so the approved contract is back.
    scenario.revert();
    client.ask("ping", &json!({}));
    text(&report(&mut client, "reverted"));
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(10);
    scenario.change();
    client.ask("ping", &json!({}));
    refused(&report(&mut client, "held"), HELD);
    client.end().exits(0);
}

#[test]
fn a_rollback_holds_what_was_approved() {
    let (bench, scenario, mut client) = held();
    approve(&bench);
    text(&report(&mut client, "approved"));
    bench.run(["rollback", ID, "make_report"]).exits(0);
    refused(&report(&mut client, "rolled-back"), HELD);
    assert!(!scenario.record().contains("rolled-back"));
    client.end().exits(0);
}

#[test]
fn a_quarantine_counts_for_the_next_call_until_it_is_released() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    text(&report(&mut client, "before"));
    bench.run(["quarantine", ID]).exits(0);
    let answer = report(&mut client, "quarantined");
    assert_eq!(refused(&answer, HELD)["reason"], "server_quarantined");
    client.notice(LIST_CHANGED);
    assert_eq!(
        refused(&client.ask("tools/list", &json!({})), HELD)["reason"],
        "server_quarantined"
    );
    // Only keep-alive messages reach the server.
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    let answer = client.ask("vendor/quarantined", &json!({ "word": "quarantined" }));
    assert!(answer.get("error").is_some(), "{answer}");
    bench.run(["release", ID]).exits(0);
    text(&report(&mut client, "released"));
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names(), ["make_report"]);
    assert!(!scenario.record().contains("quarantined"), "{}", scenario.record());
    let requests = client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
}

#[test]
fn an_incident_counts_for_the_next_call_until_it_is_over() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    text(&report(&mut client, "before"));
    bench.run(["incident", "on", "--reason", "a drill"]).exits(0);
    assert_eq!(refused(&report(&mut client, "stopped"), DENIED)["reason"], "kill_switch");
    bench.run(["incident", "off", "--reason", "over"]).exits(0);
    text(&report(&mut client, "again"));
    assert!(!scenario.record().contains("stopped"));
    client.end().exits(0);
}

/// An attacker with a shell deletes the row in the database instead of asking a person.
#[test]
fn deleting_the_row_of_an_incident_does_not_end_it() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    bench.run(["incident", "on"]).exits(0);
    let database = rusqlite::Connection::open(bench.home().join("state.db")).unwrap();
    database.execute_batch("DELETE FROM switches").unwrap();
    assert_eq!(refused(&report(&mut client, "row-deleted"), DENIED)["reason"], "kill_switch");
    database
        .execute_batch(
            "DELETE FROM switch_seal; DROP TRIGGER events_are_not_removed; DELETE FROM events",
        )
        .unwrap();
    assert_eq!(refused(&report(&mut client, "all-deleted"), DENIED)["reason"], "kill_switch");
    bench.run(["incident", "status"]).exits(0).says("INCIDENT").says("holdpoint incident off");
    bench.run(["incident", "off", "--reason", "over"]).exits(0).says("no incident");
    text(&report(&mut client, "ended"));
    assert!(!scenario.record().contains("deleted"), "{}", scenario.record());
    client.end().exits(0);
}

/// The database and the receipts are deleted but `keys/` is left: at the next start, the server
/// must not be trusted as a new one.
#[test]
fn a_home_of_which_only_the_keys_are_left_holds_its_servers() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    text(&report(&mut client, "first"));
    client.end().exits(0);
    std::fs::remove_dir_all(bench.home().join("receipts")).unwrap();
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(bench.home().join(name));
    }
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    assert_eq!(refused(&report(&mut client, "lost"), HELD)["reason"], "baseline_lost");
    bench.run(["review", ID]).exits(10).says("started over").says("holdpoint approve");
    let surface = bench.server_status()["surface_hash"].as_str().unwrap().to_owned();
    bench.run(["approve", ID, "--hash", &surface]).exits(0).says("verified");
    assert_eq!(refused(&report(&mut client, "stopped"), DENIED)["reason"], "kill_switch");
    bench.run(["incident", "off", "--reason", "over"]).exits(0);
    text(&report(&mut client, "approved"));
    assert!(!scenario.record().contains("lost"), "{}", scenario.record());
    client.end().exits(0);
}

/// No act follows the removal, so only the missing file reveals it.
#[test]
fn a_database_that_is_removed_while_the_gate_runs_holds_the_next_call_until_it_is_back() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    text(&report(&mut client, "before"));
    let [database, away] = ["state.db", "away.db"].map(|name| bench.home().join(name));
    std::fs::rename(&database, &away).unwrap();
    assert_eq!(refused(&report(&mut client, "removed"), HELD)["reason"], "baseline_lost");
    std::fs::rename(&away, &database).unwrap();
    text(&report(&mut client, "back"));
    assert!(!scenario.record().contains("removed"), "{}", scenario.record());
    client.end().exits(0);
}

#[test]
fn an_incident_of_one_server_stops_no_other() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    bench.file("other.json", "[]");
    bench.run(["pin", "--server", "other", "--file", "other.json"]).exits(0);
    bench.run(["incident", "on", "--server", "other"]).exits(0);
    text(&report(&mut client, "of-another"));
    bench.run(["incident", "off", "--reason", "over"]).exits(0);
    bench.run(["incident", "on", "--server", ID]).exits(0);
    refused(&report(&mut client, "of-this"), DENIED);
    client.end().exits(0);
}

#[test]
fn one_approval_counts_in_every_session_of_the_home() {
    let (bench, scenario, mut first) = held();
    let mut second = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    second.begin();
    refused(&report(&mut second, "held"), HELD);
    approve(&bench);
    text(&report(&mut first, "approved"));
    text(&report(&mut second, "approved"));
    first.end().exits(0);
    second.end().exits(0);
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn a_first_use_that_needs_approval_serves_nothing_before_it() {
    let bench = Bench::unattended();
    bench.configure("first_use = \"approve\"\n[approve]\nunattended = true\n");
    let scenario = Scenario::new(&bench, "added_required");
    let mut client = Client::through_gate(&bench, &[], &scenario.launch(&[]));
    client.begin();
    assert_eq!(refused(&client.ask("tools/list", &json!({})), HELD)["reason"], "server_pending");
    assert_eq!(refused(&report(&mut client, "pending"), HELD)["reason"], "server_pending");
    let surface = bench.server_status()["surface_hash"].as_str().unwrap().to_owned();
    bench.run(["approve", ID, "--hash", &surface]).exits(0);
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names(), ["make_report"]);
    text(&report(&mut client, "approved"));
    assert!(!scenario.record().contains("\"pending\""));
    client.end().exits(0);
}

/// A host lists once when it starts. The message at that time must be sufficient, and no restart
/// necessary.
#[test]
fn a_host_that_is_refused_a_list_is_told_what_to_do_and_lists_again_without_a_restart() {
    let bench = Bench::unattended();
    let scenario = Scenario::new(&bench, "added_required");
    let launch = scenario.launch(&[]);
    let mut client = Client::through_gate(&bench, &[], &launch);
    client.begin();
    assert_eq!(client.tool_names(), ["make_report"]);
    let requests = client.requests();
    client.end().exits(0);
    bench.run(["quarantine", ID]).exits(0);
    let mut client = Client::through_gate(&bench, &[], &launch);
    client.begin();
    let answer = client.ask("tools/list", &json!({}));
    let data = refused(&answer, HELD);
    assert_eq!(data["review"], json!(["holdpoint", "release", ID]));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("A person decides: holdpoint release {ID}")), "{message}");
    bench.run(["release", ID]).exits(0);
    // Only the notification makes the client list again.
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names(), ["make_report"]);
    let requests = requests + client.requests();
    client.end().exits(0);
    receipts_are_complete(&bench, requests);
    let lists = receipts(&bench).into_iter().filter(|line| line["mcp"]["method"] == "tools/list");
    let decided: Vec<Value> = lists.map(|line| line["decision"]["result"].clone()).collect();
    assert_eq!(decided.iter().filter(|result| **result == "require_approval").count(), 1);
    assert_eq!(decided.len(), 3, "{decided:?}");
    // The client asked but called nothing: no call was held.
    let calls = &bench.run(["stats", "--json"]).exits(0).json()["this"]["calls"];
    assert_eq!((&calls["checked"], &calls["held"]), (&json!(0), &json!(0)), "{calls}");
}

#[test]
fn another_program_under_the_same_id_shows_nothing_until_a_person_approves_it() {
    let bench = Bench::unattended();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let shown = client.tool_names();
    client.end().exits(0);
    let mut client = Client::through_gate(&bench, &[], &script.launch_by("exec \"$@\""));
    client.begin();
    let answer = client.ask("tools/list", &json!({}));
    let data = refused(&answer, HELD);
    assert_eq!(
        (&data["kinds"], &data["tool"]),
        (&json!(["origin-changed", "origin-detail-changed"]), &json!(null))
    );
    let surface = bench.server_status()["surface_hash"].as_str().unwrap().to_owned();
    bench.run(["approve", ID, "--hash", &surface]).exits(0);
    client.notice(LIST_CHANGED);
    assert_eq!(client.tool_names(), shown);
    client.end().exits(0);
}

#[test]
fn a_tool_that_is_held_stops_no_other() {
    let bench = Bench::new();
    let mut script = Script::new(&bench);
    let changed = json!({ "tools": [report_tool_with_owner(), mail_tool()] });
    let before = result(&json!({ "tools": [report_tool(), mail_tool()] }));
    script.on_each("tools/list", json!([[before], [result(&changed)]]));
    let mut client = Client::through_gate(&bench, &["--relist-max-age", "0"], &script.launch());
    client.begin();
    assert_eq!(client.tool_names().len(), 2);
    refused(&client.call("make_report", &json!({ "title": "held" })), HELD);
    text(&client.call("send_mail", &json!({ "to": "ada" })));
    let record = script.record();
    assert!(record.contains("send_mail") && !record.contains("make_report"), "{record}");
    client.end().exits(0);
}

#[test]
fn a_call_of_an_unlisted_tool_does_not_reach_the_server() {
    let bench = Bench::new();
    let script = Script::new(&bench);
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    let answer = client.call("hidden_tool", &json!({ "title": "x" }));
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    assert!(!script.record().contains("hidden_tool"), "{}", script.record());
    client.end().exits(0);
}

#[test]
fn what_waits_is_in_the_store_when_the_refusal_arrives() {
    let (bench, _scenario, client) = held();
    let waiting = bench.waiting("make_report");
    assert_eq!(waiting["findings"][0]["kind"], "added-required-param", "{waiting}");
    assert_eq!(bench.server_status()["status"], "changed");
    client.end().exits(0);
}

#[test]
fn an_incident_stops_calls_that_were_read_and_not_yet_sent() {
    let bench = Bench::unattended();
    let mut script = Script::new(&bench);
    let (go, busy) = (script.path("go"), script.path("busy"));
    script.on("tools/call", json!([{ "touch": busy }, { "await_file": go }, echo()]));
    let mut client = Client::through_gate(&bench, &[], &script.launch());
    client.begin();
    client.tool_names();
    // Far more than fits into the pipe to the server, at once.
    let params = json!({ "name": "make_report", "arguments": { "title": "x".repeat(2_000) } });
    let ids: Vec<u64> = (0..500).map(|_| client.request("tools/call", &params)).collect();
    script.written("busy");
    bench.run(["incident", "on"]).exits(0);
    script.touch("go");
    let answers: Vec<Value> = ids.iter().map(|id| client.answer_to_any(&json!(id))).collect();
    let stopped = answers.iter().filter(|answer| answer["error"]["code"] == DENIED).count();
    // Only what fits into the pipes was sent.
    assert!(stopped > 400, "only {stopped} of {} were stopped", ids.len());
    client.end().exits(0);
}

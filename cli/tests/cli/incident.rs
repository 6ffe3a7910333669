//! Incident mode: any user may stop more, only a person may stop less, and everything is recorded.

use crate::agent::Agent;
use crate::bench::*;
use serde_json::{Value, json};
use store::{MAX_REASON_BYTES, MAX_REVOKED_BYTES};

fn state(bench: &Bench) -> Value {
    bench.run(["incident", "status", "--json"]).exits(0).json()
}

/// A home that knows two servers.
fn with_servers(bench: &Bench) {
    bench.file("tools.json", json!([report_tool()]).to_string());
    for id in ["files", "mail"] {
        bench.run(["pin", "--server", id, "--file", "tools.json"]).exits(0);
    }
}

#[test]
fn an_incident_is_on_until_it_is_ended() {
    let bench = Bench::unattended();
    let nothing =
        json!({ "incident": null, "egress_blocked": null, "revocations": [], "quarantines": [] });
    assert_eq!(state(&bench), nothing);
    bench.run(["incident", "status"]).exits(0).says("no incident");
    let on = bench.run(["incident", "on", "--reason", "a leak", "--json"]).exits(0).json();
    assert_eq!(on, state(&bench));
    let incident = &on["incident"];
    assert_eq!((&incident["level"], &incident["servers"]), (&json!("high"), &Value::Null));
    assert_eq!((&incident["reason"], &incident["by"]), (&json!("a leak"), &json!(WHO)));
    bench.run(["incident", "status"]).exits(0).says("INCIDENT").says("a leak").says("by ada");
    assert_eq!(bench.status()["incident"], true);
    bench.run(["status"]).exits(0).says("an incident is on: calls are denied");
    assert_eq!(
        bench.run(["incident", "off", "--reason", "over", "--json"]).exits(0).json(),
        nothing
    );
    assert_eq!(state(&bench), nothing);
    assert_eq!(bench.status()["incident"], false);
    bench.run(["status"]).exits(0).never_says("incident");
    bench.run(["receipts", "list"]).exits(0).says("incident.on").says("incident.off");
}

#[test]
fn an_incident_denies_the_calls_of_a_gate_that_runs_already() {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    let mut agent = Agent::start(&bench, &server);
    let mut call = || agent.call("make_report", &json!({ "title": "a" }));
    let goes_through = |answer: &Value| answer["result"].is_object();
    assert!(goes_through(&call()));
    bench.run(["incident", "on", "--server", ID]).exits(0);
    let denied = call();
    assert_eq!(denied["error"]["code"], 1013, "{denied}");
    assert_eq!(denied["error"]["data"]["reason"], "kill_switch");
    bench.run(["incident", "off", "--reason", "over"]).exits(0);
    assert!(goes_through(&call()));
    // An incident on another server does not affect this one.
    with_servers(&bench);
    bench.run(["incident", "on", "--server", "files"]).exits(0);
    assert!(goes_through(&call()));
    agent.leave();
}

#[test]
fn a_revoked_principal_is_refused_in_the_sessions_that_run() {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    let mut agent = Agent::start(&bench, &server);
    let call = |agent: &mut Agent| agent.call("make_report", &json!({ "title": "a" }));
    assert!(call(&mut agent)["result"].is_object());
    // The revocation of another principal does not affect this user.
    let said = bench.run(["incident", "revoke", "principal", "eve"]).exits(0);
    said.says("no session or act of `eve` is known here");
    assert!(call(&mut agent)["result"].is_object());
    let said = bench.run(["incident", "revoke", "principal", WHO]).exits(0);
    let said = said.never_says("does not look at them");
    said.never_says("is known here");
    let denied = call(&mut agent);
    assert_eq!(denied["error"]["code"], 1013, "{denied}");
    assert_eq!(denied["error"]["data"]["reason"], "session_quarantined");
    assert!(denied["error"]["message"].as_str().unwrap().contains("user"), "{denied}");
    agent.leave();
    // As with a server, later sessions are judged as usual.
    let mut agent = Agent::start(&bench, &server);
    assert!(call(&mut agent)["result"].is_object());
    agent.leave();
}

#[cfg(unix)]
#[test]
fn a_user_is_revoked_by_the_name_of_the_account_whatever_user_says() {
    let account = std::process::Command::new("id").arg("-un").output().unwrap();
    let account = String::from_utf8(account.stdout).unwrap().trim().to_owned();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    if !passwd.lines().any(|line| line.starts_with(&format!("{account}:"))) {
        testing::not_run("this account is one of a directory service: only `USER` names it");
        return;
    }
    assert_ne!(account, WHO);
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    let mut agent = Agent::start(&bench, &server);
    let said = bench.run(["incident", "revoke", "principal", &account]).exits(0);
    said.never_says("is known here");
    let denied = agent.call("make_report", &json!({ "title": "a" }));
    assert_eq!(denied["error"]["data"]["reason"], "session_quarantined", "{denied}");
    agent.leave();
}

#[test]
fn an_incident_is_limited_to_servers_that_are_known() {
    let bench = Bench::unattended();
    with_servers(&bench);
    bench.run(["incident", "on", "--server", "flies"]).exits(2).says("no server `flies` is known");
    assert_eq!(state(&bench)["incident"], Value::Null);
    let words = ["incident", "on", "--server", "mail", "--server", "files", "--level", "critical"];
    bench.run(words).exits(0).says("2 servers: files, mail");
    let incident = &state(&bench)["incident"];
    assert_eq!(incident["servers"], json!(["files", "mail"]));
    assert_eq!(incident["level"], "critical");
    bench.run(["incident", "on", "--level", "none"]).exits(2);
}

/// Calls a tool as an agent; returns the reason if the call is denied.
fn reason_of(agent: &mut Agent, tool: &str) -> Value {
    agent.call(tool, &json!({ "title": "a" }))["error"]["data"]["reason"].clone()
}

#[test]
fn an_incident_stops_tools_by_risk_by_name_and_by_principal() {
    let bench = Bench::unattended();
    let named = |name: &str| {
        let mut tool = report_tool();
        tool["name"] = json!(name);
        tool
    };
    let server = FolderServer::new(&bench, &json!([named("read"), named("write"), named("wipe")]));
    server.answers("tools/call", r#"{"content":[]}"#);
    bench.configure(&format!(
        "[approve]\nunattended = true\n[server.{ID}]\nrisk = \"high\"\ntool_risk = {{ read = \"low\", wipe = \"critical\" }}\n"
    ));
    let mut agent = Agent::start(&bench, &server);
    let (stopped, free) = (json!("kill_switch"), Value::Null);
    let mut check = |on: &[&str], expected: [&Value; 3]| {
        let words = ["incident", "on"].iter().chain(on);
        bench.run(words).exits(0);
        for (tool, expected) in ["read", "write", "wipe"].into_iter().zip(expected) {
            assert_eq!(reason_of(&mut agent, tool), *expected, "{on:?}: {tool}");
        }
    };
    check(&[], [&free, &stopped, &stopped]);
    check(&["--level", "critical"], [&free, &free, &stopped]);
    check(&["--level", "low"], [&stopped, &stopped, &stopped]);
    check(&["--tool", &format!("{ID}__read")], [&stopped, &free, &free]);
    check(&["--principal", "somebody-else"], [&free, &free, &free]);
    check(&["--principal", WHO], [&stopped, &stopped, &stopped]);
    let level = ["--server", ID, "--level", "critical", "--tool", &format!("{ID}__read")];
    check(&level, [&stopped, &free, &stopped]);
    let state = state(&bench);
    assert_eq!(state["incident"]["tools"], json!([format!("{ID}__read")]));
    agent.leave();
    // Every decision during the incident records it, including allowed ones.
    let receipts = bench.run(["receipts", "list", "--all", "--json"]).exits(0);
    receipts.says("\"incident_mode\":true");
}

#[test]
fn an_incident_names_tools_that_there_are_and_a_level_for_servers_only() {
    let bench = Bench::unattended();
    with_servers(&bench);
    bench.run(["incident", "on", "--tool", "make_report"]).exits(2).says("SERVER__TOOL");
    bench.run(["incident", "on", "--tool", "files__nothing"]).exits(2).says("nothing called");
    bench.run(["incident", "on", "--tool", "flies__make_report"]).exits(2).says("no server");
    let words = ["incident", "on", "--tool", "files__make_report", "--level", "high"];
    bench.run(words).exits(2).says("`--level` is about servers");
    assert_eq!(state(&bench)["incident"], Value::Null);
    bench.run(["incident", "on", "--tool", "files__make_report"]).exits(0).says("1 tool");
    bench.run(["incident", "off"]).exits(2).says("--reason");
    bench.run(["incident", "off", "--reason", " "]).exits(2).says("say why");
    bench.run(["incident", "off", "--reason", "it was a drill"]).exits(0);
    bench.run(["receipts", "list", "--events", "--json"]).exits(0).says("it was a drill");
}

#[test]
fn a_session_that_trips_a_rule_is_throttled_then_quarantined_until_a_person_releases_it() {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    bench.configure(
        "[approve]\nunattended = true\n[anomaly]\nthrottle_to = \"2/hour\"\nthrottle = { denials = \"2/hour\" }\nquarantine = { denials = \"4/hour\" }\n[preflight]\nschema = true\n",
    );
    let mut agent = Agent::start(&bench, &server);
    let wrong = |agent: &mut Agent| {
        agent.call("make_report", &json!({ "nothing": 1 }))["error"]["data"]["reason"].clone()
    };
    for _ in 0..3 {
        assert_eq!(wrong(&mut agent), "unknown_field");
    }
    // Now the session is throttled to two calls per hour.
    assert_eq!(wrong(&mut agent), "unknown_field");
    assert_eq!(wrong(&mut agent), "unknown_field");
    assert_eq!(reason_of(&mut agent, "make_report"), "session_quarantined");
    let seen = testing::wait_for("the quarantine to be in the store", || {
        let seen = state(&bench)["quarantines"][0].clone();
        seen.is_object().then_some(seen)
    });
    assert_eq!(seen["rule"], "more than 4/hour denials");
    assert_eq!(seen["principal"], WHO);
    bench.run(["incident", "status"]).exits(0).says("QUARANTINED").says("incident release");
    bench.run(["status"]).exits(0).says("sessions are quarantined");
    let id = seen["id"].as_str().unwrap();
    bench.run(["incident", "release", "0000"]).exits(2).says("nothing is quarantined");
    bench.run(["incident", "release", id]).exits(0).never_says("QUARANTINED");
    testing::wait_until("the session to be free", || {
        let reason = reason_of(&mut agent, "make_report");
        reason != "session_quarantined"
    });
    agent.leave();
    // Another session of the same person is not affected.
    let mut agent = Agent::start(&bench, &server);
    assert_eq!(reason_of(&mut agent, "make_report"), Value::Null);
    agent.leave();
    let events = bench.run(["receipts", "list", "--events", "--json"]).exits(0);
    events.says("incident.anomaly").says("incident.quarantine").says("incident.release");
}

#[test]
fn blocked_egress_denies_calls_with_urls() {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    bench.configure(
        "[approve]\nunattended = true\n[preflight]\nurl_args = [\"title\"]\nnet_allow = [\"example.com\"]\n",
    );
    let mut agent = Agent::start(&bench, &server);
    let call = |agent: &mut Agent| {
        let answer = agent.call("make_report", &json!({ "title": "https://example.com/" }));
        answer["error"]["data"]["reason"].clone()
    };
    assert_eq!(call(&mut agent), Value::Null);
    bench.run(["incident", "block-egress"]).exits(0);
    assert_eq!(call(&mut agent), "egress_blocked");
    bench.run(["incident", "block-egress", "--off"]).exits(0);
    assert_eq!(call(&mut agent), Value::Null);
    agent.leave();
}

#[test]
fn a_drill_stops_nothing_and_says_that_no_gateway_is_there() {
    let bench = Bench::new();
    bench.run(["incident", "drill"]).exits(0).says("no gateway follows this store");
    let drill = bench.run(["incident", "drill", "--json"]).exits(0).json();
    assert_eq!((&drill["drill"], &drill["nodes"]), (&json!(2), &json!([])));
    assert_eq!(state(&bench)["incident"], Value::Null);
    bench.run(["receipts", "list", "--events"]).exits(0).says("incident.drill");
}

#[test]
fn without_a_terminal_an_incident_can_be_declared_and_not_ended() {
    let bench = Bench::new();
    bench.run(["incident", "on"]).exits(0);
    bench.run(["incident", "off", "--reason", "over"]).exits(2).says("needs a terminal");
    let error = bench.run(["incident", "off", "--reason", "over", "--json"]).exits(2).json();
    assert_eq!(error["error"]["exit"], 2);
    assert!(state(&bench)["incident"].is_object());
}

#[test]
fn without_a_terminal_an_incident_is_not_replaced_by_one_that_stops_less() {
    let bench = Bench::new();
    with_servers(&bench);
    bench.run(["incident", "on", "--server", "files", "--level", "critical"]).exits(0);
    // Stopping more, step by step.
    bench.run(["incident", "on", "--server", "files"]).exits(0);
    bench.run(["incident", "on", "--server", "files", "--server", "mail"]).exits(0);
    bench.run(["incident", "on", "--reason", "all of it"]).exits(0);
    // Stopping less is refused.
    let before = state(&bench);
    for less in [&["--server", "files"][..], &["--level", "critical"]] {
        let words = ["incident", "on"].iter().chain(less);
        bench.run(words).exits(2).says("needs a terminal");
        assert_eq!(state(&bench), before);
    }
    bench.configure("[approve]\nunattended = true\n");
    bench.run(["incident", "on", "--server", "files"]).exits(0);
    assert_eq!(state(&bench)["incident"]["servers"], json!(["files"]));
}

#[test]
fn ending_what_is_not_on_does_nothing() {
    let bench = Bench::new();
    bench.run(["incident", "off", "--reason", "over"]).exits(0).says("no incident");
    bench.run(["incident", "block-egress", "--off"]).exits(0).says("no incident");
    bench.run(["receipts", "list", "--all"]).never_says("incident.off").never_says("unblock");
}

#[test]
fn any_user_may_block_egress_and_only_a_person_unblocks_it() {
    let bench = Bench::new();
    let blocked = bench.run(["incident", "block-egress"]).exits(0);
    blocked.says("EGRESS BLOCKED").says("by ada");
    bench.run(["status"]).exits(0).says("outgoing connections are blocked");
    assert_eq!(state(&bench)["egress_blocked"]["by"], WHO);
    bench.run(["incident", "block-egress", "--off"]).exits(2).says("needs a terminal");
    assert!(state(&bench)["egress_blocked"].is_object());
    bench.configure("[approve]\nunattended = true\n");
    bench.run(["incident", "block-egress", "--off"]).exits(0).never_says("BLOCKED");
    assert_eq!(state(&bench)["egress_blocked"], Value::Null);
}

#[test]
fn what_is_revoked_is_shown_without_what_is_as_good_as_a_password() {
    let bench = Bench::new();
    with_servers(&bench);
    for (kind, value) in [
        ("principal", "ada@example.com"),
        ("server", "files"),
        ("session", "s3cr3t-session"),
        ("key", "s3cr3t-key"),
    ] {
        bench.run(["incident", "revoke", kind, value]).exits(0).says(kind).never_says("s3cr3t");
    }
    let answer = bench.run(["incident", "status", "--json"]).exits(0).never_says("s3cr3t");
    let revocations = answer.json()["revocations"].clone();
    assert_eq!(revocations.as_array().unwrap().len(), 4);
    let by_kind = |kind: &str| {
        let mut all = revocations.as_array().unwrap().iter();
        all.find(|revocation| revocation["kind"] == kind).unwrap().clone()
    };
    assert_eq!(by_kind("principal")["value"], "ada@example.com");
    assert!(by_kind("session").get("value").is_none());
    assert_eq!(by_kind("key")["value_sha256"], contract::hash::sha256_hex(b"s3cr3t-key"));
    bench.run(["incident", "status"]).exits(0).says("ada@example.com").never_says("s3cr3t");
    for name in ["state.db", "state.db-wal"] {
        let bytes = std::fs::read(bench.home().join(name)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|found| found == b"s3cr3t"), "{name}");
    }
    for (kind, value) in
        [("server", "flies"), ("server", "No Id"), ("principal", ""), ("house", "a")]
    {
        bench.run(["incident", "revoke", kind, value]).exits(2);
    }
    assert_eq!(state(&bench)["revocations"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_typed_is_bounded_and_cannot_act_on_the_terminal() {
    let bench = Bench::new();
    let reason = |bytes| "x".repeat(bytes);
    bench.run(["incident", "on", "--reason", &reason(MAX_REASON_BYTES)]).exits(0);
    bench.run(["incident", "on", "--reason", &reason(MAX_REASON_BYTES + 1)]).exits(2);
    bench.run(["incident", "revoke", "principal", &reason(MAX_REVOKED_BYTES)]).exits(0);
    bench.run(["incident", "revoke", "principal", &reason(MAX_REVOKED_BYTES + 1)]).exits(2);
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}";
    let answer = bench.run(["incident", "on", "--reason", hostile]).exits(0);
    let answer = answer.says("\\u{1b}").never_says("\u{1b}").never_says("\u{202e}");
    drop(answer);
    bench.run(["incident", "revoke", "principal", hostile]).exits(0).never_says("\u{1b}");
}

#[test]
fn a_database_put_back_from_before_the_incident_does_not_end_it() {
    let bench = Bench::new();
    bench.run(["status"]).exits(0);
    bench.run(["incident", "on"]).exits(0);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(bench.home().join(file));
    }
    bench.run(["incident", "status"]).exits(0).says("INCIDENT").says("older copy");
    bench.run(["incident", "off", "--reason", "over"]).exits(2).says("a person's decision");
    bench.configure("[approve]\nunattended = true\n");
    bench.run(["incident", "off", "--reason", "over"]).exits(0).says("no incident");
    bench.run(["incident", "status"]).exits(0).says("no incident");
}

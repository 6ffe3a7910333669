//! `stats`, `digest`, and how often a parameter was used: from counters and history as a gate
//! leaves them.

use crate::agent::Agent;
use crate::bench::*;
use gate::counters::{Counter, added_bucket, parameter_used, tool_called};
use gate::posture::Posture;
use gate::time::Timestamp;
use ledger::record::{Event, Text};
use serde_json::{Value, json};
use std::time::SystemTime;
use store::receipts::Journal;
use store::{Count, Day, Home, SqliteStore, StatisticsStore};

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp(since.as_millis().try_into().unwrap())
}

/// Adds counts for a server on an earlier day. Tests avoid today, which may end while they run.
fn counted(bench: &Bench, server: &str, days_ago: i64, counts: &[(Counter, u64)]) {
    let mut store = SqliteStore::open(&Home::open(&bench.home()).unwrap()).unwrap();
    let day = Day(Day::of(now()).0 - days_ago);
    let count = |(counter, value): &(Counter, u64)| Count {
        day,
        server: server.parse().unwrap(),
        name: counter.name(),
        value: *value,
    };
    store.add_counts(&counts.iter().map(count).collect::<Vec<_>>()).unwrap();
}

fn card(bench: &Bench, options: &[&str]) -> Value {
    bench.run(["stats", "--json"].iter().chain(options)).exits(0).json()
}

/// A pinned server that has changed since and was checked.
fn changed(bench: &Bench) {
    bench.file("old.json", json!([report_tool(), mail_tool()]).to_string());
    bench.file("new.json", json!([report_tool_with_owner(), mail_tool()]).to_string());
    bench.run(["pin", "--server", ID, "--file", "old.json"]).exits(0);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(10);
}

#[test]
fn where_nothing_was_counted_the_card_says_what_to_do() {
    let bench = Bench::new();
    bench.run(["stats"]).exits(0).says("no calls were checked").says("holdpoint run -- CMD");
    let empty = card(&bench, &[]);
    assert_eq!(empty["this"], empty["before"]);
    assert_eq!(empty["this"]["calls"]["checked"], 0);
    assert_eq!(empty["this"]["added_latency_us"]["p50_below"], Value::Null);
    assert_eq!(empty["pinned"], json!({ "servers": 0, "tools": 0, "entries": 0 }));
    // Pins alone are shown, even if nothing was called.
    bench.file("old.json", json!([report_tool(), mail_tool()]).to_string());
    bench.run(["pin", "--server", ID, "--file", "old.json"]).exits(0);
    bench.run(["stats"]).exits(0).says("no calls").says("2 tools pinned on 1 server");
}

#[test]
fn the_card_has_what_was_counted() {
    let bench = Bench::new();
    counted(
        &bench,
        "files",
        3,
        &[
            (Counter::Calls, 400),
            (Counter::Held, 3),
            (Counter::Denied, 2),
            (Counter::Failed, 1),
            (Counter::Requests, 77),
            (Counter::Relists, 5),
            (Counter::HoldsBegun, 2),
            (Counter::Repinned, 4),
            (Counter::Notes, 6),
            (Counter::WouldHold(Posture::Shield), 1),
            (Counter::WouldHold(Posture::Guard), 3),
            (Counter::WouldHold(Posture::Strict), 9),
            (Counter::Tier(0), 3),
            (added_bucket(50), 396),
            (added_bucket(200), 4),
            (tool_called("make_report"), 400),
        ],
    );
    counted(&bench, "mail", 4, &[(Counter::Calls, 12)]);
    let card = card(&bench, &[]);
    assert_eq!(
        card["this"],
        json!({
            "calls": { "checked": 412, "held": 3, "denied": 2, "failed": 1 },
            "requests": 77,
            "relists": 5,
            "changes": { "held": 2, "repinned": 4, "noted": 6 },
            "people": { "approvals": 0, "quarantines": 0, "releases": 0, "rollbacks": 0 },
            "outcomes": { "confirmed": 0, "overridden": 0 },
            "would_hold": { "monitor": 0, "shield": 1, "guard": 3, "strict": 9 },
            "tiers": { "0": 3 },
            "added_latency_us": { "calls": 400, "p50_below": 64, "p99_below": 64 },
            "servers": {
                "files": { "checked": 400, "held": 3, "denied": 2, "failed": 1 },
                "mail": { "checked": 12, "held": 0, "denied": 0, "failed": 0 },
            },
        })
    );
    bench
        .run(["stats"])
        .exits(0)
        .says("last 30 days")
        .says("412")
        .says("strict would have held")
        .says("< 64 µs")
        .says("400 checked")
        .says("nothing is sent anywhere")
        .never_says("no calls");
}

#[test]
fn a_period_is_shown_next_to_the_one_before() {
    let bench = Bench::new();
    for (days_ago, calls) in [(2, 1), (28, 10), (32, 100), (58, 1_000), (62, 10_000)] {
        counted(&bench, "files", days_ago, &[(Counter::Calls, calls)]);
    }
    let calls = |options: &[&str]| {
        let card = card(&bench, options);
        ["this", "before"].map(|period| card[period]["calls"]["checked"].as_u64().unwrap())
    };
    assert_eq!(calls(&[]), [11, 1_100]);
    assert_eq!(calls(&["--days", "5"]), [1, 0]);
    assert_eq!(calls(&["--days", "366"]), [11_111, 0]);
    for days in ["0", "367", "-1", "many"] {
        bench.run(["stats", &format!("--days={days}")]).exits(2);
    }
}

#[test]
fn counters_of_a_newer_version_are_passed_over() {
    let bench = Bench::new();
    let mut store = SqliteStore::open(&Home::open(&bench.home()).unwrap()).unwrap();
    let day = Day(Day::of(now()).0 - 1);
    let name = "\u{1b}[2Jwhat".to_owned();
    store.add_counts(&[Count { day, server: "files".parse().unwrap(), name, value: 9 }]).unwrap();
    drop(store);
    bench.run(["stats"]).exits(0).says("no calls were checked").never_says("\u{1b}");
}

#[test]
fn what_people_did_with_a_hold_is_counted() {
    let bench = Bench::unattended();
    changed(&bench);
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0);
    // Nothing is held any more, so this stops an innocent server.
    bench.run(["quarantine", ID]).exits(0);
    bench.run(["release", ID]).exits(0);
    bench.run(["check", "--server", ID, "--file", "old.json"]).exits(0);
    bench.run(["rollback", ID, "make_report"]).exits(0);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(10);
    bench.run(["quarantine", ID]).exits(0);
    let card = card(&bench, &["--days", "2"]);
    let expected = json!({
        "approvals": 1, "quarantines": 2, "releases": 1, "rollbacks": 1,
    });
    assert_eq!(card["this"]["people"], expected);
    assert_eq!(card["pinned"], json!({ "servers": 1, "tools": 2, "entries": 2 }));
    bench.run(["stats"]).exits(0).says("held changes approved (overridden)").says("(confirmed)");
}

#[test]
fn answers_to_a_hold_are_counted_from_the_ledger() {
    let bench = Bench::new();
    let journal = Journal::new(&Home::open(&bench.home()).unwrap());
    for (name, days_ago) in
        [("outcome.confirmed", 1), ("outcome.overridden", 2), ("outcome.overridden", 40)]
    {
        let ts = Timestamp(now().0 - days_ago * 86_400_000);
        let (by, server_id) = (Some(Text(WHO)), Some(Text("files")));
        journal.append(&Event { ts, name, by, server_id, data: None }).unwrap();
    }
    let card = card(&bench, &[]);
    assert_eq!(card["this"]["outcomes"], json!({ "confirmed": 1, "overridden": 1 }));
    assert_eq!(card["before"]["outcomes"], json!({ "confirmed": 0, "overridden": 1 }));
    bench.run(["stats"]).exits(0).says("held changes approved (overridden)");
}

/// The tool with an additional optional parameter.
fn report_tool_with_format() -> Value {
    let mut tool = report_tool();
    tool["inputSchema"]["properties"]["format"] = json!({ "type": "string" });
    tool
}

#[test]
fn what_the_gate_counts_is_on_the_card_and_in_a_review() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool_with_format()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    let mut agent = Agent::start(&bench, &server);
    for number in 0..5 {
        let arguments = match number {
            0 | 3 => json!({ "title": "a", "format": "pdf" }),
            _ => json!({ "title": "a" }),
        };
        let answer = agent.call("make_report", &arguments);
        assert!(answer["result"].is_object(), "{answer}");
    }
    agent.leave();
    server.lists(&json!([report_tool()]));
    let mut agent = Agent::start(&bench, &server);
    let answer = agent.call("make_report", &json!({ "title": "a" }));
    assert_eq!(answer["error"]["code"], -32010, "{answer}");
    agent.leave();
    // Two days, since midnight may have passed in between.
    let this = &card(&bench, &["--days", "2"])["this"];
    assert_eq!(this["calls"], json!({ "checked": 6, "held": 1, "denied": 0, "failed": 0 }));
    assert_eq!(this["changes"]["held"], 1);
    let would = json!({ "monitor": 0, "shield": 0, "guard": 1, "strict": 1 });
    assert_eq!(this["would_hold"], would);
    assert_eq!(this["added_latency_us"]["calls"], 6);
    assert_eq!(this["tiers"], json!({ "0": 1 }));
    bench.run(["review"]).exits(10).says("the parameter `format` was used in 2 of the 6 calls");
    // The counters contain no names.
    let found = rusqlite::Connection::open(bench.home().join("state.db")).unwrap();
    let named =
        "SELECT count(*) FROM statistics WHERE name LIKE '%report%' OR name LIKE '%format%'";
    assert_eq!(found.query_row(named, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

fn digest(bench: &Bench, day: &str) -> Value {
    bench.run(["digest", "--json", "--day", day]).exits(0).json()
}

/// The day of the server's last observation.
fn observed_on(bench: &Bench) -> String {
    bench.server_status()["observed_at"].as_str().unwrap()[..10].to_owned()
}

#[test]
fn an_empty_digest_is_healthy_and_says_so() {
    let bench = Bench::new();
    bench.run(["digest"]).exits(0).says("nothing to report").says("healthy");
    let day = digest(&bench, "2024-02-29");
    assert_eq!(
        day,
        json!({ "day": "2024-02-29", "is_empty": true, "servers": [], "events": [], "benign": 0 })
    );
    for wrong in ["2023-02-29", "tomorrow", "2024-02-29T00:00:00Z", "", "9999-12-31"] {
        bench.run(["digest", "--day", wrong]).exits(2);
    }
}

#[test]
fn a_digest_tells_what_was_held_and_what_people_did() {
    let bench = Bench::unattended();
    changed(&bench);
    let day = observed_on(&bench);
    let found = digest(&bench, &day);
    assert_eq!(found["is_empty"], false);
    let server = &found["servers"][0];
    assert_eq!((&server["server"], &server["status"]), (&json!(ID), &json!("changed")));
    let whats = |server: &Value| -> Vec<String> {
        let happened = server["happened"].as_array().unwrap().iter();
        happened.map(|each| each["what"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(whats(server), ["pinned"]);
    let change = &server["changes"][0];
    assert_eq!((&change["what"], &change["key"]), (&json!("held"), &json!("make_report")));
    assert_eq!(change["kinds"], json!(["added-required-param"]));
    assert_eq!(change["entry_hash"]["after"], bench.waiting_hash("make_report"));
    assert_eq!(server["happened"][0]["entries"], json!(["tool:make_report", "tool:send_mail"]));
    bench
        .run(["digest", "--day", &day])
        .exits(0)
        .says("held  tool make_report: added-required-param")
        .never_says(&bench.waiting_hash("make_report"))
        .says("by ada");
    // Later events do not appear on a day without events.
    assert_eq!(digest(&bench, "2024-01-01")["is_empty"], true);
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0);
    bench.run(["quarantine", ID]).exits(0);
    bench.run(["incident", "on", "--reason", "a leak"]).exits(0);
    bench.run(["incident", "revoke", "session", "s3cr3t-session"]).exits(0);
    let answer = bench.run(["digest", "--day", &day, "--json"]).exits(0);
    let found = answer.never_says("s3cr3t").json();
    assert_eq!(whats(&found["servers"][0]), ["pinned", "approved", "quarantined"]);
    let changes = found["servers"][0]["changes"].as_array().unwrap();
    let decided = changes.iter().find(|change| change["what"] == "overridden").unwrap();
    assert_eq!((&decided["by"], &decided["entry_hash"]["after"]), (&json!(WHO), &json!(hash)));
    assert_eq!(found["events"][0]["action"], "incident.on");
    assert_eq!(found["events"][1]["detail"], "session");
    bench.run(["digest", "--day", &day]).exits(0).says("incident.on  a leak").never_says("s3cr3t");
}

#[test]
fn a_digest_of_today_tells_what_still_waits() {
    let bench = Bench::new();
    changed(&bench);
    let answer = bench.run(["digest", "--json"]).exits(0).json();
    // If midnight has passed in between, the change still waits today.
    let waiting = &answer["servers"][0]["waiting"];
    assert_eq!(waiting[0]["key"], "make_report", "{answer}");
    assert_eq!(waiting.as_array().unwrap().len(), 1);
    bench.run(["digest"]).exits(0).says("waits now").says("added-required-param");
}

/// A tool that lost its parameter `title`, with counted calls.
fn lost_parameter(bench: &Bench, calls: u64, used: u64) -> Value {
    bench.file("old.json", json!([report_tool()]).to_string());
    let mut tool = report_tool();
    tool["inputSchema"]["properties"] = json!({ "owner": { "type": "string" } });
    tool["inputSchema"]["required"] = json!([]);
    bench.file("new.json", json!([tool]).to_string());
    bench.run(["pin", "--server", ID, "--file", "old.json"]).exits(0);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(10);
    let counts = |calls, used| {
        let title = parameter_used("make_report", "title");
        let owner = parameter_used("make_report", "owner");
        [(tool_called("make_report"), calls), (title, used), (owner, 7)]
    };
    if calls > 0 {
        counted(bench, ID, 1, &counts(calls - 1, used));
        counted(bench, ID, 2, &[(tool_called("make_report"), 1)]);
    }
    // Old calls and those of other servers are not counted.
    counted(bench, ID, 40, &counts(1_000, 1_000));
    counted(bench, "mail", 1, &counts(1_000, 1_000));
    bench.run(["review", ID, "--json"]).exits(10).json()["servers"][0]["waiting"][0].clone()
}

#[test]
fn a_review_says_how_often_a_lost_parameter_was_used() {
    let bench = Bench::new();
    let waiting = lost_parameter(&bench, 412, 3);
    let expected = json!([{ "parameter": "title", "used": 3, "calls": 412, "days": 30 }]);
    assert_eq!(waiting["usage"], expected);
    bench
        .run(["review"])
        .exits(10)
        .says("the parameter `title` was used in 3 of the 412 calls of the last 30 days")
        .never_says("the parameter `owner` was used");
}

#[test]
fn a_lost_parameter_that_was_never_used_is_said_so() {
    let bench = Bench::new();
    lost_parameter(&bench, 412, 0);
    bench
        .run(["review"])
        .exits(10)
        .says("`title` was used in none of the 412 calls of the last 30 days");
}

#[test]
fn a_review_of_a_tool_that_was_not_called_says_nothing_of_calls() {
    let bench = Bench::new();
    assert_eq!(lost_parameter(&bench, 0, 0)["usage"], json!([]));
    bench.run(["review"]).exits(10).never_says("was used in").never_says("would have stopped");
}

#[test]
fn review_and_status_say_how_many_calls_a_change_would_have_stopped() {
    let bench = Bench::new();
    // Under guard, the whole tool is held.
    let waiting = lost_parameter(&bench, 412, 3);
    let all = json!({ "at_least": 412, "at_most": 412, "calls": 412, "days": 30 });
    assert_eq!(waiting["stopped"], all);
    // Under shield, only calls that used the removed parameter.
    bench.configure("posture = \"shield\"\n");
    let some = json!({ "at_least": 3, "at_most": 3, "calls": 412, "days": 30 });
    let reviewed = bench.run(["review", ID, "--json"]).exits(10).json();
    assert_eq!(reviewed["servers"][0]["waiting"][0]["stopped"], some);
    assert_eq!(reviewed["servers"][0]["waiting"][0]["entry"]["by_the_call"], true);
    assert_eq!(bench.server_status()["waiting"][0]["stopped"], some);
    let words = "the change would have stopped 3 of the 412 calls of the last 30 days";
    bench.run(["review", ID]).exits(10).says(words);
    bench.run(["status", ID]).exits(0).says(words);
}

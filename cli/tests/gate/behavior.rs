//! Tier 3, by hand and during sessions: servers that violate their contract, each with an honest
//! counterpart.

use crate::bench::*;
use crate::client::*;
use crate::http_server::{Server, accepted, json as body, result};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server in one mode (`tests/servers/behaving_server.rs`), pinned before its output schema
/// changed.
pub(crate) struct Behaving {
    pub(crate) bench: Bench,
    mode: &'static str,
}

impl Behaving {
    pub(crate) fn changed(mode: &'static str, configuration: &str) -> Behaving {
        let server = Behaving { bench: Bench::new(), mode };
        fs::create_dir(server.folder()).unwrap();
        fs::write(server.folder().join("version"), "1").unwrap();
        if configuration != SANDBOX {
            // In the sandbox, this would count as a write by the tool.
            fs::write(server.folder().join("calls"), "").unwrap();
        }
        server.run("pin", &[]).exits(0);
        fs::write(server.folder().join("version"), "2").unwrap();
        server.bench.configure(configuration);
        server
    }

    fn folder(&self) -> PathBuf {
        self.bench.path("behaving")
    }

    pub(crate) fn launch(&self) -> Vec<OsString> {
        let words = [self.folder().into_os_string(), self.mode.into()];
        [example("behaving-server").into_os_string()].into_iter().chain(words).collect()
    }

    fn run(&self, command: &str, options: &[&str]) -> Answer {
        let mut whole = self.bench.command([command, "--server", ID]);
        whole.args(options).arg("--").args(self.launch());
        answer(whole)
    }

    /// The output of `check --behavioral`, which must leave nothing behind.
    #[track_caller]
    fn tried(&self) -> Value {
        let tried = self.run("check", &["--behavioral", "--json"]);
        self.leaves_no_process();
        tried.json()
    }

    /// The calls that the server accepted as valid.
    fn calls(&self) -> String {
        fs::read_to_string(self.folder().join("calls")).unwrap()
    }

    #[track_caller]
    fn leaves_no_process(&self) {
        let folder = self.folder().into_os_string().into_encoded_bytes();
        let is_ours = |line: &[u8]| line.windows(folder.len()).any(|part| part == folder);
        testing::wait_until("no process of the server is left", || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let mut lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
            !lines.any(|line| is_ours(&line))
        });
    }
}

const READ_ONLY: &str = "[server.reports.behavior]\nmode = \"read-only\"\nowner = true\n";

#[track_caller]
fn check(
    configuration: &str,
    mode: &'static str,
    outcome: &str,
    departure: Option<&str>,
) -> Behaving {
    let server = Behaving::changed(mode, configuration);
    let document = server.tried();
    let observed = &document["observed"][0];
    assert_eq!(document["behavioral"], outcome, "{mode}: {observed}");
    assert_eq!(observed["outcome"], outcome, "{mode}: {observed}");
    let departures = observed["departures"].as_array().unwrap();
    match departure {
        Some(code) => assert!(departures.contains(&json!(code)), "{mode}: {observed}"),
        None => assert!(departures.is_empty(), "{mode}: {observed}"),
    }
    let (verdict, tier) = match outcome {
        "CLEARED" => ("PROCEED", 3),
        "FAILED" => ("HOLD", 3),
        _ => ("INCONCLUSIVE", 0),
    };
    assert_eq!(document["verdict"], verdict, "{mode}: {document}");
    assert_eq!(document["provenance"]["tier_reached"], tier, "{mode}: {document}");
    server
}

#[test]
fn the_read_only_leg_fails_what_accepts_malformed_calls_and_makes_no_valid_one() {
    let malformed = Some("accepts_malformed_input");
    check(READ_ONLY, "accepts-anything", "FAILED", malformed);
    let honest = check(READ_ONLY, "honest", "CLEARED", None);
    assert_eq!(honest.calls(), "", "a valid call was made");
    let honest = check(READ_ONLY, "honest-tool-errors", "CLEARED", None);
    assert_eq!(honest.calls(), "", "a valid call was made");
    check(READ_ONLY, "hangs", "CLEARED", None);
    // If no call is certain to be refused, none is made.
    let unsure = check(READ_ONLY, "nothing-required", "UNAVAILABLE", None);
    assert_eq!(unsure.calls(), "", "a call was made");
}

#[test]
fn without_consent_nothing_is_started_for_it() {
    let off = Behaving::changed("honest", "");
    let document = off.tried();
    assert_eq!(
        (&document["behavioral"], &document["observed"]),
        (&json!("UNAVAILABLE"), &json!([]))
    );
    off.run("check", &["--behavioral"]).exits(10).says("[server.reports.behavior]");
    let foreign = "[server.reports.behavior]\nmode = \"read-only\"\n";
    let foreign = Behaving::changed("honest", foreign);
    assert_eq!(foreign.tried()["behavioral"], "DECLINED");
    foreign.run("check", &["--behavioral"]).exits(10).says("owner = true");
    assert_eq!(foreign.calls(), "");
}

#[test]
fn a_person_is_told_what_was_seen() {
    let server = Behaving::changed("accepts-anything", READ_ONLY);
    server
        .run("check", &["--behavioral"])
        .exits(10)
        .says("FAILED (read-only)")
        .says("accepts arguments");
    let server = Behaving::changed("honest", READ_ONLY);
    let said = server.run("check", &["--behavioral"]).exits(0).says("CLEARED (read-only)");
    said.says("does not prove the tool safe");
    // The trial settles only this judgement.
    server.run("check", &[]).exits(10).says("INCONCLUSIVE");
}

#[test]
fn where_no_change_is_about_behaviour_nothing_is_tried() {
    let server = Behaving::changed("honest", READ_ONLY);
    fs::write(server.folder().join("version"), "1").unwrap();
    let tried = server.run("check", &["--behavioral", "--json"]).exits(0).json();
    assert_eq!((&tried["behavioral"], &tried["observed"]), (&json!("NOT_RUN"), &json!([])));
}

const SANDBOX: &str = "[server.reports.behavior]\nmode = \"sandbox\"\n";

/// Servers that violate their contract, each with the finding that reveals it.
const DISHONEST: [(&str, &str); 21] = [
    ("writes", "writes_though_read_only"),
    ("writes-again", "writes_though_read_only"),
    ("writes-by-proc", "writes_though_read_only"),
    ("writes-out-of-sight", "writes_though_read_only"),
    ("writes-through-a-link", "writes_though_read_only"),
    ("writes-what-it-opened-before", "writes_though_read_only"),
    ("removes", "writes_though_read_only"),
    ("fills-the-disk", "writes_though_read_only"),
    ("leaves-a-daemon", "writes_though_read_only"),
    ("phones-home", "reaches_out"),
    ("asks-for-a-name", "reaches_out"),
    ("accepts-anything", "accepts_malformed_input"),
    ("refuses-everything", "refuses_declared_input"),
    ("off-schema", "result_off_schema"),
    ("no-structure", "result_off_schema"),
    ("crashes", "ends_on_call"),
    ("hangs", "no_answer"),
    ("floods-lines", "no_answer"),
    ("floods-answer", "unreadable_answer"),
    ("answers-other-ids", "answers_what_was_not_asked"),
    ("answers-another-id-alone", "answers_what_was_not_asked"),
];

/// Servers with similar behaviour that keep their contract.
const HONEST: [&str; 10] = [
    "honest",
    "honest-opened-before",
    "honest-output",
    "honest-writer",
    "honest-temporary",
    "honest-child",
    "honest-slow",
    "honest-large-answer",
    "honest-tool-errors",
    "honest-notifier",
];

#[test]
fn in_the_sandbox_each_departure_fails() {
    if !can_confine() {
        return;
    }
    for (mode, departure) in DISHONEST {
        check(SANDBOX, mode, "FAILED", Some(departure));
    }
}

#[test]
fn in_the_sandbox_each_honest_twin_is_cleared() {
    if !can_confine() {
        return;
    }
    for mode in HONEST {
        check(SANDBOX, mode, "CLEARED", None);
    }
}

/// What cannot be observed is not cleared. A server that behaves only while it is watched is
/// cleared, which is a documented limit.
#[test]
fn in_the_sandbox_what_shows_nothing_is_unavailable_and_a_hypocrite_is_cleared() {
    if !can_confine() {
        return;
    }
    check(SANDBOX, "fails-everything", "UNAVAILABLE", None);
    check(SANDBOX, "honest-network", "UNAVAILABLE", None);
    check(SANDBOX, "honest-very-slow", "UNAVAILABLE", None);
    check(SANDBOX, "writes-when-not-watched", "CLEARED", None);
}

/// Whether this system can confine servers at all.
fn can_confine() -> bool {
    let server = Behaving::changed("honest", SANDBOX);
    let document = server.tried();
    let can = document["behavioral"] != "UNAVAILABLE";
    if !can {
        eprintln!("not run: {}", document["observed"][0]["detail"]);
    }
    can
}

/// A session with a server that changed while no gate was running.
fn session(server: &Behaving) -> Client {
    let mut client = Client::through_gate(&server.bench, &[], &server.launch());
    client.begin();
    client
}

fn report() -> Value {
    json!({"title": "t", "count": 1})
}

#[test]
fn in_a_session_a_cleared_tool_is_called_after_the_look_and_a_failed_one_never() {
    settles_in_a_session(READ_ONLY);
    if can_confine() {
        settles_in_a_session(SANDBOX);
    }
}

fn settles_in_a_session(configuration: &str) {
    let honest = Behaving::changed("honest", configuration);
    let mut client = session(&honest);
    testing::wait_until("the call goes on", || {
        client.call("make_report", &report()).get("result").is_some()
    });
    client.end().exits(0);
    honest.leaves_no_process();
    // It was settled for that session only.
    honest.bench.configure("");
    let mut client = session(&honest);
    let held = client.call("make_report", &report());
    assert_eq!(refused(&held, -32010)["verdict"], "INCONCLUSIVE");
    client.end().exits(0);
    let dishonest = Behaving::changed("accepts-anything", configuration);
    let mut client = session(&dishonest);
    testing::wait_until("the call is held for what was seen", || {
        let held = client.call("make_report", &report());
        refused(&held, -32010)["tier_reached"] == 3
    });
    client.end().exits(0);
    dishonest.leaves_no_process();
    dishonest.bench.run(["receipts", "verify"]).exits(0);
}

/// If the gate is killed during a trial, the server started for the trial ends as well.
#[test]
fn a_gate_that_is_killed_leaves_nothing_that_it_started_to_look() {
    let server = Behaving::changed("hangs-on-malformed", READ_ONLY);
    let mut client = session(&server);
    let held = client.call("make_report", &report());
    assert_eq!(refused(&held, -32010)["verdict"], "INCONCLUSIVE");
    client.kill();
    server.leaves_no_process();
}

/// A remote server whose tool changed since it was pinned; `is_strict` if it refuses malformed
/// calls.
fn remote(is_strict: bool) -> (Bench, Server) {
    let version = Arc::new(AtomicUsize::new(1));
    let shown = version.clone();
    let server = Server::start(move |request| {
        let hints = json!({"destructiveHint": shown.load(Ordering::Relaxed) == 2});
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tool = json!({"name": "remove", "inputSchema": schema, "annotations": hints});
        let said = match request.rpc_method() {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            }),
            "tools/list" => json!({"resultType": "complete", "tools": [tool]}),
            "tools/call" if is_strict => {
                let error = json!({"code": -32602, "message": "no"});
                return body(
                    &json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error})
                        .to_string(),
                );
            }
            "tools/call" => json!({"resultType": "complete", "content": []}),
            _ => return accepted(),
        };
        body(&result(request, &said.to_string()))
    });
    let bench = Bench::new();
    bench.run(["pin", "--server", ID, "--url", &server.url()]).exits(0);
    version.store(2, Ordering::Relaxed);
    (bench, server)
}

#[test]
fn a_remote_server_of_ones_own_gets_malformed_calls_alone() {
    for (is_strict, outcome) in [(true, "CLEARED"), (false, "FAILED")] {
        let (bench, server) = remote(is_strict);
        bench.configure(READ_ONLY);
        let url = server.url();
        let tried = bench.run(["check", "--behavioral", "--json", "--server", ID, "--url", &url]);
        assert_eq!(tried.json()["behavioral"], outcome, "{}", tried.out);
        let calls = server.seen().into_iter().filter(|seen| seen.rpc_method() == "tools/call");
        let calls: Vec<_> = calls.collect();
        assert!(!calls.is_empty());
        for call in calls {
            let path = &call.body["params"]["arguments"]["path"];
            assert!(!path.is_string(), "a usable value was sent: {}", call.body);
            assert_eq!(call.header("mcp-name"), Some("remove"));
        }
    }
    let (bench, server) = remote(true);
    bench.configure(SANDBOX);
    let url = server.url();
    let tried = bench.run(["check", "--behavioral", "--server", ID, "--url", &url]).exits(10);
    tried.says("UNAVAILABLE").says("a remote server cannot be started in a sandbox");
    assert!(!server.seen().iter().any(|seen| seen.rpc_method() == "tools/call"));
}

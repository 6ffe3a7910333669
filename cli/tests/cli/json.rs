//! `--json` prints a single document on standard output, even on errors.

use crate::bench::*;
use serde_json::{Value, json};

/// A home with a changed server, two captures, and an invalid capture.
fn prepared() -> (Bench, FolderServer) {
    let bench = Bench::unattended();
    let server = FolderServer::new(&bench, &json!([report_tool(), mail_tool()]));
    server.run(&bench, "pin", &[]).exits(0);
    server.lists(&json!([report_tool_with_owner(), mail_tool()]));
    server.writes("stdout", "a line that is no message");
    server.run(&bench, "check", &[]).exits(10);
    bench.file("old.json", json!([report_tool()]).to_string());
    bench.file("new.json", json!([report_tool_with_owner()]).to_string());
    bench.file("bad.json", r#"[{"name":"a","name":"b"}]"#);
    (bench, server)
}

/// A single object, without terminal escapes.
fn document(answer: &Answer) -> Value {
    let document = answer.json();
    assert!(document.is_object(), "{document}");
    assert!(!answer.out.contains('\u{1b}') && !answer.err.contains('\u{1b}'));
    document
}

#[test]
fn every_command_that_succeeds_prints_one_document() {
    let (bench, server) = prepared();
    let hash = bench.waiting_hash("make_report");
    for (words, exit, member) in [
        (vec!["demo"], 0, "held"),
        (vec!["demo", "--all"], 0, "scenarios"),
        (vec!["diff", "old.json", "old.json"], 0, "verdict"),
        (vec!["diff", "old.json", "new.json"], 10, "verdict"),
        (vec!["diff", "old.json", "bad.json"], 10, "reason"),
        (vec!["hash", "old.json"], 0, "surface_hash"),
        (vec!["status"], 0, "servers"),
        (vec!["status", ID], 0, "servers"),
        (vec!["review"], 10, "servers"),
        (vec!["review", ID, "-i"], 10, "servers"),
        (vec!["check", ID], 10, "verdict"),
        (vec!["approve", ID, "make_report", "--hash", &hash], 0, "approved"),
        (vec!["rollback", ID, "make_report"], 0, "status"),
        (vec!["pin", ID], 0, "surface_hash"),
        (vec!["history", ID], 0, "events"),
        (vec!["quarantine", ID], 0, "status"),
        (vec!["release", ID], 0, "status"),
    ] {
        let answer = bench.run(words.iter().chain(&["--json"])).exits(exit);
        assert!(document(&answer).get(member).is_some(), "{words:?}: {}", answer.out);
    }
    for options in
        [vec!["capture", "--json", "--"], vec!["capture", "--json", "-o", "c.json", "--"]]
    {
        let mut command = bench.command(options);
        command.args(server.launch());
        document(&answer(command).exits(0));
    }
}

/// A complete hash that no entry has.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn every_command_that_fails_prints_one_document() {
    let (bench, _) = prepared();
    for (words, exit) in [
        (vec!["diff", "old.json", "gone.json"], 2),
        (vec!["diff", "bad.json", "old.json"], 2),
        (vec!["hash", "bad.json"], 10),
        (vec!["capture", "--", "no-such-program-here"], 11),
        (vec!["pin", "--", "no-such-program-here"], 11),
        (vec!["pin", "--file", "bad.json"], 10),
        (vec!["check", "unheard-of"], 2),
        (vec!["check", "--server", ID, "--", "no-such-program-here"], 11),
        (vec!["status", "unheard-of"], 2),
        (vec!["review", "unheard-of"], 2),
        (vec!["approve", ID, "--hash", NO_HASH], 10),
        (vec!["approve", ID, "--hash", "00000000"], 2),
        (vec!["approve", ID, "--hash", "0"], 2),
        (vec!["quarantine", "unheard-of"], 2),
        (vec!["release", ID], 2),
        (vec!["rollback", ID, "unheard-of"], 2),
        (vec!["history", "unheard-of"], 2),
        // Invalid arguments.
        (vec!["check", "Not_An_Id"], 2),
        (vec!["no-such-command"], 2),
        (vec!["help", "no-such-command"], 2),
        (vec!["help", "doctor#no_such_code"], 2),
        (vec!["-v"], 2),
        (vec!["diff", "old.json"], 2),
        (vec!["approve", ID], 2),
        (vec![], 2),
    ] {
        let mut all = vec!["--json"];
        all.extend(&words);
        let answer = bench.run(&all).exits(exit);
        let document = document(&answer);
        assert_eq!(document["error"]["exit"], exit, "{words:?}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !answer.err.is_empty(), "{words:?}");
    }
}

#[test]
fn a_json_option_of_the_server_is_not_ours() {
    let bench = Bench::new();
    let answer = bench.run(["check", "Not_An_Id", "--", "server", "--json"]).exits(2);
    assert_eq!(answer.out, "");
}

#[test]
fn a_change_that_needs_a_person_prints_one_document_too() {
    let (bench, _) = prepared();
    bench.configure("");
    let answer = bench.run(["pin", ID, "--json"]).exits(2);
    assert_eq!(document(&answer)["error"]["exit"], 2);
}

#[test]
fn help_and_version_are_answers_not_faults() {
    let bench = Bench::new();
    bench.run(["--help"]).exits(0).says("holdpoint demo");
    bench.run(["--version"]).exits(0).says(env!("CARGO_PKG_VERSION"));
    bench.run(["check", "--help"]).exits(0).says("Examples:");
    let nothing: [&str; 0] = [];
    bench.run(nothing).exits(2).says("Usage:");
    bench.run(["chek"]).exits(2).says("check");
}

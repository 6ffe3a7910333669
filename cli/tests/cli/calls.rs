//! `diff --call`: what a posture would do with calls.

use crate::bench::*;
use serde_json::{Value, json};

fn delete(mode: bool, dry_run: &str) -> Value {
    let mut tool = json!({
        "name": "delete",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "dry_run": { "type": "boolean", "description": dry_run },
            },
        },
    });
    if mode {
        tool["inputSchema"]["properties"]["mode"] = json!({ "type": "string" });
    }
    tool
}

fn bench() -> Bench {
    let bench = Bench::new();
    let other = json!({ "name": "other", "inputSchema": { "type": "object" } });
    let new_tool = json!({ "name": "added", "inputSchema": { "type": "object" } });
    bench.file("old.json", json!([delete(true, "Only tell"), other]).to_string());
    bench.file("new.json", json!([delete(false, "Delete"), other, new_tool]).to_string());
    bench
}

const DIFF: [&str; 5] = ["diff", "old.json", "new.json", "--posture", "shield"];

fn calls(bench: &Bench, more: &[&str], exit: i32) -> Value {
    let all: Vec<&str> = DIFF.iter().chain(more).copied().chain(["--json"]).collect();
    bench.run(all).exits(exit).json()["calls"].clone()
}

#[test]
fn each_call_is_judged_on_its_own_in_the_order_given_and_decides_the_exit_code() {
    let bench = bench();
    let held = r#"delete={"path":"a","mode":"x"}"#;
    let goes = r#"delete={"path":"secret-path"}"#;
    let found = calls(&bench, &["--call", held, "--call", goes, "--call", "other={}"], 10);
    let proceeds =
        |tool: &str| json!({ "tool": tool, "verdict": "PROCEED", "kinds": [], "parameters": [] });
    let expected = json!([
        { "tool": "delete", "verdict": "HOLD", "kinds": ["removed-param"], "parameters": ["mode"] },
        proceeds("delete"),
        proceeds("other"),
    ]);
    assert_eq!(found, expected);
    // The change as a whole is held, but the given calls go through.
    assert_eq!(calls(&bench, &["--call", goes], 0), json!([proceeds("delete")]));
    bench.run(DIFF).exits(10);
    let all: Vec<&str> = DIFF.into_iter().chain(["--call", held, "--call", goes]).collect();
    bench
        .run(all)
        .exits(10)
        .says("call 1: delete because of `mode` [removed-param]")
        .says("the call depends on a part that changed")
        .says("call 2: delete")
        .never_says("secret-path");
}

#[test]
fn calls_come_from_a_file_too_and_a_repeated_member_is_held() {
    let bench = bench();
    let lines = [
        r#"{"tool":"delete","arguments":{"path":"a"}}"#,
        "",
        r#"{"tool":"delete","arguments":{"path":"a","path":"b"}}"#,
        r#"{"tool":"delete"}"#,
        r#"{"tool":"added","arguments":{}}"#,
    ];
    bench.file("calls.jsonl", lines.join("\n"));
    let found = calls(&bench, &["--calls", "calls.jsonl"], 10);
    let verdicts: Vec<&Value> =
        found.as_array().unwrap().iter().map(|call| &call["verdict"]).collect();
    assert_eq!(verdicts, ["PROCEED", "HOLD", "PROCEED", "HOLD"]);
    assert_eq!(found[3]["kinds"], json!(["tool-added"]));
}

#[test]
fn every_posture_answers() {
    let bench = bench();
    for (posture, verdict, exit) in
        [("monitor", "PROCEED", 0), ("guard", "HOLD", 10), ("strict", "HOLD", 10)]
    {
        let call = r#"delete={"path":"a"}"#;
        let all = ["diff", "old.json", "new.json", "--posture", posture, "--call", call, "--json"];
        let document = bench.run(all).exits(exit).json();
        assert_eq!(document["calls"][0]["verdict"], verdict, "{posture}");
    }
}

#[test]
fn what_is_no_call_is_a_usage_error() {
    let bench = bench();
    bench.file("calls.jsonl", r#"{"tool":"delete","args":{}}"#);
    for (more, said) in [
        (["--call", "delete"], "TOOL='{"),
        (["--call", "delete={"], "delete={"),
        (["--call", "gone={}"], "neither capture has a tool `gone`"),
        (["--calls", "calls.jsonl"], "line 1"),
        (["--calls", "none.jsonl"], "none.jsonl"),
    ] {
        bench.run(DIFF.into_iter().chain(more).collect::<Vec<&str>>()).exits(2).says(said);
    }
}

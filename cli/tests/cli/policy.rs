//! `holdpoint policy`: mistakes with their line numbers, explanations, and tables of expected
//! decisions.

use crate::bench::*;
use serde_json::{Value, json};
use std::fs;

const GATEWAY: &str = r#"
[gateway]
listen = "127.0.0.1:8420"
[policy]
files = ["policies/*.cedar"]
[auth.keys]
enabled = true
[[server]]
id = "files"
trust = "internal"
risk = "low"
tool_risk = { make_report = "critical" }
command = ["true"]
"#;

const POLICIES: &str = r#"@id("staff")
permit (principal in Group::"staff", action == Action::"files__make_report", resource)
when { context.input.title like "Q*" };
@id("ask") @require_approval("leads")
permit (principal in Group::"interns", action in Action::"call", resource)
when { resource.risk == "critical" };
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("gateway.toml", GATEWAY);
    fs::create_dir(bench.path("policies")).unwrap();
    bench.file("policies/a.cedar", POLICIES);
    let mut tool = report_tool();
    tool["inputSchema"]["required"] = json!(["title"]);
    bench.file("tools.json", json!([tool]).to_string());
    bench.run(["pin", "--server", "files", "--file", "tools.json"]).exits(0);
    bench
}

fn check<'a>(bench: &Bench, words: &'a [&'a str]) -> Answer {
    bench.run(["policy", "check", "--config", "gateway.toml"].iter().chain(words))
}

#[test]
fn policies_are_checked_against_what_is_pinned() {
    let bench = bench();
    check(&bench, &[]).exits(0).says("2 policies in 1 file fit 1 server with 1 tool");
    bench.file("policies/b.cedar", "\npermit (principal, action == Action::\"files__make_report\", resource)\nwhen { context.input.titel == \"x\" };");
    let answer = check(&bench, &[]).exits(2);
    let answer = answer.says("b.cedar:3: policy").says("reads `context.input.titel`");
    answer.says("1 mistake: a gateway does not start with these policies");
    let document = check(&bench, &["--json"]).exits(2).json();
    assert_eq!(document["problems"][0]["line"], 3);
    assert_eq!(document["policies"], json!([]));
}

#[test]
fn a_decision_is_explained() {
    let bench = bench();
    let call = |groups: &[&str], input: &str| {
        let mut words = vec!["--as", "ada", "--tool", "files__make_report", "--input", input];
        groups.iter().for_each(|group| words.extend(["--group", group]));
        check(&bench, &words)
    };
    let good = r#"{"title":"Q3"}"#;
    let answer = call(&["staff"], good).exits(0).says("permitted by `staff`");
    answer.says("permit `ask`").says("is for other principals");
    call(&["staff"], r#"{"title":"x"}"#).exits(13).says("denied: no permit matches");
    call(&["staff"], r#"{"title":5}"#).exits(13).says("`title` is not a string");
    call(&[], good).exits(13).says("is for other principals");
    call(&["interns"], good)
        .exits(0)
        .says("permitted by `ask` after approval by a member of leads");
    check(&bench, &["--as", "ada", "--tool", "make_report"])
        .exits(2)
        .says("expected `server__tool`");
    check(&bench, &["--tool", "files__make_report"]).exits(2).says("--as");
}

#[test]
fn what_a_caller_could_use_is_listed() {
    let bench = bench();
    check(&bench, &["--as", "ada", "--group", "staff"]).exits(0).says("tool make_report");
    check(&bench, &["--as", "ada"]).exits(0).says("the caller can use nothing");
    let document = check(&bench, &["--as", "ada", "--group", "staff", "--json"]).exits(0).json();
    assert_eq!(document["visible"][0]["tools"], json!(["make_report"]));
}

#[test]
fn a_table_of_expected_decisions_passes_or_fails() {
    let bench = bench();
    let case = |expect: &str| {
        format!(
            "[[case]]\nas = \"ada\"\ngroups = [\"staff\"]\ntool = \"files__make_report\"\n\
             input = {{ title = \"Q1\" }}\nexpect = \"{expect}\"\n"
        )
    };
    bench.file("good.toml", case("permit"));
    bench.file("bad.toml", case("permit") + &case("deny"));
    bench.file("wrong.toml", "[[case]]\nas = 1");
    let test = |file: &str| bench.run(["policy", "test", file, "--config", "gateway.toml"]);
    test("good.toml").exits(0).says("1 case, all as expected");
    let answer = test("bad.toml").exits(13).says("2 cases, 1 not as expected");
    answer.says("FAIL 2 ada files__make_report: expected deny, got permit by `staff`");
    test("wrong.toml").exits(2);
    test("none.toml").exits(2);
    let document: Value = bench
        .run(["policy", "test", "bad.toml", "--config", "gateway.toml", "--json"])
        .exits(13)
        .json();
    assert_eq!((&document["passed"], &document["failed"]), (&json!(1), &json!(1)));
}

#[test]
fn an_incident_counts() {
    let bench = bench();
    bench.file(
        "policies/b.cedar",
        "@id(\"stop\") forbid (principal, action in Action::\"call\", resource) when { resource.server.incident };",
    );
    let words = [
        "--as",
        "ada",
        "--group",
        "staff",
        "--tool",
        "files__make_report",
        "--input",
        r#"{"title":"Q3"}"#,
    ];
    check(&bench, &words).exits(0);
    bench.run(["incident", "on", "--server", "files"]).exits(0);
    check(&bench, &words).exits(13).says("denied by `stop`");
}

#[test]
fn a_configuration_with_mistakes_is_refused() {
    let bench = bench();
    bench.run(["policy", "check"]).exits(2).says("gateway.toml");
    bench.file("gateway.toml", GATEWAY.replace("policies/*.cedar", "none/*.cedar"));
    check(&bench, &[]).exits(2).says("none");
    bench.file("gateway.toml", GATEWAY.replace("[policy]", "[policies]"));
    check(&bench, &[]).exits(2).says("policies");
}

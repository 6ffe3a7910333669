//! `holdpoint conformance csp` against a gateway that protects nothing, and with mistakes in its
//! configuration.

use crate::bench::*;
use serde_json::Value;
use std::net::TcpListener;

/// A configuration in which the suite's own server takes the gateway's place: everything is passed
/// on, and nothing is refused.
fn unprotected(bench: &Bench) -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bench.file("token-a", "canary-token-of-a-0123456789abcdef0123456789");
    bench.file("token-b", "canary-token-of-b-0123456789abcdef0123456789");
    let [a, b] = ["token-a", "token-b"].map(|name| bench.path(name).display().to_string());
    bench.file(
        "suite.toml",
        format!(
            "[upstream]\nlisten = \"{free}\"\naudience = \"https://server.example\"\n[tools]\necho = \"echo\"\nrestricted = \"restricted\"\ncritical = \"critical\"\n[principal.a]\ntoken = \"file:{a}\"\n[principal.b]\ntoken = \"file:{b}\"\n[incident]\non = [\"true\"]\noff = [\"true\"]\nwithin_seconds = 1\n[not_applicable]\n5 = \"it proxies no OAuth\"\n"
        ),
    );
    format!("http://{free}/mcp")
}

#[test]
fn what_protects_nothing_fails_and_what_was_not_seen_does_not_pass() {
    let bench = Bench::new();
    let url = unprotected(&bench);
    let junit = bench.path("report.xml").display().to_string();
    let words = [
        "conformance",
        "csp",
        "--url",
        &url,
        "--config",
        "suite.toml",
        "--junit",
        &junit,
        "--json",
    ];
    let answer = bench.run(words).exits(15);
    assert!(!answer.out.contains("canary"), "{}", answer.out);
    let report: Value = serde_json::from_str(&answer.out).unwrap();
    let outcomes: Vec<&str> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| test["outcome"].as_str().unwrap())
        .collect();
    let [fail, unseen] = ["fail", "not_applicable"];
    assert_eq!(
        outcomes,
        [fail, fail, fail, fail, unseen, fail, unseen, unseen, unseen, fail],
        "{report:#}"
    );
    assert_eq!(report["tests"][4]["checks"][0]["detail"], "it proxies no OAuth");
    let junit = std::fs::read_to_string(bench.path("report.xml")).unwrap();
    assert!(junit.contains("<failure message=") && junit.contains("<skipped message="), "{junit}");
    assert!(!junit.contains("canary"));
    let text = bench.run(["conformance", "csp", "--url", &url, "--config", "suite.toml"]);
    text.exits(15).says("FAIL  discovery filtering").says("n/a  sandbox: file system");
}

#[test]
fn an_approval_that_no_receipt_names_fails_and_one_that_is_named_passes() {
    for (approved_by, grant, expected) in
        [("\"\"", "true", "fail"), ("\"ada\"", "true", "pass"), ("\"ada\"", "false", "fail")]
    {
        let bench = Bench::new();
        let url = unprotected(&bench);
        let receipt = format!(
            r#"{{"ts":"2026-11-18T10:00:00Z","approval":{{"required":true,"approved_by":{approved_by}}}}}"#
        );
        let call = |result: &str| {
            format!(r#"{{"decision":{{"result":"{result}"}},"mcp":{{"method":"tools/call"}}}}"#)
        };
        let lines = [receipt, call("allow"), call("deny")].join("\n");
        let receipts = bench.file("receipts", lines);
        let config = std::fs::read_to_string(bench.path("suite.toml")).unwrap();
        // Only run the test of receipts.
        let others: String =
            (1..=10).filter(|n| *n != 9).map(|n| format!("{n} = \"not looked at\"\n")).collect();
        let config = config.replace("5 = \"it proxies no OAuth\"\n", &others);
        let hooks = format!(
            "[receipts]\ncommand = [\"cat\", {receipts:?}]\n[approval]\ntool = \"approved\"\ngrant = [{grant:?}]\n"
        );
        bench.file("suite.toml", config + &hooks);
        let words = ["conformance", "csp", "--url", &url, "--config", "suite.toml", "--json"];
        let report = bench.run(words).exits(15).json();
        let checks = report["tests"][8]["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == "approvals have approver and time");
        assert_eq!(found.unwrap()["outcome"], expected, "{approved_by} {grant}: {checks:#?}");
    }
}

#[test]
fn a_gateway_that_cannot_be_reached_is_not_one_that_failed() {
    let bench = Bench::new();
    unprotected(&bench);
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nowhere}/mcp");
    bench.run(["conformance", "csp", "--url", &url, "--config", "suite.toml"]).exits(11);
}

#[test]
fn mistakes_in_the_configuration_are_told() {
    let bench = Bench::new();
    let url = unprotected(&bench);
    let good = std::fs::read_to_string(bench.path("suite.toml")).unwrap();
    for (from, to, expected) in [
        ("[tools]", "[tool]", "unknown field `tool`"),
        ("[principal.a]\ntoken", "[principal.a]\n#", "set `token` or `command`"),
        ("5 = ", "11 = ", "the tests are 1 to 10"),
        ("file:", "", "cannot be given directly"),
    ] {
        bench.file("bad.toml", good.replacen(from, to, 1));
        let answer = bench.run(["conformance", "csp", "--url", &url, "--config", "bad.toml"]);
        answer.exits(2).says(expected);
    }
}

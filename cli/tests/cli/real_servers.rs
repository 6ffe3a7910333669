//! Widely used servers, with two published releases of each: pinned, checked again, and held after
//! the change.
//!
//! `scripts/install-test-tools` installs them in `HOLDPOINT_TEST_SERVERS`, or else
//! `.cache/servers`. If they are missing, the tests report it; with `CI=true` they fail.
#![cfg(unix)]

use crate::bench::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Upgrades in place: the path of the program stays the same.
fn install(bench: &Bench, release: &Path) -> PathBuf {
    let program = bench.path("program");
    let _ = fs::remove_file(&program);
    symlink(release, &program).unwrap();
    program
}

/// Pins the older release. The same release proceeds, and the newer one is held with a message
/// about this tool.
fn upgrade_is_held(name: &str, arguments: &[&str], tool: &str, kind: &str) {
    let Some(releases) = testing::releases(name) else { return };
    let [older, newer] = [&releases[0], &releases[1]].map(|release| release.join("launch"));
    let bench = Bench::new();
    let program = install(&bench, &older);
    let mut command = bench.command(["pin", "--server", name, "--"]);
    command.arg(&program).args(arguments);
    answer(command).exits(0).says("tools, ").says("approved by you");
    bench.run(["check", name]).exits(0).says("nothing changed");
    install(&bench, &newer);
    let told = bench.run(["check", name]).exits(10).says(&format!("tool {tool}"));
    let document = bench.run(["check", name, "--json"]).exits(10).json();
    let held = held(&document, tool);
    let findings = held["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["kind"] == kind);
    let finding = finding.unwrap_or_else(|| panic!("no {kind} in {held}"));
    let sentence = finding["say"].as_str().unwrap();
    assert!(sentence.split(' ').count() >= 4, "{sentence}");
    told.says(sentence);
    bench.run(["review", name, "--server-text"]).exits(10).says("before (approved)");
    bench
        .run(["review", name])
        .exits(10)
        .says("words of the server that are not approved are left out");
    install(&bench, &older);
    bench.run(["check", name]).exits(0);
}

fn held(document: &Value, tool: &str) -> Value {
    let mut entries = document["entries"].as_array().unwrap().iter();
    let held = entries.find(|entry| entry["key"] == tool && entry["verdict"] != "PROCEED");
    held.unwrap_or_else(|| panic!("{tool} is not held: {document}")).clone()
}

#[test]
fn server_filesystem_is_held_when_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().to_str().unwrap();
    upgrade_is_held(
        "server-filesystem",
        &[allowed],
        "write_file",
        "annotation-flip-to-destructive",
    );
}

#[test]
fn server_everything_is_held_when_it_changed() {
    upgrade_is_held("server-everything", &[], "echo", "description-only");
}

#[test]
fn server_memory_is_held_when_it_changed() {
    upgrade_is_held("server-memory", &[], "delete_entities", "annotation-flip-to-destructive");
}

#[test]
fn mcp_server_git_is_held_when_it_changed() {
    upgrade_is_held("mcp-server-git", &[], "git_show", "description-only");
}

#[test]
fn mcp_server_time_is_held_when_it_changed() {
    let words = ["--local-timezone=UTC"];
    upgrade_is_held("mcp-server-time", &words, "get_current_time", "description-only");
}

#[test]
fn server_everything_is_pinned_and_checked_over_http() {
    let Some(releases) = testing::releases("server-everything") else { return };
    for release in releases {
        let bench = Bench::new();
        let server = testing::ListeningServer::start(&release);
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        bench.run(["pin", "--server", ID, "--url", &url]).exits(0).says("tools, ");
        bench.run(["check", "--server", ID, "--url", &url]).exits(0).says("nothing changed");
        bench.run(["check", ID]).exits(0).says("nothing changed");
        let capture = bench.run(["capture", "--url", &url]).exits(0).json();
        assert!(capture["tools"].as_array().unwrap().len() > 5);
    }
}

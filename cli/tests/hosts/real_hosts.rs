//! Real hosts, run without a model: they read the wired files, start the gate, and reach real
//! servers through it.
//!
//! `scripts/install-test-tools` installs them along with the real servers. If they are missing, the
//! tests report it; with `CI=true` they fail.

use crate::bench::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use testing::newest_release;

/// A host with this bench's home directory, and without the tester's settings.
fn host(bench: &Bench, release: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(release.join("launch"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_hosts = ["CLAUDE", "CODEX", "GEMINI", "XDG_", "ANTHROPIC"]
            .iter()
            .any(|begin| name.starts_with(begin));
        if is_hosts {
            command.env_remove(name);
        }
    }
    command.env("HOME", bench.path(".")).current_dir(bench.path("."));
    command.env("DISABLE_AUTOUPDATER", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.stdin(std::process::Stdio::null()).args(words);
    command
}

fn everything(release: &Path) -> String {
    release.join("launch").to_str().unwrap().to_owned()
}

#[test]
fn claude_code_connects_through_the_gate_and_says_what_to_do_about_a_stopped_server() {
    let (Some(claude), Some(server)) =
        (newest_release("claude-code"), newest_release("server-everything"))
    else {
        return;
    };
    let bench = Bench::unattended();
    let server = everything(&server);
    let add = ["mcp", "add", "everything", "-s", "user", "--", &server, "stdio"];
    answer(host(&bench, &claude, &add)).exits(0);
    bench.run(["wire", "claude-code", "--yes"]).exits(0);
    let listed = answer(host(&bench, &claude, &["mcp", "list"])).exits(0).out;
    assert!(listed.contains("holdpoint run --server=claude-code.everything"), "{listed}");
    assert!(listed.contains("Connected") && !listed.contains("Failed"), "{listed}");
    // The host listed through the gate, so the tools are pinned.
    let hosts = bench.run(["hosts", "--json"]).exits(0).json();
    assert!(hosts["files"][0]["servers"][0]["pins"]["tools"].as_u64().unwrap() > 5, "{hosts}");
    bench.run(["quarantine", "claude-code.everything"]).exits(0);
    let listed = answer(host(&bench, &claude, &["mcp", "list"])).exits(0).out;
    assert!(
        listed.contains("A person decides: holdpoint release claude-code.everything"),
        "{listed}"
    );
    assert!(!listed.contains("✔ Connected"), "{listed}");
    // The server has tools for clients with roots or elicitation, such as this one.
    bench.run(["release", "claude-code.everything"]).exits(0).says("the server is verified");
    bench.run(["check", "claude-code.everything"]).exits(0);
    let listed = answer(host(&bench, &claude, &["mcp", "list"])).exits(0).out;
    assert!(listed.contains("✔ Connected") && !listed.contains("holdpoint release"), "{listed}");
    // The host has rewritten its file since; our entries are removed anyway.
    bench.run(["unwire", "--yes"]).exits(0);
    let text = fs::read_to_string(bench.path(".claude.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &document["mcpServers"]["everything"];
    assert_eq!(
        (entry["command"].as_str(), &entry["args"]),
        (Some(server.as_str()), &serde_json::json!(["stdio"]))
    );
}

#[test]
fn codex_reads_the_wired_file_back() {
    let (Some(codex), Some(server)) =
        (newest_release("codex"), newest_release("server-everything"))
    else {
        return;
    };
    let bench = Bench::new();
    fs::create_dir_all(bench.path(".codex")).unwrap();
    let server = everything(&server);
    answer(host(&bench, &codex, &["mcp", "add", "everything", "--", &server, "stdio"])).exits(0);
    let url =
        ["mcp", "add", "far", "--url", "http://127.0.0.1:9/mcp", "--bearer-token-env-var", "TOKEN"];
    answer(host(&bench, &codex, &url)).exits(0);
    let before = fs::read(bench.path(".codex/config.toml")).unwrap();
    bench.run(["wire", "codex", "--yes"]).exits(0);
    let listed = answer(host(&bench, &codex, &["mcp", "list", "--json"])).exits(0).json();
    let servers = listed.as_array().unwrap();
    assert_eq!(servers.len(), 2, "{listed}");
    for server in servers {
        let transport = &server["transport"];
        assert_eq!(transport["type"], "stdio", "{server}");
        assert!(transport["command"].as_str().unwrap().ends_with("/holdpoint"), "{server}");
    }
    let words =
        &servers.iter().find(|server| server["name"] == "everything").unwrap()["transport"]["args"];
    assert_eq!(words[1], "--server=codex.everything", "{words}");
    bench.run(["unwire", "codex", "--yes"]).exits(0);
    assert_eq!(fs::read(bench.path(".codex/config.toml")).unwrap(), before);
}

#[test]
fn gemini_reads_the_wired_file_back() {
    let (Some(gemini), Some(server)) =
        (newest_release("gemini-cli"), newest_release("server-everything"))
    else {
        return;
    };
    let bench = Bench::new();
    let server = everything(&server);
    answer(host(&bench, &gemini, &["mcp", "add", "-s", "user", "everything", &server, "stdio"]))
        .exits(0);
    let before = fs::read(bench.path(".gemini/settings.json")).unwrap();
    bench.run(["wire", "gemini", "--yes"]).exits(0);
    let answer = answer(host(&bench, &gemini, &["mcp", "list"])).exits(0);
    let listed = format!("{}{}", answer.out, answer.err);
    assert!(listed.contains("holdpoint run --server=gemini.everything"), "{listed}");
    bench.run(["unwire", "gemini", "--yes"]).exits(0);
    assert_eq!(fs::read(bench.path(".gemini/settings.json")).unwrap(), before);
}

#[test]
fn the_inspector_lists_and_calls_through_a_wired_file_and_is_told_what_a_person_must_do() {
    let (Some(inspector), Some(server)) =
        (newest_release("inspector"), newest_release("server-everything"))
    else {
        return;
    };
    let bench = Bench::unattended();
    let entry = serde_json::json!({ "mcpServers": { "everything": { "command": everything(&server), "args": ["stdio"] } } });
    let file = bench.file("mcp.json", serde_json::to_string_pretty(&entry).unwrap());
    bench.run(["wire", "--config", "mcp.json", "--yes"]).exits(0);
    let programs = inspector.join("node_modules/.bin");
    let inspect = |words: &[&str]| {
        let mut command = host(
            &bench,
            &inspector,
            &["--cli", "--config", file.to_str().unwrap(), "--server", "everything"],
        );
        // It needs the Node that was installed next to it.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.display())).args(words);
        answer(command)
    };
    let call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"];
    let tools = inspect(&["--method", "tools/list"]).exits(0).json();
    assert!(
        tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"),
        "{tools}"
    );
    assert!(inspect(&call).exits(0).out.contains("hello"));
    let servers = bench.status()["servers"].clone();
    let id = servers[0]["id"].as_str().unwrap();
    bench.run(["quarantine", id]).exits(0);
    let held = inspect(&call).exits(1);
    let words = format!("{}{}", held.out, held.err);
    assert!(words.contains(&format!("A person decides: holdpoint release {id}")), "{words}");
}

//! Real clients and real servers: every response through the gate equals the direct one byte for
//! byte, except for lists, whose entries are equal, and handshakes, of which only the pinned parts
//! are passed on.
//!
//! `scripts/install-test-tools` installs them in `HOLDPOINT_TEST_SERVERS`, or else
//! `.cache/servers`. If they are missing, the tests report it; with `CI=true` they fail.

use crate::bench::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use testing::releases;

/// Records a program's input and output.
const RECORDING: &str = r#"tee "$0.in" | "$@" | tee "$0.out""#;

/// The list members of results.
const LISTS: [&str; 4] = ["tools", "prompts", "resources", "resourceTemplates"];

/// A server, and the requests of a client. `$FOLDER` in it is replaced by a folder that is the same
/// each time.
struct Peer {
    name: &'static str,
    variables: &'static [&'static str],
    words: &'static [&'static str],
    steps: Value,
}

impl Peer {
    /// The command that starts a release, with a fresh folder.
    fn launch(&self, release: &Path, place: &Path) -> Vec<OsString> {
        let filled = |word: &&str| OsString::from(word.replace("$FOLDER", place.to_str().unwrap()));
        let mut words: Vec<OsString> = Vec::new();
        if !self.variables.is_empty() {
            words.push("env".into());
            words.extend(self.variables.iter().map(filled));
        }
        words.push(release.join("launch").into_os_string());
        words.extend(self.words.iter().map(filled));
        words
    }
}

/// Creates the servers' working folder in its initial state.
fn prepare(place: &Path) {
    let _ = fs::remove_dir_all(place);
    fs::create_dir(place).unwrap();
    fs::write(place.join("notes.txt"), "first line\nsecond line\n").unwrap();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command
                .env(format!("{name}_NAME"), "Ada")
                .env(format!("{name}_EMAIL"), "a@example.com");
            command.env(format!("{name}_DATE"), "2026-01-02T03:04:05Z");
        }
        let output = command.arg("-C").arg(place).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "notes.txt"]);
    git(&["commit", "--quiet", "--message", "Notes"]);
}

/// `holdpoint run -- LAUNCH`, as in a host's configuration.
fn gated(bench: &Bench, launch: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![env!("CARGO_BIN_EXE_holdpoint").into(), "run".into()];
    words.extend(["--home".into(), bench.home().into_os_string(), "--".into()]);
    words.extend(launch.iter().cloned());
    words
}

/// The output of a client, and all responses of the server, by id.
struct Conversation {
    printed: Vec<String>,
    answers: BTreeMap<String, String>,
}

/// Runs the steps with the `mcp` package of a Python interpreter.
fn converse(
    bench: &Bench,
    python: &Path,
    name: &str,
    steps: &Value,
    launch: &[OsString],
) -> Conversation {
    let record = bench.path(name);
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gate/python_client.py"));
    command.arg(steps.to_string()).args(["--", "sh", "-c", RECORDING]).arg(&record);
    let played = answer({
        command.args(launch).current_dir(bench.path("."));
        command
    })
    .exits(0);
    assert_eq!(played.out.lines().count(), steps.as_array().unwrap().len(), "{}", played.err);
    let said = fs::read_to_string(bench.path(&format!("{name}.out"))).unwrap();
    let mut answers = BTreeMap::new();
    for line in said.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if message.get("method").is_none() && message["id"] != Value::Null {
            let repeated = answers.insert(message["id"].to_string(), line.to_owned());
            assert!(repeated.is_none(), "two answers to {}", message["id"]);
        }
    }
    Conversation { printed: played.out.lines().map(str::to_owned).collect(), answers }
}

/// Asserts equality byte for byte. A list may be paged differently but has the same entries, and a
/// handshake only contains what is pinned.
#[track_caller]
fn is_the_same(name: &str, direct: &Conversation, through: &Conversation) {
    let ids = |said: &Conversation| said.answers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(direct), ids(through), "{name}");
    // A client raises the same errors through the gate as without it.
    for (one, other) in direct.printed.iter().zip(&through.printed) {
        assert!(one == other || is_list(one) && is_list(other), "{name}: {one}\n{other}");
    }
    let through = &through.answers;
    for (id, line) in &direct.answers {
        if *line == through[id] {
            continue;
        }
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap()["result"].clone();
        let (one, other) = (parse(line), parse(&through[id]));
        if one["serverInfo"].is_object() {
            assert_eq!(as_pinned(one), other, "{name}");
            continue;
        }
        let list = LISTS.into_iter().find(|list| one[list].is_array());
        let Some(list) = list else { panic!("{name}: {line}\n{}", through[id]) };
        let (one, other) = (one[list].as_array().unwrap(), other[list].as_array().unwrap());
        assert_eq!(one.as_slice(), &other[..one.len()], "{name}: {list}");
    }
}

/// A handshake without its unpinned parts.
fn as_pinned(mut handshake: Value) -> Value {
    let info = handshake["serverInfo"].as_object_mut().unwrap();
    info.retain(|name, _| matches!(name.as_str(), "name" | "version"));
    handshake
}

fn is_list(line: &str) -> bool {
    let result: Value = serde_json::from_str(line).unwrap();
    LISTS.into_iter().any(|list| result[list].is_array())
}

/// With every release of the server, and each generation of the Python package.
fn python_clients_see_no_difference(peer: &Peer) {
    let (Some(servers), Some(clients)) = (releases(peer.name), releases("mcp-server-git")) else {
        return;
    };
    for (number, server) in servers.iter().enumerate() {
        for (generation, client) in clients.iter().enumerate() {
            let bench = Bench::new();
            let place = bench.path("place");
            let python = client.join("venv/bin/python");
            let launch = peer.launch(server, &place);
            // Names of tools may differ between releases.
            let steps = peer.steps.get(number).unwrap_or(&peer.steps[0]).to_string();
            let steps = steps.replace("$FOLDER", place.to_str().unwrap());
            let steps: Value = serde_json::from_str(&steps).unwrap();
            prepare(&place);
            let direct = converse(&bench, &python, "direct", &steps, &launch);
            assert!(direct.answers.len() > steps.as_array().unwrap().len(), "{:?}", direct.answers);
            assert!(direct.printed.iter().any(|line| !line.contains("\"raised\"")));
            // Unpinned, and with pins.
            let rounds: &[&str] = if generation == 0 { &["first"] } else { &["first", "second"] };
            for round in rounds {
                prepare(&place);
                let gated = gated(&bench, &launch);
                let through = converse(&bench, &python, round, &steps, &gated);
                let name = format!("{} {number}, client {generation}, {round}", peer.name);
                is_the_same(&name, &direct, &through);
            }
            bench.run(["receipts", "verify"]).exits(0);
        }
    }
}

fn everything() -> Peer {
    let steps = |sum: &str, structured: Value, prompt: &str, resource: &str| {
        json!([
            ["list_tools"],
            ["list_prompts"],
            ["list_resources"],
            ["list_resource_templates"],
            ["call_tool", "echo", { "message": "é\u{1f600} \" \\ </" }],
            ["call_tool", sum, { "a": 1, "b": 2.5 }],
            structured,
            ["get_prompt", prompt],
            ["read_resource", resource],
        ])
    };
    let older = json!(["call_tool", "structuredContent", { "location": "Paris" }]);
    let newer = json!(["call_tool", "get-structured-content", { "location": "Chicago" }]);
    Peer {
        name: "server-everything",
        variables: &[],
        words: &["stdio"],
        steps: json!([
            steps("add", older, "simple_prompt", "test://static/resource/1"),
            steps("get-sum", newer, "simple-prompt", "demo://resource/static/document/features.md"),
        ]),
    }
}

fn filesystem() -> Peer {
    Peer {
        name: "server-filesystem",
        variables: &[],
        words: &["$FOLDER"],
        steps: json!([[
            ["list_tools"],
            ["call_tool", "list_directory", { "path": "$FOLDER" }],
            ["call_tool", "read_text_file", { "path": "$FOLDER/notes.txt" }],
            ["call_tool", "write_file", { "path": "$FOLDER/new.txt", "content": "new\n" }],
            ["call_tool", "read_text_file", { "path": "/etc/hostname" }],
        ]]),
    }
}

fn memory() -> Peer {
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
    Peer {
        name: "server-memory",
        variables: &["MEMORY_FILE_PATH=$FOLDER/memory.json"],
        words: &[],
        steps: json!([[
            ["list_tools"],
            ["call_tool", "create_entities", { "entities": [ada] }],
            ["call_tool", "search_nodes", { "query": "Ada" }],
            ["call_tool", "read_graph", {}],
        ]]),
    }
}

fn git() -> Peer {
    Peer {
        name: "mcp-server-git",
        variables: &[],
        words: &["--repository", "$FOLDER"],
        steps: json!([[
            ["list_tools"],
            ["call_tool", "git_log", { "repo_path": "$FOLDER" }],
            ["call_tool", "git_status", { "repo_path": "$FOLDER" }],
        ]]),
    }
}

fn time() -> Peer {
    let convert = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata" });
    Peer {
        name: "mcp-server-time",
        variables: &[],
        words: &["--local-timezone=UTC"],
        steps: json!([[["list_tools"], ["call_tool", "convert_time", convert]]]),
    }
}

#[test]
fn python_clients_see_server_everything_as_it_is() {
    python_clients_see_no_difference(&everything());
}

#[test]
fn python_clients_see_server_filesystem_as_it_is() {
    python_clients_see_no_difference(&filesystem());
}

#[test]
fn python_clients_see_server_memory_as_it_is() {
    python_clients_see_no_difference(&memory());
}

#[test]
fn python_clients_see_mcp_server_git_as_it_is() {
    python_clients_see_no_difference(&git());
}

#[test]
fn python_clients_see_mcp_server_time_as_it_is() {
    python_clients_see_no_difference(&time());
}

/// Runs the inspector's command line with these options in front of a launch.
fn inspect(bench: &Bench, inspector: &Path, options: &[&str], launch: &[OsString]) -> Value {
    let programs = inspector.join("node_modules/.bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(programs.join("mcp-inspector"));
    // It needs the Node that was installed next to it.
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.env("HOME", bench.path(".")).current_dir(bench.path("."));
    command.arg("--cli").args(options).arg("--").args(launch);
    answer(command).exits(0).json()
}

fn inspector_sees_no_difference(peer: &Peer, asked: &[&[&str]]) {
    let (Some(servers), Some(inspectors)) = (releases(peer.name), releases("inspector")) else {
        return;
    };
    let (server, inspector) = (servers.last().unwrap(), inspectors.last().unwrap());
    let bench = Bench::new();
    let place = bench.path("place");
    for options in asked {
        let filled: Vec<String> =
            options.iter().map(|word| word.replace("$FOLDER", place.to_str().unwrap())).collect();
        let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
        let launch = peer.launch(server, &place);
        prepare(&place);
        let direct = inspect(&bench, inspector, &filled, &launch);
        prepare(&place);
        let through = inspect(&bench, inspector, &filled, &gated(&bench, &launch));
        assert_eq!(direct, through, "{} {filled:?}", peer.name);
    }
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn the_inspector_sees_server_everything_as_it_is() {
    let asked: &[&[&str]] = &[
        &["--method", "tools/list"],
        &["--method", "prompts/list"],
        &["--method", "resources/list"],
        &["--method", "resources/templates/list"],
        &["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"],
        &["--method", "prompts/get", "--prompt-name", "simple-prompt"],
        &["--method", "resources/read", "--uri", "demo://resource/static/document/features.md"],
    ];
    inspector_sees_no_difference(&everything(), asked);
}

#[test]
fn the_inspector_sees_the_other_servers_as_they_are() {
    let call: [&str; 3] = ["--method", "tools/call", "--tool-name"];
    let with = |words: &[&'static str]| call.iter().chain(words).copied().collect::<Vec<&str>>();
    let list: &[&str] = &["--method", "tools/list"];
    let directory = with(&["list_directory", "--tool-arg", "path=$FOLDER"]);
    inspector_sees_no_difference(&filesystem(), &[list, &directory]);
    inspector_sees_no_difference(&memory(), &[list, &with(&["read_graph"])]);
    let status = with(&["git_status", "--tool-arg", "repo_path=$FOLDER"]);
    inspector_sees_no_difference(&git(), &[list, &status]);
    inspector_sees_no_difference(&time(), &[list]);
}

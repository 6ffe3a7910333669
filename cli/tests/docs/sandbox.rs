//! The environment of a page's commands: its own home, the files that pages mention, and `uvx` and
//! `npx` that start installed servers instead of fetching them.

use crate::bench::{Answer, finish, report_tool, report_tool_with_owner};
use crate::page::Step;
use crate::pty::{Terminal, read_terminal};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Sandbox {
    folder: TempDir,
}

/// Starts a server's current release; `update NAME` switches to the newer one.
const LAUNCHER: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
name=${1##*/}; shift
release=$(ls "$SERVERS/$name" | if [ -e "$HOME/.updated-$name" ]; then tail -n 1; else head -n 1; fi)
exec "$SERVERS/$name/$release/launch" "$@"
"#;

impl Sandbox {
    /// Returns `None` if servers are needed but not installed.
    pub(crate) fn new(needs_servers: bool) -> Option<Sandbox> {
        if needs_servers && !testing::servers_folder().join("mcp-server-time").is_dir() {
            return None;
        }
        let sandbox = Sandbox { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "work"] {
            fs::create_dir(sandbox.path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_holdpoint"), sandbox.path("bin/holdpoint"))
            .unwrap();
        for name in ["uvx", "npx"] {
            sandbox.program(name, LAUNCHER);
        }
        sandbox.program("update", "#!/bin/sh\ntouch \"$HOME/.updated-$1\"\n");
        // Replace programs that would use the tester's desktop or service manager.
        for name in ["notify-send", "systemctl"] {
            sandbox.program(name, "#!/bin/sh\nexit 1\n");
        }
        let file =
            |name: &str, text: String| fs::write(sandbox.path("work").join(name), text).unwrap();
        let filing = {
            let mut tool = report_tool_with_owner();
            tool["description"] = json!("Makes a report and files it.");
            tool
        };
        file("monday.json", json!({ "tools": [report_tool()] }).to_string());
        file("tuesday.json", json!({ "tools": [filing] }).to_string());
        let mut formatted = report_tool();
        formatted["inputSchema"]["properties"]["format"] = json!({ "type": "string" });
        formatted["inputSchema"]["required"] = json!([]);
        let mut plain = formatted.clone();
        plain["inputSchema"]["properties"].as_object_mut().unwrap().remove("format");
        file("with-format.json", json!({ "tools": [formatted] }).to_string());
        file("without-format.json", json!({ "tools": [plain] }).to_string());
        file("twice.json", r#"{"tools":[{"name":"make_report","name":"make_report"}]}"#.to_owned());
        let session = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "page", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        ];
        file("session.jsonl", session.map(|line| format!("{line}\n")).concat());
        file("holdpoint.toml", "posture = \"guard\"\n".to_owned());
        Some(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a step. Returns the problem, with its line, if the result differs from the page.
    pub(crate) fn problem(&self, step: &Step) -> Option<String> {
        let mut command = Command::new("bash");
        command.args(["-c", &step.command]).stdin(Stdio::null()).current_dir(self.path("work"));
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command.env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.env("USER", "ada").env("COLUMNS", "100").env("SERVERS", testing::servers_folder());
        // Tests may run as root, in a container.
        command.env("HOLDPOINT_ALLOW_ROOT", "1");
        let answer = on_terminal(command);
        let (line, words) = (step.line, &step.command);
        if answer.code != Some(step.exit) {
            let said = format!("{}{}", answer.out, answer.err);
            return Some(format!("{line}: `{words}` exits with {:?}\n{said}", answer.code));
        }
        let said = format!("{}{}", answer.out, answer.err);
        let expected = unwrapped(&step.says);
        let mut rest = said.lines();
        let missing = expected.iter().find(|expected| {
            !is_anything(expected) && !rest.by_ref().any(|line| is_like(line, expected))
        })?;
        Some(format!("{line}: `{words}` does not say, in this place, `{missing}`, but\n{said}"))
    }
}

/// Runs a command with a terminal as its output.
fn on_terminal(mut command: Command) -> Answer {
    let Terminal { person, program } = Terminal::open();
    command.env("NO_COLOR", "1").stdout(program).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let out = std::thread::spawn(move || read_terminal(person));
    let answer = finish(child);
    Answer { out: out.join().unwrap(), ..answer }
}

/// Joins a JSON document, which is printed on one line but wrapped on a page.
fn unwrapped(says: &[String]) -> Vec<String> {
    let is_document = says.first().is_some_and(|line| line.starts_with('{'));
    if !is_document {
        return says.to_vec();
    }
    vec![says.iter().map(|line| line.trim()).collect()]
}

fn is_anything(expected: &str) -> bool {
    expected.trim().is_empty() || expected.trim() == "…"
}

/// Replaces times, which differ in every run.
fn timeless(expected: &str) -> String {
    let is_time = |word: &str| {
        let shape = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
        shape.collect::<String>() == "0000-00-00T00:00:00Z"
    };
    let words = expected.split(' ').map(|word| if is_time(word) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Compares lines without white space at the ends; `…` matches anything.
fn is_like(line: &str, expected: &str) -> bool {
    let (mut rest, expected) = (line.trim(), timeless(expected.trim()));
    let parts: Vec<&str> = expected.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return rest == expected;
    }
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

//! Servers that people use, two published releases of each: pinned, looked at again, and held once they changed.
//!
//! `scripts/install-test-tools` puts them into `HOLDPOINT_TEST_SERVERS`, else `.cache/servers`. Where they are not, the
//! tests say so; with `CI=true` that is a failure.
#![cfg(unix)]

use crate::bench::*;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a real server may take until it listens.
const START: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/servers");
    std::env::var_os("HOLDPOINT_TEST_SERVERS").map_or(usual, PathBuf::from)
}

/// The releases of a server, the older first, if they are installed.
fn releases(name: &str) -> Option<[PathBuf; 2]> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/test-servers.txt");
    let list = fs::read_to_string(list).unwrap();
    let versions: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let package = words.next()?;
            (package.rsplit('/').next() == Some(name)).then(|| words.next())?
        })
        .collect();
    let launch = |version: &str| folder().join(name).join(version).join("launch");
    let [older, newer] = [versions[0], versions[1]].map(launch);
    if older.is_file() && newer.is_file() {
        return Some([older, newer]);
    }
    let words =
        format!("{name} is not in `{}`: run ./scripts/install-test-tools", folder().display());
    testing::not_run(&words);
    None
}

/// A release is an upgrade in place: the program's path stays, what is behind it changes.
fn install(bench: &Bench, release: &Path) -> PathBuf {
    let program = bench.path("program");
    let _ = fs::remove_file(&program);
    symlink(release, &program).unwrap();
    program
}

/// Pins the older release; the same one proceeds, and the newer is held with a sentence about this tool.
fn upgrade_is_held(name: &str, arguments: &[&str], tool: &str, kind: &str) {
    let Some([older, newer]) = releases(name) else { return };
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
    bench.run(["review", name]).exits(10).says("before (approved)");
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
    upgrade_is_held("mcp-server-git", &[], "git_diff", "description-only");
}

#[test]
fn mcp_server_time_is_held_when_it_changed() {
    let words = ["--local-timezone=UTC"];
    upgrade_is_held("mcp-server-time", &words, "get_current_time", "description-only");
}

/// A server that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port, and waits for it to say that it listens.
fn listening(release: &Path) -> (Running, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(release);
    command.arg("streamableHttp").env("PORT", port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if line.contains("listening") {
                let _ = sender.send(());
            }
        }
    });
    receiver.recv_timeout(START).unwrap();
    (running, port)
}

#[test]
fn server_everything_is_pinned_and_checked_over_http() {
    let Some(releases) = releases("server-everything") else { return };
    for release in releases {
        let bench = Bench::new();
        let (_running, port) = listening(&release);
        let url = format!("http://127.0.0.1:{port}/mcp");
        bench.run(["pin", "--server", ID, "--url", &url]).exits(0).says("tools, ");
        bench.run(["check", "--server", ID, "--url", &url]).exits(0).says("nothing changed");
        bench.run(["check", ID]).exits(0).says("nothing changed");
        let capture = bench.run(["capture", "--url", &url]).exits(0).json();
        assert!(capture["tools"].as_array().unwrap().len() > 5);
    }
}

//! One server in the entries of several hosts: a person's decision on it applies to all of them.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A host's wired entry.
struct Entry {
    id: String,
    entry: Value,
    folder: PathBuf,
}

/// A home in which two hosts start the same server.
struct Hosts {
    bench: Bench,
    scenario: Scenario,
}

impl Hosts {
    fn new() -> Hosts {
        let bench = Bench::unattended();
        let scenario = Scenario::new(&bench, "added_required");
        // A command with the gate's own name is not wired, so use another name.
        let program = &scenario.launch(&[])[0];
        std::os::unix::fs::symlink(program, bench.path("reports-server")).unwrap();
        Hosts { bench, scenario }
    }

    /// Writes the entry of a host with a variable, and puts the gate in front of it. The host
    /// starts servers in its own folder.
    fn add(&self, file: &str, team: &str) -> Entry {
        let path = self.bench.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let words = self.scenario.launch(&[]);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        let program = self.bench.path("reports-server");
        let server = json!({ "command": program, "args": words[1..], "env": { "TEAM": team } });
        fs::write(&path, json!({ "mcpServers": { "reports": server } }).to_string()).unwrap();
        self.bench.run(["wire", "--yes", "--config", path.to_str().unwrap()]).exits(0);
        let folder = self.bench.path(&format!("{file}.folder"));
        fs::create_dir_all(&folder).unwrap();
        let mut entry = Entry { id: String::new(), entry: Value::Null, folder };
        entry.read(&path);
        entry
    }

    /// Starts the gate as the host does.
    fn start(&self, entry: &Entry) -> Client {
        let mut command = self.bench.command(entry.words("args"));
        command.current_dir(&entry.folder);
        let variables = entry.entry["env"].as_object().unwrap();
        command.envs(variables.iter().map(|(name, value)| (name, value.as_str().unwrap())));
        let mut client = Client::start(command);
        client.begin();
        client
    }

    fn known(&self, entry: &Entry) -> Value {
        let status = self.bench.status();
        let mut servers = status["servers"].as_array().unwrap().iter();
        servers.find(|server| server["id"] == entry.id.as_str()).unwrap().clone()
    }

    fn hash(&self, entry: &Entry) -> String {
        let known = self.known(entry);
        let mut waiting = known["waiting"].as_array().unwrap().iter();
        let waits = waiting.find(|waits| waits["key"] == "make_report").unwrap();
        waits["entry_hash"]["after"].as_str().unwrap().to_owned()
    }
}

impl Entry {
    fn read(&mut self, path: &std::path::Path) {
        let text = fs::read_to_string(path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        self.entry = document["mcpServers"]["reports"].clone();
        let words = self.words("args");
        let id = words.iter().find_map(|word| word.strip_prefix("--server=")).unwrap();
        self.id = id.to_owned();
    }

    fn words(&self, member: &str) -> Vec<String> {
        let words = self.entry[member].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    }
}

const CURSOR: &str = ".cursor/mcp.json";
const GEMINI: &str = ".gemini/settings.json";

fn report(client: &mut Client, title: &str) -> Value {
    client.call("make_report", &json!({ "title": title, "owner": "ada" }))
}

#[test]
fn a_change_that_is_approved_in_one_host_goes_through_in_the_other() {
    let hosts = Hosts::new();
    let (cursor, gemini) = (hosts.add(CURSOR, "one"), hosts.add(GEMINI, "one"));
    let mut clients = [hosts.start(&cursor), hosts.start(&gemini)];
    clients.iter_mut().for_each(|client| drop(client.tool_names()));
    hosts.scenario.change();
    for client in &mut clients {
        // The server announces the change before it answers.
        client.ask("ping", &json!({}));
        refused(&report(client, "held"), HELD);
    }
    hosts.bench.run(["review", &cursor.id]).exits(10).says(&format!(
        "decisions count for {} as well, which is launched the same way",
        gemini.id
    ));
    let hash = hosts.hash(&cursor);
    let approved = hosts.bench.run(["approve", &cursor.id, "make_report", "--hash", &hash]);
    approved.exits(0).says(&format!("the same for {}", gemini.id));
    for client in &mut clients {
        assert!(text(&report(client, "approved")).contains("approved"));
    }
    hosts.bench.run(["history", &gemini.id]).exits(0).says(&format!("decided for `{}`", cursor.id));
    assert!(!hosts.scenario.record().contains("\"held\""));
    clients.into_iter().for_each(|client| drop(client.end().exits(0)));
}

#[test]
fn another_value_of_a_variable_is_another_server() {
    let hosts = Hosts::new();
    let (cursor, gemini) = (hosts.add(CURSOR, "one"), hosts.add(GEMINI, "two"));
    let mut clients = [hosts.start(&cursor), hosts.start(&gemini)];
    clients.iter_mut().for_each(|client| drop(client.tool_names()));
    hosts.scenario.change();
    for client in &mut clients {
        client.ask("ping", &json!({}));
        refused(&report(client, "held"), HELD);
    }
    let hash = hosts.hash(&cursor);
    let approved = hosts.bench.run(["approve", &cursor.id, "make_report", "--hash", &hash]);
    approved.exits(0).never_says(&gemini.id);
    let [of_cursor, of_gemini] = &mut clients;
    text(&report(of_cursor, "approved"));
    refused(&report(of_gemini, "held"), HELD);
    assert_eq!(hosts.known(&cursor)["shared_with"], json!([]));
    hosts.bench.run(["quarantine", &cursor.id]).exits(0).never_says(&gemini.id);
    assert_eq!(hosts.known(&gemini)["status"], "changed");
    clients.into_iter().for_each(|client| drop(client.end().exits(0)));
}

#[test]
fn a_quarantine_in_one_host_stops_the_other_until_the_release() {
    let hosts = Hosts::new();
    let (cursor, gemini) = (hosts.add(CURSOR, "one"), hosts.add(GEMINI, "one"));
    let mut client = hosts.start(&gemini);
    client.tool_names();
    let mut other = hosts.start(&cursor);
    other.tool_names();
    other.end().exits(0);
    let one = hosts.bench.run(["status"]).exits(0).says("one server in 2 hosts");
    one.says(&format!("{}, {}", cursor.id, gemini.id)).says("1 tool pinned on 1 server");
    assert_eq!(hosts.known(&cursor)["shared_with"], json!([gemini.id]));
    let stopped = hosts.bench.run(["quarantine", &cursor.id, "--json"]).exits(0).json();
    assert_eq!(stopped["shared"], json!([{ "server": gemini.id, "status": "quarantined" }]));
    let answer = report(&mut client, "quarantined");
    assert_eq!(refused(&answer, HELD)["reason"], "server_quarantined");
    hosts.bench.run(["release", &gemini.id]).exits(0).says(&format!("the same for {}", cursor.id));
    text(&report(&mut client, "released"));
    assert_eq!(hosts.known(&cursor)["status"], "verified");
    assert!(!hosts.scenario.record().contains("quarantined"));
    client.end().exits(0);
}

/// Approves the server of the first entry, and then starts the second one. Returns the second one's
/// status.
fn second_after_approval(first: &str, second: &str) -> String {
    let hosts = Hosts::new();
    hosts.bench.configure("first_use = \"approve\"\n[approve]\nunattended = true\n");
    let (first, second) = (hosts.add(first, "one"), hosts.add(second, "one"));
    let mut client = hosts.start(&first);
    refused(&report(&mut client, "held"), HELD);
    let known = hosts.known(&first);
    let hash = known["surface_hash"].as_str().unwrap();
    hosts.bench.run(["approve", &first.id, "--hash", hash]).exits(0).never_says(&second.id);
    text(&report(&mut client, "approved"));
    client.end().exits(0);
    let mut client = hosts.start(&second);
    let answer = report(&mut client, "second");
    let status = hosts.known(&second)["status"].as_str().unwrap().to_owned();
    assert_eq!(answer.get("result").is_some(), status == "verified", "{answer}");
    client.end().exits(0);
    status
}

#[test]
fn a_server_that_a_person_approved_in_one_host_needs_no_approval_in_the_next() {
    assert_eq!(second_after_approval(CURSOR, GEMINI), "verified");
}

#[test]
fn a_server_in_the_file_of_a_project_needs_an_approval_of_its_own() {
    assert_eq!(second_after_approval(CURSOR, "repository/.mcp.json"), "pending");
    assert_eq!(second_after_approval("repository/.mcp.json", GEMINI), "pending");
}

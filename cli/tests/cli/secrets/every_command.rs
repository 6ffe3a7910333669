//! Runs every command of the binary at least once. The list of commands comes from the binary
//! itself, so a new command that is not run here fails the test.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The manual pages, one per command, and the commands that were run.
pub(crate) struct Pages {
    commands: BTreeSet<String>,
    ran: RefCell<BTreeSet<String>>,
}

/// The longest name of a command: `attest trust add`.
const MAX_WORDS: usize = 3;

impl Pages {
    pub(crate) fn of(bench: &Bench) -> Pages {
        let folder = bench.path("pages");
        bench.run(["man", "--out", folder.to_str().unwrap()]).exits(0);
        let names = fs::read_dir(folder).unwrap().map(|page| page.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let names: BTreeSet<String> = names
            .filter_map(|name| {
                Some(name.strip_prefix("holdpoint-")?.strip_suffix(".1")?.to_owned())
            })
            .collect();
        // A page with pages below it is a group, not a command.
        let is_group =
            |name: &String| names.iter().any(|other| other.starts_with(&format!("{name}-")));
        let commands: BTreeSet<String> =
            names.iter().filter(|name| !is_group(name)).cloned().collect();
        assert!(commands.len() > 25, "{commands:?}");
        Pages { commands, ran: RefCell::default() }
    }

    /// Records a command, unless its arguments were rejected.
    pub(crate) fn ran(&self, command: &Command, exit: i32) {
        const USAGE: i32 = 2;
        let words: Vec<String> =
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let names = (1..=MAX_WORDS.min(words.len())).map(|count| words[..count].join("-"));
        let names = names.filter(|name| exit != USAGE && self.commands.contains(name));
        self.ran.borrow_mut().extend(names);
    }

    pub(crate) fn not_run(&self) -> Vec<String> {
        self.commands.difference(&self.ran.borrow()).cloned().collect()
    }
}

/// Runs the remaining commands on a home with servers, one of which has a waiting change. `words`
/// start a server.
pub(crate) fn run(stage: &Stage, words: &[String]) {
    looks(stage);
    captures(stage, words);
    decisions(stage);
    receipts(stage);
    attestations(stage);
    incident(stage);
    gateway(stage);
    directory(stage);
    network(stage);
    signing_in(stage);
    hosts(stage);
    stage.run(&["demo"], 0);
    let moved = format!("sqlite:{}", stage.trail.bench.home().join("moved").display());
    stage.run(&["store", "migrate", "--from", "sqlite", "--to", &moved], 0);
    stage.run(&["uninstall", "--yes"], 0);
}

/// Commands that change nothing.
fn looks(stage: &Stage) {
    for words in [
        &["review"][..],
        &["review", "--json"],
        &["status"],
        &["stats"],
        &["stats", "--json"],
        &["digest"],
        &["digest", "--json"],
        &["doctor", "-v"],
        &["doctor", "--json"],
        &["hosts", "-v"],
        &["hosts", "--json"],
        &["watch", "--once", "-v"],
        &["watch", "--status", "--json"],
        &["incident", "status"],
        &["attest", "schemes"],
        &["completions", "bash"],
        &["man"],
        &["help"],
        &["help", "doctor#host_unwired"],
    ] {
        let command = stage.command(words);
        let answer = stage.trail.keep_any(stage.command(words));
        let exit = answer.code.unwrap();
        assert!(![2, 12].contains(&exit), "{words:?}: {}{}", answer.out, answer.err);
        stage.pages.ran(&command, exit);
    }
}

fn captures(stage: &Stage, words: &[String]) {
    for name in ["one.json", "two.json"] {
        let words: Vec<String> = words.to_vec();
        stage.keep(with(stage.command(&["capture", "-o", name]), &words), 0);
    }
    stage.run(&["hash", "one.json"], 0);
    stage.run(&["diff", "one.json", "two.json"], 0);
    stage.run(&["screen", "one.json"], 0);
    stage.run(&["calibrate", "report"], 0);
    let bench = &stage.trail.bench;
    let capture = fs::read(bench.path("one.json")).unwrap();
    bench.file("corpus/npm/reports/1.0.0.json", capture);
    bench.file("page.md", "<!-- begin: holdpoint evaluate -->\n<!-- end -->\n");
    stage.run(&["evaluate", "gate", "corpus"], 10);
    stage.run(&["evaluate", "screen", "corpus"], 0);
    stage.run(&["evaluate", "page", "corpus", "--into", "page.md"], 0);
}

/// A person's decisions on a server whose tool has changed.
fn decisions(stage: &Stage) {
    let status = stage.run(&["status", "--json"], 0).json();
    let servers = status["servers"].as_array().unwrap().iter();
    let waits = |server: &&Value| !server["waiting"].as_array().unwrap().is_empty();
    let server = servers.into_iter().find(waits).unwrap();
    let id = server["id"].as_str().unwrap();
    let waiting = server["waiting"].as_array().unwrap().iter();
    let tool = waiting.into_iter().find(|entry| entry["key"] == "make_report").unwrap();
    let hash = tool["entry_hash"]["after"].as_str().unwrap();
    stage.run(&["approve", id, "make_report", "--hash", hash], 0);
    stage.run(&["rollback", id, "make_report"], 0);
    stage.run(&["quarantine", id], 0);
    stage.run(&["release", id], 0);
}

fn receipts(stage: &Stage) {
    let listed = stage.run(&["receipts", "list", "--all", "--json"], 0).out;
    let mut lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let id = lines.find_map(|line| Some(line["receipt_id"].as_str()?.to_owned()));
    let id = id.unwrap_or_else(|| panic!("no receipt in {listed}"));
    stage.run(&["receipts", "list", "--all"], 0);
    stage.run(&["receipts", "show", &id], 0);
    stage.run(&["receipts", "show", &id, "--json"], 0);
    for format in ["jsonl", "csv", "ocsf", "cef"] {
        stage.run(&["receipts", "export", "--format", format], 0);
    }
    stage.run(&["receipts", "verify", "-v"], 0);
    let proof = stage.run(&["receipts", "prove", &id], 0).out;
    stage.trail.bench.file("proof.json", proof);
    stage.run(&["receipts", "verify", "--proof", "proof.json"], 0);
    stage.run(&["receipts", "prove", "--heads"], 0);
}

/// The passphrase of the key is a secret as well.
fn attestations(stage: &Stage) {
    let document = json!({
        "v": 1, "id": "mcp.example.mail", "publisher": "acme", "version": "1.0.0", "clearance": "internal",
        "capabilities": ["mcp-server"], "netAllowedHosts": ["mail.example.com"], "verification": "tested",
    });
    stage.trail.bench.file("mail.json", document.to_string());
    let run = |line: &str| {
        let mut command = stage.command(&line.split(' ').collect::<Vec<_>>());
        command.env("PASSPHRASE", secret(72));
        stage.keep(command, 0);
    };
    run("attest keygen key.pem --passphrase env:PASSPHRASE");
    run("attest trust add root.json key.pem.pub --level internal --key-id acme");
    run("attest trust list root.json");
    run(
        "attest sign mail.json --key key.pem --key-id acme --passphrase env:PASSPHRASE -o signed.json",
    );
    run(
        "attest verify signed.json --trust-root root.json --required internal --host mail.example.com",
    );
    run("attest inspect signed.json --trust-root root.json");
    run("attest trust remove root.json acme");
}

fn incident(stage: &Stage) {
    for line in [
        "incident on --reason drill",
        "incident revoke principal ada",
        "incident block-egress",
        "incident block-egress --off",
        "incident off --reason over",
    ] {
        stage.run(&line.split(' ').collect::<Vec<_>>(), 0);
    }
    // Valid but refused: nothing is quarantined.
    stage.run(&["incident", "release", "9f2c41d07be8a350"], 2);
    stage.pages.ran.borrow_mut().insert("incident-release".to_owned());
    stage.run(&["incident", "drill"], 0);
    stage.run(&["sandbox", "packages"], 0);
}

/// A log that only contains its methodology.
fn directory(stage: &Stage) {
    let bench = &stage.trail.bench;
    let key = bench.home().join("directory/log/key").display().to_string();
    let log = bench.home().join("directory/log").display().to_string();
    bench.file("servers.txt", "");
    bench.file("checkpoint.txt", "none");
    stage.run(&["crawl", "--targets", "servers.txt"], 0);
    stage.run(&["directory", "log", "verify", "--folder", &log, "--key", &key], 0);
    stage.run(&["directory", "log", "prove", "0", "--folder", &log, "--key", &key], 0);
    let nowhere = ["--url", "http://127.0.0.1:1", "--key", &key];
    stage.run(&[&["directory", "log", "mirror", "copy"][..], &nowhere].concat(), 11);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let witness = ["directory", "witness", "--name", "w.example.com", "--log", &key, "--listen"];
    // Valid but refused: another program listens there.
    stage.run(&[&witness[..], &[&address]].concat(), 2);
    stage.pages.ran.borrow_mut().insert("directory-witness".to_owned());
    stage.run(&["directory", "anchor", "submit"], 11);
    stage.run(&["directory", "anchor", "upgrade"], 0);
    let proof = ["directory", "anchor", "verify", "servers.txt", "--checkpoint", "checkpoint.txt"];
    stage.run(&proof, 14);
    let hash = "ab".repeat(32);
    stage.run(&["directory", "corpus", "adjudicate", &hash, "dangerous"], 0);
    stage.run(&["directory", "corpus", "invalidate", &hash], 0);
    stage.run(&["directory", "corpus", "list"], 0);
    stage.run(&["directory", "corpus", "report"], 0);
    stage.run(&["directory", "claim", "list"], 0);
    stage.run(&["directory", "claim", "check"], 0);
    // Valid but refused: no server is listed.
    let key = format!("ed25519:{}=", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    stage.run(&["directory", "claim", "start", "npm:a", "--key", &key], 2);
    let verify = ["directory", "claim", "verify", "npm:a", "--nonce", "0", "--method", "dns"];
    stage.run(&[&verify[..], &["--key", &key]].concat(), 2);
    stage.run(&["directory", "claim", "suspend", "npm:a", "--key", &key], 2);
    for name in ["start", "verify", "suspend"] {
        stage.pages.ran.borrow_mut().insert(format!("directory-claim-{name}"));
    }
}

/// A directory address where nothing listens, with a key in a file.
fn network(stage: &Stage) {
    let key = format!("file:{}", stage.trail.bench.file("network-key", "k").display());
    let on = ["network", "on", "--url", "http://127.0.0.1:1", "--allow-private", "--key", &key];
    stage.run(&on, 0);
    stage.run(&["network", "status"], 0);
    stage.run(&["network", "advisories"], 0);
    stage.run(&["network", "off"], 0);
}

/// Without a keyring, a sign-in fails; and an application that sends nothing gets no session.
fn signing_in(stage: &Stage) {
    stage.run(&["sign-in", "http://127.0.0.1:1/mcp", "--allow-private"], 2);
    stage.run(&["sign-out", "--all"], 0);
    stage.run(&["pins", "--stdio"], 2);
    let understood = ["sign-in", "pins"].map(str::to_owned);
    stage.pages.ran.borrow_mut().extend(understood);
}

/// A gateway with one server: its policies, its keys and its inventory.
fn gateway(stage: &Stage) {
    let bench = &stage.trail.bench;
    bench.file(
        "gateway.toml",
        "[gateway]\nlisten = \"127.0.0.1:8420\"\n[policy]\nfiles = [\"a.cedar\"]\n\
         [[server]]\nid = \"files\"\ntrust = \"internal\"\ncommand = [\"true\"]\n",
    );
    bench.file("a.cedar", "permit (principal, action, resource);");
    bench.file("table.toml", "[[case]]\nas = \"ada\"\nuse = \"files\"\nexpect = \"permit\"\n");
    stage.run(&["policy", "check", "--config", "gateway.toml", "--as", "ada"], 0);
    stage.run(&["policy", "test", "table.toml", "--config", "gateway.toml"], 0);
    stage.run(&["inventory", "--config", "gateway.toml"], 0);
    let key =
        stage.run(&["key", "create", "--sub", "ada", "--config", "gateway.toml", "--json"], 0);
    let id = key.json()["id"].as_str().unwrap().to_owned();
    stage.run(&["key", "list", "--config", "gateway.toml"], 0);
    stage.run(&["key", "revoke", &id, "--config", "gateway.toml"], 0);
    stage.run(&["gateway", "init", "--config", "begun.toml"], 0);
    // No gateway is running.
    stage.run(&["gateway", "reload", "--config", "gateway.toml"], 11);
    bench.file("admin.key", secret(72));
    let reached = ["--gateway", "http://127.0.0.1:1", "--key", "file:admin.key"];
    for words in [&["list"][..], &["show", "a1"], &["grant", "a1"], &["refuse", "a1"]] {
        stage.run(&[&["approvals"][..], words, &reached].concat(), 11);
    }
    let suite = ["conformance", "csp", "--url", "http://127.0.0.1:1/mcp", "--config"];
    bench.file("wrong.toml", format!("tokens = \"{}\"\n", secret(72)));
    stage.run(&[&suite[..], &["wrong.toml"]].concat(), 2);
    bench.file(
        "suite.toml",
        "upstream = { listen = \"127.0.0.1:0\" }\ntools = { echo = \"a\", restricted = \"b\" }\n\
         [principal]\na = { token = \"file:admin.key\" }\nb = { token = \"file:admin.key\" }\n",
    );
    stage.run(&[&suite[..], &["suite.toml"]].concat(), 11);
}

/// Wires and unwires hosts' files, and uninstalls.
fn hosts(stage: &Stage) {
    for words in [
        &["wire", "--dry-run", "-v"][..],
        &["wire", "--yes", "-v"],
        &["hosts", "-v"],
        &["unwire", "--yes", "-v"],
        &["wire", "--yes", "--json"],
    ] {
        stage.run(words, 0);
    }
}

//! Puts secrets of forty shapes into launches, addresses, variables and hosts' files, runs every
//! command, and then searches everything that was written or printed for them.

pub(crate) mod every_command;

use crate::bench::*;
use crate::privacy::Trail;
use every_command::Pages;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A planted secret: the words of a launch, and the texts that must not appear anywhere.
struct Shape {
    words: Vec<String>,
    secret: String,
}

/// The `n`th secret. No two share a part long enough to be mistaken for each other.
fn secret(n: usize) -> String {
    let letters: String = "kQzXvJwPhGyBfTmR".chars().cycle().skip(n % 16).take(9).collect();
    format!("S{n:02}{letters}{:02}", 97 - n)
}

/// Each line is a launch. `@` is replaced by the secret, and `_` by a space within a word.
const LAUNCHES: [&str; 40] = [
    "npx -y mcp-remote https://one.example/mcp --header Authorization:_Bearer_@",
    "npx -y mcp-remote https://two.example/mcp --header X-API-Key:_@",
    "npx -y mcp-remote https://user:@@three.example/mcp",
    "npx -y mcp-remote https://four.example/@/mcp",
    "npx -y mcp-remote https://five.example/mcp?key=@",
    "npx -y mcp-remote https://six.example/mcp#@",
    "npx -y pg-mcp postgresql://user:@@db.example:5432/app",
    "npx -y redis-mcp rediss://:@@cache.example",
    "npx -y mongo-mcp mongodb+srv://user:@@c.example/?w=majority",
    "npx -y azure-mcp DefaultEndpointsProtocol=https;AccountKey=@==;EndpointSuffix=x",
    "npx -y json-mcp {\"apiKey\":\"@\"}",
    "npx -y bare-mcp @",
    "npx -y key-mcp --key=@",
    "npx -y token-mcp --token @",
    "npx -y short-mcp -p@",
    "npx -y short-equals-mcp -p=@",
    "npx -y word-mcp API_KEY=@",
    "npx -y plain-mcp --workspace @",
    "npx -y jwt-mcp eyJhbGciOiJIUzI1NiJ9.@.sig",
    "npx -y aws-mcp AKIA@",
    "npx -y openai-mcp sk-proj-@",
    "npx -y cookie-mcp --cookie session=@;_path=/",
    "npx -y path-mcp /no/such/folder/@/file",
    "npx -y home-mcp ~/no-such-@",
    "npx -y relative-mcp ./no-such-@",
    "npx -y unicode-mcp пароль-@",
    "npx -y percent-mcp %41%@",
    "npx -y base64-mcp @QUJD==",
    "npx -y uuid-mcp 123e4567-e89b-12d3-@",
    "npx -y option-mcp --@",
    "npx -y webhook-mcp --webhook=https://hooks.example/services/@",
    "npx -y socket-mcp wss://ws.example/@",
    "npx --token @ hidden-mcp",
    "npx -y https://@@registry.example/pkg.tgz",
    "uvx --from git+https://@@git.example/org/repo server",
    "docker run -i --rm -e KEY=@ ghcr.io/org/image",
    "docker run -i --rm --label owner=@ ghcr.io/org/other",
    "env TOKEN=@ npx -y env-mcp",
    "sh -c exec_npx_-y_shell-mcp_@",
    "ssh @@host.example serve",
];

fn shapes() -> Vec<Shape> {
    let shape = |(n, line): (usize, &&str)| {
        let secret = secret(n);
        let word = |word: &str| word.replace('_', " ").replacen('@', &secret, 1);
        Shape { words: line.split(' ').map(word).collect(), secret }
    };
    LAUNCHES.iter().enumerate().map(shape).collect()
}

/// A folder of launchers, each of which starts the same server whatever its arguments.
fn launchers(bench: &Bench) -> (FolderServer, PathBuf) {
    let server = FolderServer::new(bench, &json!([report_tool()]));
    server.answers("tools/call", json!({ "content": [] }).to_string());
    let folder = bench.path("launchers");
    fs::create_dir(&folder).unwrap();
    let words = server.launch();
    let [program, answers] = [&words[0], &words[1]].map(|word| word.to_str().unwrap());
    for name in ["npx", "uvx", "docker", "ssh", "env", "sh"] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\nexec '{program}' '{answers}' \"$@\"\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    (server, folder)
}

pub(crate) struct Stage {
    pub(crate) trail: Trail,
    pub(crate) server: FolderServer,
    launchers: PathBuf,
    secrets: Vec<String>,
    pub(crate) pages: Pages,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let trail = Trail::new();
        let (server, launchers) = launchers(&trail.bench);
        let pages = Pages::of(&trail.bench);
        Stage { trail, server, launchers, secrets: Vec::new(), pages }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.trail.bench.command(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.launchers.display()));
        command.env("SECRET_OF_THE_HOST", secret(70)).env("HOLDPOINT_ALLOW_ROOT", "1");
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, words: &[&str], exit: i32) -> Answer {
        self.keep(self.command(words), exit)
    }

    #[track_caller]
    pub(crate) fn keep(&self, command: Command, exit: i32) -> Answer {
        self.pages.ran(&command, exit);
        self.trail.keep(command, exit)
    }

    /// A host's session: the handshake, the tools, a call, and the end.
    pub(crate) fn host(&self, words: &[String]) {
        let mut command = self.command(&["run", "-v"]);
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"},
            }}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
                "name": "make_report", "arguments": { "title": secret(71) },
            }}),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let input = self.trail.bench.file("input", lines);
        command.stdin(Stdio::from(fs::File::open(input).unwrap()));
        self.keep(with(command, words), 0);
    }

    fn leaks(&self) -> Vec<String> {
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        // Ids are in lower case.
        let lower: Vec<String> = secrets.iter().map(|secret| secret.to_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        [self.trail.leaks_of(&secrets), self.trail.leaks_of(&lower)].concat()
    }
}

pub(crate) fn with(mut command: Command, words: &[String]) -> Command {
    command.arg("--").args(words);
    command
}

/// A host's file with secrets in every possible place.
fn host_file(n: usize) -> (String, Vec<String>) {
    let secrets: Vec<String> = (n..n + 6).map(secret).collect();
    let [a, b, c, d, e, f] = secrets.as_slice() else { panic!("six secrets") };
    let text = json!({ "mcpServers": {
        "argument": { "command": "npx", "args": ["-y", "x-mcp", "--api-key", a], "env": { "KEY": b } },
        "header": { "url": "https://docs.example/mcp", "headers": { "Authorization": format!("Bearer {c}") } },
        "address": { "url": format!("https://docs.example/{d}/mcp?key={e}") },
        "here": { "url": format!("http://127.0.0.1:1/{f}/mcp") },
    } });
    (serde_json::to_string_pretty(&text).unwrap(), secrets)
}

#[test]
fn secrets_of_forty_shapes_are_written_down_and_said_nowhere() {
    let mut stage = Stage::new();
    // An open reader keeps all data in the write-ahead log, where it is searched as well.
    let database = rusqlite::Connection::open(stage.trail.bench.home().join("state.db")).unwrap();
    database.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
    for (n, Shape { words, secret }) in shapes().into_iter().enumerate() {
        stage.secrets.push(secret);
        stage.keep(with(stage.command(&["pin", "-v"]), &words), 0);
        stage.keep(with(stage.command(&["check", "--json"]), &words), 0);
        if n % 4 == 0 {
            stage.host(&words);
        }
    }
    stage.secrets.extend([secret(70), secret(71), secret(72)]);
    let status = stage.run(&["status", "--json", "-v"], 0).json();
    let ids: Vec<String> = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["id"].as_str().unwrap().to_owned())
        .collect();
    // Two launches of the same package, image or host are one server.
    assert!(ids.len() >= 36, "{ids:?}");
    // Check some of them right away: the rest of the test relies on nothing having been stored.
    let some: Vec<&str> = stage.secrets.iter().take(4).map(String::as_str).collect();
    assert_eq!(stage.trail.leaks_of(&some), [""; 0]);
    stage.server.lists(&json!([report_tool_with_owner()]));
    let shapes = shapes();
    for Shape { words, .. } in shapes.iter().take(4) {
        stage.keep(with(stage.command(&["check"]), words), 10);
    }
    for id in ids.iter().take(6) {
        stage.run(&["status", id], 0);
        stage.run(&["history", id], 0);
        stage.run(&["show", id], 0);
        stage.run(&["check", id], 11);
        stage.run(&["pin", id], 11);
    }
    let (text, secrets) = host_file(40);
    stage.secrets.extend(secrets);
    let path = stage.trail.bench.path(".cursor/mcp.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, &text).unwrap();
    every_command::run(&stage, &shapes[0].words);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(stage.pages.not_run(), [""; 0], "commands that this test does not run");
    assert_eq!(stage.leaks(), [""; 0]);
    drop(database);
    stage.run(&["status"], 0);
    assert_eq!(stage.leaks(), [""; 0]);
}

#[test]
fn a_launch_that_fails_says_no_secret() {
    let mut stage = Stage::new();
    for n in 0..6 {
        stage.secrets.push(secret(n));
    }
    let s = |n: usize| secret(n);
    for words in [
        vec![format!("KEY={}", s(0)), "npx".to_owned()],
        vec![format!("/no/such/{}/server", s(1))],
        vec![format!("./{}/server", s(2))],
    ] {
        for command in ["pin", "run", "capture"] {
            stage.keep(with(stage.command(&[command, "-v"]), &words), 11);
        }
    }
    let url = format!("https://u:{}@127.0.0.1:1/mcp", s(3));
    stage.run(&["pin", "--url", &url], 2);
    let url = format!("http://127.0.0.1:1/{}/mcp?{}", s(3), s(4));
    for command in ["pin", "capture"] {
        stage.run(&[command, "--url", &url, "-v"], 11);
    }
    let header = format!("Authorization: Bearer {}=env:X", s(5));
    stage.run(&["pin", "--url", "http://127.0.0.1:1/mcp", "--header", &header], 2);
    assert_eq!(stage.leaks(), [""; 0]);
}

#[test]
fn hosts_files_are_wired_and_unwired_without_keeping_their_secrets() {
    let mut stage = Stage::new();
    let (text, secrets) = host_file(40);
    stage.secrets = secrets;
    let path = stage.trail.bench.path(".cursor/mcp.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, &text).unwrap();
    for words in [
        &["hosts", "--json"][..],
        &["wire", "--dry-run", "-v"],
        &["wire", "--yes", "-v"],
        &["wire", "--yes", "--json"],
        &["hosts", "-v"],
        &["watch", "--once"],
    ] {
        stage.run(words, 0);
    }
    assert_ne!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(stage.leaks(), [""; 0]);
    stage.run(&["unwire", "--yes", "-v"], 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(stage.leaks(), [""; 0]);
}

/// The command of the entry that `wire` wrote, as its host would start it.
fn wired_command(stage: &Stage, file: &PathBuf, name: &str) -> Command {
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entry = &document["mcpServers"][name];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words: Vec<&str> = words.collect();
    let mut command = stage.command(&words);
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap());
    }
    command
}

#[test]
fn a_wired_server_is_looked_at_again_with_the_words_of_its_hosts_file() {
    let mut stage = Stage::new();
    stage.secrets = vec![secret(50), secret(51)];
    let path = stage.trail.bench.path(".cursor/mcp.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let entry = |key: &str| {
        json!({ "mcpServers": { "mine": {
            "command": "npx", "args": ["-y", "x-mcp", "--api-key", key], "env": { "KEY": secret(51) },
        } } })
        .to_string()
    };
    fs::write(&path, entry(&secret(50))).unwrap();
    stage.run(&["wire", "--yes"], 0);
    let mut host = wired_command(&stage, &path, "mine");
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"},
    }});
    let more = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let input = stage.trail.bench.file("input", format!("{line}\n{more}\n{list}\n"));
    host.stdin(Stdio::from(fs::File::open(input).unwrap()));
    stage.keep(host, 0);
    stage.run(&["check", "cursor.mine"], 0);
    stage.run(&["pin", "cursor.mine"], 0);
    stage.server.lists(&json!([report_tool_with_owner()]));
    stage.run(&["check", "cursor.mine"], 10);
    // A word differs from the recorded launch, so the unreviewed command is not started.
    let wired = fs::read_to_string(&path).unwrap();
    fs::write(&path, wired.replace(&secret(50), "another")).unwrap();
    stage.run(&["check", "cursor.mine"], 11).says("was changed since the host last started it");
    fs::write(&path, wired).unwrap();
    stage.run(&["unwire", "--yes"], 0);
    stage.run(&["check", "cursor.mine"], 11).says("--server cursor.mine");
    assert_eq!(stage.leaks(), [""; 0]);
}

//! Real clients and real servers, with the gateway in between, using a key and a token of a real
//! OIDC provider: each client lists and calls tools.
//!
//! `scripts/install-test-tools` installs them in `HOLDPOINT_TEST_SERVERS`, or else
//! `.cache/servers`. If they are missing, the tests report it; with `CI=true` they fail.

use crate::bench::{Bench, answer};
use crate::http_client::Caller;
use crate::running::Gateway;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{ListeningServer, newest_release, releases, wait_until};

const AUDIENCE: &str = "https://gateway.example";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operations/clients").join(name)
}

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An OIDC provider, and tokens from it.
struct Provider {
    _running: Running,
    said: Value,
}

impl Provider {
    fn start(release: &Path) -> Provider {
        let mut command = Command::new(release.join("launch"));
        command.arg(script("oidc_provider.mjs")).arg(release).arg(AUDIENCE);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let running = Running(child);
        // The package prints notices as well.
        let said = lines.into_iter().find_map(|line| serde_json::from_str::<Value>(&line).ok());
        Provider { _running: running, said: said.expect("the provider's addresses and tokens") }
    }

    fn text(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap()
    }
}

/// A gateway in front of four real servers: two from npm and two from PyPI, over stdio and HTTP.
struct Station {
    gateway: Gateway,
    provider: Provider,
    _everything: ListeningServer,
    _python: Running,
}

impl Station {
    fn open() -> Option<Station> {
        let everything = newest_release("server-everything")?;
        let git = newest_release("mcp-server-git")?;
        let provider = Provider::start(&newest_release("oidc-provider")?);
        let bench = Bench::new();
        let remote = ListeningServer::start(&everything);
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
        let mut python = Command::new(git.join("venv/bin/python"));
        python.arg(script("python_server.py")).arg(free.port().to_string());
        let python = python.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let python = Running(python);
        wait_until("the Python server", || TcpStream::connect(free).is_ok());
        let made = Command::new("git").args(["init", "--quiet"]).arg(bench.path("place")).status();
        assert!(made.unwrap().success());
        let place = bench.path("place");
        let tables = format!(
            "[[auth.issuer]]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\njwks_uri = \"{}\"\n\
             [[server]]\nid = \"everything\"\ntrust = \"verified\"\ncommand = [\"{}\", \"stdio\"]\n\
             [[server]]\nid = \"remote\"\ntrust = \"verified\"\nurl = \"http://127.0.0.1:{}/mcp\"\n\
             [[server]]\nid = \"git\"\ntrust = \"verified\"\ncommand = [\"{}\", \"--repository\", \"{}\"]\n\
             [[server]]\nid = \"python\"\ntrust = \"verified\"\nurl = \"http://127.0.0.1:{}/mcp\"\n",
            provider.text("issuer"),
            provider.text("jwks_uri"),
            everything.join("launch").display(),
            remote.port,
            git.join("launch").display(),
            place.display(),
            free.port(),
        );
        let gateway = Gateway::start(bench, &tables);
        let station = Station { gateway, provider, _everything: remote, _python: python };
        // All servers are observed once, which may take longer than a list waits.
        let caller = station.gateway.caller();
        wait_until("every server", || {
            let tools = caller.tools();
            station.calls().iter().all(|(tool, _)| tools.iter().any(|known| known == tool))
        });
        Some(station)
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.gateway.address)
    }

    fn credentials(&self) -> [&str; 2] {
        [&self.gateway.key, self.provider.text("token")]
    }

    /// The calls of a client, one tool per server.
    fn calls(&self) -> Vec<(&'static str, Value)> {
        let place = self.gateway.bench().path("place");
        vec![
            ("everything__echo", json!({"message": "é\u{1f600}"})),
            ("remote__echo", json!({"message": "far"})),
            ("git__git_status", json!({"repo_path": place})),
            ("python__add", json!({"a": 2, "b": 3})),
        ]
    }

    fn check(&self, client: &str, said: &Value) {
        let tools: Vec<&str> =
            said["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (tool, _) in self.calls() {
            assert!(tools.contains(&tool), "{client}: {tools:?}");
        }
        let texts = said["texts"].as_array().unwrap();
        let expected = ["Echo: é\u{1f600}", "Echo: far", "No commits yet", "the sum is 5"];
        for (text, expected) in texts.iter().zip(expected) {
            assert!(text.as_str().unwrap().contains(expected), "{client}: {text}");
        }
        assert_eq!(texts.len(), expected.len(), "{client}");
    }

    /// Asserts that every call has a receipt with the identity that its credential proves.
    fn end(self, calls_by_each: usize) {
        let (bench, ended) = self.gateway.end();
        ended.exits(0);
        bench.run(["receipts", "verify"]).exits(0);
        let out = bench.run(["receipts", "list", "--json", "-n", "1000"]).exits(0).out;
        let lines: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for sub in ["svc", "agent"] {
            let is_call = |line: &&Value| {
                line["mcp"]["method"] == "tools/call"
                    && line["principal"]["sub"] == sub
                    && line["decision"]["result"] == "allow"
            };
            assert_eq!(lines.iter().filter(is_call).count(), calls_by_each, "{sub}");
        }
    }
}

#[test]
fn python_clients_list_and_call_with_a_key_and_with_a_token() {
    let Some(clients) = releases("mcp-server-git") else { return };
    let Some(station) = Station::open() else { return };
    for client in &clients {
        for credential in station.credentials() {
            let mut command = Command::new(client.join("venv/bin/python"));
            command.arg(script("python_client.py")).args([&station.url(), credential]);
            command.arg(json!(station.calls()).to_string());
            let said = answer(command).exits(0).json();
            station.check(&client.display().to_string(), &said);
        }
    }
    // A token for another audience is refused, even with a valid signature.
    let other = Caller::new(station.gateway.address, station.provider.text("other"));
    assert_eq!(other.initialize().status, 401);
    let calls = station.calls().len() * clients.len();
    station.end(calls);
}

#[test]
fn typescript_clients_list_and_call_with_a_key_and_with_a_token() {
    let (Some(sdk), Some(client)) = (newest_release("sdk"), newest_release("client")) else {
        return;
    };
    let Some(station) = Station::open() else { return };
    let packages = [(sdk, "@modelcontextprotocol/sdk"), (client, "@modelcontextprotocol/client")];
    for (release, package) in &packages {
        for credential in station.credentials() {
            let mut command = Command::new(release.join("launch"));
            command.arg(script("node_client.mjs")).arg(release);
            command.args([*package, &station.url(), credential]);
            command.arg(json!(station.calls()).to_string());
            let said = answer(command).exits(0).json();
            station.check(package, &said);
        }
    }
    let calls = station.calls().len() * packages.len();
    station.end(calls);
}

#[test]
fn the_inspector_and_claude_code_connect_with_a_key_and_with_a_token() {
    let (Some(inspector), Some(claude)) =
        (newest_release("inspector"), newest_release("claude-code"))
    else {
        return;
    };
    let Some(station) = Station::open() else { return };
    let bench = station.gateway.bench();
    let programs = inspector.join("node_modules/.bin");
    let path = std::env::var("PATH").unwrap_or_default();
    for (number, credential) in station.credentials().into_iter().enumerate() {
        let header = format!("Authorization: Bearer {credential}");
        let inspect = |options: &[&str]| {
            let mut command = Command::new(programs.join("mcp-inspector"));
            command.env("PATH", format!("{}:{path}", programs.display()));
            command.env("HOME", bench.path(".")).current_dir(bench.path("."));
            command.args(["--cli", &station.url(), "--transport", "http", "--header", &header]);
            answer({
                command.args(options);
                command
            })
            .exits(0)
            .json()
        };
        let listed = inspect(&["--method", "tools/list"]);
        let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str());
        assert!(names.into_iter().any(|name| name == Some("python__add")), "{listed}");
        let call = ["--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg"];
        let called = inspect(&[&call[..], &["message=hello"]].concat());
        assert_eq!(called["content"][0]["text"], "Echo: hello", "{called}");

        let host = |words: &[&str]| {
            let mut command = Command::new(claude.join("launch"));
            for (name, _) in std::env::vars_os() {
                let is_hosts = ["CLAUDE", "XDG_", "ANTHROPIC"]
                    .iter()
                    .any(|begin| name.to_string_lossy().starts_with(begin));
                if is_hosts {
                    command.env_remove(name);
                }
            }
            command.env("HOME", bench.path(".")).current_dir(bench.path("."));
            command.env("DISABLE_AUTOUPDATER", "1");
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            command.stdin(Stdio::null()).args(words);
            answer(command).exits(0).out
        };
        let name = format!("gateway{number}");
        let url = station.url();
        host(&[
            "mcp",
            "add",
            "--transport",
            "http",
            "-s",
            "user",
            &name,
            &url,
            "--header",
            &header,
        ]);
        let listed = host(&["mcp", "list"]);
        let line = listed.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
        assert!(line.contains("Connected") && !line.contains("Failed"), "{listed}");
    }
    station.end(1);
}

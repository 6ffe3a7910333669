//! A gateway for tests: the binary in front of a server that changes on command, and callers of all
//! kinds.

use crate::bench::Bench;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SERVER: &str = "reports";

const POLICIES: &str = r#"
@id("agents")
permit (principal in Group::"agents", action in [Action::"call", Action::"get", Action::"read", Action::"use"], resource);
@id("admins")
permit (principal in Group::"admins", action in [Action::"audit", Action::"approve", Action::"operate"], resource);
@id("auditors")
permit (principal in Group::"auditors", action == Action::"audit", resource);
"#;

/// The configuration of a test gateway.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) scenario: String,
    pub(crate) first_use: String,
    pub(crate) drift_scope: String,
    /// Additional lines in `[gateway]`.
    pub(crate) front: String,
}

impl Setup {
    pub(crate) fn usual() -> Setup {
        Setup {
            scenario: "new_tool".to_owned(),
            first_use: "trust".to_owned(),
            drift_scope: "tool".to_owned(),
            front: String::new(),
        }
    }
}

pub(crate) struct Station {
    pub(crate) bench: Bench,
    child: Child,
    /// The addresses that the gateway printed, in the order `listen`, `admin_listen`,
    /// `metrics_listen`.
    pub(crate) addresses: Vec<String>,
    state: PathBuf,
    pub(crate) agent: String,
    pub(crate) admin: String,
}

impl Drop for Station {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP response of the gateway.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl HttpAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn reason(&self) -> String {
        self.json()["error"]["reason"].as_str().unwrap_or_default().to_owned()
    }
}

impl Station {
    pub(crate) fn start(setup: &Setup) -> Station {
        let bench = Bench::unattended();
        let state = bench.file("state", "before");
        bench.file("policies.cedar", POLICIES);
        let server = env!("CARGO_BIN_EXE_holdpoint");
        let Setup { scenario, first_use, drift_scope, front } = setup;
        let config = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nfirst_use = \"{first_use}\"\ndrift_scope = \"{drift_scope}\"\n{front}\n\
             [auth.keys]\nenabled = true\n[policy]\nfiles = [\"policies.cedar\"]\n\
             [[server]]\nid = \"{SERVER}\"\ntrust = \"internal\"\nrisk = \"medium\"\ntool_risk = {{ danger_delete = \"critical\" }}\n\
             command = [{server:?}, \"scenario\", \"{scenario}\", \"--state\", {state:?}]\n",
        );
        bench.file("gateway.toml", config);
        let key = |words: &[&str]| create_key(&bench, words);
        let agent = key(&["--sub", "svc", "--group", "agents"]);
        let admin = key(&["--sub", "ada", "--actor", "user", "--group", "admins", "--admin"]);
        let mut command = bench.command(["gateway", "--config", "gateway.toml"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let expected = 1 + setup.front.matches("_listen").count();
        let addresses = (0..expected).map(|_| {
            let line = receiver.recv_timeout(PATIENCE).unwrap();
            let rest = line.split(" on ").nth(1).unwrap().to_owned();
            rest.split(['/', ' ']).next().unwrap().trim_end_matches(':').to_owned()
        });
        let addresses = addresses.collect();
        Station { bench, child, addresses, state, agent, admin }
    }

    /// Creates another key, and waits until the gateway has loaded it.
    pub(crate) fn key(&self, words: &[&str]) -> String {
        let key = create_key(&self.bench, words);
        let path = if key.starts_with("hpa_") { "/admin/v1/servers" } else { "/mcp" };
        let begun = Instant::now();
        while self.send(&self.addresses[0], "GET", path, &key, "").status == 401 {
            assert!(begun.elapsed() < PATIENCE, "the key opens nothing");
            std::thread::sleep(Duration::from_millis(50));
        }
        key
    }

    /// Revokes the keys of a caller.
    pub(crate) fn revoke_keys_of(&self, sub: &str) {
        let list = self.bench.run(["key", "list", "--json", "--config", "gateway.toml"]);
        let list = list.exits(0).json();
        let keys = list["keys"].as_array().unwrap();
        for key in keys.iter().filter(|key| key["sub"] == sub) {
            let id = key["id"].as_str().unwrap();
            self.bench.run(["key", "revoke", "--config", "gateway.toml", id]).exits(0);
        }
    }

    /// Makes the server show its changed surface, or the first one again.
    pub(crate) fn show(&self, phase: &str) {
        std::fs::write(&self.state, phase).unwrap();
    }

    /// Sends a request to the admin API as its administrator.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &Value) -> HttpAnswer {
        self.admin_as(&self.admin, method, path, body)
    }

    pub(crate) fn admin_as(&self, key: &str, method: &str, path: &str, body: &Value) -> HttpAnswer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(&self.addresses[0], method, &format!("/admin/v1{path}"), key, &body)
    }

    pub(crate) fn server(&self) -> Value {
        let answer = self.admin("GET", &format!("/servers/{SERVER}"), &Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Opens an agent's session at a path.
    pub(crate) fn session(&self) -> Session<'_> {
        let mut session = Session { station: self, id: None };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        session.ask("initialize", &hello);
        session
    }

    pub(crate) fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        key: &str,
        body: &str,
    ) -> HttpAnswer {
        let headers = [("authorization", format!("Bearer {key}"))];
        send(address, method, path, &headers, body)
    }
}

/// Sends one HTTP request on its own connection.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, String)],
    body: &str,
) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n",
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_default().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let answer = HttpAnswer { status, headers, text: String::new() };
    let text = match answer.header("content-length") {
        Some(length) => {
            let mut bytes = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        }
        None => String::new(),
    };
    HttpAnswer { text, ..answer }
}

fn create_key(bench: &Bench, words: &[&str]) -> String {
    let words = [&["key", "create", "--json", "--config", "gateway.toml"], words].concat();
    bench.run(words).exits(0).json()["key"].as_str().unwrap().to_owned()
}

/// An agent's session with the gateway.
pub(crate) struct Session<'s> {
    station: &'s Station,
    id: Option<String>,
}

impl Session<'_> {
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("authorization", format!("Bearer {}", self.station.agent))];
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id.clone()));
        }
        let path = "/mcp";
        let address = &self.station.addresses[0];
        let answer = send(address, "POST", path, &headers, &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        if let Some(id) = answer.header("mcp-session-id") {
            self.id = Some(id.to_owned());
        }
        answer.json()
    }

    /// The server's own names of the tools visible to the agent.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        let prefix = format!("{SERVER}__");
        let mut names: Vec<String> =
            names.map(|name| name.strip_prefix(&prefix).unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The result of a call: `allowed`, `held` or `denied`.
    pub(crate) fn call(&mut self, tool: &str) -> (&'static str, Value) {
        let arguments = match tool {
            "danger_delete" => json!({"path": "a"}),
            _ => json!({"title": "t"}),
        };
        let params = json!({"name": format!("{SERVER}__{tool}"), "arguments": arguments});
        let answer = self.ask("tools/call", &params);
        let outcome = match answer["error"]["code"].as_i64() {
            None if answer["result"].is_object() => "allowed",
            Some(-32010) => "held",
            Some(1013) => "denied",
            _ => panic!("{answer}"),
        };
        (outcome, answer)
    }
}

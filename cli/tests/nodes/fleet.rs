//! Nodes that share a PostgreSQL, and a server whose processes count their calls.

use crate::bench::{Bench, finish};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use testing::wait_for;

const POLICIES: &str = r#"@id("all") permit (principal, action, resource);"#;

/// The database of a test.
pub(crate) enum Database {
    /// The PostgreSQL shared by all tests, with a separate schema.
    Shared(String),
    /// A PostgreSQL that the test may stop.
    Own { script: String, folder: String },
    /// The home's SQLite, for a single node.
    Home,
}

impl Database {
    pub(crate) fn shared() -> Option<Database> {
        let url = testing::postgres_url()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let schema = format!("nodes_{}_{now}", std::process::id());
        Some(Database::Shared(format!("{url}?schema={schema}")))
    }

    pub(crate) fn own() -> Option<Database> {
        let how = "run the tests by ./scripts/with-postgres";
        let script = testing::variable("HOLDPOINT_TEST_POSTGRES_CLUSTER", how)?;
        let folder = cluster(&script, &["make"]);
        let database = Database::Own { script, folder };
        database.start();
        Some(database)
    }

    pub(crate) fn start(&self) {
        if let Database::Own { script, folder } = self {
            cluster(script, &["start", folder]);
        }
    }

    pub(crate) fn stop(&self) {
        if let Database::Own { script, folder } = self {
            cluster(script, &["stop", folder, "immediate"]);
        }
    }

    fn url(&self) -> String {
        match self {
            Database::Shared(url) => url.clone(),
            Database::Own { script, folder } => cluster(script, &["url", folder]),
            Database::Home => "sqlite".to_owned(),
        }
    }
}

fn cluster(script: &str, words: &[&str]) -> String {
    let done = Command::new(script).arg("--cluster").args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// The nodes of a test.
pub(crate) struct Fleet {
    pub(crate) database: Database,
    pub(crate) bench: Bench,
    pub(crate) key: String,
    pub(crate) key_id: String,
    pub(crate) admin: String,
    pub(crate) nodes: Vec<FleetNode>,
}

pub(crate) struct FleetNode {
    pub(crate) home: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) peer: String,
    child: Option<Child>,
}

impl Drop for FleetNode {
    fn drop(&mut self) {
        self.kill();
    }
}

impl FleetNode {
    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until the process was killed at the configured point.
    pub(crate) fn was_killed(&mut self) {
        let mut child = self.child.take().unwrap();
        let status = wait_for("the node to end", || child.try_wait().unwrap());
        assert_eq!(status.signal(), Some(rustix::process::Signal::KILL.as_raw()), "{status}");
    }

    /// Ends the process cleanly.
    pub(crate) fn end(&mut self) {
        let child = self.child.take().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        finish(child).exits(0);
    }

    /// The status and text of `/readyz`.
    pub(crate) fn ready(&self) -> (u16, String) {
        let found = plain_get(self.address, "/readyz", "");
        (found.0, found.1)
    }
}

/// The configuration of a fleet's nodes.
pub(crate) struct Arrangement<'a> {
    /// Additional lines in `[gateway]`.
    pub(crate) gateway: &'a str,
    /// The `instance` setting of the counting server.
    pub(crate) instance: &'a str,
    pub(crate) policies: &'a str,
    /// Additional lines in the counting server's table.
    pub(crate) server: &'a str,
}

impl Default for Arrangement<'_> {
    fn default() -> Self {
        Arrangement { gateway: "", instance: "shared", policies: POLICIES, server: "" }
    }
}

impl Fleet {
    /// Starts `count` nodes with these lines in `[gateway]` and this `instance` setting of the
    /// counting server.
    pub(crate) fn start(database: Database, count: usize, gateway: &str, instance: &str) -> Fleet {
        Fleet::arranged(
            database,
            count,
            &Arrangement { gateway, instance, ..Arrangement::default() },
        )
    }

    pub(crate) fn arranged(
        database: Database,
        count: usize,
        arrangement: &Arrangement<'_>,
    ) -> Fleet {
        let Arrangement { gateway, instance, policies, server: lines } = arrangement;
        let bench = Bench::unattended();
        bench.file("all.cedar", policies);
        bench.file("address", format!("{}\n", database.url()));
        let program = bench.file("server.sh", COUNTING);
        let server = env!("CARGO_BIN_EXE_holdpoint");
        let state = bench.file("state", "before");
        let store = match database {
            Database::Shared(_) | Database::Own { .. } => {
                "peer_listen = \"127.0.0.1:0\"\nstore = \"file:address\""
            }
            Database::Home => "",
        };
        bench.file(
            "gateway.toml",
            format!(
                "[gateway]\nlisten = \"127.0.0.1:0\"\n{store}\n{gateway}\n\
                 [auth.keys]\nenabled = true\n[policy]\nfiles = [\"all.cedar\"]\n\
                 [[server]]\nid = \"counter\"\ntrust = \"internal\"\nrisk = \"low\"\ninstance = \"{instance}\"\ncommand = [\"/bin/sh\", {program:?}]\n{lines}\n\
                 [[server]]\nid = \"reports\"\ntrust = \"internal\"\nrisk = \"high\"\ninstance = \"shared\"\ncommand = [{server:?}, \"scenario\", \"new_tool\", \"--state\", {state:?}]\n"
            ),
        );
        let created = |words: &[&str]| {
            let mut all = vec!["key", "create", "--json", "--config", "gateway.toml"];
            all.extend(words);
            bench.run(all).exits(0).json()
        };
        let key = created(&["--sub", "svc"]);
        let admin = created(&["--sub", "ada", "--actor", "user", "--admin"]);
        let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
        let mut fleet = Fleet {
            database,
            key: text(&key, "key"),
            key_id: text(&key, "id"),
            admin: text(&admin, "key"),
            bench,
            nodes: Vec::new(),
        };
        for number in 0..count {
            let home = match number {
                0 => fleet.bench.home(),
                _ => fleet.another_home(number),
            };
            fleet.add(home);
        }
        fleet
    }

    /// A home with the keys that nodes share. Each node signs its own receipts.
    pub(crate) fn another_home(&self, number: usize) -> PathBuf {
        let home = self.bench.path(&format!("home-{number}"));
        fs::create_dir_all(home.join("keys")).unwrap();
        for file in fs::read_dir(self.bench.home().join("keys")).unwrap() {
            let file = file.unwrap();
            if !file.file_name().to_string_lossy().starts_with("receipts") {
                fs::copy(file.path(), home.join("keys").join(file.file_name())).unwrap();
            }
        }
        home
    }

    /// Starts a node in a home.
    pub(crate) fn add(&mut self, home: PathBuf) {
        let command = self.bench.command(["gateway", "--config", "gateway.toml", "--home"]);
        self.add_by(command, home);
    }

    /// Starts a node that is killed at the point that `contract::trip` finds for this word.
    pub(crate) fn add_doomed(&mut self, home: PathBuf, at: &str) {
        let mut command = self.bench.command(["gateway", "--config", "gateway.toml", "--home"]);
        command.env("HOLDPOINT_TEST_KILL", at);
        self.add_by(command, home);
    }

    fn add_by(&mut self, mut command: Command, home: PathBuf) {
        // The node's standard error is stored in its home, where tests search it for secrets.
        let said = fs::File::options().create(true).append(true).open(home.join("stderr.log"));
        command.arg(&home).stdout(Stdio::piped()).stderr(said.unwrap());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut after = |words: &str| {
            let line = lines.next().unwrap().unwrap();
            let rest = line.strip_prefix(words).unwrap_or_else(|| panic!("{line}"));
            rest.split(": ").next().unwrap().to_owned()
        };
        let address = after("listening on ").parse().unwrap();
        let peer = match self.database {
            Database::Shared(_) | Database::Own { .. } => after("other nodes on "),
            Database::Home => String::new(),
        };
        self.nodes.push(FleetNode { home, address, peer, child: Some(child) });
    }

    /// A caller with a session created at a node.
    pub(crate) fn caller(&self, node: usize) -> Caller {
        Caller::begin(self.nodes[node].address, &self.key)
    }

    /// Runs a command with the home of a node.
    pub(crate) fn run(&self, node: usize, words: &[&str]) -> crate::bench::Answer {
        let mut command = self.bench.command(words);
        command.arg("--home").arg(&self.nodes[node].home);
        crate::bench::answer(command)
    }

    /// The number of calls that the counting server's processes received from all nodes.
    pub(crate) fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.bench.path("server.sh.calls"));
        calls.unwrap_or_default().lines().count()
    }

    /// A response of a node's admin API.
    pub(crate) fn admin(&self, node: usize, path: &str) -> Value {
        let path = format!("/admin/v1{path}");
        let (status, text) = plain_get(self.nodes[node].address, &path, &self.admin);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// The process that answered, and its number of calls so far.
pub(crate) fn counted(message: &Value) -> (String, u64) {
    let text = message["result"]["content"][0]["text"].as_str();
    let (process, count) = text.unwrap_or_else(|| panic!("{message}")).split_once(' ').unwrap();
    (process.to_owned(), count.parse().unwrap())
}

/// Calls the counting server.
pub(crate) fn count(caller: &Caller) -> (String, u64) {
    counted(&caller.call("counter__count", &json!({})))
}

/// Calls until the server answers: a node learns other nodes' observations within a second.
pub(crate) fn count_soon(caller: &Caller) -> (String, u64) {
    wait_for("the server to be known at the node", || {
        let message = caller.call("counter__count", &json!({}));
        message.get("result").map(|_| counted(&message))
    })
}

fn plain_get(address: SocketAddr, path: &str, key: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// A server that reports its process and its number of calls, and appends a line per call to a file
/// with its name.
const COUNTING: &str = r#"
n=0
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}}' ;;
    *'"method":"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}}]}}' ;;
    *'"name":"wait"'*)
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"waiting"}}' ;;
    *'"method":"tools/call"'*)
      n=$((n+1))
      echo "$line" >> "$0.calls"
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$' '$n'"}]}}'
      case "$line" in *'"announce"'*)
        echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"said by '$$'"}}' ;;
      esac ;;
    *'"id":'*)
      echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
"#;

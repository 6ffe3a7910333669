//! The fixtures of the tests: a home, the binary with a deadline, a server whose responses are
//! files.
#![allow(dead_code, reason = "each test binary uses its part of it")]

use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// A program that runs longer than this is taken as hanging. Long, because machines may be busy.
const DEADLINE: Duration = Duration::from_secs(180);

/// The name of the user in the tests.
pub(crate) const WHO: &str = "ada";

/// The id of servers in the tests.
pub(crate) const ID: &str = "reports";

/// A folder that contains a home and the other files of a test.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// Configured so that the tests can decide without a terminal.
    pub(crate) fn unattended() -> Bench {
        let bench = Bench::new();
        bench.run(["status"]).exits(0);
        bench.configure("[approve]\nunattended = true\n");
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    pub(crate) fn configure(&self, text: &str) {
        fs::write(self.home().join("holdpoint.toml"), text).unwrap();
    }

    /// The binary with this home and without the tester's own settings.
    pub(crate) fn command(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LOGNAME", "CI"] {
            command.env_remove(variable);
        }
        // No pager in tests.
        command.env("PAGER", "cat");
        command.env("HOME", self.folder.path()).env("USER", WHO);
        command.env("HOLDPOINT_HOME", self.home()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Answer {
        answer(self.command(arguments))
    }

    pub(crate) fn status(&self) -> Value {
        self.run(["status", "--json"]).exits(0).json()
    }

    /// The status of the only server.
    pub(crate) fn server_status(&self) -> Value {
        self.status()["servers"][0].clone()
    }

    /// The waiting change of an entry of the only server.
    pub(crate) fn waiting(&self, key: &str) -> Value {
        let status = self.server_status();
        let mut waiting = status["waiting"].as_array().unwrap().iter();
        waiting.find(|entry| entry["key"] == key).unwrap_or(&Value::Null).clone()
    }

    /// The hash to approve a waiting change with: the current hash, or the last one of a removed
    /// entry.
    pub(crate) fn waiting_hash(&self, key: &str) -> String {
        let hash = &self.waiting(key)["entry_hash"];
        hash["after"].as_str().or(hash["before"].as_str()).unwrap().to_owned()
    }
}

/// The result of running the binary.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Answer {
        let Answer { out, err, .. } = &self;
        assert_eq!(self.code, Some(code), "\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    /// Asserts that the output contains this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Answer {
        let Answer { out, err, .. } = &self;
        let is_said = out.contains(text) || err.contains(text);
        assert!(is_said, "expected `{text}`\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    #[track_caller]
    pub(crate) fn never_says(self, text: &str) -> Answer {
        let Answer { out, err, .. } = &self;
        let is_said = out.contains(text) || err.contains(text);
        assert!(!is_said, "unexpected `{text}`\n--- stdout\n{out}\n--- stderr\n{err}");
        self
    }

    /// Parses standard output, which must be a single JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.out) {
            Ok(document) => document,
            Err(error) => panic!("not one JSON document: {error}\n{}\n{}", self.out, self.err),
        }
    }
}

/// Runs a command until it exits; panics after the deadline.
#[track_caller]
pub(crate) fn answer(mut command: Command) -> Answer {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    finish(child)
}

#[track_caller]
pub(crate) fn finish(mut child: Child) -> Answer {
    let out = read_all(child.stdout.take());
    let err = read_all(child.stderr.take());
    let text = |end: &mpsc::Receiver<Vec<u8>>| end.recv_timeout(DEADLINE);
    let (Ok(out), Ok(err)) = (text(&out), text(&err)) else {
        child.kill().unwrap();
        panic!("still running after {DEADLINE:?}");
    };
    let code = child.wait().unwrap().code();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Answer { code, out: text(out), err: text(err) }
}

fn read_all(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        // After the deadline, the receiver is gone.
        let _ = sender.send(bytes);
    });
    receiver
}

/// A server with responses in a folder (`tests/servers/folder_server.rs`).
pub(crate) struct FolderServer {
    folder: PathBuf,
}

impl FolderServer {
    /// A server that completes handshakes, offers tools, and has these.
    pub(crate) fn new(bench: &Bench, tools: &Value) -> FolderServer {
        FolderServer::named(bench, "server", tools)
    }

    pub(crate) fn named(bench: &Bench, name: &str, tools: &Value) -> FolderServer {
        let folder = bench.path(name);
        fs::create_dir(&folder).unwrap();
        let server = FolderServer { folder };
        server.offers(&json!({ "tools": {} }));
        server.lists(tools);
        server
    }

    /// Sets the capabilities in the handshake.
    pub(crate) fn offers(&self, capabilities: &Value) {
        let result = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "serverInfo": { "name": "folder", "version": "1" },
        });
        self.answers("initialize", result.to_string());
    }

    pub(crate) fn lists(&self, tools: &Value) {
        self.answers("tools/list", json!({ "tools": tools }).to_string());
    }

    /// Sets the tools, given as the bytes of an array.
    pub(crate) fn lists_bytes(&self, tools: &[u8]) {
        self.answers("tools/list", [b"{\"tools\":".as_slice(), tools, b"}"].concat());
    }

    /// Sets the result of a method.
    pub(crate) fn answers(&self, method: &str, result: impl AsRef<[u8]>) {
        let start = br#"{"jsonrpc":"2.0","id":$ID,"result":"#.as_slice();
        self.sends(method, [start, result.as_ref(), b"}"].concat());
    }

    /// Sets the complete line, or lines, that answer a method.
    pub(crate) fn sends(&self, method: &str, bytes: impl AsRef<[u8]>) {
        self.writes(&method.replace('/', "."), bytes);
    }

    pub(crate) fn writes(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.join(name), bytes).unwrap();
    }

    pub(crate) fn is_silent_about(&self, method: &str) {
        fs::remove_file(self.folder.join(method.replace('/', "."))).unwrap();
    }

    /// The command that starts it.
    pub(crate) fn launch(&self) -> Vec<OsString> {
        vec![program().into_os_string(), self.folder.clone().into_os_string()]
    }

    /// `holdpoint COMMAND --server ID OPTIONS -- SERVER`.
    pub(crate) fn run(&self, bench: &Bench, command: &str, options: &[&str]) -> Answer {
        self.run_as(bench, ID, command, options)
    }

    pub(crate) fn run_as(
        &self,
        bench: &Bench,
        id: &str,
        command: &str,
        options: &[&str],
    ) -> Answer {
        answer(self.command_as(bench, id, command, options))
    }

    pub(crate) fn command_as(
        &self,
        bench: &Bench,
        id: &str,
        command: &str,
        options: &[&str],
    ) -> Command {
        let mut whole = bench.command([command, "--server", id]);
        whole.args(options).arg("--").args(self.launch());
        whole
    }
}

/// Cargo builds examples for `cargo test`, next to the folder of the test binaries.
fn program() -> PathBuf {
    example("folder-server")
}

pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap();
    let program = built.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "not built: run `cargo build -p holdpoint --example {name}`");
    program
}

/// The approved tool.
pub(crate) fn report_tool() -> Value {
    json!({
        "name": "make_report",
        "description": "Makes a report.",
        "inputSchema": {
            "type": "object",
            "properties": { "title": { "type": "string" } },
            "required": ["title"],
        },
    })
}

/// The same tool with a new required parameter.
pub(crate) fn report_tool_with_owner() -> Value {
    let mut tool = report_tool();
    tool["inputSchema"]["properties"]["owner"] = json!({ "type": "string" });
    tool["inputSchema"]["required"] = json!(["title", "owner"]);
    tool
}

pub(crate) fn mail_tool() -> Value {
    json!({ "name": "send_mail", "inputSchema": { "type": "object", "properties": { "to": { "type": "string" } } } })
}

/// The pins in a status document, without values that vary from run to run.
pub(crate) fn pins_of(status: &Value) -> Value {
    json!([status["pinned"], status["basis"]])
}

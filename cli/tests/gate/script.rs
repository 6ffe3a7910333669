//! Scripts for `examples/scripted_server.rs`: a well-behaved server, except for what a test
//! changes.

use crate::bench::*;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Script {
    folder: PathBuf,
    turns: Map<String, Value>,
}

impl Script {
    /// A server with the tools `make_report` and `send_mail`, each of which returns its arguments.
    pub(crate) fn new(bench: &Bench) -> Script {
        Script::named(bench, "script")
    }

    pub(crate) fn named(bench: &Bench, name: &str) -> Script {
        let folder = bench.path(name);
        fs::create_dir(&folder).unwrap();
        let mut script = Script { folder, turns: Map::new() };
        script.introduces("2025-06-18", &json!({ "tools": { "listChanged": true } }));
        script.on("tools/list", json!([result(&json!({ "tools": [report_tool(), mail_tool()] }))]));
        script.on("ping", json!([result(&json!({}))]));
        script.on("tools/call", json!([echo()]));
        script
    }

    pub(crate) fn introduces(&mut self, version: &str, capabilities: &Value) {
        let info = json!({ "name": "scripted", "version": "1" });
        let said =
            json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info });
        self.on("initialize", json!([result(&said)]));
    }

    /// Sets the steps for every message of a method.
    pub(crate) fn on(&mut self, method: &str, steps: Value) {
        self.turns.insert(method.to_owned(), Value::Array(vec![steps]));
    }

    /// Sets the steps for the first message of a method, the second, and so on; the last ones
    /// repeat.
    pub(crate) fn on_each(&mut self, method: &str, turns: Value) {
        self.turns.insert(method.to_owned(), turns);
    }

    /// Adds the steps for all further messages of a method.
    pub(crate) fn then_on(&mut self, method: &str, steps: Value) {
        self.turns[method].as_array_mut().unwrap().push(steps);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the script. Returns the command that starts the server.
    pub(crate) fn launch(&self) -> Vec<OsString> {
        let path = self.path("script.json");
        let script = json!({ "turns": self.turns, "record": self.path("record") });
        fs::write(&path, script.to_string()).unwrap();
        vec![program().into_os_string(), path.into_os_string()]
    }

    /// The same command run by a shell script, in which `"$@"` is the server.
    pub(crate) fn launch_by(&self, shell: &str) -> Vec<OsString> {
        let words = ["sh", "-c", shell, "sh"].into_iter().map(OsString::from);
        words.chain(self.launch()).collect()
    }

    /// Every byte that the server read.
    pub(crate) fn record(&self) -> String {
        String::from_utf8(fs::read(self.path("record")).unwrap_or_default()).unwrap()
    }

    /// The content of a file, once the server has written it.
    #[track_caller]
    pub(crate) fn written(&self, name: &str) -> String {
        testing::wait_for(name, || fs::read_to_string(self.path(name)).ok())
    }

    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }
}

/// A response line with a result.
pub(crate) fn result(result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#)
}

/// A response line to a call, with a text that may contain placeholders.
pub(crate) fn says(text: &str) -> String {
    result(&json!({ "content": [{ "type": "text", "text": text }] }))
}

/// A response line to a call, with the number of calls so far.
pub(crate) fn echo() -> String {
    says("call $COUNT")
}

/// Cargo builds examples for `cargo test`, next to the folder of the test binaries.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap();
    let program = built.join("examples").join("scripted_server");
    let how = "run `cargo build -p holdpoint --example scripted_server`";
    assert!(program.is_file(), "not built: {how}");
    program
}

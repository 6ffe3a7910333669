//! A running gateway, and servers whose calls last until the test releases them.

use crate::bench::{Answer, Bench, finish};
use crate::http_client::Caller;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use testing::wait_for;

pub(crate) const PERMIT_ALL: &str = "@id(\"all\") permit (principal, action, resource);";

/// The beginning of every configuration file in these tests.
pub(crate) const FRONT: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n[auth.keys]\nenabled = true\n[policy]\nfiles = [\"*.cedar\"]\n";

pub(crate) struct Gateway {
    bench: Option<Bench>,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) key_id: String,
    child: Option<Child>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Gateway {
    /// A gateway with [`FRONT`] followed by these tables.
    pub(crate) fn start(bench: Bench, tables: &str) -> Gateway {
        if !bench.path("all.cedar").exists() {
            bench.file("all.cedar", PERMIT_ALL);
        }
        write_settings(&bench, tables);
        let made =
            bench.run(["key", "create", "--sub", "svc", "--json", "--config", "gateway.toml"]);
        let made = made.exits(0).json();
        let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let (key, key_id) = (text("key"), text("id"));
        let mut command = bench.command(["gateway", "--config", "gateway.toml"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(": ").next());
        let Some(address) = address else {
            let ended = finish(child);
            panic!("it does not listen: {line}{}", ended.err);
        };
        Gateway {
            address: address.parse().unwrap(),
            bench: Some(bench),
            key,
            key_id,
            child: Some(child),
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::begin(self.address, &self.key)
    }

    pub(crate) fn reload(&self) -> Answer {
        self.bench().run(["gateway", "reload"])
    }

    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(self.child.as_ref().unwrap());
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Ends the gateway. Returns its output.
    pub(crate) fn end(self) -> (Bench, Answer) {
        self.terminate();
        self.finish()
    }

    /// Waits for the exit. Returns the output.
    pub(crate) fn finish(mut self) -> (Bench, Answer) {
        let ended = finish(self.child.take().unwrap());
        (self.bench.take().unwrap(), ended)
    }

    pub(crate) fn bench(&self) -> &Bench {
        self.bench.as_ref().unwrap()
    }
}

pub(crate) fn write_settings(bench: &Bench, tables: &str) {
    bench.file("gateway.toml", format!("{FRONT}{tables}"));
}

/// A shell server whose only tool `wait` returns once the test allows it.
pub(crate) struct WaitingServer {
    pub(crate) program: PathBuf,
    folder: PathBuf,
}

impl WaitingServer {
    pub(crate) fn new(bench: &Bench, name: &str) -> WaitingServer {
        WaitingServer::ending(bench, name, "")
    }

    /// With commands that run after its input is closed.
    pub(crate) fn ending(bench: &Bench, name: &str, end: &str) -> WaitingServer {
        let folder = bench.path(name);
        fs::create_dir(&folder).unwrap();
        let program = folder.join("server.sh");
        let script = SCRIPT.replace("FOLDER", folder.to_str().unwrap()).replace("END", end);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        WaitingServer { program, folder }
    }

    /// Its `[[server]]` table, with additional keys.
    pub(crate) fn table(&self, id: &str, keys: &str) -> String {
        let program = self.program.display();
        format!(
            "[[server]]\nid = \"{id}\"\ntrust = \"internal\"\nrisk = \"low\"\ncommand = [\"/bin/sh\", \"{program}\"]\n{keys}\n"
        )
    }

    /// Waits until a call has reached it.
    pub(crate) fn was_called(&self) {
        wait_for("the call to reach the server", || {
            self.folder.join("called").exists().then_some(())
        });
    }

    /// Lets calls return.
    pub(crate) fn let_go(&self) {
        fs::write(self.folder.join("go"), "").unwrap();
    }

    /// The ids of its processes.
    pub(crate) fn pids(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn running(&self) -> Vec<String> {
        self.pids().into_iter().filter(|pid| is_running(pid)).collect()
    }
}

/// Whether the process exists and has not ended.
pub(crate) fn is_running(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

const SCRIPT: &str = r#"
echo $$ >> FOLDER/pids
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}}' ;;
    *'"method":"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}}' ;;
    *'"method":"tools/call"'*)
      touch FOLDER/called
      while [ ! -e FOLDER/go ]; do sleep 0.02; done
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"done"}]}}' ;;
    *'"id":'*)
      echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
END
"#;

pub(crate) fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

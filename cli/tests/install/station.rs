//! A user with a host: a bench, Cursor's files in its home, and a `systemctl` that records its
//! commands.

use crate::bench::*;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Variables that a tester may have set, and that would lead out of the test's home.
const NOT_INHERITED: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "COPILOT_HOME",
    "OPENCODE_CONFIG",
    "XDG_CONFIG_HOME",
    "HOLDPOINT_ARCHIVE",
    "HOLDPOINT_SKIP_SIGNATURE",
    "HOLDPOINT_ALLOW_ROOT",
];

pub(crate) struct Station {
    pub(crate) bench: Bench,
}

impl Station {
    pub(crate) fn new() -> Station {
        let station = Station { bench: Bench::new() };
        fs::create_dir_all(station.bench.path("bin")).unwrap();
        let orders = station.bench.path("orders");
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\n", orders.display());
        station.program("systemctl", &script);
        station.program("notify-send", &script);
        station
    }

    /// Puts a script where it is found before any other program.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let path = self.bench.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.bench.command(words);
        self.surround(&mut command);
        command
    }

    pub(crate) fn surround(&self, command: &mut Command) {
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        let path = std::env::var("PATH").unwrap();
        let own = self.bench.path("bin");
        command.env("PATH", format!("{}:{path}", own.display()));
        // Tests may run as root, in a container.
        command.env("HOLDPOINT_ALLOW_ROOT", "1");
    }

    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        answer(self.command(words))
    }

    /// The commands sent to the service manager and the desktop.
    pub(crate) fn orders(&self) -> String {
        let path = self.bench.path("orders");
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Waits for a command: nothing waits for the desktop to process it.
    #[track_caller]
    pub(crate) fn is_ordered(&self, words: &str) {
        testing::wait_until(words, || self.orders().contains(words));
    }

    /// The user's home directory.
    pub(crate) fn user(&self) -> PathBuf {
        self.bench.home().parent().unwrap().to_owned()
    }

    pub(crate) fn cursor_path(&self) -> PathBuf {
        self.bench.path(".cursor/mcp.json")
    }

    /// Gives Cursor these servers.
    pub(crate) fn cursor(&self, servers: &Value) {
        let path = self.cursor_path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{:#}\n", json!({ "mcpServers": servers }))).unwrap();
    }

    /// The command of one of Cursor's servers.
    pub(crate) fn command_of(&self, server: &str) -> String {
        let text = fs::read_to_string(self.cursor_path()).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        document["mcpServers"][server]["command"].as_str().unwrap().to_owned()
    }

    pub(crate) fn is_guarded(&self, server: &str) -> bool {
        self.command_of(server) == binary()
    }

    pub(crate) fn unit(&self) -> PathBuf {
        self.bench.path(".config/systemd/user/holdpoint-watch.service")
    }
}

pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_holdpoint")
}

pub(crate) fn server() -> Value {
    json!({ "command": "uvx", "args": ["mcp-server-time"] })
}

/// An entry as `wire` writes it.
pub(crate) fn guarded_server(id: &str, program: &str) -> Value {
    json!({ "command": program, "args": ["run", "--server", id, "--", "uvx", "mcp-server-time"] })
}

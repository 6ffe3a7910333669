//! The programs that are measured, and how each is placed in front of the server.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The gate's id of the server.
pub const SERVER_ID: &str = "bench";

/// The program between the client and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    Nothing,
    Relay,
    Gate,
    /// The gate, with the server confined.
    ConfinedGate,
}

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Programs {
    pub echo: PathBuf,
    relay: PathBuf,
    pub gate: PathBuf,
}

impl Programs {
    /// The programs next to this one, where a build puts them; `HOLDPOINT` names another gate.
    pub fn find() -> io::Result<Programs> {
        let this = std::env::current_exe()?;
        let beside =
            |name: &str| this.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION);
        let gate = std::env::var_os("HOLDPOINT").map_or_else(|| beside("holdpoint"), PathBuf::from);
        let programs = Programs { echo: beside("echo"), relay: beside("relay"), gate };
        for program in [&programs.echo, &programs.relay, &programs.gate] {
            if !program.is_file() {
                return Err(io::Error::other(format!(
                    "there is no `{}`; `cargo build --profile dist -p holdpoint -p holdpoint-bench` makes it",
                    program.display()
                )));
            }
        }
        Ok(programs)
    }

    /// The command for a server with this many tools behind `between`.
    pub fn server(&self, between: Between, home: &Path, tools: usize, edition: u64) -> Command {
        let mut command = match between {
            Between::Nothing => Command::new(&self.echo),
            Between::Relay => {
                let mut command = Command::new(&self.relay);
                command.arg(&self.echo);
                command
            }
            Between::Gate | Between::ConfinedGate => {
                let mut command = self.holdpoint(home);
                command.args(["run", "--server", SERVER_ID]);
                if between == Between::ConfinedGate {
                    command.arg("--sandbox");
                }
                command.arg("--").arg(&self.echo);
                command
            }
        };
        command.args([tools.to_string(), edition.to_string()]);
        command
    }

    /// `holdpoint` with this home.
    pub fn holdpoint(&self, home: &Path) -> Command {
        let mut command = Command::new(&self.gate);
        command.env("HOLDPOINT_HOME", home);
        command
    }

    /// The same programs with another server.
    pub fn with_server(&self, echo: PathBuf) -> Programs {
        Programs { echo, ..self.clone() }
    }
}

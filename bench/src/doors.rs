//! The programs between callers and a server over HTTP, each in its own process.

use contract::time::Timestamp;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use store::{ActorType, ApiKeyHash, ApiKeyStore, By, Home, NewApiKey, SqliteStore, Witnessed};

/// A listening process, ended on drop.
#[derive(Debug)]
pub struct Door {
    process: Child,
    /// Kept open so that further output does not end the process.
    _output: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Door {
    /// Starts a program that prints its address on its first line.
    pub fn open(command: &mut Command) -> io::Result<Door> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line)?;
        let words = line.split_whitespace().map(|word| word.trim_end_matches(':'));
        let address = words.filter_map(|word| word.parse().ok()).next();
        match address {
            Some(address) => Ok(Door { process, _output: output, address }),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                Err(io::Error::other(format!("no address in `{}`", line.trim_end())))
            }
        }
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks the process to exit, and waits for it.
    pub fn terminate(&mut self, patience: Duration) -> io::Result<()> {
        let id = self.process_id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let begun = Instant::now();
        while self.process.try_wait()?.is_none() {
            if begun.elapsed() > patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct DoorPrograms {
    echo: PathBuf,
    proxy: PathBuf,
    holdpoint: PathBuf,
}

impl DoorPrograms {
    /// The programs next to this one; `HOLDPOINT` names another gateway.
    pub fn find() -> io::Result<DoorPrograms> {
        let this = std::env::current_exe()?;
        let beside =
            |name: &str| this.with_file_name(name).with_extension(std::env::consts::EXE_EXTENSION);
        let holdpoint =
            std::env::var_os("HOLDPOINT").map_or_else(|| beside("holdpoint"), PathBuf::from);
        let programs =
            DoorPrograms { echo: beside("http_echo"), proxy: beside("proxy"), holdpoint };
        for program in [&programs.echo, &programs.proxy, &programs.holdpoint] {
            if !program.is_file() {
                return Err(io::Error::other(format!(
                    "there is no `{}`; `cargo build --profile dist -p holdpoint -p holdpoint-bench` makes it",
                    program.display()
                )));
            }
        }
        Ok(programs)
    }

    /// Starts the server behind all doors.
    pub fn echo(&self, tools: usize) -> io::Result<Door> {
        Door::open(Command::new(&self.echo).arg(tools.to_string()))
    }

    pub fn proxy(&self, server: SocketAddr) -> io::Result<Door> {
        Door::open(Command::new(&self.proxy).arg(server.to_string()))
    }

    /// A command with this home.
    pub fn holdpoint(&self, home: &Path) -> Command {
        let mut command = Command::new(&self.holdpoint);
        command.env("HOLDPOINT_HOME", home);
        command
    }

    /// Starts the gateway with the configuration of this home.
    pub fn gateway(&self, home: &Path) -> io::Result<Door> {
        Door::open(self.holdpoint(home).args(["gateway", "--quiet"]))
    }
}

/// A home with a gateway's configuration, and one key per principal.
#[derive(Debug)]
pub struct GatewayHome {
    folder: tempfile::TempDir,
    pub keys: Vec<String>,
}

impl GatewayHome {
    /// Configures a gateway in front of one server, with the given numbers of policies and
    /// principals.
    pub fn new(
        server: SocketAddr,
        policies: usize,
        principals: usize,
    ) -> Result<GatewayHome, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("gateway.toml"), configuration(server))?;
        std::fs::create_dir(folder.path().join("policies"))?;
        std::fs::write(folder.path().join("policies/bench.cedar"), policy_texts(policies))?;
        let home = Home::open(folder.path())?;
        let mut store = Witnessed::new(Box::new(SqliteStore::open(&home)?), &home);
        let mut keys = Vec::new();
        for number in 0..principals {
            // Random enough for a measurement.
            let secret = Sha256::digest(format!("{number} {}", folder.path().display()));
            let key = format!("hp_{}", hex::encode(secret));
            let new = NewApiKey {
                id: format!("k-{number}").parse()?,
                hash: ApiKeyHash(Sha256::digest(&key).into()),
                sub: format!("svc:agent-{number}"),
                actor_type: ActorType::Agent,
                org: None,
                groups: vec!["callers".to_owned(), format!("team-{}", number % 20)],
                clearance: None,
                admin: false,
                expires_at: None,
            };
            store.add_api_key(&new, By { name: "bench", at: Timestamp(1_763_253_195_123) })?;
            keys.push(key);
        }
        Ok(GatewayHome { folder, keys })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Appends lines to the gateway's configuration.
    pub fn configure(&self, lines: &str) -> io::Result<()> {
        let path = self.path().join("gateway.toml");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(path, format!("{text}{lines}"))
    }
}

fn configuration(server: SocketAddr) -> String {
    format!(
        r#"[gateway]
listen = "127.0.0.1:0"
store = "sqlite"

[auth.keys]
enabled = true

[policy]
files = ["policies/*.cedar"]

[[server]]
id = "echo"
trust = "internal"
risk = "low"
url = "http://{server}/mcp"
"#
    )
}

/// One policy permits the calls, one forbids some of them during an incident, and the others
/// concern teams.
fn policy_texts(count: usize) -> String {
    let mut texts = String::from(
        r#"@id("callers")
permit (principal in Group::"callers", action in Action::"call", resource in Server::"echo")
when { resource.risk_rank <= 1 };

@id("incident")
forbid (principal, action in Action::"call", resource)
when { resource.server.incident && resource.risk_rank >= 2 };
"#,
    );
    for number in 2..count {
        // Writing to a string cannot fail.
        let _ = write!(
            texts,
            r#"
@id("team-{number}")
permit (principal in Group::"team-{number}", action in Action::"call", resource in Server::"echo")
when {{ resource.risk == "high" && !resource.destructive }};
"#
        );
    }
    texts
}

//! What can be typed. Help texts are part of the interface: each command has an example.

pub(crate) mod admission;
pub(crate) mod attest;
pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod hosts;
pub(crate) mod incident;
pub(crate) mod receipts;
pub(crate) mod shell;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod uninstall;
pub(crate) mod watch;

use clap::{Args, Parser, Subcommand};
use gate::posture::Posture;
use gate::server::ServerId;
use std::ffi::OsString;
use std::path::PathBuf;

/// The hold point in front of every tool call that an AI agent makes over MCP.
#[derive(Debug, Parser)]
#[command(name = "holdpoint", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Start here:\n  holdpoint demo\n  holdpoint pin -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint check -- npx -y @modelcontextprotocol/server-filesystem /tmp"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command has.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Print one JSON document on standard output and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Where pins and settings are kept [default: $HOLDPOINT_HOME, else ~/.holdpoint]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Say only what matters
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stand in front of a server: pin its contract, and hold calls when it moved
    #[command(
        after_help = "Examples:\n  holdpoint run -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint run --server files --posture shield -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint run --url https://example.com/mcp --header Authorization=env:TOKEN\n  holdpoint run --trust-root root.json --required internal --allow-tool search --url https://example.com/mcp\n\nPut it before the server's command in your client's configuration. It exits as the server did."
    )]
    Run(RunCommand),
    /// Show a silent change being caught, with nothing installed
    #[command(
        after_help = "Examples:\n  holdpoint demo\n  holdpoint demo --all\n  holdpoint demo --restart\n  holdpoint demo --withheld"
    )]
    Demo(DemoCommand),
    /// Compare two captures: what changed, and what each posture makes of it
    #[command(
        after_help = "Examples:\n  holdpoint diff monday.json tuesday.json\n  holdpoint diff old.json new.json --posture strict --json\n\nExits with 0 (PROCEED) or 10 (held)."
    )]
    Diff(DiffCommand),
    /// Print the hashes of every entry of a capture
    #[command(after_help = "Example:\n  holdpoint hash capture.json")]
    Hash(HashCommand),
    /// Write down all that a server says of itself
    #[command(
        after_help = "Examples:\n  holdpoint capture -o files.json -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint capture --url http://127.0.0.1:3001/mcp"
    )]
    Capture(CaptureCommand),
    /// Look at a server now and pin all that it says, as approved by you
    #[command(
        after_help = "Examples:\n  holdpoint pin -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint pin --server files --url https://example.com/mcp\n  holdpoint pin --server files --file capture.json"
    )]
    Pin(PinCommand),
    /// Look at a server now and compare it with its pins; pins stay as they are
    #[command(
        after_help = "Examples:\n  holdpoint check -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint check files --json\n\nExits with 0 (PROCEED), 10 (held) or 11 (the server could not be reached or read)."
    )]
    Check(CheckCommand),
    /// Show servers, their pins, and what is held or waits
    #[command(after_help = "Examples:\n  holdpoint status\n  holdpoint status files --json")]
    Status(StatusCommand),
    /// Show what changed, before and after, with the commands to act
    #[command(after_help = "Examples:\n  holdpoint review\n  holdpoint review files -i")]
    Review(ReviewCommand),
    /// Approve what waits, by the whole hash that `review` printed
    #[command(
        after_help = "Examples:\n  holdpoint approve files --hash HASH                   everything that waits\n  holdpoint approve files write_file --hash HASH        one tool\n  holdpoint approve files prompt:summary --hash HASH    one prompt\n\n`holdpoint review files` prints these lines with the hashes, 64 digits each, to copy."
    )]
    Approve(ApproveCommand),
    /// Stop a server: nothing of it is served until it is released
    #[command(after_help = "Example:\n  holdpoint quarantine files")]
    Quarantine(ServerCommand),
    /// End a server's quarantine: it is looked at anew
    #[command(
        after_help = "Examples:\n  holdpoint release files\n  holdpoint release files --url https://example.com/mcp --header Authorization=env:TOKEN"
    )]
    Release(ReleaseCommand),
    /// Take back the newest pin of an entry: what was approved before counts again
    #[command(after_help = "Example:\n  holdpoint rollback files write_file")]
    Rollback(RollbackCommand),
    /// Show all that happened to a server, by whom and when
    #[command(after_help = "Example:\n  holdpoint history files")]
    History(ServerCommand),
    /// Show what was checked, held and decided, counted on this machine
    #[command(after_help = "Examples:\n  holdpoint stats\n  holdpoint stats --days 7 --json")]
    Stats(stats::StatsCommand),
    /// Show what happened on a day that you should know of; nothing is healthy
    #[command(after_help = "Examples:\n  holdpoint digest\n  holdpoint digest --day 2026-11-16")]
    Digest(stats::DigestCommand),
    /// Stop calls for everybody, and let them go again
    #[command(
        after_help = "Examples:\n  holdpoint incident on --reason 'key leaked'\n  holdpoint incident status\n  holdpoint incident off\n  holdpoint incident revoke principal ada"
    )]
    Incident(incident::IncidentCommand),
    /// Make, sign and verify attestation documents, which vouch for servers
    #[command(
        after_help = "Examples:\n  holdpoint attest keygen acme-2026.pem --passphrase prompt\n  holdpoint attest sign mail.json --key acme-2026.pem --key-id acme-2026 -o signed.json\n  holdpoint attest verify signed.json --trust-root root.json --required internal --host a.example"
    )]
    Attest(attest::AttestCommand),
    /// Look at the ledger: what was decided on every call, provably
    #[command(
        after_help = "Examples:\n  holdpoint receipts list --decision deny --since 2d\n  holdpoint receipts verify\n  holdpoint receipts export --format ocsf -o events.json\n  holdpoint receipts prove --heads > kept-elsewhere.txt"
    )]
    Receipts(receipts::ReceiptsCommand),
    /// Show the configurations of MCP hosts, their servers, and which are guarded
    #[command(
        after_help = "Examples:\n  holdpoint hosts\n  holdpoint hosts cursor --json\n  holdpoint hosts --config ./mcp.json"
    )]
    Hosts(hosts::HostsCommand),
    /// Put Holdpoint in front of the servers that your MCP hosts start
    #[command(
        after_help = "Examples:\n  holdpoint wire --dry-run\n  holdpoint wire\n  holdpoint wire cursor --server files --yes\n  holdpoint wire --config ./mcp.json\n\nShows the plan and asks. `holdpoint unwire` takes it back, byte for byte."
    )]
    Wire(hosts::WireCommand),
    /// Take Holdpoint out of your MCP hosts' configurations again
    #[command(
        after_help = "Examples:\n  holdpoint unwire --dry-run\n  holdpoint unwire\n  holdpoint unwire cursor --server files --yes\n  holdpoint unwire --config ./mcp.json"
    )]
    Unwire(hosts::UnwireCommand),
    /// Move what Holdpoint remembers to another database
    #[command(
        after_help = "Examples:\n  holdpoint store migrate --from sqlite --to env:DATABASE_URL\n  holdpoint store migrate --from file:/run/secrets/database --to sqlite:/srv/holdpoint"
    )]
    Store(store::StoreCommand),
    /// Guard servers that are added to a host later, or tell of them
    #[command(
        after_help = "Examples:\n  holdpoint watch --install           tell of them, from every login on\n  holdpoint watch --install --auto    guard them\n  holdpoint watch --status\n  holdpoint watch --uninstall\n\nIt is a service of yours, never root's."
    )]
    Watch(watch::WatchCommand),
    /// Say what works here, what is wrong, and the line that mends it
    #[command(
        after_help = "Examples:\n  holdpoint doctor\n  holdpoint doctor --json\n  holdpoint doctor --config holdpoint.toml\n\nExits with 0, or with 15 where protection is not what you think it is."
    )]
    Doctor(doctor::DoctorCommand),
    /// Take the gate out of every host, and remove the watcher and the binary
    #[command(
        after_help = "Examples:\n  holdpoint uninstall --dry-run\n  holdpoint uninstall\n  holdpoint uninstall --purge    forget pins and receipts, too"
    )]
    Uninstall(uninstall::UninstallCommand),
    /// Show the help of a command, or explain a finding of `doctor`
    #[command(
        after_help = "Examples:\n  holdpoint help\n  holdpoint help receipts verify\n  holdpoint help doctor#host_unwired"
    )]
    Help(help::HelpCommand),
    /// Print what a shell needs to complete commands and options
    #[command(
        after_help = "Examples:\n  holdpoint completions bash > ~/.local/share/bash-completion/completions/holdpoint\n  holdpoint completions zsh > ~/.zfunc/_holdpoint\n  holdpoint completions fish > ~/.config/fish/completions/holdpoint.fish\n  holdpoint completions powershell >> $PROFILE"
    )]
    Completions(shell::CompletionsCommand),
    /// Print or write manual pages
    #[command(
        after_help = "Examples:\n  holdpoint man | man -l -\n  holdpoint man --out ~/.local/share/man/man1"
    )]
    Man(shell::ManCommand),
    /// Serve a case of the drift battery that changes
    #[command(hide = true)]
    Scenario(crate::scenario::ScenarioCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// The id to keep the server under [default: made of its name and where it comes from]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<ServerId>,
    /// monitor, shield, guard or strict [default: the configured one, else guard]
    #[arg(long, value_name = "POSTURE")]
    pub(crate) posture: Option<Posture>,
    /// Seconds that a view of the server's lists may be old when a call is made [default: the configured one, else 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(crate) relist_max_age: Option<u64>,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
    #[command(flatten)]
    pub(crate) admission: admission::AdmissionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    /// Run the whole drift battery and print the table
    #[arg(long)]
    pub(crate) all: bool,
    /// Show a change that was made while the server was down
    #[arg(long, conflicts_with = "all")]
    pub(crate) restart: bool,
    /// Show a change that the server tells nobody of
    #[arg(long, conflicts_with_all = ["all", "restart"])]
    pub(crate) withheld: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffCommand {
    /// The capture that counts as approved
    pub(crate) old: PathBuf,
    /// The capture to judge
    pub(crate) new: PathBuf,
    /// monitor, shield, guard or strict [default: the configured one, else guard]
    #[arg(long, value_name = "POSTURE")]
    pub(crate) posture: Option<Posture>,
}

#[derive(Debug, Args)]
pub(crate) struct HashCommand {
    /// A capture, a `tools/list` result, an array of tools, or one tool
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureCommand {
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
    /// Where to write the capture [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A server to start or to reach.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpstreamArguments {
    /// A streamable HTTP server; `env:NAME` where the address itself is a secret
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header for the server, its value read from `env:NAME` or `file:PATH`; `bearer-env:NAME` puts `Bearer` before it
    #[arg(long, value_name = "NAME=SOURCE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Reach the server also at a private or link-local address
    #[arg(long, requires = "url")]
    pub(crate) allow_private: bool,
    /// Seconds to wait for the server to start [default: the configured ones, else 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) start_timeout: Option<u64>,
    /// The command that starts a stdio server
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A server by its id, by how to start or reach it, or from a capture.
#[derive(Debug, Args)]
pub(crate) struct TargetArguments {
    /// A server that was pinned before
    #[arg(value_name = "ID", conflicts_with_all = ["url", "file", "command", "server"])]
    pub(crate) id: Option<ServerId>,
    /// The id to keep the server under [default: made of its name and where it comes from]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<ServerId>,
    /// A capture instead of a running server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PinCommand {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// monitor, shield, guard or strict [default: the configured one, else guard]
    #[arg(long, value_name = "POSTURE")]
    pub(crate) posture: Option<Posture>,
    /// Ask whether the server behaves as it declares, too (nothing here can tell yet: UNAVAILABLE, exit 10)
    #[arg(long)]
    pub(crate) behavioral: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    /// One server only
    pub(crate) id: Option<ServerId>,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewCommand {
    /// One server only
    pub(crate) id: Option<ServerId>,
    /// Walk through what waits one by one and decide
    #[arg(short, long)]
    pub(crate) interactive: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveCommand {
    pub(crate) id: ServerId,
    /// Entries by name, or by type and name (`prompt:summary`) [default: all that waits]
    #[arg(value_name = "[TYPE:]KEY")]
    pub(crate) keys: Vec<String>,
    /// The whole hash that `review` printed: of the entry, or of the surface for everything that waits
    #[arg(long, value_name = "HASH")]
    pub(crate) hash: String,
}

#[derive(Debug, Args)]
pub(crate) struct ServerCommand {
    pub(crate) id: ServerId,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseCommand {
    pub(crate) id: ServerId,
    /// How to start or reach the server, where that is not recorded in full
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackCommand {
    pub(crate) id: ServerId,
    /// An entry by name, or by type and name (`prompt:summary`)
    #[arg(value_name = "[TYPE:]KEY")]
    pub(crate) key: String,
}

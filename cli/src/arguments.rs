//! The command line. Help texts are part of the interface: each command has an example.

pub(crate) mod admission;
pub(crate) mod approvals;
pub(crate) mod attest;
pub(crate) mod conformance;
pub(crate) mod directory;
pub(crate) mod doctor;
pub(crate) mod gateway;
mod groups;
pub(crate) mod help;
pub(crate) mod hosts;
pub(crate) mod incident;
pub(crate) mod key;
pub(crate) mod measure;
pub(crate) mod network;
pub(crate) mod pins;
pub(crate) mod policy;
pub(crate) mod receipts;
mod run;
pub(crate) mod sandbox;
pub(crate) mod screen;
pub(crate) mod shell;
pub(crate) mod sign_in;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod uninstall;
pub(crate) mod watch;

pub(crate) use approvals::{ApprovalsCommand, ApprovalsSubcommand, ListApprovals};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
pub(crate) use gateway::GatewayArguments;

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

impl Arguments {
    /// Parses the command line.
    pub(crate) fn read() -> clap::error::Result<Arguments> {
        run::read(std::env::args_os()).map_or_else(Arguments::read_any, Ok)
    }

    /// Parses the command line with all commands.
    fn read_any() -> clap::error::Result<Arguments> {
        let mut command = Arguments::definition();
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    /// All commands, with a general help that groups them.
    pub(crate) fn definition() -> clap::Command {
        let command = Arguments::command();
        let template = groups::template(&command);
        command.help_template(template)
    }
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
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server behind the gate: pin its contract, and hold calls when it changes
    #[command(
        after_help = "Examples:\n  holdpoint run -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint run --server files --posture shield -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint run --sandbox workspace -- npx -y @modelcontextprotocol/server-filesystem .\n  holdpoint run --url https://example.com/mcp --header Authorization=env:TOKEN\n  holdpoint run --trust-root root.json --required internal --allow-tool search --url https://example.com/mcp\n\nPut it before the server's command in your client's configuration. Its exit code is the server's."
    )]
    Run(RunCommand),
    /// Decide on an application's calls with this home's pins: what `HomePin` of the SDKs starts
    #[command(
        after_help = "Examples:\n  holdpoint pins --stdio\n\nThe SDKs start it; docs/pins-protocol.md says what it reads and writes. It ends when its input ends."
    )]
    Pins(pins::PinsCommand),
    /// Try a program under a sandbox profile, and see what it was denied
    #[command(
        after_help = "Examples:\n  holdpoint sandbox -- npx -y @modelcontextprotocol/server-everything\n  holdpoint sandbox --workspace . --explain -- python3 server.py\n  holdpoint sandbox --server files --learn -- npx -y tavily-mcp\n  holdpoint sandbox packages\n\nExits as the program did."
    )]
    Sandbox(sandbox::SandboxCommand),
    /// Sign in to a remote server with your browser
    #[command(
        name = "sign-in",
        after_help = "Examples:\n  holdpoint sign-in cursor.linear\n  holdpoint sign-in https://mcp.example.com/mcp\n  holdpoint sign-in https://mcp.example.com/mcp --client-id holdpoint-laptop --issuer https://login.example.com\n\nThe tokens are kept in the keyring of this system. `holdpoint sign-out` revokes and deletes them."
    )]
    SignIn(sign_in::SignInCommand),
    /// End a sign-in: revoke its tokens and delete them from the keyring
    #[command(
        name = "sign-out",
        after_help = "Examples:\n  holdpoint sign-out cursor.linear\n  holdpoint sign-out --all"
    )]
    SignOut(sign_in::SignOutCommand),
    /// Show a silent change being caught, with nothing installed
    #[command(
        after_help = "Examples:\n  holdpoint demo\n  holdpoint demo --all\n  holdpoint demo --restart\n  holdpoint demo --withheld"
    )]
    Demo(DemoCommand),
    /// Compare two captures and show the verdict of a posture
    #[command(
        after_help = "Examples:\n  holdpoint diff monday.json tuesday.json\n  holdpoint diff old.json new.json --posture strict --json\n  holdpoint diff old.json new.json --posture shield --call search='{\"query\":\"rust\"}'\n  holdpoint diff old.json new.json --posture shield --calls calls.jsonl\n\nExits with 0 (PROCEED) or 10 (held). With calls, the calls decide: 10 if any of them is held."
    )]
    Diff(DiffCommand),
    /// Print the hashes of every entry of a capture
    #[command(after_help = "Example:\n  holdpoint hash capture.json")]
    Hash(HashCommand),
    /// Save a server's contract: its tools, prompts, resources, instructions and identity
    #[command(
        after_help = "Examples:\n  holdpoint capture -o files.json -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint capture --url http://127.0.0.1:3001/mcp"
    )]
    Capture(CaptureCommand),
    /// Read a contract adversarially before you use the server; it pins nothing
    #[command(
        after_help = "Examples:\n  holdpoint screen capture.json\n  holdpoint screen -- npx -y @modelcontextprotocol/server-filesystem@2025.11.25 /tmp\n  holdpoint screen --url https://example.com/mcp --json\n  holdpoint screen tools.json --fail-on medium --sarif > screen.sarif\n\nExits with 0, 10 (a finding is at least as severe as --fail-on) or 11 (there is no contract to read)."
    )]
    Screen(screen::ScreenCommand),
    /// Contact a server now and pin its whole contract as approved by you
    #[command(
        after_help = "Examples:\n  holdpoint pin -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint pin --server files --url https://example.com/mcp\n  holdpoint pin --server files --file capture.json"
    )]
    Pin(PinCommand),
    /// Contact a server now and compare it with its pins, without changing them
    #[command(
        after_help = "Examples:\n  holdpoint check -- npx -y @modelcontextprotocol/server-filesystem /tmp\n  holdpoint check files --json\n\nExits with 0 (PROCEED), 10 (held) or 11 (the server could not be reached or read)."
    )]
    Check(CheckCommand),
    /// Show servers, their pins, and the entries that are held or waiting
    #[command(
        after_help = "Examples:\n  holdpoint status\n  holdpoint status files --json\n  holdpoint status --short"
    )]
    Status(StatusCommand),
    /// Show a server's contract, as it is pinned
    #[command(after_help = "Examples:\n  holdpoint show files\n  holdpoint show files write_file")]
    Show(ShowServerCommand),
    /// Show changes side by side, with the commands that accept or stop them
    #[command(after_help = "Examples:\n  holdpoint review\n  holdpoint review files -i")]
    Review(ReviewCommand),
    /// Approve waiting changes by the full hash that `review` printed
    #[command(
        after_help = "Examples:\n  holdpoint approve files --hash HASH                   every waiting change\n  holdpoint approve files write_file --hash HASH        one tool\n  holdpoint approve files prompt:summary --hash HASH    one prompt\n\n`holdpoint review files` prints these commands with the 64-digit hashes."
    )]
    Approve(ApproveCommand),
    /// Stop a server until it is released
    #[command(after_help = "Example:\n  holdpoint quarantine files")]
    Quarantine(ServerCommand),
    /// End a server's quarantine and check it again
    #[command(
        after_help = "Examples:\n  holdpoint release files\n  holdpoint release files --url https://example.com/mcp --header Authorization=env:TOKEN"
    )]
    Release(ReleaseCommand),
    /// Withdraw the newest pin of an entry, so that the previous one applies again
    #[command(after_help = "Example:\n  holdpoint rollback files write_file")]
    Rollback(RollbackCommand),
    /// Show everything that happened to a server, when, and by whom
    #[command(
        after_help = "Examples:\n  holdpoint history files\n  holdpoint history files --show 12"
    )]
    History(HistoryCommand),
    /// Show how many calls were checked, held and decided on this machine
    #[command(after_help = "Examples:\n  holdpoint stats\n  holdpoint stats --days 7 --json")]
    Stats(stats::StatsCommand),
    /// Show a day's holds and decisions; an empty digest is healthy
    #[command(after_help = "Examples:\n  holdpoint digest\n  holdpoint digest --day 2026-11-16")]
    Digest(stats::DigestCommand),
    /// Report how often holds were overridden; it decides nothing
    #[command(after_help = "Example:\n  holdpoint calibrate report")]
    Calibrate(measure::CalibrateCommand),
    /// Measure how much the gate and the screen find on a folder of real contracts
    #[command(
        after_help = "Examples:\n  holdpoint evaluate gate ./corpus\n  holdpoint evaluate screen ./corpus\n  holdpoint evaluate page ./corpus --into docs/evidence.md"
    )]
    Evaluate(measure::EvaluateCommand),
    /// Stop all calls in an emergency, and allow them again
    #[command(
        after_help = "Examples:\n  holdpoint incident on --reason 'key leaked'\n  holdpoint incident status\n  holdpoint incident off --reason 'the key was replaced'\n  holdpoint incident revoke principal ada"
    )]
    Incident(incident::IncidentCommand),
    /// Check a gateway's policies, explain their decisions and test them
    #[command(
        after_help = "Examples:\n  holdpoint policy check\n  holdpoint policy check --as ada --group staff --tool files__write_file\n  holdpoint policy test decisions.toml"
    )]
    Policy(policy::PolicyCommand),
    /// Hold an MCP gateway against a published safety profile
    #[command(
        after_help = "Example:\n  holdpoint conformance csp --url http://127.0.0.1:8420/mcp --config suite.toml"
    )]
    Conformance(conformance::ConformanceCommand),
    /// Create, list and revoke the keys that callers show to the gateway
    #[command(
        after_help = "Examples:\n  holdpoint key create --sub svc:reports --group readers\n  holdpoint key create --sub ada --actor user --admin --expires 30d\n  holdpoint key list\n  holdpoint key revoke k-5f0c93aa"
    )]
    Key(key::KeyCommand),
    /// Create, sign and verify attestations, documents that vouch for a server
    #[command(
        after_help = "Examples:\n  holdpoint attest keygen acme-2026.pem --passphrase prompt\n  holdpoint attest sign mail.json --key acme-2026.pem --key-id acme-2026 -o signed.json\n  holdpoint attest verify signed.json --trust-root root.json --required internal --host a.example"
    )]
    Attest(attest::AttestCommand),
    /// List, export, verify and prove the receipts of every call
    #[command(
        after_help = "Examples:\n  holdpoint receipts list --decision held --since yesterday\n  holdpoint receipts verify\n  holdpoint receipts export --format ocsf -o events.json\n  holdpoint receipts prove --heads > kept-elsewhere.txt"
    )]
    Receipts(receipts::ReceiptsCommand),
    /// Show the configurations of MCP hosts, their servers, and which are guarded
    #[command(
        after_help = "Examples:\n  holdpoint hosts\n  holdpoint hosts cursor --json\n  holdpoint hosts --config ./mcp.json"
    )]
    Hosts(hosts::HostsCommand),
    /// Put Holdpoint in front of the servers that your MCP hosts start
    #[command(
        after_help = "Examples:\n  holdpoint wire --dry-run\n  holdpoint wire\n  holdpoint wire cursor --server files --yes\n  holdpoint wire --config ./mcp.json\n\nShows the plan and asks before it changes anything. `holdpoint unwire` restores the files byte for byte."
    )]
    Wire(hosts::WireCommand),
    /// Take Holdpoint out of your MCP hosts' configurations again
    #[command(
        after_help = "Examples:\n  holdpoint unwire --dry-run\n  holdpoint unwire\n  holdpoint unwire cursor --server files --yes\n  holdpoint unwire --config ./mcp.json"
    )]
    Unwire(hosts::UnwireCommand),
    /// Serve many callers: one authenticated endpoint in front of all servers
    #[command(
        after_help = "Examples:\n  holdpoint gateway\n  holdpoint gateway --config /etc/holdpoint/gateway.toml\n  holdpoint gateway --check"
    )]
    Gateway(gateway::GatewayCommand),
    /// Serve what is known of MCP servers: verdicts, changes, and a log of both that others can verify
    #[command(
        after_help = "Examples:\n  holdpoint directory\n  holdpoint directory --config /etc/holdpoint/directory.toml\n  holdpoint directory log verify --url https://directory.example.com --key log.pub\n  holdpoint directory witness --listen 127.0.0.1:8441 --log log.pub"
    )]
    Directory(directory::DirectoryCommand),
    /// Visit published servers, and record what they say and what changed
    #[command(
        after_help = "Examples:\n  holdpoint crawl --targets servers.txt\n  holdpoint crawl --targets servers.txt --releases 3\n  holdpoint crawl --registry https://registry.modelcontextprotocol.io\n\nA file has a server a line: `npm:NAME`, `pypi:NAME@1.2.3`, `com.example/weather https://mcp.example.com/mcp`.\nPackages are installed without running their code and started without a network."
    )]
    Crawl(directory::CrawlCommand),
    /// Ask a directory what other installs saw; off unless you turn it on
    #[command(
        after_help = "Examples:\n  holdpoint network status\n  holdpoint network on --url https://directory.example.com --key env:HOLDPOINT_NETWORK_KEY\n  holdpoint network advisories\n  holdpoint network off\n\nNothing that it learns lets a call go on. docs/network.md says what leaves this machine."
    )]
    Network(network::NetworkCommand),
    /// List every server and tool behind a gateway, with trust, risk and accepted hash
    #[command(
        after_help = "Examples:\n  holdpoint inventory\n  holdpoint inventory --config /etc/holdpoint/gateway.toml --json"
    )]
    Inventory(gateway::InventoryCommand),
    /// See, grant or refuse calls at a gateway that wait for you
    #[command(
        after_help = "Examples:\n  holdpoint approvals list --gateway https://mcp.example.com --key env:ADMIN_KEY\n  holdpoint approvals grant a1f09c… --gateway https://mcp.example.com --key env:ADMIN_KEY"
    )]
    Approvals(ApprovalsCommand),
    /// Move Holdpoint's data to another database
    #[command(
        after_help = "Examples:\n  holdpoint store migrate --from sqlite --to env:DATABASE_URL\n  holdpoint store migrate --from file:/run/secrets/database --to sqlite:/srv/holdpoint"
    )]
    Store(store::StoreCommand),
    /// Guard servers that are added to a host later, or report them
    #[command(
        after_help = "Examples:\n  holdpoint watch --install           report them, also after the next login\n  holdpoint watch --install --auto    guard them\n  holdpoint watch --status\n  holdpoint watch --uninstall\n\nThe service runs as your user, never as root."
    )]
    Watch(watch::WatchCommand),
    /// Report what works, what is wrong, and the command that fixes it
    #[command(
        after_help = "Examples:\n  holdpoint doctor\n  holdpoint doctor --json\n  holdpoint doctor --config holdpoint.toml\n\nExits with 0, or with 15 if something is wrong."
    )]
    Doctor(doctor::DoctorCommand),
    /// Take the gate out of every host, and remove the watcher and the binary
    #[command(
        after_help = "Examples:\n  holdpoint uninstall --dry-run\n  holdpoint uninstall\n  holdpoint uninstall --purge    also delete pins and receipts"
    )]
    Uninstall(uninstall::UninstallCommand),
    /// Show the help of a command, or explain a finding of `doctor`
    #[command(
        after_help = "Examples:\n  holdpoint help\n  holdpoint help receipts verify\n  holdpoint help doctor#host_unwired"
    )]
    Help(help::HelpCommand),
    /// Print a completion script for a shell
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
    /// The id of the server [default: made from its name and its origin]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<ServerId>,
    /// monitor, shield, guard or strict [default: the configured one, else guard]
    #[arg(long, value_name = "POSTURE")]
    pub(crate) posture: Option<Posture>,
    /// How old the gate's copy of the server's lists may be when a call is made [default: the configured age, else 30]
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
    /// Show a change that the server does not announce
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
    /// Also say what would become of a call with these arguments; may be given several times
    #[arg(long, value_name = "TOOL=ARGUMENTS")]
    pub(crate) call: Vec<String>,
    /// The same for every line of a file, as {"tool":"…","arguments":{…}}
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) text: TextArguments,
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
    /// Also connect to a private or link-local address
    #[arg(long, requires = "url")]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) sign_in: sign_in::SignInArguments,
    /// Seconds to wait for the server to start [default: the configured time, else 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) start_timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) sandbox: sandbox::SandboxArguments,
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
    /// The id of the server [default: made from its name and its origin]
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
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// monitor, shield, guard or strict [default: the configured one, else guard]
    #[arg(long, value_name = "POSTURE")]
    pub(crate) posture: Option<Posture>,
    /// Also try whether the server behaves as it declares, where the configuration allows it (UNAVAILABLE, exit 10, where
    /// not)
    #[arg(long)]
    pub(crate) behavioral: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StatusCommand {
    /// One server only
    pub(crate) id: Option<ServerId>,
    /// One line for a prompt or a status bar, or nothing; exits with 10 if something is held
    #[arg(long)]
    pub(crate) short: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewCommand {
    /// One server only
    pub(crate) id: Option<ServerId>,
    /// Decide on the waiting changes one by one
    #[arg(short, long)]
    pub(crate) interactive: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    #[command(flatten)]
    pub(crate) pager: PagerArguments,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

impl Command {
    /// Whether `--server-text` was given.
    pub(crate) fn shows_server_text(&self) -> bool {
        match self {
            Command::Capture(command) => command.text.server_text,
            Command::Check(command) => command.text.server_text,
            Command::Pin(command) => command.text.server_text,
            Command::Screen(command) => command.text.server_text,
            _ => false,
        }
    }
}

/// What is printed where the output is not a terminal.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TextArguments {
    /// Print the server's own words even where they are not approved and the output is not a terminal
    #[arg(long)]
    pub(crate) server_text: bool,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PagerArguments {
    /// Print long output without a pager
    #[arg(long)]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryCommand {
    pub(crate) id: ServerId,
    /// Show what this act changed, before and after, by its number in the history
    #[arg(long, value_name = "N")]
    pub(crate) show: Option<i64>,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    #[command(flatten)]
    pub(crate) pager: PagerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowServerCommand {
    pub(crate) id: ServerId,
    /// One entry by name, or by type and name (`prompt:summary`) [default: all]
    #[arg(value_name = "[TYPE:]KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) pager: PagerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveCommand {
    pub(crate) id: ServerId,
    /// Entries by name, or by type and name (`prompt:summary`) [default: all that are waiting]
    #[arg(value_name = "[TYPE:]KEY")]
    pub(crate) keys: Vec<String>,
    /// The full hash that `review` printed: of one entry, or of the surface for all waiting changes
    #[arg(long, value_name = "HASH")]
    pub(crate) hash: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServerCommand {
    pub(crate) id: ServerId,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseCommand {
    pub(crate) id: ServerId,
    /// How to start or reach the server, if that is not recorded in full
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackCommand {
    pub(crate) id: ServerId,
    /// An entry by name, or by type and name (`prompt:summary`)
    #[arg(value_name = "[TYPE:]KEY")]
    pub(crate) key: String,
}

//! What can be typed after `holdpoint network`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct NetworkCommand {
    #[command(subcommand)]
    pub(crate) command: NetworkSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkSubcommand {
    /// Ask a directory what others saw, from the next session on
    #[command(
        after_help = "Examples:\n  holdpoint network status --url https://directory.example.com --key env:HOLDPOINT_NETWORK_KEY\n  holdpoint network on --url https://directory.example.com --key env:HOLDPOINT_NETWORK_KEY\n  holdpoint network on --contribute\n\n`network status` shows beforehand what is sent, byte for byte. The key is named, never given: `env:VARIABLE`, `file:PATH` or `keyring:NAME`."
    )]
    On(NetworkOn),
    /// Send nothing to a directory or a model, whatever is configured
    #[command(
        after_help = "Example:\n  holdpoint network off\n\nIt counts at once, also for sessions that run. `DO_NOT_TRACK=1` and `network.forbid` in /etc/holdpoint/holdpoint.toml do the same."
    )]
    Off,
    /// Show what was sent and what would be sent, byte for byte; it sends nothing
    #[command(
        after_help = "Examples:\n  holdpoint network status\n  holdpoint network status --url https://directory.example.com --key env:HOLDPOINT_NETWORK_KEY --contribute\n  holdpoint network status --all\n  holdpoint network status --json"
    )]
    Status(NetworkStatus),
    /// Show which calls used a contract that was found dangerous afterwards
    #[command(
        after_help = "Examples:\n  holdpoint network advisories\n  holdpoint network advisories --offline --json\n\nExits with 10 if a call of this home did."
    )]
    Advisories(NetworkAdvisories),
}

/// A directory.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DirectoryArguments {
    /// The directory [default: the configured one]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Where its key is kept: env:VARIABLE, file:PATH or keyring:NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) key: Option<String>,
    /// Also reach it at a private or loopback address
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Also tell it what was met and decided here: hashes and words of fixed lists
    #[arg(long)]
    pub(crate) contribute: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NetworkOn {
    #[command(flatten)]
    pub(crate) directory: DirectoryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct NetworkStatus {
    #[command(flatten)]
    pub(crate) directory: DirectoryArguments,
    /// Show all that is recorded as sent, not only the newest
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NetworkAdvisories {
    /// Use what was read before, and ask nothing
    #[arg(long)]
    pub(crate) offline: bool,
}

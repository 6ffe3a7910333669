//! What can be typed after `holdpoint gateway`.

use clap::{Args, Subcommand};
use settings::SecretName;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct InventoryCommand {
    /// The gateway's settings [default: gateway.toml in the home]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// A gateway that runs elsewhere.
#[derive(Debug, Args)]
pub(crate) struct GatewayArguments {
    /// Ask this gateway about its servers, not this machine's own
    #[arg(long, value_name = "URL", requires = "key")]
    pub(crate) gateway: Option<String>,
    /// Where the admin key for it is: env:VARIABLE or file:PATH
    #[arg(long, value_name = "SOURCE", requires = "gateway")]
    pub(crate) key: Option<SecretName>,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayCommand {
    #[command(subcommand)]
    pub(crate) command: Option<GatewaySubcommand>,
    /// The gateway's settings [default: gateway.toml in the home]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Only check the settings and the policies, and explain every mistake
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewaySubcommand {
    /// Write a commented gateway.toml and policies to begin with
    #[command(
        after_help = "Examples:\n  holdpoint gateway init\n  holdpoint gateway init --config /etc/holdpoint/gateway.toml\n\nNothing is overwritten. Each server of the hosts on this machine gets a table, with its secrets as names of variables,\nand a policy by which a group may use it. What only you can say, such as whom you trust, is printed."
    )]
    Init,
    /// Have the running gateway read its settings and policies again
    #[command(
        after_help = "Examples:\n  holdpoint gateway reload\n  kill -HUP PID\n\nThe file is taken over wholly or not at all: with a mistake in it everything stays as it is. Servers that did not\nchange are not touched, calls in flight finish. The gateway is found by `gateway.pid` in the home."
    )]
    Reload,
}

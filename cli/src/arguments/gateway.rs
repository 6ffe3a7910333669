//! What can be typed after `holdpoint gateway`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct GatewayCommand {
    /// The gateway's settings [default: gateway.toml in the home]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Only check the settings and the policies, and explain every mistake
    #[arg(long)]
    pub(crate) check: bool,
}

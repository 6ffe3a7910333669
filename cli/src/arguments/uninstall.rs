//! `holdpoint uninstall`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct UninstallCommand {
    /// Remove pins, receipts, keys and settings as well
    #[arg(long)]
    pub(crate) purge: bool,
    /// Show the plan and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

//! `holdpoint watch`.

use clap::Args;

/// How often hosts' files are checked.
const EVERY_SECONDS: u64 = 5;

#[derive(Debug, Args)]
pub(crate) struct WatchCommand {
    /// Put the gate in front of added servers instead of only reporting them
    #[arg(long, conflicts_with_all = ["uninstall", "status"])]
    pub(crate) auto: bool,
    /// Install the watcher as a user service that starts at every login
    #[arg(long, conflicts_with_all = ["uninstall", "status", "once"])]
    pub(crate) install: bool,
    /// Stop and remove the service
    #[arg(long, conflicts_with_all = ["status", "once"])]
    pub(crate) uninstall: bool,
    /// Show whether the service is installed and running
    #[arg(long, conflicts_with = "once")]
    pub(crate) status: bool,
    /// Check once and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two checks
    #[arg(long, value_name = "SECONDS", default_value_t = EVERY_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
}

//! `holdpoint watch`.

use clap::Args;

/// How often hosts' files are looked at.
const EVERY_SECONDS: u64 = 5;

#[derive(Debug, Args)]
pub(crate) struct WatchCommand {
    /// Put the gate in front of servers that are added later, instead of only telling of them
    #[arg(long, conflicts_with_all = ["uninstall", "status"])]
    pub(crate) auto: bool,
    /// Keep doing so from now on and from every login on, as a service of yours
    #[arg(long, conflicts_with_all = ["uninstall", "status", "once"])]
    pub(crate) install: bool,
    /// Stop and remove that service
    #[arg(long, conflicts_with_all = ["status", "once"])]
    pub(crate) uninstall: bool,
    /// Say whether that service is there and runs
    #[arg(long, conflicts_with = "once")]
    pub(crate) status: bool,
    /// Look once and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = EVERY_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
}

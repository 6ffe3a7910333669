//! `holdpoint doctor`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorCommand {
    /// Check this configuration file and nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

//! `holdpoint screen`.

use super::{TextArguments, UpstreamArguments};
use clap::{Args, ValueEnum};
use screen::finding::Severity;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ScreenCommand {
    /// A capture, a `tools/list` result, an array of tools, or one tool
    #[arg(value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) upstream: UpstreamArguments,
    /// Exit with 10 if a finding is at least this severe
    #[arg(long, value_name = "SEVERITY", default_value = "high")]
    pub(crate) fail_on: FailOn,
    /// Ask the model that `[judge]` names what each tool intends
    #[arg(long)]
    pub(crate) judge: bool,
    /// Print a SARIF 2.1.0 document, for code scanning
    #[arg(long)]
    pub(crate) sarif: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
}

/// From which severity on a screening fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Low,
    Medium,
    High,
    Never,
}

impl FailOn {
    pub(crate) fn is_reached(self, worst: Option<Severity>) -> bool {
        let least = match self {
            FailOn::Low => Severity::Low,
            FailOn::Medium => Severity::Medium,
            FailOn::High => Severity::High,
            FailOn::Never => return false,
        };
        worst.is_some_and(|worst| worst >= least)
    }
}

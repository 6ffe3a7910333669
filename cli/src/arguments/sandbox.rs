//! The options by which a server is started confined.

use clap::{Args, Subcommand, ValueEnum};
use gate::server::ServerId;
use sandbox::{FilePolicy, HostRule, NetworkPolicy};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a confined server is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxProfile {
    /// A home of its own, and the paths in its arguments, read-only
    Isolated,
    /// Also a folder that it may change
    Workspace,
    /// Also that folder, read-only
    ReadOnly,
}

impl SandboxProfile {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            SandboxProfile::Isolated => "isolated",
            SandboxProfile::Workspace => "workspace",
            SandboxProfile::ReadOnly => "read-only",
        }
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SandboxArguments {
    /// Start the server confined: isolated, workspace or read-only [default: as configured; without a value isolated]
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, default_missing_value = "isolated", conflicts_with = "url", hide_possible_values = true)]
    pub(crate) sandbox: Option<SandboxProfile>,
    /// The folder that a confined server works in [default: the configured one, else the current folder]
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) workspace: Option<PathBuf>,
    /// A host that a confined server may reach, as `HOST[:PORT]` or `*.HOST` (repeatable)
    #[arg(long, value_name = "HOST", requires = "sandbox")]
    pub(crate) net_allow: Vec<HostRule>,
    /// A variable of this environment that a confined server gets (repeatable)
    #[arg(long, value_name = "NAME", requires = "sandbox")]
    pub(crate) pass_env: Vec<String>,
}

/// `holdpoint sandbox`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SandboxCommand {
    #[command(subcommand)]
    pub(crate) command: Option<SandboxSubcommand>,
    /// Use the profile that is configured for this server
    #[arg(long, value_name = "ID")]
    pub(crate) server: Option<ServerId>,
    /// The folder that the program works in
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Files: workspace_only, read_only or none [default: the configured one, else workspace_only]
    #[arg(long, value_name = "POLICY")]
    pub(crate) fs: Option<FilePolicy>,
    /// More files or folders that it may read (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// More files or folders that it may write (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    /// Network: allowlist, block_all or none [default: the configured one, else block_all]
    #[arg(long, value_name = "POLICY")]
    pub(crate) net: Option<NetworkPolicy>,
    /// A host that it may reach, as `HOST[:PORT]` or `*.HOST` (repeatable)
    #[arg(long, value_name = "HOST")]
    pub(crate) net_allow: Vec<HostRule>,
    /// A variable of this environment that it gets (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// List what was denied when the program has ended, with the lines that would allow it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Propose a profile from what the program used and tried
    #[arg(long, conflicts_with = "explain")]
    pub(crate) learn: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxSubcommand {
    /// List the packages whose hosts are known, and where that is known from
    #[command(
        after_help = "Example:\n  holdpoint sandbox packages\n\nYours go into `sandbox-packages.toml` in the home, in the same form; they replace shipped ones."
    )]
    Packages,
}

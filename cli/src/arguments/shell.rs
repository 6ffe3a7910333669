//! What makes the command at home in a shell: completions and manual pages.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// Write the pages of all commands to this folder instead of printing the main page
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

//! What can be typed after `holdpoint pins`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PinsCommand {
    /// Speak JSON lines on standard input and output (docs/pins-protocol.md)
    #[arg(long, required = true)]
    pub(crate) stdio: bool,
}

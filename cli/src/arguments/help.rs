//! What can be typed after `holdpoint help`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HelpCommand {
    /// A command, or `doctor#CODE` for a finding of `doctor`
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
}

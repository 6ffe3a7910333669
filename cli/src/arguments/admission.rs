//! What `run` is told of who has to vouch for a server.

use attest::Flavor;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Attestation of the server")]
pub(crate) struct AdmissionArguments {
    /// The trust root: the keys whose signatures count [default: `admission.trust_root`]
    #[arg(long, value_name = "FILE")]
    pub(crate) trust_root: Option<PathBuf>,
    /// The level that the server needs [default: `admission.required`]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) required: Option<String>,
    /// The server's signed document [default: what it publishes itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) attestation: Option<PathBuf>,
    /// Allow only this tool (repeatable); without it, the enclaved flavor allows none
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_tool: Vec<String>,
    /// What a failed check does: warn (open) or deny (enclaved) [default: the configured one, else enclaved]
    #[arg(long, value_name = "FLAVOR")]
    pub(crate) flavor: Option<Flavor>,
}

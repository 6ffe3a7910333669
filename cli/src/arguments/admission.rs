//! What `run` is told of who has to vouch for a server.

use attest::Flavor;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Who has to vouch for the server")]
pub(crate) struct AdmissionArguments {
    /// The trust root: whose signatures count [default: `admission.trust_root`]
    #[arg(long, value_name = "FILE")]
    pub(crate) trust_root: Option<PathBuf>,
    /// The level that the server needs [default: `admission.required`]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) required: Option<String>,
    /// The server's signed document [default: what it publishes itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) attestation: Option<PathBuf>,
    /// A tool that may be used, and no other (repeatable); enclaved without any: no tool may
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_tool: Vec<String>,
    /// open: a failure is a warning; enclaved: a denial [default: the configured one, else enclaved]
    #[arg(long, value_name = "FLAVOR")]
    pub(crate) flavor: Option<Flavor>,
}

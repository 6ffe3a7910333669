//! What can be typed after `holdpoint conformance`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use wire::EndpointUrl;

#[derive(Debug, Args)]
pub(crate) struct ConformanceCommand {
    #[command(subcommand)]
    pub(crate) command: ConformanceSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConformanceSubcommand {
    /// Run the ten tests of the CSP Tool Safety Profile against an MCP gateway
    #[command(
        after_help = "Examples:\n  holdpoint conformance csp --url http://127.0.0.1:8420/mcp --config suite.toml\n  holdpoint conformance csp --url https://mcp.example.com/mcp --config suite.toml --junit report.xml\n\nThe file says which tokens the two callers have, and at which address the suite's own server listens, which the gateway\nhas to serve. Exits with 15 if a test fails and with 11 if the gateway cannot be reached."
    )]
    Csp(CspCommand),
}

#[derive(Debug, Args)]
pub(crate) struct CspCommand {
    /// The gateway's MCP endpoint
    #[arg(long, value_name = "URL")]
    pub(crate) url: EndpointUrl,
    /// How the suite reaches the gateway, in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Write the report as JUnit XML to this file too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

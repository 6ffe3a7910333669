//! What can be typed after `holdpoint policy`.

use clap::{Args, Subcommand};
use policy::ActorType;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    pub(crate) command: PolicySubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicySubcommand {
    /// Check the gateway's policies, and explain what they decide for a caller
    #[command(
        after_help = "Examples:\n  holdpoint policy check\n  holdpoint policy check --as ada --group staff\n  holdpoint policy check --as ada --group staff --tool files__write_file --input '{\"path\":\"/srv/a\"}'\n\nWithout `--tool` it lists what the caller could use. Exits with 2 if the policies have mistakes and with 13 if the call\nwould be denied."
    )]
    Check(PolicyCheckCommand),
    /// Compare the policies' decisions with a table of expected ones
    #[command(
        after_help = "Example:\n  holdpoint policy test decisions.toml\n\nA case of the table:\n  [[case]]\n  as = \"ada\"\n  groups = [\"staff\"]\n  tool = \"files__write_file\"\n  input = { path = \"/srv/a\" }\n  expect = \"permit\"    # or deny, approval\n\nExits with 13 if a decision differs."
    )]
    Test(PolicyTestCommand),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheckCommand {
    #[command(flatten)]
    pub(crate) place: GatewayPlace,
    /// Explain what this caller may do
    #[arg(long = "as", value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// The caller's issuer [default: the configured issuer, if there is one]
    #[arg(long, value_name = "URL", requires = "subject")]
    pub(crate) issuer: Option<String>,
    /// A group of the caller (repeatable)
    #[arg(long, value_name = "GROUP", requires = "subject")]
    pub(crate) group: Vec<String>,
    /// The caller's org
    #[arg(long, value_name = "ORG", requires = "subject")]
    pub(crate) org: Option<String>,
    /// What kind of caller it is: user, agent or system
    #[arg(long, value_name = "TYPE", default_value = "user", value_parser = read_actor)]
    pub(crate) actor: ActorType,
    /// The caller proved a second factor
    #[arg(long, requires = "subject")]
    pub(crate) mfa: bool,
    /// The tool that the caller calls, as `server__tool`
    #[arg(long, value_name = "NAME", requires = "subject")]
    pub(crate) tool: Option<String>,
    /// The arguments of the call
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) input: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTestCommand {
    /// The table of expected decisions, in TOML
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: GatewayPlace,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayPlace {
    /// The gateway's configuration [default: gateway.toml in the home]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

fn read_actor(text: &str) -> Result<ActorType, String> {
    let all = [ActorType::User, ActorType::Agent, ActorType::System];
    let found = all.into_iter().find(|actor| actor.as_str() == text);
    found.ok_or_else(|| "expected `user`, `agent` or `system`".to_owned())
}

//! What can be typed after `holdpoint incident`.

use clap::{Args, Subcommand};
use gate::server::ServerId;
use store::{IncidentLevel, RevokedKind};

#[derive(Debug, Args)]
pub(crate) struct IncidentCommand {
    #[command(subcommand)]
    pub(crate) command: IncidentSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentSubcommand {
    /// Deny calls from now on, of all servers or of some
    #[command(
        after_help = "Examples:\n  holdpoint incident on --reason 'key leaked'\n  holdpoint incident on --server files --server mail\n\nOne that is on is replaced. Where the new one stops less, a person has to say yes at a terminal."
    )]
    On(OnCommand),
    /// End the incident: calls go their way again
    #[command(
        after_help = "Example:\n  holdpoint incident off\n\nNeeds a terminal, or `approve.unattended = true` in holdpoint.toml."
    )]
    Off,
    /// Show what is switched off, by whom and since when, and what was revoked
    #[command(after_help = "Example:\n  holdpoint incident status")]
    Status,
    /// End what a key, a principal, a server or a session was allowed until now
    #[command(
        after_help = "Examples:\n  holdpoint incident revoke principal ada\n  holdpoint incident revoke session 5f0c93aa"
    )]
    Revoke(RevokeCommand),
    /// Close all ways out of sandboxed servers
    #[command(
        after_help = "Examples:\n  holdpoint incident block-egress\n  holdpoint incident block-egress --off"
    )]
    BlockEgress(BlockEgressCommand),
}

#[derive(Debug, Args)]
pub(crate) struct OnCommand {
    /// Only this server; may be repeated [default: all servers]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Vec<ServerId>,
    /// From which risk on tools are denied, high or critical; where risks are not known, as in `run`, all are
    #[arg(long, value_name = "LEVEL", default_value = "high", value_parser = read_level)]
    pub(crate) level: IncidentLevel,
    /// Why, for whoever finds their calls denied
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeCommand {
    /// key, principal, server or session
    #[arg(value_parser = read_kind)]
    pub(crate) kind: RevokedKind,
    /// Which one
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct BlockEgressCommand {
    /// Open them again
    #[arg(long)]
    pub(crate) off: bool,
}

fn read_level(text: &str) -> Result<IncidentLevel, String> {
    let found = IncidentLevel::ALL.into_iter().find(|level| level.as_str() == text);
    found.ok_or_else(|| "expected `high` or `critical`".to_owned())
}

fn read_kind(text: &str) -> Result<RevokedKind, String> {
    let found = RevokedKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| "expected `key`, `principal`, `server` or `session`".to_owned())
}

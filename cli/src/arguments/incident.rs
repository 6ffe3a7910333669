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
    /// Deny calls to all servers or to some, from now on
    #[command(
        after_help = "Examples:\n  holdpoint incident on --reason 'key leaked'\n  holdpoint incident on --server files --server mail\n\nReplaces an incident that is on. If the new one stops less, a person has to confirm it at a terminal."
    )]
    On(OnCommand),
    /// End the incident: allow calls again
    #[command(
        after_help = "Example:\n  holdpoint incident off\n\nNeeds a terminal, or `approve.unattended = true` in holdpoint.toml."
    )]
    Off,
    /// Show what is stopped or revoked, since when, and by whom
    #[command(after_help = "Example:\n  holdpoint incident status")]
    Status,
    /// Revoke what a key, a principal, a server or a session was allowed so far
    #[command(
        after_help = "Examples:\n  holdpoint incident revoke principal ada\n  holdpoint incident revoke session 5f0c93aa"
    )]
    Revoke(RevokeCommand),
    /// Block all outgoing connections of sandboxed servers
    #[command(
        after_help = "Examples:\n  holdpoint incident block-egress\n  holdpoint incident block-egress --off"
    )]
    BlockEgress(BlockEgressCommand),
}

#[derive(Debug, Args)]
pub(crate) struct OnCommand {
    /// Only this server (repeatable) [default: all servers]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Vec<ServerId>,
    /// Deny tools of this risk and above, high or critical; `run` does not know risks and denies all tools
    #[arg(long, value_name = "LEVEL", default_value = "high", value_parser = read_level)]
    pub(crate) level: IncidentLevel,
    /// The reason, shown to users whose calls are denied
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeCommand {
    /// key, principal, server or session
    #[arg(value_parser = read_kind)]
    pub(crate) kind: RevokedKind,
    /// Its name
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct BlockEgressCommand {
    /// Allow them again
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

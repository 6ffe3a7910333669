//! What can be typed after `holdpoint incident`.

use clap::{Args, Subcommand};
use gate::server::ServerId;
use std::path::PathBuf;
use store::{IncidentLevel, QuarantineId, RevokedKind, StoppedTool};

#[derive(Debug, Args)]
pub(crate) struct IncidentCommand {
    /// The gateway's configuration, whose store has the switches [default: gateway.toml in the home, if there is one]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: IncidentSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentSubcommand {
    /// Deny calls by risk, server, tool or principal, from now on
    #[command(
        after_help = "Examples:\n  holdpoint incident on --reason 'key leaked'\n  holdpoint incident on --level low\n  holdpoint incident on --server files --server mail\n  holdpoint incident on --tool files__write_file --principal svc:reports\n\nReplaces an incident that is on. If the new one stops less, a person has to confirm it at a terminal."
    )]
    On(OnCommand),
    /// End the incident: allow calls again
    #[command(
        after_help = "Example:\n  holdpoint incident off --reason 'the key was replaced'\n\nNeeds a terminal, or `approve.unattended = true` in holdpoint.toml."
    )]
    Off(OffCommand),
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
    /// Let a session call again that tripped an anomaly rule
    #[command(
        after_help = "Example:\n  holdpoint incident release 9f2c41d07be8a350\n\n`holdpoint incident status` shows the ids. Needs a terminal, or `approve.unattended = true` in holdpoint.toml."
    )]
    Release(ReleaseCommand),
    /// Measure how fast a switch reaches every gateway on this store, without stopping anything
    #[command(
        after_help = "Examples:\n  holdpoint incident drill\n  holdpoint incident drill --config /etc/holdpoint/gateway.toml --json\n\nExits with 10 if a gateway did not answer, or took longer than a second."
    )]
    Drill,
}

#[derive(Debug, Args)]
pub(crate) struct OffCommand {
    /// Why it is over, written down with the incident
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseCommand {
    /// The quarantine's id
    pub(crate) id: QuarantineId,
}

#[derive(Debug, Args)]
pub(crate) struct OnCommand {
    /// Only this server (repeatable) [default: all servers, unless tools or principals are named]
    #[arg(long, value_name = "ID")]
    pub(crate) server: Vec<ServerId>,
    /// Deny this tool, whatever its risk (repeatable), named SERVER__TOOL
    #[arg(long, value_name = "SERVER__TOOL")]
    pub(crate) tool: Vec<StoppedTool>,
    /// Deny all calls of this principal (repeatable): its subject, or ISSUER|SUBJECT
    #[arg(long, value_name = "SUB")]
    pub(crate) principal: Vec<String>,
    /// Deny tools of servers from this risk on: low, medium, high or critical [default: high]
    ///
    /// A tool that the configuration gives no risk is denied at every level.
    #[arg(long, value_name = "LEVEL", value_parser = read_level)]
    pub(crate) level: Option<IncidentLevel>,
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
    found.ok_or_else(|| "expected `low`, `medium`, `high` or `critical`".to_owned())
}

fn read_kind(text: &str) -> Result<RevokedKind, String> {
    let found = RevokedKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| "expected `key`, `principal`, `server` or `session`".to_owned())
}

//! What can be typed after `holdpoint key`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use store::{ActorType, ApiKeyId};

#[derive(Debug, Args)]
pub(crate) struct KeyCommand {
    #[command(subcommand)]
    pub(crate) command: KeySubcommand,
    /// The gateway's configuration [default: gateway.toml in the home]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeySubcommand {
    /// Create a key and print it, once
    #[command(
        after_help = "Examples:\n  holdpoint key create --sub svc:reports --group readers\n  holdpoint key create --sub svc:nightly --org acme --expires never\n  holdpoint key create --sub ada --actor user --admin --expires 30d\n\nThe key is printed once: only its hash is kept. Callers send it as `Authorization: Bearer KEY`. A key made with\n--admin opens the admin API and no MCP path; creating one needs a yes at a terminal."
    )]
    Create(CreateKeyCommand),
    /// List keys, without the keys themselves
    #[command(after_help = "Examples:\n  holdpoint key list\n  holdpoint key list --json")]
    List,
    /// Revoke a key for good
    #[command(after_help = "Example:\n  holdpoint key revoke k-5f0c93aa")]
    Revoke(RevokeKeyCommand),
}

#[derive(Debug, Args)]
pub(crate) struct CreateKeyCommand {
    /// The subject: whom the key stands for
    #[arg(long, value_name = "NAME", value_parser = read_name)]
    pub(crate) sub: String,
    /// What the caller is: user, agent or system
    #[arg(long, value_name = "KIND", default_value = "agent", value_parser = read_actor)]
    pub(crate) actor: ActorType,
    /// Its organization
    #[arg(long, value_name = "NAME", value_parser = read_name)]
    pub(crate) org: Option<String>,
    /// A group that it is in (repeatable)
    #[arg(long, value_name = "NAME", value_parser = read_name)]
    pub(crate) group: Vec<String>,
    /// What it is cleared for
    #[arg(long, value_name = "LEVEL", value_parser = read_name)]
    pub(crate) clearance: Option<String>,
    /// How long it opens anything: a time such as 12h, 90d or 4w, or `never` for no end
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = read_expiry)]
    pub(crate) expires: Expiry,
    /// Open the admin API, and no MCP path
    #[arg(long)]
    pub(crate) admin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeKeyCommand {
    /// The key's id, as `key list` prints it
    pub(crate) id: ApiKeyId,
}

/// When a key ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    After { milliseconds: i64 },
}

fn read_actor(text: &str) -> Result<ActorType, String> {
    match text {
        "user" => Ok(ActorType::User),
        "agent" => Ok(ActorType::Agent),
        "system" => Ok(ActorType::System),
        _ => Err("expected `user`, `agent` or `system`".to_owned()),
    }
}

fn read_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("expected a name".to_owned()) } else { Ok(text.to_owned()) }
}

fn read_expiry(text: &str) -> Result<Expiry, String> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    let milliseconds = settings::Amounts::duration(text).filter(|duration| *duration > 0);
    let expected = "expected a time such as `12h`, `90d` or `4w`, or `never`";
    milliseconds
        .map(|milliseconds| Expiry::After { milliseconds })
        .ok_or_else(|| expected.to_owned())
}

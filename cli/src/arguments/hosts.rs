//! What can be typed after `holdpoint hosts`, `wire` and `unwire`.

use super::sandbox::SandboxProfile;
use clap::Args;
use hosts::Host;
use hosts::table::{HOSTS, host};
use settings::SecretName;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct HostsCommand {
    /// Only these hosts [default: all]
    #[arg(value_name = "HOST", value_parser = read_host)]
    pub(crate) hosts: Vec<&'static Host>,
    /// Only this file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WireCommand {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Guard the servers named with `--server` although they have no header: they need no sign-in
    #[arg(long, requires = "server")]
    pub(crate) no_sign_in: bool,
    /// Also guard servers that the host signs in to: Holdpoint signs in instead, and keeps the tokens in your keyring
    #[arg(long, conflicts_with = "no_sign_in")]
    pub(crate) sign_in: bool,
    /// The program that the entries start [default: this one]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Have the wired programs started confined: isolated, workspace or read-only [default: not confined]
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true, default_missing_value = "isolated", conflicts_with = "gateway", hide_possible_values = true)]
    pub(crate) sandbox: Option<SandboxProfile>,
    /// Point hosts at this gateway: one entry is added to each host's file
    #[arg(long, value_name = "URL", conflicts_with_all = ["no_sign_in", "sign_in", "program", "server"])]
    pub(crate) gateway: Option<String>,
    /// The key for the gateway, as `env:VARIABLE` or `file:PATH` [default: none is written]
    #[arg(long, value_name = "SOURCE", requires = "gateway")]
    pub(crate) key: Option<SecretName>,
    /// Write the key itself into files of hosts that cannot name a variable
    #[arg(long, requires = "key")]
    pub(crate) write_key: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UnwireCommand {
    #[command(flatten)]
    pub(crate) selection: Selection,
}

/// Which servers of which files, and whether to ask before changing them.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Only these hosts [default: all that are found]
    #[arg(value_name = "HOST", value_parser = read_host)]
    pub(crate) hosts: Vec<&'static Host>,
    /// Only this server, by its name or id (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Only this file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Show the plan and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

fn read_host(id: &str) -> Result<&'static Host, String> {
    if let Some(host) = host(id) {
        return Ok(host);
    }
    let ids: Vec<&str> = HOSTS.iter().map(|host| host.id).collect();
    let near = ids.iter().min_by_key(|known| strsim::damerau_levenshtein(known, id));
    let guess = near
        .filter(|known| strsim::damerau_levenshtein(known, id) <= 3)
        .map_or_else(|| ".".to_owned(), |known| format!("; did you mean `{known}`?"));
    Err(format!("no such host{guess} Known are {}", ids.join(", ")))
}

//! `[[server]]`: a server behind the gateway, how it is reached, and the operator's rules for it.

mod credentials;
mod reach;
mod rules;

use super::tables::Instance;
use super::web_url::WebUrl;
use crate::keys::{Admission, Preflight};
use crate::sandbox::Sandbox;
use crate::secret::SecretName;
use gate::server::ServerId;
use policy::{Risk, Trust};
use std::collections::{BTreeMap, BTreeSet};

pub(super) use credentials::read_scopes;
pub use credentials::{Credentials, GrantKind, GrantSettings, UserGrantSettings};
pub(super) use rules::{Common, read};

/// Some hosts truncate the names of tools at this length.
const MAX_SHOWN_NAME: usize = 64;

/// Everything configured for one server. If two of these are equal, the server need not be
/// restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    pub id: ServerId,
    pub reach: Reach,
    pub trust: Trust,
    /// The risk of every tool that `tool_risk` does not name.
    pub risk: Risk,
    pub tool_risk: BTreeMap<String, Risk>,
    /// `None` allows every admitted tool; an empty set allows none.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// The displayed names of tools and prompts, by the server's own names. They resolve
    /// collisions.
    pub names: BTreeMap<String, String>,
    /// `None` serves all callers, with or without an organization.
    pub orgs: Option<BTreeSet<String>>,
    /// The general settings, with the server's own keys applied.
    pub admission: Admission,
    /// The rules for call arguments, and the rate limits.
    pub preflight: Preflight,
    /// Overrides the gateway's `recheck_seconds`.
    pub recheck_seconds: Option<u64>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Command(CommandSettings),
    Url(Box<UrlSettings>),
}

/// A server that the gateway starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSettings {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    pub env: BTreeMap<String, SecretName>,
    pub instance: Instance,
    pub max_instances: usize,
    pub idle_seconds: u64,
    /// How the server is confined. `None` if it is not, because the operator trusts it or set
    /// `danger_unconfined`.
    pub sandbox: Option<Box<Sandbox>>,
}

/// A server that is reached over streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlSettings {
    pub url: WebUrl,
    pub credentials: Credentials,
    pub headers: BTreeMap<String, SecretName>,
    /// Request headers of the client that are forwarded, in lower case.
    pub forward_headers: BTreeSet<String>,
    pub ca: Option<SecretName>,
    pub allow_private: bool,
}

impl ServerSettings {
    /// Whether the server can be reached with the gateway's own credentials, without a caller's.
    pub fn has_own_credentials(&self) -> bool {
        match &self.reach {
            Reach::Command(_) => true,
            Reach::Url(reached) => !reached.credentials.is_per_caller(),
        }
    }

    pub fn risk_of(&self, tool: &str) -> Risk {
        self.tool_risk.get(tool).copied().unwrap_or(self.risk)
    }

    /// Whether the operator's list contains the tool.
    pub fn may_serve(&self, tool: &str) -> bool {
        self.allowed_tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    /// Whether callers of this organization are served. A server restricted to organizations serves
    /// no caller without one.
    pub fn serves(&self, org: Option<&str>) -> bool {
        self.orgs.as_ref().is_none_or(|orgs| org.is_some_and(|org| orgs.contains(org)))
    }

    /// The name of a tool or prompt when several servers are shown as one.
    pub fn shown_name(&self, tool: &str) -> String {
        let name = self.names.get(tool).map_or(tool, String::as_str);
        format!("{}__{name}", self.id)
    }

    /// A warning about a tool name that some hosts truncate. The tools are known only after the
    /// server was listed.
    pub fn warn_of_long_name(&self, tool: &str) -> Option<String> {
        let shown = self.shown_name(tool);
        let length = shown.chars().count();
        (length > MAX_SHOWN_NAME).then(|| {
            format!(
                "`{shown}` has {length} characters, and some hosts cut names after {MAX_SHOWN_NAME}: choose a shorter one with `names = {{ {tool} = \"…\" }}` on server `{}`",
                self.id
            )
        })
    }
}

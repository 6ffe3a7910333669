//! Incident mode: the switches that stop calls, and revocations. It survives a restart.

use crate::act::within;
use crate::by::{By, Signed};
use crate::error::StoreError;
use crate::quarantine::{Quarantine, QuarantineId};
use crate::receipts::now;
use contract::hash::sha256_hex;
use gate::server::ServerId;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 4_096;
/// The most servers that one incident is limited to, and the most tools and principals that it names.
pub const MAX_INCIDENT_SERVERS: usize = 1_000;
/// The longest name of a tool or a principal that an incident stops, in bytes.
pub const MAX_STOPPED_BYTES: usize = 1_024;
/// The longest name of what is revoked, in bytes.
pub const MAX_REVOKED_BYTES: usize = 1_024;
/// The most revocations that are kept.
pub const MAX_REVOCATIONS: usize = 100_000;

/// From which risk on tools are denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentLevel {
    Low,
    Medium,
    High,
    Critical,
}

impl IncidentLevel {
    pub const ALL: [IncidentLevel; 4] =
        [IncidentLevel::Low, IncidentLevel::Medium, IncidentLevel::High, IncidentLevel::Critical];

    pub const fn as_str(self) -> &'static str {
        match self {
            IncidentLevel::Low => "low",
            IncidentLevel::Medium => "medium",
            IncidentLevel::High => "high",
            IncidentLevel::Critical => "critical",
        }
    }
}

/// What an incident stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentScope {
    /// The tools of all servers, from the incident's level on.
    All,
    Parts(StoppedParts),
}

/// What an incident stops where that is not all servers: the union of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoppedParts {
    /// Their tools are denied from the incident's level on.
    pub servers: BTreeSet<ServerId>,
    /// Denied whatever their risk is.
    pub tools: BTreeSet<StoppedTool>,
    /// All calls of these are denied. By subject, or by issuer and subject.
    pub principals: BTreeSet<String>,
}

/// A tool by its server and the server's own name for it. Written `SERVER__TOOL`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoppedTool {
    pub server: ServerId,
    pub tool: String,
}

impl fmt::Display for StoppedTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}__{}", self.server, self.tool)
    }
}

/// A text that names no tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected SERVER__TOOL, such as `files__write_file`")]
pub struct NotATool;

impl FromStr for StoppedTool {
    type Err = NotATool;

    fn from_str(text: &str) -> Result<StoppedTool, NotATool> {
        // The id of a server has no `__`, so the first one ends it.
        let (server, tool) = text.split_once("__").ok_or(NotATool)?;
        let server = server.parse().map_err(|_| NotATool)?;
        if tool.is_empty() || tool.len() > MAX_STOPPED_BYTES {
            return Err(NotATool);
        }
        Ok(StoppedTool { server, tool: tool.to_owned() })
    }
}

impl IncidentScope {
    /// These servers alone.
    pub fn servers(servers: BTreeSet<ServerId>) -> IncidentScope {
        IncidentScope::Parts(StoppedParts { servers, ..StoppedParts::default() })
    }

    /// Whether it stops anything of this server for every caller.
    pub fn concerns(&self, server: &ServerId) -> bool {
        match self {
            IncidentScope::All => true,
            IncidentScope::Parts(StoppedParts { servers, tools, .. }) => {
                servers.contains(server) || tools.iter().any(|tool| tool.server == *server)
            }
        }
    }

    /// Whether it stops all that the other stops, at the same level.
    pub fn covers(&self, other: &IncidentScope) -> bool {
        match (self, other) {
            (IncidentScope::All, IncidentScope::All) => true,
            (IncidentScope::Parts(_), IncidentScope::All) => false,
            (IncidentScope::All, IncidentScope::Parts(other)) => {
                // Named tools and principals are stopped at any risk, all servers only from the level on.
                other.tools.is_empty() && other.principals.is_empty()
            }
            (IncidentScope::Parts(own), IncidentScope::Parts(other)) => {
                own.servers.is_superset(&other.servers)
                    && own.tools.is_superset(&other.tools)
                    && own.principals.is_superset(&other.principals)
            }
        }
    }
}

/// An incident that is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    pub level: IncidentLevel,
    pub scope: IncidentScope,
    pub reason: Option<String>,
}

impl Incident {
    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        let reason_bytes = self.reason.as_ref().map_or(0, String::len);
        within("the reason of an incident", reason_bytes, MAX_REASON_BYTES)?;
        let IncidentScope::Parts(StoppedParts { servers, tools, principals }) = &self.scope else {
            return Ok(());
        };
        for (what, count) in [
            ("the number of an incident's servers", servers.len()),
            ("the number of an incident's tools", tools.len()),
            ("the number of an incident's principals", principals.len()),
        ] {
            within(what, count, MAX_INCIDENT_SERVERS)?;
        }
        let names = tools.iter().map(|tool| &tool.tool).chain(principals);
        let longest = names.map(String::len).max().unwrap_or_default();
        within("the name of a tool or principal of an incident", longest, MAX_STOPPED_BYTES)
    }
}

/// What kind of thing is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RevokedKind {
    Key,
    Principal,
    Server,
    Session,
}

impl RevokedKind {
    pub const ALL: [RevokedKind; 4] =
        [RevokedKind::Key, RevokedKind::Principal, RevokedKind::Server, RevokedKind::Session];

    pub const fn as_str(self) -> &'static str {
        match self {
            RevokedKind::Key => "key",
            RevokedKind::Principal => "principal",
            RevokedKind::Server => "server",
            RevokedKind::Session => "session",
        }
    }
}

/// What began before this moment counts no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub kind: RevokedKind,
    /// As it is kept: see [`RevokedKind::kept`].
    pub value: String,
    pub signed: Signed,
}

/// Before the hash of what is not kept in clear.
const HASHED: &str = "sha256:";

impl RevokedKind {
    /// What is kept of a revoked thing. The id of a session is as good as a password, and who revokes a key may have typed the
    /// key itself: of both only the hash.
    pub(crate) fn kept(self, value: &str) -> String {
        match self {
            RevokedKind::Principal | RevokedKind::Server => value.to_owned(),
            RevokedKind::Key | RevokedKind::Session => {
                format!("{HASHED}{}", sha256_hex(value.as_bytes()))
            }
        }
    }
}

impl Revocation {
    /// What was revoked, where that may be shown.
    pub fn shown_value(&self) -> Option<&str> {
        match self.kind {
            RevokedKind::Principal | RevokedKind::Server => Some(&self.value),
            RevokedKind::Key | RevokedKind::Session => None,
        }
    }

    /// The SHA-256 of what was revoked. Older versions kept all of it in clear.
    pub fn value_sha256(&self) -> String {
        let hash = self.value.strip_prefix(HASHED).filter(|_| self.shown_value().is_none());
        hash.map_or_else(|| sha256_hex(self.value.as_bytes()), str::to_owned)
    }
}

/// Everything that is switched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncidentState {
    pub incident: Option<(Incident, Signed)>,
    /// Who closed all ways out.
    pub egress_blocked: Option<Signed>,
    /// The newest of each thing that was revoked.
    pub revocations: Vec<Revocation>,
    /// Who tripped an anomaly rule and was not released yet.
    pub quarantines: Vec<Quarantine>,
}

impl IncidentState {
    /// What counts while nothing shows which switches were on: every one of them. `incident off` ends it.
    #[must_use]
    fn in_doubt(self, doubt: &str) -> IncidentState {
        let newest = self.revocations.iter().map(|revocation| revocation.signed.at).max();
        let signed = self.incident.map(|(_, signed)| signed).or(self.egress_blocked);
        let at = signed.map(|signed| signed.at).or(newest).unwrap_or_else(now);
        let signed = Signed { by: "holdpoint".to_owned(), at };
        let reason = format!(
            "{doubt}; all calls are denied, since an incident may have been on: compare with `holdpoint receipts list --events`, \
             revoke again what is missing, then `holdpoint incident off --reason TEXT`"
        );
        // Any tool or principal may have been stopped, whatever its risk.
        let incident =
            Incident { level: IncidentLevel::Low, scope: IncidentScope::All, reason: Some(reason) };
        IncidentState {
            incident: Some((incident, signed.clone())),
            egress_blocked: Some(signed),
            revocations: self.revocations,
            quarantines: self.quarantines,
        }
    }
}

/// How the seal over the state stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncidentSeal {
    /// How often the state was sealed: an older copy that was put back has a smaller number.
    pub count: i64,
    /// Why the state cannot be trusted, in words.
    pub doubt: Option<String>,
}

/// Incident mode, shared by all processes.
pub trait IncidentStore {
    /// What counts now. A state that is in doubt is an incident on all servers that is still on.
    fn incident(&self) -> Result<IncidentState, StoreError> {
        let (state, seal) = self.sealed_incident()?;
        Ok(match seal.doubt {
            None => state,
            Some(doubt) => state.in_doubt(&doubt),
        })
    }

    /// What the database says, and how the seal over it stands.
    fn sealed_incident(&self) -> Result<(IncidentState, IncidentSeal), StoreError>;

    /// Seals the state as it is, beyond `seen`: a person decided that it counts.
    fn accept_incident_state(&mut self, seen: i64, by: By<'_>) -> Result<(), StoreError>;

    /// Declares an incident. One that is on is replaced.
    fn begin_incident(&mut self, incident: &Incident, by: By<'_>) -> Result<(), StoreError>;

    /// Ends it, for a reason that is written down. Where none is on nothing is done.
    fn end_incident(&mut self, reason: &str, by: By<'_>) -> Result<(), StoreError>;

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    /// Revokes what began before `by.at`. Revoked again, the later moment counts.
    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError>;

    /// Denies the calls of a session that tripped an anomaly rule. One that is quarantined already stays so.
    fn quarantine(&mut self, quarantine: &Quarantine) -> Result<(), StoreError>;

    /// Ends a quarantine. Where there is none of this id nothing is done.
    fn release_quarantine(&mut self, id: &QuarantineId, by: By<'_>) -> Result<(), StoreError>;
}

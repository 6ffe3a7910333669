//! Incident mode: the switches that stop calls, and revocations. Both survive a restart.

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
/// The most servers that one incident can be limited to, and the most tools and principals it can
/// name.
pub const MAX_INCIDENT_SERVERS: usize = 1_000;
/// The longest name of a tool or principal that an incident stops, in bytes.
pub const MAX_STOPPED_BYTES: usize = 1_024;
/// The longest name of a revoked item, in bytes.
pub const MAX_REVOKED_BYTES: usize = 1_024;
/// The most revocations that are kept.
pub const MAX_REVOCATIONS: usize = 100_000;

/// The risk from which tools are denied.
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

/// The extent of an incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentScope {
    /// The tools of all servers with at least the incident's level of risk.
    All,
    Parts(StoppedParts),
}

/// The extent of an incident that does not stop all servers: the union of these parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoppedParts {
    /// Tools of these servers are denied if they have at least the incident's level of risk.
    pub servers: BTreeSet<ServerId>,
    /// Denied whatever their risk.
    pub tools: BTreeSet<StoppedTool>,
    /// Principals whose calls are all denied. Given by subject, or by issuer and subject.
    pub principals: BTreeSet<String>,
}

/// A tool, named by its server and the server's own name for it. Written `SERVER__TOOL`.
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

/// The text does not name a tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected SERVER__TOOL, such as `files__write_file`")]
pub struct NotATool;

impl FromStr for StoppedTool {
    type Err = NotATool;

    fn from_str(text: &str) -> Result<StoppedTool, NotATool> {
        // A server id contains no `__`, so it ends at the first one.
        let (server, tool) = text.split_once("__").ok_or(NotATool)?;
        let server = server.parse().map_err(|_| NotATool)?;
        if tool.is_empty() || tool.len() > MAX_STOPPED_BYTES {
            return Err(NotATool);
        }
        Ok(StoppedTool { server, tool: tool.to_owned() })
    }
}

impl IncidentScope {
    /// An incident limited to these servers.
    pub fn servers(servers: BTreeSet<ServerId>) -> IncidentScope {
        IncidentScope::Parts(StoppedParts { servers, ..StoppedParts::default() })
    }

    /// Whether the incident stops any tool of this server for every caller.
    pub fn concerns(&self, server: &ServerId) -> bool {
        match self {
            IncidentScope::All => true,
            IncidentScope::Parts(StoppedParts { servers, tools, .. }) => {
                servers.contains(server) || tools.iter().any(|tool| tool.server == *server)
            }
        }
    }

    /// Whether this scope stops everything that the other one does, at the same level.
    pub fn covers(&self, other: &IncidentScope) -> bool {
        match (self, other) {
            (IncidentScope::All, IncidentScope::All) => true,
            (IncidentScope::Parts(_), IncidentScope::All) => false,
            (IncidentScope::All, IncidentScope::Parts(other)) => {
                // Named tools and principals are stopped at any risk, but `All` only stops tools
                // from the level on.
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

/// A declared incident.
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

/// The kind of a revoked item.
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

/// A revocation. Credentials, sessions and links from before this moment no longer count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub kind: RevokedKind,
    /// The stored form: see [`RevokedKind::kept`].
    pub value: String,
    pub signed: Signed,
}

/// Prefix of a hash that is stored instead of the value.
const HASHED: &str = "sha256:";

impl RevokedKind {
    /// The stored form of a revoked value. Keys and sessions are stored as hashes: a session id is
    /// as good as a password, and a person who revokes a key may type the key itself.
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
    /// The revoked value, if it may be shown.
    pub fn shown_value(&self) -> Option<&str> {
        match self.kind {
            RevokedKind::Principal | RevokedKind::Server => Some(&self.value),
            RevokedKind::Key | RevokedKind::Session => None,
        }
    }

    /// The SHA-256 of the revoked value. Older versions stored every value in clear text.
    pub fn value_sha256(&self) -> String {
        let hash = self.value.strip_prefix(HASHED).filter(|_| self.shown_value().is_none());
        hash.map_or_else(|| sha256_hex(self.value.as_bytes()), str::to_owned)
    }
}

/// The state of all switches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncidentState {
    pub incident: Option<(Incident, Signed)>,
    /// Set if outgoing connections are blocked, with the actor.
    pub egress_blocked: Option<Signed>,
    /// The newest revocation of each value.
    pub revocations: Vec<Revocation>,
    /// Sessions and principals that tripped an anomaly rule and have not been released.
    pub quarantines: Vec<Quarantine>,
}

impl IncidentState {
    /// The state to assume if the stored switches cannot be trusted: every switch is on. `incident
    /// off` ends it.
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

/// The status of the seal over the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IncidentSeal {
    /// How often the state was sealed: an older copy that was put back has a smaller number.
    pub count: i64,
    /// Why the state cannot be trusted.
    pub doubt: Option<String>,
}

/// Incident mode, shared by all processes.
pub trait IncidentStore {
    /// The state to enforce. A state in doubt counts as an incident on all servers.
    fn incident(&self) -> Result<IncidentState, StoreError> {
        let (state, seal) = self.sealed_incident()?;
        Ok(match seal.doubt {
            None => state,
            Some(doubt) => state.in_doubt(&doubt),
        })
    }

    /// The stored state, and the status of its seal.
    fn sealed_incident(&self) -> Result<(IncidentState, IncidentSeal), StoreError>;

    /// Seals the current state with a count above `seen`: a person decided that it is right.
    fn accept_incident_state(&mut self, seen: i64, by: By<'_>) -> Result<(), StoreError>;

    /// Declares an incident, and replaces a current one.
    fn begin_incident(&mut self, incident: &Incident, by: By<'_>) -> Result<(), StoreError>;

    /// Ends the incident, with a recorded reason. Does nothing if there is none.
    fn end_incident(&mut self, reason: &str, by: By<'_>) -> Result<(), StoreError>;

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    /// Revokes everything from before `by.at`. Revoking again moves the moment forward.
    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError>;

    /// Denies the calls of a session that tripped an anomaly rule. Keeps an existing quarantine.
    fn quarantine(&mut self, quarantine: &Quarantine) -> Result<(), StoreError>;

    /// Ends a quarantine. Does nothing if none has this id.
    fn release_quarantine(&mut self, id: &QuarantineId, by: By<'_>) -> Result<(), StoreError>;
}

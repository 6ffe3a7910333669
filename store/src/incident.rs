//! Incident mode: the switches that stop calls, and revocations. It survives a restart.

use crate::act::within;
use crate::by::{By, Signed};
use crate::error::StoreError;
use crate::receipts::now;
use contract::hash::sha256_hex;
use gate::server::ServerId;
use std::collections::BTreeSet;

/// The longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 4_096;
/// The most servers that one incident is limited to.
pub const MAX_INCIDENT_SERVERS: usize = 1_000;
/// The longest name of what is revoked, in bytes.
pub const MAX_REVOKED_BYTES: usize = 1_024;
/// The most revocations that are kept.
pub const MAX_REVOCATIONS: usize = 100_000;

/// From which risk on tools are denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentLevel {
    High,
    Critical,
}

impl IncidentLevel {
    pub const ALL: [IncidentLevel; 2] = [IncidentLevel::High, IncidentLevel::Critical];

    pub const fn as_str(self) -> &'static str {
        match self {
            IncidentLevel::High => "high",
            IncidentLevel::Critical => "critical",
        }
    }
}

/// Which servers an incident is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentScope {
    All,
    Servers(BTreeSet<ServerId>),
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
        let servers = match &self.scope {
            IncidentScope::All => 0,
            IncidentScope::Servers(servers) => servers.len(),
        };
        within("the number of an incident's servers", servers, MAX_INCIDENT_SERVERS)
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
             revoke again what is missing, then `holdpoint incident off`"
        );
        let incident = Incident {
            level: IncidentLevel::High,
            scope: IncidentScope::All,
            reason: Some(reason),
        };
        IncidentState {
            incident: Some((incident, signed.clone())),
            egress_blocked: Some(signed),
            revocations: self.revocations,
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

    /// Ends it. Where none is on nothing is done.
    fn end_incident(&mut self, by: By<'_>) -> Result<(), StoreError>;

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError>;

    /// Revokes what began before `by.at`. Revoked again, the later moment counts.
    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError>;
}

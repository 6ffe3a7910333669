//! What a call is decided on: one value that is replaced as a whole and never modified.

use crate::admission::Admittance;
use crate::call::Call;
use crate::credentials::TokenUse;
use crate::mirrored::Mirrorings;
use crate::principal::Principal;
use contract::time::Timestamp;
use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use gate::view::View;
use ledger::record::{Sandbox, TrustLevel};
use policy::Risk;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use store::{
    Incident, IncidentLevel, IncidentScope, IncidentState, Quarantine, QuarantineId, Revocation,
    RevokedKind,
};

pub use settings::DriftScope;

/// The operator's description of a server, as shown in receipts.
#[derive(Debug, Clone)]
pub struct ServerProfile {
    pub trust: TrustLevel,
    /// How the server is confined; `None` if Holdpoint does not confine it.
    pub sandbox: Option<Sandbox>,
    /// Where the credential for the upstream comes from.
    pub token: TokenUse,
    /// The risk of its tools, as far as the operator has classified them.
    pub risk: Arc<RiskProfile>,
}

/// The risk of a server's tools, as far as the operator has classified them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RiskProfile {
    /// For everything that is not a tool, and for tools without their own risk.
    pub server: Option<Risk>,
    /// By the server's own names.
    pub tools: BTreeMap<String, Risk>,
}

impl RiskProfile {
    /// The risk of a tool, or of anything else on the server; `None` if no setting covers it.
    pub fn of(&self, tool: Option<&str>) -> Option<Risk> {
        tool.and_then(|tool| self.tools.get(tool).copied()).or(self.server)
    }
}

impl Default for ServerProfile {
    fn default() -> Self {
        ServerProfile {
            trust: TrustLevel::Unknown,
            sandbox: None,
            token: TokenUse::default(),
            risk: Arc::default(),
        }
    }
}

/// The switches of incident mode, as far as they concern one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    /// What the current incident stops on the server, if it concerns it.
    pub stop: Option<Arc<Stop>>,
    /// Whether all egress is closed.
    pub is_egress_blocked: bool,
    pub revocations: Arc<Revocations>,
    /// The sessions and principals that tripped an anomaly rule.
    pub quarantined: Arc<BTreeSet<QuarantineId>>,
}

impl Switches {
    /// The part of a store's state that concerns one server.
    pub fn about(server: &ServerId, state: &IncidentState) -> Switches {
        let stop = state.incident.as_ref().and_then(|(incident, _)| Stop::of(incident, server));
        Switches {
            stop: stop.map(Arc::new),
            is_egress_blocked: state.egress_blocked.is_some(),
            revocations: Arc::new(Revocations::about(server, &state.revocations)),
            quarantined: Arc::new(state.quarantines.iter().map(Quarantine::id).collect()),
        }
    }

    /// Whether an incident stops anything on the server for every caller.
    pub fn is_incident(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.from.is_some() || !stop.tools.is_empty())
    }
}

/// What an incident stops on one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The lowest stopped risk, if the server as such is stopped.
    from: Option<Risk>,
    /// Tools that are stopped regardless of their risk.
    tools: BTreeSet<String>,
    /// Principals whose calls are all stopped.
    principals: BTreeSet<String>,
}

/// The part of an incident that stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    Risk,
    Tool,
    Principal,
}

impl Stop {
    /// Returns `None` if the incident does not concern the server.
    fn of(incident: &Incident, server: &ServerId) -> Option<Stop> {
        let level = match incident.level {
            IncidentLevel::Low => Risk::Low,
            IncidentLevel::Medium => Risk::Medium,
            IncidentLevel::High => Risk::High,
            IncidentLevel::Critical => Risk::Critical,
        };
        let parts = match &incident.scope {
            IncidentScope::All => {
                let (tools, principals) = (BTreeSet::new(), BTreeSet::new());
                return Some(Stop { from: Some(level), tools, principals });
            }
            IncidentScope::Parts(parts) => parts,
        };
        let of_server = parts.tools.iter().filter(|tool| tool.server == *server);
        let stop = Stop {
            from: parts.servers.contains(server).then_some(level),
            tools: of_server.map(|tool| tool.tool.clone()).collect(),
            principals: parts.principals.clone(),
        };
        let is_empty = stop.from.is_none() && stop.tools.is_empty() && stop.principals.is_empty();
        (!is_empty).then_some(stop)
    }

    /// Whether it stops this principal's use of this tool, or of something that is not a tool.
    ///
    /// INVARIANT: a tool without a risk class is stopped at every level.
    pub fn stops(
        &self,
        tool: Option<&str>,
        risk: &RiskProfile,
        principal: &Principal,
    ) -> Option<StoppedBy> {
        if self.from.is_some_and(|from| risk.of(tool).is_none_or(|risk| risk >= from)) {
            return Some(StoppedBy::Risk);
        }
        if tool.is_some_and(|tool| self.tools.contains(tool)) {
            return Some(StoppedBy::Tool);
        }
        self.names(principal).then_some(StoppedBy::Principal)
    }

    /// Whether the incident names this principal.
    pub fn names(&self, principal: &Principal) -> bool {
        self.principals.iter().any(|name| principal.is_named(name))
    }
}

/// Who was revoked and when, prepared for lookups by calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revocations {
    server: Option<Timestamp>,
    principals: HashMap<Box<str>, Timestamp>,
}

impl Revocations {
    /// The revocations in the store that concern one server.
    pub fn about(server: &ServerId, all: &[Revocation]) -> Revocations {
        let mut about = Revocations::default();
        for Revocation { kind, value, signed } in all {
            match kind {
                RevokedKind::Server if value == server.as_str() => {
                    about.server = about.server.max(Some(signed.at));
                }
                RevokedKind::Principal => {
                    let at = about.principals.entry(value.as_str().into()).or_insert(signed.at);
                    *at = signed.at.max(*at);
                }
                RevokedKind::Server | RevokedKind::Key | RevokedKind::Session => {}
            }
        }
        about
    }
}

/// What was revoked after a request's session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Principal,
    Server,
}

/// Everything that the checks examine.
#[derive(Debug, Clone)]
pub struct Situation {
    pub server: ServerId,
    pub profile: ServerProfile,
    pub settings: Settings,
    pub switches: Switches,
    /// Who vouches for the server, if that is checked.
    pub admission: Admittance,
    pub view: Arc<View>,
    /// The arguments that must be sent as headers.
    pub mirrorings: Arc<Mirrorings>,
}

impl Situation {
    /// Whether nothing of the server may pass: a person stopped it, or it is not admitted.
    pub fn is_closed(&self) -> bool {
        self.view.stopped().is_some() || self.admission.is_closed()
    }

    /// Whether the posture holds anything.
    pub fn is_holding(&self) -> bool {
        self.settings.posture != Posture::Monitor
    }

    /// Whether an incident stops this request of this principal.
    pub fn stopped(&self, call: &Call<'_>, principal: &Principal) -> Option<StoppedBy> {
        let stop = self.switches.stop.as_ref()?;
        stop.stops(call.tool(), &self.profile.risk, principal)
    }

    /// Whether incident mode applies to a request of this principal, for its receipt.
    pub fn is_incident_mode(&self, principal: &Principal) -> bool {
        let Switches { stop, is_egress_blocked, .. } = &self.switches;
        self.switches.is_incident()
            || *is_egress_blocked
            || stop.as_ref().is_some_and(|stop| stop.names(principal))
            || self.revoked(principal).is_some()
    }

    /// Whether the server was revoked since this time.
    pub fn is_server_revoked(&self, since: Timestamp) -> bool {
        self.switches.revocations.server.is_some_and(|at| at >= since)
    }

    /// Whether the principal, or the server, was revoked since the principal's session began.
    pub fn revoked(&self, principal: &Principal) -> Option<Revoked> {
        let Revocations { server, principals } = &*self.switches.revocations;
        let concerns = |at: Option<&Timestamp>| at.is_some_and(|at| *at >= principal.since);
        let is_principal = !principals.is_empty()
            && (principal.names().any(|name| concerns(principals.get(name)))
                || concerns(principals.get(&*principal.whole_name())));
        match is_principal {
            true => Some(Revoked::Principal),
            false => concerns(server.as_ref()).then_some(Revoked::Server),
        }
    }
}

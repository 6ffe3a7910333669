//! What a call is decided on: one value that is replaced as a whole, never changed.

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

/// What the operator says of a server, as receipts tell it.
#[derive(Debug, Clone)]
pub struct ServerProfile {
    pub trust: TrustLevel,
    /// How the server is confined; `None` if Holdpoint does not confine it.
    pub sandbox: Option<Sandbox>,
    /// Where the credential that goes upstream comes from.
    pub token: TokenUse,
    /// How much harm its tools can do, as far as the operator says.
    pub risk: Arc<RiskProfile>,
}

/// How much harm the tools of a server can do, as far as the operator says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RiskProfile {
    /// What is not a tool, and tools without a risk of their own.
    pub server: Option<Risk>,
    /// By the server's own names.
    pub tools: BTreeMap<String, Risk>,
}

impl RiskProfile {
    /// The risk of a tool, or of whatever else is used of the server; `None` if no setting names it.
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

/// What incident mode switched off, as far as it concerns one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    /// What the incident that is on stops of the server, if it concerns it.
    pub stop: Option<Arc<Stop>>,
    /// All ways out are closed.
    pub is_egress_blocked: bool,
    pub revocations: Arc<Revocations>,
    /// The sessions and principals that tripped an anomaly rule.
    pub quarantined: Arc<BTreeSet<QuarantineId>>,
}

impl Switches {
    /// What a store's state says about one server.
    pub fn about(server: &ServerId, state: &IncidentState) -> Switches {
        let stop = state.incident.as_ref().and_then(|(incident, _)| Stop::of(incident, server));
        Switches {
            stop: stop.map(Arc::new),
            is_egress_blocked: state.egress_blocked.is_some(),
            revocations: Arc::new(Revocations::about(server, &state.revocations)),
            quarantined: Arc::new(state.quarantines.iter().map(Quarantine::id).collect()),
        }
    }

    /// Whether an incident stops anything of the server for every caller.
    pub fn is_incident(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.from.is_some() || !stop.tools.is_empty())
    }
}

/// What an incident stops of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Everything from this risk on, if the server is stopped as such.
    from: Option<Risk>,
    /// Tools that are stopped whatever their risk is.
    tools: BTreeSet<String>,
    /// Principals all of whose calls are stopped.
    principals: BTreeSet<String>,
}

/// Which part of an incident stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedBy {
    Risk,
    Tool,
    Principal,
}

impl Stop {
    /// `None` if the incident does not concern the server.
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

    /// Whether it stops a use of this tool, or of something that is no tool, by this principal.
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

    /// Whether the incident is about this principal.
    pub fn names(&self, principal: &Principal) -> bool {
        self.principals.iter().any(|name| principal.is_named(name))
    }
}

/// Who was revoked and when, ready to be looked up by a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revocations {
    server: Option<Timestamp>,
    principals: HashMap<Box<str>, Timestamp>,
}

impl Revocations {
    /// Those that concern one server, of all that the store has.
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

/// What of a request's session was revoked after it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Principal,
    Server,
}

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Situation {
    pub server: ServerId,
    pub profile: ServerProfile,
    pub settings: Settings,
    pub switches: Switches,
    /// Who vouches for the server, where that is asked.
    pub admission: Admittance,
    pub view: Arc<View>,
    /// The arguments that go into headers.
    pub mirrorings: Arc<Mirrorings>,
}

impl Situation {
    /// Whether nothing of the server passes: a person stopped it, or it is not admitted.
    pub fn is_closed(&self) -> bool {
        self.view.stopped().is_some() || self.admission.is_closed()
    }

    /// Whether the posture holds anything at all.
    pub fn is_holding(&self) -> bool {
        self.settings.posture != Posture::Monitor
    }

    /// Whether an incident stops this request of this principal.
    pub fn stopped(&self, call: &Call<'_>, principal: &Principal) -> Option<StoppedBy> {
        let stop = self.switches.stop.as_ref()?;
        stop.stops(call.tool(), &self.profile.risk, principal)
    }

    /// Whether incident mode is on as far as a request of this principal is concerned, for its receipt.
    pub fn is_incident_mode(&self, principal: &Principal) -> bool {
        let Switches { stop, is_egress_blocked, .. } = &self.switches;
        self.switches.is_incident()
            || *is_egress_blocked
            || stop.as_ref().is_some_and(|stop| stop.names(principal))
            || self.revoked(principal).is_some()
    }

    /// Whether the server was revoked since this moment.
    pub fn is_server_revoked(&self, since: Timestamp) -> bool {
        self.switches.revocations.server.is_some_and(|at| at >= since)
    }

    /// Whether the principal, or the server in its session, was revoked since the session began.
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

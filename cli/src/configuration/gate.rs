//! The settings of a running gate: how a server is judged, how fresh its view is, and the limits.

use super::Configuration;
use engine::decide::{ArgumentRules, Path, PreflightLimits};
use engine::judge::Rules;
use engine::server::ServerSettings;
use engine::situation::{RiskProfile, ServerProfile};
use engine::upper_tiers::UpperTiers;
use gate::behavior::Consent;
use gate::posture::Posture;
use gate::server::ServerId;
use policy::anomaly::AnomalyRules;
use policy::preflight::RateLimiter;
use settings::{Keys, Parsed, Preflight, Whole};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to exit by itself.
const USUAL_GRACE: Duration = Duration::from_secs(5);

impl Configuration {
    /// How a server is judged.
    pub(crate) fn rules(&self, server: &ServerId, posture: Option<Posture>) -> Rules {
        let keys = self.of(server);
        Rules {
            server: server.clone(),
            settings: keys.judging(posture),
            first_use: keys.first_use,
            scope: keys.drift_scope,
            mode: keys.list,
            // The command line may set it as well.
            allowed: None,
            // The caller sets it for a server that is reached over HTTP.
            mirrors_parameters: false,
            checks_input: keys.preflight.schema.unwrap_or(false),
            profile: ServerProfile { risk: Arc::new(risk_of(keys)), ..ServerProfile::default() },
            behavior: self.consent(server),
            // The caller sets them if the operator named a network or a model.
            upper: UpperTiers::default(),
        }
    }

    /// Whether the server's behaviour may be tried, and how.
    pub(crate) fn consent(&self, server: &ServerId) -> Consent {
        self.of(server).behavior.consent()
    }

    /// The settings of a session with a server.
    pub(crate) fn session(&self, server: &ServerId) -> ServerSettings {
        let (keys, usual) = (self.of(server), ServerSettings::default());
        let limits = &keys.limits;
        ServerSettings {
            relist_max_age: keys.relist.max_age.map_or(usual.relist_max_age, seconds),
            call_timeout: limits.call_timeout_seconds.filter(|count| count.0 > 0).map(seconds),
            start_timeout: self.start_timeout(server, None),
            cancelled_patience: usual.cancelled_patience,
            asks_in_client: keys.approve.in_client,
            answer_patience: usual.answer_patience,
            frame_bytes: limits.frame_bytes.map_or(usual.frame_bytes, Whole::to_usize),
            // The caller sets both if an attestation is required.
            admission_max_age: None,
            greets_before_check: false,
        }
    }

    /// How long a server may take to answer its first request. The command line takes precedence.
    pub(crate) fn start_timeout(&self, server: &ServerId, named: Option<u64>) -> Duration {
        let configured = self.of(server).limits.start_timeout_seconds.map(seconds);
        let usual = || ServerSettings::default().start_timeout;
        named.map(Duration::from_secs).or(configured).unwrap_or_else(usual)
    }

    /// The limits on the size and shape of a call.
    pub(crate) fn preflight(&self, server: &ServerId) -> PreflightLimits {
        let (limits, usual) = (&self.of(server).limits, PreflightLimits::default());
        PreflightLimits {
            arguments_bytes: limits.arguments_bytes.map_or(usual.arguments_bytes, Whole::to_usize),
            depth: limits.depth.map_or(usual.depth, Whole::to_usize),
        }
    }

    /// Adds the checks of arguments and rates that the configuration asks for.
    pub(crate) fn preflighted(&self, path: Path, server: &ServerId, is_local: bool) -> Path {
        let preflight = &self.of(server).preflight;
        let path = match preflight.throttle() {
            Some(throttle) => path.throttled_by(Arc::new(RateLimiter::new(throttle))),
            None => path,
        };
        match *preflight == Preflight::default() {
            true => path,
            false => path.checking_arguments(ArgumentRules::of(preflight, is_local)),
        }
    }

    /// Requires the user at the client to allow each call of the tools that the configuration
    /// names.
    pub(crate) fn approved(&self, path: Path, server: &ServerId) -> Path {
        match self.approved_tools(server) {
            [] => path,
            tools => path.asking_person_for(tools.iter().cloned().collect()),
        }
    }

    /// The tools of a server whose calls the user at the client has to allow one by one.
    pub(crate) fn approved_tools(&self, server: &ServerId) -> &[String] {
        self.of(server).approval.tools.as_deref().unwrap_or_default()
    }

    /// The rates above which a session is throttled or quarantined.
    pub(crate) fn anomaly_rules(&self) -> Option<AnomalyRules> {
        self.general().anomaly.rules()
    }

    /// How long a server may take to exit by itself.
    pub(crate) fn grace(&self, server: &ServerId) -> Duration {
        self.of(server).limits.shutdown_grace_seconds.map_or(USUAL_GRACE, seconds)
    }
}

/// How much harm a server's tools can do, according to the configuration.
fn risk_of(keys: &Keys) -> RiskProfile {
    let tools = keys.tool_risk.iter().map(|(tool, Parsed(risk))| (tool.clone(), *risk));
    RiskProfile { server: keys.risk.map(|Parsed(risk)| risk), tools: tools.collect() }
}

fn seconds<const LEAST: u64, const MOST: u64>(count: Whole<LEAST, MOST>) -> Duration {
    Duration::from_secs(count.0)
}

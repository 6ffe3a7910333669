//! The keys of the configuration. A server's own table takes the same keys, except for those that
//! concern all servers.

use crate::network::{JudgeKeys, Network};
use crate::sandbox::Sandbox;
use crate::secret::SecretName;
use crate::value::{Amounts, Count, Parsed, Text, Whole};
use attest::{Binding, Digest, Flavor, Package};
use gate::behavior::{Consent, Leg};
use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use gate::shown::ListMode;
pub use gate::view::DriftScope;
use policy::Risk;
use policy::anomaly::{AnomalyRules, SignalRates};
use policy::preflight::{
    AllowedHost, ArgumentPlace, Quota, Rate, RateScope, SizeLimits, Throttle, Workspace,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Defines the tables. Every key is optional, and unknown keys are refused.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, expecting = "a table")]
        pub struct $name { $($(#[$key_doc])* pub $key: $type,)* }
    )*};
}

/// Defines the words that a key accepts; the first one is the default.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$word_doc])* $word,)* }
    )*};
}

pub(crate) use {tables, words};

tables! {
    /// Everything in the file, or everything that applies to one server.
    Keys {
        posture: Option<Posture>,
        first_use: FirstUsePolicy,
        drift_scope: DriftScope,
        list: ListMode,
        relist: Relist,
        guard: Guard,
        shield: Shield,
        origin: Origin,
        limits: Limits,
        admission: Admission,
        preflight: Preflight,
        sandbox: Sandbox,
        approve: Approve,
        approval: Approval,
        behavior: Behavior,
        anomaly: Anomaly,
        network: Network,
        judge: JudgeKeys,
        /// The risk of a server's tools that `tool_risk` does not name, for incident mode.
        risk: Option<Parsed<Risk>>,
        tool_risk: BTreeMap<String, Parsed<Risk>>,
        notify: Notify,
        receipts: Receipts,
        export: Export,
        store: Option<Text>,
        /// Overrides for one server.
        server: BTreeMap<ServerId, Keys>,
    }
    Relist {
        /// Seconds.
        max_age: Option<Count>,
    }
    Guard {
        inert_string_max: Option<Count>,
        inert_entry_max: Option<Count>,
        new_tools: NewTools,
    }
    Shield {
        parameter_text: ParameterText,
    }
    Origin {
        detail: OriginDetail,
    }
    Limits {
        frame_bytes: Option<Count>,
        arguments_bytes: Option<Count>,
        depth: Option<Count>,
        /// 0 means no limit.
        call_timeout_seconds: Option<Count>,
        shutdown_grace_seconds: Option<Count>,
        start_timeout_seconds: Option<Whole<1, 3600>>,
    }
    /// Who must vouch for a server.
    Admission {
        trust_root: Option<Text>,
        required: Option<Text>,
        scheme: Option<Text>,
        flavor: Option<Parsed<Flavor>>,
        cache_seconds: Option<Count>,
        revocations: Option<Text>,
        attestation: Option<Text>,
        program_digest: Option<Parsed<Digest>>,
        package: Option<Text>,
        version: Option<Text>,
        integrity: Option<Parsed<Digest>>,
        allow_tools: Option<Vec<String>>,
    }
    /// The rules for call arguments, and the rate limits.
    Preflight {
        /// Whether `run` checks arguments against the approved input schema. A gateway always does.
        schema: Option<bool>,
        unknown_fields: Option<UnknownFields>,
        string_bytes: Option<Whole<1, { 1 << 30 }>>,
        array_items: Option<Whole<1, 10_000_000>>,
        path_args: Option<Vec<Parsed<ArgumentPlace>>>,
        workspace: Option<Parsed<Workspace>>,
        url_args: Option<Vec<Parsed<ArgumentPlace>>>,
        net_allow: Option<Vec<Parsed<AllowedHost>>>,
        rate: Option<Parsed<Rate>>,
        quota: Option<Parsed<Quota>>,
        per: Option<RatePer>,
    }
    Approve {
        unattended: bool,
        in_client: bool,
    }
    /// The calls of a server that the user of the client must allow each time.
    Approval {
        tools: Option<Vec<String>>,
    }
    /// Whether a server's behavior may be tested when a change of its contract is about behavior.
    Behavior {
        mode: BehaviorMode,
        /// The server belongs to the operator.
        owner: bool,
    }
    /// The rates above which a session is throttled or quarantined.
    Anomaly {
        throttle: AnomalyRates,
        quarantine: AnomalyRates,
        throttle_to: Option<Parsed<Rate>>,
    }
    AnomalyRates {
        denials: Option<Parsed<Rate>>,
        holds: Option<Parsed<Rate>>,
        new_tools: Option<Parsed<Rate>>,
        egress_blocks: Option<Parsed<Rate>>,
    }
    /// How a person is notified that something is held.
    Notify {
        desktop: Option<bool>,
    }
    Receipts {
        fsync: Fsync,
        on_full: OnFull,
        rotate: Option<Amounts>,
        keep: Option<Amounts>,
        args_hash: ArgsHash,
    }
    Export {
        otlp: Option<Text>,
        /// Headers by name; the values are secrets.
        otlp_headers: Option<BTreeMap<String, SecretName>>,
        syslog: Option<Text>,
    }
}

words! {
    /// How a server is treated that is seen for the first time.
    FirstUsePolicy { #[default] Trust, Approve, }
    NewTools { #[default] Defer, Accept, }
    /// How an argument that the approved schema does not declare is treated.
    UnknownFields { #[default] Refuse, Allow, }
    /// Which calls share a rate and a quota.
    RatePer { #[default] Principal, PrincipalTool, Tool, Server, }
    /// How behavior is tested.
    BehaviorMode {
        #[default]
        Off,
        /// The server is started in a sandbox without network access, and called there.
        Sandbox,
        /// The operator's own server receives calls that it must refuse.
        ReadOnly,
    }
    ParameterText { #[default] Hold, Defer, }
    OriginDetail { #[default] Note, Hold, }
    Fsync { Always, #[default] Interval, Never, }
    OnFull { #[default] Refuse, DropOldest, }
    ArgsHash { #[default] Keyed, Plain, }
}

impl Keys {
    /// The settings for judging a server, with the posture of the command line if given.
    pub fn judging(&self, posture: Option<Posture>) -> Settings {
        let mut settings = Settings::default();
        let Guard { inert_string_max, inert_entry_max, new_tools } = &self.guard;
        settings.posture = posture.or(self.posture).unwrap_or(settings.posture);
        let inert = &mut settings.inert;
        inert.string_max = inert_string_max.map_or(inert.string_max, Whole::to_usize);
        inert.entry_max = inert_entry_max.map_or(inert.entry_max, Whole::to_usize);
        settings.accept_new_tools = *new_tools == NewTools::Accept;
        settings.defer_parameter_text = self.shield.parameter_text == ParameterText::Defer;
        settings.hold_origin_detail = self.origin.detail == OriginDetail::Hold;
        settings
    }
}

impl Behavior {
    pub fn consent(&self) -> Consent {
        match (self.mode, self.owner) {
            (BehaviorMode::Off, _) => Consent::Off,
            (BehaviorMode::Sandbox, _) => Consent::Given(Leg::Sandbox),
            (BehaviorMode::ReadOnly, true) => Consent::Given(Leg::ReadOnly),
            (BehaviorMode::ReadOnly, false) => Consent::NotOwned,
        }
    }
}

impl Preflight {
    /// A key that has no effect, or not the apparent one, and what to do about it.
    pub(crate) fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let Preflight { path_args, workspace, url_args, net_allow, rate, quota, per, .. } = self;
        let is_empty = |places: &Option<Vec<Parsed<ArgumentPlace>>>| {
            places.as_ref().is_some_and(Vec::is_empty)
        };
        let wrong = [
            (
                "path_args",
                is_empty(path_args),
                "is empty: name the arguments that are paths, or remove it",
            ),
            (
                "url_args",
                is_empty(url_args),
                "is empty: name the arguments that are URLs, or remove it",
            ),
            (
                "workspace",
                path_args.is_some() && workspace.is_none(),
                "missing: name the folder that the paths of `path_args` have to stay in",
            ),
            (
                "path_args",
                workspace.is_some() && path_args.is_none(),
                "missing: name the arguments that have to stay in `workspace`, such as `[\"path\"]`",
            ),
            (
                "net_allow",
                url_args.is_some() && net_allow.is_none(),
                "missing: name the hosts that the URLs of `url_args` may lead to; `[]` allows none",
            ),
            (
                "url_args",
                net_allow.is_some() && url_args.is_none(),
                "missing: name the arguments that have to lead to `net_allow`, such as `[\"url\"]`",
            ),
            (
                "per",
                per.is_some() && rate.is_none() && quota.is_none(),
                "says who shares a `rate` or a `quota`: set one of them, or remove it",
            ),
        ];
        wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong).map(|(key, _, why)| (key, why))
    }

    pub fn sizes(&self) -> SizeLimits {
        let usual = SizeLimits::default();
        SizeLimits {
            string_bytes: self.string_bytes.map_or(usual.string_bytes, Whole::to_usize),
            array_items: self.array_items.map_or(usual.array_items, Whole::to_usize),
        }
    }

    /// The rate limits; `None` if calls are not limited.
    pub fn throttle(&self) -> Option<Throttle> {
        let scope = match self.per.unwrap_or_default() {
            RatePer::Principal => RateScope::Principal,
            RatePer::PrincipalTool => RateScope::PrincipalTool,
            RatePer::Tool => RateScope::Tool,
            RatePer::Server => RateScope::Server,
        };
        let (rate, quota) = (self.rate.map(|it| it.0), self.quota.map(|it| it.0));
        (rate.is_some() || quota.is_some()).then_some(Throttle { rate, quota, scope })
    }

    /// The arguments that are paths, and the folder that they must stay in.
    pub fn paths(&self) -> Option<(Vec<ArgumentPlace>, Workspace)> {
        let places = self.path_args.as_ref()?.iter().map(|Parsed(place)| place.clone());
        let Parsed(workspace) = self.workspace.clone()?;
        Some((places.collect(), workspace))
    }

    /// The arguments that are URLs, and the hosts that they may lead to.
    pub fn urls(&self) -> Option<(Vec<ArgumentPlace>, Vec<AllowedHost>)> {
        let places = self.url_args.as_ref()?.iter().map(|Parsed(place)| place.clone());
        let hosts = self.net_allow.as_ref()?.iter().map(|Parsed(host)| host.clone());
        Some((places.collect(), hosts.collect()))
    }
}

/// The rate of a throttled session if `throttle_to` is not set.
const USUAL_PACE: Rate = Rate { calls: 30, period: Duration::from_secs(60) };

impl AnomalyRates {
    fn rates(&self) -> SignalRates {
        let rate = |given: Option<Parsed<Rate>>| given.map(|Parsed(rate)| rate);
        SignalRates {
            denials: rate(self.denials),
            holds: rate(self.holds),
            new_tools: rate(self.new_tools),
            egress_blocks: rate(self.egress_blocks),
        }
    }
}

impl Anomaly {
    /// The rules; `None` if there are none.
    pub fn rules(&self) -> Option<AnomalyRules> {
        let (throttle, quarantine) = (self.throttle.rates(), self.quarantine.rates());
        let is_empty = [throttle, quarantine].iter().all(|rates| *rates == SignalRates::default());
        let throttle_to = self.throttle_to.map_or(USUAL_PACE, |Parsed(rate)| rate);
        (!is_empty).then_some(AnomalyRules { throttle, quarantine, throttle_to })
    }

    /// Why the table does not have its apparent effect.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        let is_idle = self.throttle_to.is_some() && self.throttle == AnomalyRates::default();
        is_idle.then_some(
            "says what a throttled session may call: set a rate under `anomaly.throttle`, or remove it",
        )
    }
}

impl Approval {
    /// Why the list of tools does not have its apparent effect.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        let tools = self.tools.as_ref()?;
        if tools.is_empty() {
            Some("is empty: name the tools whose calls you want to be asked about, or remove it")
        } else if tools.iter().any(String::is_empty) {
            Some("has an empty name: name each tool as the server does")
        } else if tools.iter().any(|tool| tool.contains('*')) {
            Some("takes no patterns: name each tool as the server does")
        } else {
            None
        }
    }
}

impl Admission {
    /// A key that is set and describes a single server, so it is not allowed at the top level.
    pub(crate) fn key_of_one_server(&self) -> Option<&'static str> {
        let Admission {
            attestation, program_digest, package, version, integrity, allow_tools, ..
        } = self;
        let of_one_server = [
            ("attestation", attestation.is_some()),
            ("program_digest", program_digest.is_some()),
            ("package", package.is_some()),
            ("version", version.is_some()),
            ("integrity", integrity.is_some()),
            ("allow_tools", allow_tools.is_some()),
        ];
        of_one_server.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    /// Whether an attestation is required: both the trusted signers and the level are configured.
    pub fn is_required(&self) -> bool {
        self.trust_root.is_some() && self.required.is_some()
    }

    /// Whether it configures attestation incompletely. The server's own entry may contain the rest.
    pub fn is_partial(&self) -> bool {
        let is_begun =
            self.trust_root.is_some() || self.required.is_some() || self.attestation.is_some();
        is_begun && !self.is_required()
    }

    /// What a server's program must match; all of it is required. The error names the missing key.
    pub fn bindings(&self) -> Result<Vec<Binding>, &'static str> {
        let file = self.program_digest.clone().map(|Parsed(digest)| Binding::File(digest));
        let package = match (&self.package, &self.version, &self.integrity) {
            (None, None, None) => None,
            (Some(name), Some(version), Some(Parsed(integrity))) => {
                let (name, version) = (name.to_string(), version.to_string());
                let integrity = integrity.clone();
                Some(Binding::Package(Package { name, version, integrity }))
            }
            (None, _, _) => return Err("admission.package"),
            (_, None, _) => return Err("admission.version"),
            (_, _, None) => return Err("admission.integrity"),
        };
        Ok(file.into_iter().chain(package).collect())
    }
}

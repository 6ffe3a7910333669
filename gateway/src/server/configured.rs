//! Converts the configuration of a server for the engine and the wire.

use crate::resources::Shared;
use crate::sign_in::PersonGrants;
use crate::vouching::Vouching;
use attest::ToolAllowlist;
use engine::confinement::{Confiner, ConfinerParts, Folders, KnownPackages, Outline};
use engine::credentials::{BadCredentials, Broker, PersonTokens, SecretReader, TokenUse};
use engine::decide::{ArgumentRules, Path};
use engine::judge::Rules;
use engine::program::find_program;
use engine::server::ServerSettings as EngineSettings;
use engine::situation::{RiskProfile, ServerProfile};
use engine::upper_tiers::UpperTiers;
use gate::shown::ListMode;
use ledger::record::TrustLevel;
use policy::Trust;
use settings::SecretName;
use settings::gateway::{
    CommandSettings, Credentials, GatewaySettings, Reach, ServerSettings, UrlSettings,
};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::{EndpointUrl, HttpEndpoint, StdioLaunch, Upstream};

pub(super) fn upstream_of(settings: &ServerSettings) -> Result<Upstream, String> {
    let variable = |name: &str| std::env::var(name).ok();
    match &settings.reach {
        Reach::Command(CommandSettings { command, env, .. }) => {
            let mut words = command.iter().map(OsString::from);
            let program = words.next().ok_or("`command` is empty")?;
            let mut environment = Vec::new();
            for (name, secret) in env {
                // Secrets in Vault or encrypted files are read when the program is started.
                if matches!(secret, SecretName::Vault(_) | SecretName::Age(_)) {
                    continue;
                }
                let value =
                    secret.read(variable).map_err(|error| format!("`env.{name}`: {error}"))?;
                environment.push((OsString::from(name), OsString::from(value)));
            }
            let arguments = words.collect();
            Ok(Upstream::Stdio(StdioLaunch {
                program,
                arguments,
                environment,
                directory: None,
                confinement: None,
            }))
        }
        Reach::Url(reached) => {
            let UrlSettings { url, headers, allow_private, ca, .. } = &**reached;
            if ca.is_some() {
                return Err("`ca` is not available in this version; remove it".to_owned());
            }
            let url: EndpointUrl =
                url.as_str().parse().map_err(|error| format!("`url`: {error}"))?;
            let mut all = Vec::new();
            let mut add = |name: &str, value: String| -> Result<(), String> {
                let header =
                    name.parse().map_err(|_| format!("`{name}` is not the name of a header"))?;
                let mut value: http::HeaderValue = value
                    .parse()
                    .map_err(|_| format!("the value of `{name}` does not fit into a header"))?;
                value.set_sensitive(true);
                all.push((header, value));
                Ok(())
            };
            for (name, secret) in headers {
                let value =
                    secret.read(variable).map_err(|error| format!("`headers.{name}`: {error}"))?;
                add(name, value)?;
            }
            Ok(Upstream::Http(HttpEndpoint {
                url,
                headers: all,
                allow_private: *allow_private,
                authorizer: None,
            }))
        }
    }
}

/// The confiner of a server, and an outline of its profile.
pub(super) struct Confined {
    pub(super) confiner: Arc<Confiner>,
    pub(super) outline: Outline,
}

/// Adds confinement to the launch of a server, if the settings ask for it.
pub(super) fn confiner_of(
    settings: &ServerSettings,
    upstream: &mut Upstream,
    shared: &Shared,
) -> Result<Option<Confined>, String> {
    let (Upstream::Stdio(launch), Reach::Command(CommandSettings { sandbox: Some(keys), .. })) =
        (upstream, &settings.reach)
    else {
        return Ok(None);
    };
    let helper = std::env::current_exe().map_err(|error| error.to_string())?;
    let home = shared.home.path();
    let known = KnownPackages::read(home).map_err(|error| error.to_string())?;
    let remark = shared.remark.clone();
    let confiner = Confiner::new(ConfinerParts {
        server: settings.id.clone(),
        keys: keys.as_ref().clone(),
        folders: Folders::of(home),
        known: Arc::new(known),
        variables: Vec::new(),
        switch: shared.egress_switch.clone(),
        helper,
        remark: Box::new(move |sentence| remark(sentence)),
    });
    confiner.reporter().record_to(shared.recorder.clone());
    let outline = confiner.outline(launch).map_err(|error| error.to_string())?;
    let confiner = Arc::new(confiner);
    launch.confinement = Some(confiner.clone());
    Ok(Some(Confined { confiner, outline }))
}

/// Provides the credential that replaces the caller's token.
pub(super) fn broker_of(
    settings: &ServerSettings,
    secrets: &SecretReader,
    shared: &Shared,
) -> Result<Broker, BadCredentials> {
    let credentials = match &settings.reach {
        Reach::Url(reached) => &reached.credentials,
        Reach::Command(_) => &Credentials::None,
    };
    let people = || Ok(Arc::new(PersonGrants::of(settings, shared)?) as Arc<dyn PersonTokens>);
    Broker::open(settings.id.as_str(), credentials, secrets, people)
}

/// The file of the program that is started; `None` for a server reached over HTTP.
pub(super) fn program_of(upstream: &Upstream) -> Result<Option<PathBuf>, String> {
    let Upstream::Stdio(launch) = upstream else { return Ok(None) };
    let program = launch.program.to_string_lossy();
    match find_program(&program, launch.directory.as_deref()) {
        Some(file) => Ok(Some(file)),
        None => Err(format!("the program `{program}` was not found")),
    }
}

pub(super) fn allowlist_of(
    settings: &ServerSettings,
) -> Result<Option<Arc<ToolAllowlist>>, String> {
    let Some(tools) = &settings.allowed_tools else { return Ok(None) };
    match ToolAllowlist::new(tools.iter().map(String::as_str)) {
        Ok(allowed) => Ok(Some(Arc::new(allowed))),
        Err(error) => Err(error.to_string()),
    }
}

/// The rules by which the server's entries are judged.
pub(super) fn rules_of(
    gateway: &GatewaySettings,
    settings: &ServerSettings,
    upstream: &Upstream,
    allowed: Option<Arc<ToolAllowlist>>,
    upper: &UpperTiers,
) -> Rules {
    let keys = gateway.engine_keys(settings);
    Rules {
        server: settings.id.clone(),
        settings: keys.judging(None),
        first_use: keys.first_use,
        scope: keys.drift_scope,
        mode: ListMode::Accepted,
        allowed,
        mirrors_parameters: matches!(upstream, Upstream::Http(_)),
        checks_input: true,
        behavior: gate::behavior::Consent::default(),
        upper: upper.clone(),
        profile: profile_of(settings),
    }
}

/// The path with a server's rules for arguments and rates.
pub(super) fn preflighted(path: Path, settings: &ServerSettings, shared: &Shared) -> Path {
    let preflight = &settings.preflight;
    let path = match preflight.throttle() {
        Some(throttle) => path.throttled_by(shared.rates.limiter(&settings.id, throttle)),
        None => path,
    };
    let is_local = matches!(settings.reach, Reach::Command(_));
    path.checking_arguments(
        ArgumentRules::of(preflight, is_local).sharing(shared.input_rules.clone()),
    )
}

pub(super) fn engine_settings(
    gateway: &GatewaySettings,
    settings: &ServerSettings,
    vouching: Option<&Vouching>,
) -> EngineSettings {
    let max_age = gateway.engine_keys(settings).relist.max_age;
    let usual = EngineSettings::default();
    EngineSettings {
        relist_max_age: max_age
            .map_or(usual.relist_max_age, |seconds| Duration::from_secs(seconds.0)),
        call_timeout: Some(Duration::from_secs(gateway.front.limits.call_timeout_seconds)),
        admission_max_age: vouching.map(|vouching| vouching.max_age),
        greets_before_check: vouching.is_some_and(|vouching| vouching.checker.greets_first()),
        ..usual
    }
}

pub(super) fn header_names(settings: &ServerSettings) -> Vec<String> {
    match &settings.reach {
        Reach::Command(_) => Vec::new(),
        Reach::Url(reached) => {
            let UrlSettings { headers, credentials, .. } = &**reached;
            let credential = credentials.header().map(str::to_owned);
            headers.keys().cloned().chain(credential).collect()
        }
    }
}

fn profile_of(settings: &ServerSettings) -> ServerProfile {
    let trust = match settings.trust {
        Trust::Internal => TrustLevel::Internal,
        Trust::Verified => TrustLevel::Verified,
        Trust::Community => TrustLevel::Community,
        Trust::Unknown => TrustLevel::Unknown,
    };
    let token = match &settings.reach {
        Reach::Url(reached) => TokenUse::of(&reached.credentials),
        Reach::Command(_) => TokenUse::default(),
    };
    let risk = RiskProfile { server: Some(settings.risk), tools: settings.tool_risk.clone() };
    ServerProfile { trust, sandbox: None, token, risk: Arc::new(risk) }
}

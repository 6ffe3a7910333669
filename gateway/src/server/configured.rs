//! What the configuration says of a server, as the engine and the wire take it.

use crate::vouching::Vouching;
use attest::ToolAllowlist;
use engine::credentials::{BadCredentials, Broker, SecretReader, TokenUse};
use engine::decide::{ArgumentRules, Path};
use engine::judge::Rules;
use engine::program::find_program;
use engine::server::ServerSettings as EngineSettings;
use engine::situation::ServerProfile;
use gate::by_the_call::input::InputRulesCache;
use gate::shown::ListMode;
use ledger::record::TrustLevel;
use policy::Trust;
use policy::preflight::RateLimiter;
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
                // What is in Vault is read when the program is started.
                if matches!(secret, SecretName::Vault(_)) {
                    continue;
                }
                let value =
                    secret.read(variable).map_err(|error| format!("`env.{name}`: {error}"))?;
                environment.push((OsString::from(name), OsString::from(value)));
            }
            let arguments = words.collect();
            Ok(Upstream::Stdio(StdioLaunch { program, arguments, environment, directory: None }))
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
            Ok(Upstream::Http(HttpEndpoint { url, headers: all, allow_private: *allow_private }))
        }
    }
}

/// What the server is shown in place of the caller's token.
pub(super) fn broker_of(
    settings: &ServerSettings,
    secrets: &SecretReader,
) -> Result<Broker, BadCredentials> {
    let credentials = match &settings.reach {
        Reach::Url(reached) => &reached.credentials,
        Reach::Command(_) => &Credentials::None,
    };
    Broker::open(settings.id.as_str(), credentials, secrets)
}

/// The file of the program that is started; `None` for a server that is reached over HTTP.
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

/// By what the server's entries are judged.
pub(super) fn rules_of(
    gateway: &GatewaySettings,
    settings: &ServerSettings,
    upstream: &Upstream,
    allowed: Option<Arc<ToolAllowlist>>,
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
        profile: profile_of(settings),
    }
}

/// The path with the rules for arguments and rates of a server.
pub(super) fn preflighted(path: Path, settings: &ServerSettings, cache: &InputRulesCache) -> Path {
    let preflight = &settings.preflight;
    let path = match preflight.throttle() {
        Some(throttle) => path.throttled_by(Arc::new(RateLimiter::new(throttle))),
        None => path,
    };
    let is_local = matches!(settings.reach, Reach::Command(_));
    path.checking_arguments(ArgumentRules::of(preflight, is_local).sharing(cache.clone()))
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
    ServerProfile { trust, sandbox: None, token }
}

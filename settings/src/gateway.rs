//! The settings of the gateway, read from `gateway.toml`: typed, with all mistakes in the file
//! reported together. Keys of features that this version lacks are mistakes too, so that nobody
//! relies on a protection that does not exist.

mod change;
mod front;
mod issuer;
mod mistake;
mod oauth_proxy;
mod peers;
mod redirect_uri;
mod server;
mod starter;
mod tables;
mod toolset;
mod vault;
mod web_url;
mod webhook;

use crate::MAX_CONFIGURATION_BYTES;
use crate::keys::{
    Admission, Anomaly, DriftScope, Export, FirstUsePolicy, Guard, Keys, Origin, Receipts, Relist,
    Shield,
};
use crate::network::{JudgeKeys, Network};
use crate::secret::SecretName;
use crate::value::{Parsed, Text};
use attest::{Flavor, Scheme};
use front::Authentication;
use gate::posture::Posture;
use gate::server::ServerId;
use mistake::{Mistakes, Place};
use policy::Trust;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tables::{AgeTable, GatewayFile, TracesTable};
use url::Url;

/// How often servers are checked between calls, if the file does not say.
const RECHECK_SECONDS: u64 = 600;

pub use change::ServerChanges;
pub use front::{FrontSettings, GatewayLimits, Transport};
pub use issuer::{ClaimNames, IssuerSettings, SignInSettings};
pub use mistake::Mistake;
pub use oauth_proxy::{
    ClientHosts, MAX_REDIRECT_URIS, NO_PROXY_RATIONALE, ProxyClient, ProxySettings,
};
pub use peers::{PeerAddress, PeerSettings};
pub use redirect_uri::{BadRedirectUri, MAX_REDIRECT_URI_BYTES, RedirectKind, RedirectUri};
pub use server::{
    CommandSettings, Credentials, GrantKind, GrantSettings, Reach, ServerSettings, UrlSettings,
    UserGrantSettings,
};
pub use starter::starter;
pub use tables::{AddressRange, ClientAuth, Instance, StoreLoss};
pub use toolset::Toolset;
pub use vault::{VaultLogin, VaultPath, VaultSettings};
pub use web_url::{BadWebUrl, WebOrigin, WebUrl};
pub use webhook::{WebhookSettings, WebhookUrl};

/// The contents of a `gateway.toml`. Relative paths are resolved against the file's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    pub front: FrontSettings,
    /// The store, in the notation of `store::Location`; `None` means the home's own.
    pub store: Option<String>,
    pub store_loss: StoreLoss,
    pub auth: AuthSettings,
    pub policy: PolicySettings,
    /// Where secrets named `vault:…` are stored.
    pub vault: Option<VaultSettings>,
    /// The identity that decrypts secrets named `age:…`.
    pub age: Option<SecretName>,
    /// The webhook that is notified of calls that wait for a person.
    pub webhook: Option<WebhookSettings>,
    pub posture: Option<Posture>,
    pub first_use: FirstUsePolicy,
    pub drift_scope: DriftScope,
    /// How often servers are checked between calls; 0 means never.
    pub recheck_seconds: u64,
    /// Applies to all servers. Each server's settings contain it with the server's own keys
    /// applied.
    pub admission: Admission,
    pub relist: Relist,
    pub guard: Guard,
    pub shield: Shield,
    pub origin: Origin,
    pub receipts: Receipts,
    pub export: Export,
    pub traces: TraceSettings,
    /// The gateway as an authorization server for clients.
    pub oauth_proxy: Option<ProxySettings>,
    /// The rates above which a session is throttled or quarantined.
    pub anomaly: Anomaly,
    /// The directory to query for what other installs observed.
    pub network: Network,
    /// The model to ask for opinions.
    pub judge: JudgeKeys,
    pub servers: BTreeMap<ServerId, Arc<ServerSettings>>,
    pub toolsets: BTreeMap<ServerId, Toolset>,
}

/// Where spans of calls are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceSettings {
    /// An OTLP/HTTP collector; `None` disables spans.
    pub otlp: Option<String>,
    pub headers: BTreeMap<String, SecretName>,
}

/// How callers authenticate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthSettings {
    pub issuers: Vec<IssuerSettings>,
    /// Whether keys made by `holdpoint key create` are accepted.
    pub keys: bool,
}

/// The policy files. Without any, everything is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// Absolute patterns, such as `/etc/holdpoint/policies/*.cedar`.
    pub files: Vec<String>,
    pub entities: Option<PathBuf>,
}

impl GatewaySettings {
    /// Reads the text of a `gateway.toml` located in this folder.
    pub fn read(text: &str, folder: &Path) -> Result<GatewaySettings, Vec<Mistake>> {
        if text.len() as u64 > MAX_CONFIGURATION_BYTES {
            let sentence = format!("the file is larger than {MAX_CONFIGURATION_BYTES} bytes");
            return Err(vec![Mistake { line: None, sentence }]);
        }
        let mut mistakes = Mistakes::begin(text)?;
        let settings = match mistakes.read(&GatewayFile::with_every_table()) {
            Some(file) => from_file(file, folder, &mut mistakes),
            None => None,
        };
        let found = mistakes.finish();
        match settings {
            Some(settings) if found.is_empty() => Ok(settings),
            _ => Err(found),
        }
    }

    /// Problems that the operator should know about although the file is accepted.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.auth.issuers.is_empty() && !self.auth.keys && !self.front.has_client_ca() {
            warnings.push("no caller can prove who it is, so every request is refused: set `enabled = true` under `[auth.keys]` or add an `[[auth.issuer]]`".to_owned());
        }
        if self.policy.files.is_empty() {
            warnings.push(
                "no policy is configured, so every call is denied: set `policy.files`".to_owned(),
            );
        }
        if self.servers.is_empty() {
            warnings.push("no server is configured: add a `[[server]]`".to_owned());
        }
        if let StoreLoss::Continue { seconds } = self.store_loss {
            warnings.push(format!("`gateway.store_loss`: revocations and incidents may take {seconds} seconds to count while the store cannot be reached"));
        }
        for settings in self.servers.values() {
            let is_untrusted = matches!(settings.trust, Trust::Community | Trust::Unknown);
            let is_open =
                |reach: &Reach| matches!(reach, Reach::Command(it) if it.sandbox.is_none());
            if is_untrusted && is_open(&settings.reach) {
                warnings.push(format!(
                    "`server.{}` runs unconfined, with all rights of the gateway",
                    settings.id
                ));
            }
            if settings.allowed_tools.as_ref().is_some_and(BTreeSet::is_empty) {
                warnings.push(format!(
                    "`server.{}` serves no tool: list them in `allowed_tools`",
                    settings.id
                ));
            }
        }
        warnings
    }

    /// How often a server is checked between calls; `None` means never. A server that needs a
    /// caller's credentials is checked only as part of that caller's requests.
    pub fn recheck_interval(&self, server: &ServerSettings) -> Option<Duration> {
        let seconds = server.recheck_seconds.unwrap_or(self.recheck_seconds);
        (seconds > 0 && server.has_own_credentials()).then(|| Duration::from_secs(seconds))
    }

    /// The keys that the engine would read for `run`, as they apply to one server of the gateway.
    pub fn engine_keys(&self, server: &ServerSettings) -> Keys {
        Keys {
            posture: self.posture,
            first_use: self.first_use,
            drift_scope: self.drift_scope,
            relist: self.relist.clone(),
            guard: self.guard.clone(),
            shield: self.shield.clone(),
            origin: self.origin.clone(),
            admission: server.admission.clone(),
            receipts: self.receipts.clone(),
            export: self.export.clone(),
            ..Keys::default()
        }
    }
}

fn from_file(
    file: GatewayFile,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<GatewaySettings> {
    let is_configured = !file.auth.issuer.is_empty() || file.auth.keys.enabled;
    let front = front::read(&file.gateway, &Authentication { is_configured }, folder, mistakes);
    let public_url = front.as_ref().map(|front| &front.public_url);
    let issuers = issuer::read(&file.auth, public_url, folder, mistakes);
    if file.egress.is_some() {
        mistakes.add(
            &Place::top().key("egress"),
            "a proxy for upstreams is not available in this version; remove it",
        );
    }
    let oauth_proxy = oauth_proxy::read(file.oauth_proxy.as_ref(), &issuers, folder, mistakes);
    check_store(file.gateway.store.as_deref(), mistakes);
    check_admission(&file.admission, mistakes);
    check_export(&file.export, mistakes);
    check_traces(&file.traces, mistakes);
    if let Some(why) = file.anomaly.mistake() {
        mistakes.add(&Place::top().key("anomaly").key("throttle_to"), why);
    }
    if let Some((key, why)) = file.network.mistake() {
        mistakes.add(&Place::top().key("network").key(key), why);
    }
    if let Some((key, why)) = file.judge.mistake() {
        mistakes.add(&Place::top().key("judge").key(key), why);
    }
    let admission = resolve(file.admission, folder);
    let vault = vault::read(file.vault.as_ref(), folder, mistakes);
    let webhook = webhook::read(file.approval.webhook.as_ref(), folder, mistakes);
    let age = read_age(file.age.as_ref(), folder, mistakes);
    let common = server::Common {
        admission: &admission,
        has_vault: file.vault.is_some(),
        has_age: file.age.is_some(),
        has_sign_in: issuers.iter().any(|issuer| issuer.sign_in.is_some()),
        folder,
    };
    let servers = server::read(&file.server, common, mistakes);
    let written_ids: BTreeSet<String> =
        file.server.iter().filter_map(|server| Some(server.id.as_ref()?.to_string())).collect();
    let named = toolset::Named { servers: &servers, written_ids: &written_ids };
    let toolsets = toolset::read(&file.toolset, &named, mistakes);
    let path = |text: &Text| folder.join(&**text);
    Some(GatewaySettings {
        front: front?,
        store: file.gateway.store.as_ref().map(|store| in_folder(store, folder)),
        store_loss: file.gateway.store_loss.map(|Parsed(loss)| loss).unwrap_or_default(),
        auth: AuthSettings { issuers, keys: file.auth.keys.enabled },
        policy: PolicySettings {
            files: file
                .policy
                .files
                .iter()
                .map(|pattern| path(pattern).to_string_lossy().into_owned())
                .collect(),
            entities: file.policy.entities.as_ref().map(path),
        },
        vault,
        age,
        webhook,
        posture: file.gateway.posture,
        first_use: file.gateway.first_use,
        drift_scope: file.gateway.drift_scope,
        recheck_seconds: file.gateway.recheck_seconds.map_or(RECHECK_SECONDS, |seconds| seconds.0),
        admission,
        relist: file.relist,
        guard: file.guard,
        shield: file.shield,
        origin: file.origin,
        receipts: file.receipts,
        export: file.export,
        traces: TraceSettings {
            otlp: file.traces.otlp.map(|otlp| otlp.to_string()),
            headers: file.traces.otlp_headers,
        },
        oauth_proxy,
        anomaly: file.anomaly,
        network: file.network,
        judge: file.judge,
        servers,
        toolsets,
    })
}

/// Reads where the identity that decrypts age-encrypted files is stored.
fn read_age(
    table: Option<&AgeTable>,
    folder: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<SecretName> {
    let place = Place::top().key("age").key("identity");
    match &table?.identity {
        Some(identity) => front::readable(identity, folder, &place, mistakes),
        None => {
            let missing = "missing: name the file that `age-keygen` wrote, such as `identity = \"file:/etc/holdpoint/age.key\"`";
            mistakes.add(&place, missing);
            None
        }
    }
}

/// Refuses a password, since the file must not contain secrets. The store checks the rest of the
/// address itself.
fn check_store(written: Option<&str>, mistakes: &mut Mistakes<'_>) {
    let place = Place::top().key("gateway").key("store");
    let Some(text) = written else { return };
    let kind = text.split_once(':').map_or(text, |(kind, _)| kind);
    match kind {
        "postgres" | "postgresql" => match Url::parse(text) {
            Ok(url) if url.password().is_some() => mistakes.add(
                &place,
                "a password does not belong here: name a place that has the address, with `env:VARIABLE` or `file:PATH`",
            ),
            Ok(_) => {}
            Err(_) => mistakes.add(&place, "type `postgres://user@host/database`"),
        },
        "sqlite" if text != "sqlite" => {
            mistakes.add(&place, "type `sqlite`: another home is named with `--home`");
        }
        "sqlite" | "env" | "file" => {}
        _ => mistakes.add(
            &place,
            "type `sqlite`, `postgres://user@host/database`, `env:VARIABLE` or `file:PATH`",
        ),
    }
}

/// The store's text, with a relative path resolved against the file's folder.
fn in_folder(store: &str, folder: &Path) -> String {
    match store.split_once(':') {
        Some(("file", path)) if !path.is_empty() => format!("file:{}", folder.join(path).display()),
        _ => store.to_owned(),
    }
}

fn check_admission(admission: &Admission, mistakes: &mut Mistakes<'_>) {
    let place = Place::top().key("admission");
    if let Some(key) = admission.key_of_one_server() {
        let key_of_server = if key == "allow_tools" { "allowed_tools" } else { key };
        let problem = format!("is about one server: write `{key_of_server}` in its `[[server]]`");
        mistakes.add(&place.key(key), problem);
    }
    let is_enclaved = admission.flavor == Some(Parsed(Flavor::Enclaved));
    if is_enclaved && admission.trust_root.is_none() {
        mistakes.add(
            &place.key("trust_root"),
            "missing: under the flavor `enclaved` every server is checked against it",
        );
    }
}

fn check_export(export: &Export, mistakes: &mut Mistakes<'_>) {
    let place = Place::top().key("export").key("otlp_headers");
    for (header, secret) in export.otlp_headers.iter().flatten() {
        if let Err(error) = secret.check_readable() {
            mistakes.add(&place.key(header), format!("{error}"));
        }
    }
}

fn check_traces(traces: &TracesTable, mistakes: &mut Mistakes<'_>) {
    let place = Place::top().key("traces").key("otlp_headers");
    if traces.otlp.is_none() && !traces.otlp_headers.is_empty() {
        mistakes.add(&place, "they are for `traces.otlp`, which is not set");
    }
    for (header, secret) in &traces.otlp_headers {
        if let Err(error) = secret.check_readable() {
            mistakes.add(&place.key(header), format!("{error}"));
        }
    }
}

/// The files of admission, with paths resolved against the file's folder.
fn resolve(mut admission: Admission, folder: &Path) -> Admission {
    let is_built_in =
        admission.scheme.as_deref().is_none_or(|name| Scheme::built_in(name).is_some());
    let Admission { trust_root, revocations, attestation, scheme, .. } = &mut admission;
    let files = [trust_root, revocations, attestation].into_iter().flatten();
    for path in files.chain(scheme.as_mut().filter(|_| !is_built_in)) {
        if let Ok(resolved) = Text::try_from(folder.join(&**path).to_string_lossy().into_owned()) {
            *path = resolved;
        }
    }
    admission
}

#[cfg(test)]
mod tests;

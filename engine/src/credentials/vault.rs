//! HashiCorp Vault: secrets of the KV engine, version 2, over HTTP. Authenticates with a token, an
//! AppRole or a Kubernetes service account, and authenticates again when its token expires or is
//! refused.

use super::secret::{Secret, read_local};
use super::unavailable::Unavailable;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use settings::SecretError;
use settings::gateway::{VaultLogin, VaultPath, VaultSettings};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use wire::attestation::FetchLimits;
use wire::service::{ServiceAddress, ServiceBody, ServiceRequest};
use zeroize::Zeroizing;

/// The timeout and the longest response of Vault.
const LIMITS: FetchLimits = FetchLimits { bytes: 256 * 1024, patience: Duration::from_secs(10) };
/// A Vault token is replaced when this fraction of its lifetime is left.
const MARGIN_PART: u32 = 5;

/// A Vault, and how to authenticate to it.
pub struct Vault {
    settings: VaultSettings,
    service: ServiceAddress,
    /// Locked while authenticating, so that other calls wait for the result.
    session: Mutex<Option<VaultToken>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Vault").field(&self.service).finish()
    }
}

#[derive(Clone)]
struct VaultToken {
    token: Arc<Secret>,
    /// `None` if it was configured; it is used until it is replaced.
    renew_at: Option<Instant>,
}

/// Why a Vault cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BadVault {
    #[error("`vault.address`: {0}")]
    Address(String),
    #[error("`vault`: {0}")]
    Secret(#[from] SecretError),
}

#[derive(Deserialize)]
struct SecretAnswer<'a> {
    #[serde(borrow)]
    data: Option<SecretVersion<'a>>,
}

#[derive(Deserialize)]
struct SecretVersion<'a> {
    /// `null` if the newest version was deleted.
    #[serde(borrow)]
    data: Option<BTreeMap<String, &'a RawValue>>,
}

#[derive(Deserialize)]
struct LoginAnswer {
    auth: Option<LoginAuth>,
}

#[derive(Deserialize)]
struct LoginAuth {
    client_token: Secret,
    /// In seconds; 0 for a token that does not expire.
    #[serde(default)]
    lease_duration: u64,
}

impl Vault {
    /// Makes no requests.
    pub fn open(settings: &VaultSettings) -> Result<Vault, BadVault> {
        let url = settings.address.as_str();
        let url =
            url.parse().map_err(|error: wire::BadUrl| BadVault::Address(error.to_string()))?;
        let authorities =
            settings.ca.as_ref().map(|ca| ca.read(|name| std::env::var(name).ok())).transpose()?;
        let authorities = authorities.as_deref().map(str::as_bytes);
        let service = ServiceAddress::new(url, settings.allow_private, authorities)
            .map_err(|error| BadVault::Address(error.to_string()))?;
        match &settings.login {
            VaultLogin::Token(secret)
            | VaultLogin::AppRole { secret_id: secret, .. }
            | VaultLogin::Kubernetes { jwt: secret, .. } => read_local(secret)?,
        };
        Ok(Vault { settings: settings.clone(), service, session: Mutex::default() })
    }

    pub(super) fn refresh(&self) -> Duration {
        Duration::from_secs(self.settings.refresh_seconds)
    }

    /// A field of the newest version of a secret.
    pub async fn read(&self, path: &VaultPath) -> Result<Secret, Unavailable> {
        let VaultPath { mount, path: inner, field } = path;
        let place = format!("/v1/{mount}/data/{inner}");
        let token = self.token(None).await?;
        let (mut status, mut body) = self.get(&place, &token).await?;
        if status == StatusCode::FORBIDDEN {
            // The token may have expired early. Vault responds the same to a token without
            // permission for this secret.
            let token = self.token(Some(&token)).await?;
            (status, body) = self.get(&place, &token).await?;
        }
        if status != StatusCode::OK {
            let status = status.as_u16();
            return Err(Unavailable::Status { place: path.to_string(), status, code: None });
        }
        let wrong = |problem| Unavailable::Unusable { place: path.to_string(), problem };
        let answer: SecretAnswer<'_> = serde_json::from_slice(&body)
            .map_err(|_| wrong("it is not an answer of the KV engine, version 2"))?;
        let version = answer.data.and_then(|data| data.data);
        let fields = version.ok_or_else(|| wrong("the secret has no version that can be read"))?;
        let value = fields.get(field).ok_or_else(|| wrong("the secret has no such field"))?;
        serde_json::from_str(value.get()).map_err(|_| wrong("the field is not a text"))
    }

    async fn get(
        &self,
        path: &str,
        token: &Secret,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), Unavailable> {
        let mut headers = self.headers();
        let mut value =
            HeaderValue::from_str(token.expose()).map_err(|_| Unavailable::NotAHeader)?;
        value.set_sensitive(true);
        headers.push((HeaderName::from_static("x-vault-token"), value));
        let request =
            ServiceRequest { method: Method::GET, path: path.to_owned(), headers, body: None };
        self.send(request).await
    }

    async fn send(
        &self,
        request: ServiceRequest,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), Unavailable> {
        let sent = self.service.send(request, LIMITS).await;
        let (status, body) = sent.map_err(|error| Unavailable::NotReached {
            place: self.settings.address.to_string(),
            source: Arc::new(error),
        })?;
        Ok((status, Zeroizing::new(body)))
    }

    /// The headers of every request. Vault agents refuse requests without the first one.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let own = (HeaderName::from_static("x-vault-request"), HeaderValue::from_static("true"));
        let namespace = self.settings.namespace.as_deref();
        let namespace = namespace.and_then(|name| HeaderValue::from_str(name).ok());
        let namespace = namespace.map(|name| (HeaderName::from_static("x-vault-namespace"), name));
        [Some(own), namespace].into_iter().flatten().collect()
    }

    /// The token for requests; a different one from `refused`.
    async fn token(&self, refused: Option<&Arc<Secret>>) -> Result<Arc<Secret>, Unavailable> {
        let mut session = self.session.lock().await;
        if let Some(VaultToken { token, renew_at }) = &*session {
            let is_fresh = renew_at.is_none_or(|at| Instant::now() < at);
            if is_fresh && !refused.is_some_and(|refused| Arc::ptr_eq(refused, token)) {
                return Ok(token.clone());
            }
        }
        let signed_in = match &self.settings.login {
            VaultLogin::Token(name) => {
                VaultToken { token: Arc::new(read_local(name)?), renew_at: None }
            }
            VaultLogin::AppRole { mount, role_id, secret_id } => {
                let secret_id = read_local(secret_id)?;
                self.login(mount, [("role_id", role_id), ("secret_id", secret_id.expose())]).await?
            }
            VaultLogin::Kubernetes { mount, role, jwt } => {
                let jwt = read_local(jwt)?;
                self.login(mount, [("role", role), ("jwt", jwt.expose())]).await?
            }
        };
        let token = signed_in.token.clone();
        *session = Some(signed_in);
        Ok(token)
    }

    async fn login(
        &self,
        mount: &str,
        fields: [(&str, &str); 2],
    ) -> Result<VaultToken, Unavailable> {
        let place = format!("/v1/auth/{mount}/login");
        let body = serde_json::to_vec(&BTreeMap::from(fields)).unwrap_or_default();
        let asked = Instant::now();
        let request = ServiceRequest {
            method: Method::POST,
            path: place.clone(),
            headers: self.headers(),
            body: Some(ServiceBody::Json(body)),
        };
        let (status, body) = self.send(request).await?;
        let place = format!("vault {place}");
        if status != StatusCode::OK {
            return Err(Unavailable::Status { place, status: status.as_u16(), code: None });
        }
        let answer: Option<LoginAnswer> = serde_json::from_slice(&body).ok();
        let auth = answer.and_then(|answer| answer.auth);
        let problem = "it has no token";
        let auth = auth.ok_or(Unavailable::Unusable { place, problem })?;
        let lease = Duration::from_secs(auth.lease_duration);
        let renew_at = (!lease.is_zero()).then(|| asked + (lease - lease / MARGIN_PART));
        Ok(VaultToken { token: Arc::new(auth.client_token), renew_at })
    }
}

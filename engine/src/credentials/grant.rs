//! Tokens from an authorization server: RFC 6749's client credentials and RFC 8693's token
//! exchange.
//!
//! Grants are represented as a chain: each step uses the token of the previous step as its subject.
//! Today's grants need one step; an assertion that is obtained by an exchange and then redeemed
//! (RFC 7523, as for ID-JAG) is a chain of two.

use super::BadCredentials;
use super::claims::Claims;
use super::secret::{Secret, SecretReader};
use super::unavailable::Unavailable;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use settings::SecretName;
use settings::gateway::{ClientAuth, GrantKind, GrantSettings};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::attestation::FetchLimits;
use wire::service::{ServiceAddress, ServiceBody, ServiceRequest};
use zeroize::Zeroizing;

/// The timeout and the longest response of a token endpoint.
const LIMITS: FetchLimits = FetchLimits { bytes: 64 * 1024, patience: Duration::from_secs(10) };
/// The longest token that is accepted.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The lifetime assumed for a token without one, and the longest lifetime that is believed.
const UNTOLD_LIFETIME: Duration = Duration::from_secs(60);
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// The grants that lead to a token, each with the previous token as its subject.
#[derive(Debug)]
pub(super) struct GrantChain {
    steps: Vec<GrantStep>,
    /// Where tokens are revoked.
    revocation: Option<ServiceAddress>,
    reader: SecretReader,
}

/// One request to a token endpoint.
#[derive(Debug)]
struct GrantStep {
    grant: Grant,
    endpoint: ServiceAddress,
    /// The endpoint as named in messages.
    place: String,
    client: SecretName,
    client_auth: ClientAuth,
    audience: String,
    resource: Option<String>,
    scopes: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grant {
    ClientCredentials,
    Exchange,
}

/// A token with its lifetime, counted from the request for it.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) token: Secret,
    pub(super) lifetime: Duration,
}

/// The members of a response that are used.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<Secret>,
    token_type: Option<String>,
    issued_token_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: Option<String>,
}

impl GrantChain {
    pub(super) fn of(
        settings: &GrantSettings,
        reader: &SecretReader,
    ) -> Result<GrantChain, BadCredentials> {
        let authorities =
            settings.ca.as_ref().map(|ca| ca.read(|name| std::env::var(name).ok())).transpose()?;
        let authorities = authorities.as_deref().map(str::as_bytes);
        let address = |url: &str| {
            let url = url.parse().map_err(|error: wire::BadUrl| error.to_string())?;
            ServiceAddress::new(url, settings.allow_private, authorities)
                .map_err(|error| error.to_string())
        };
        let endpoint =
            address(settings.token_endpoint.as_str()).map_err(BadCredentials::Endpoint)?;
        let revocation = settings.revocation_endpoint.as_ref().map(|url| address(url.as_str()));
        let revocation = revocation.transpose().map_err(BadCredentials::RevocationEndpoint)?;
        let grant = match settings.kind {
            GrantKind::Exchange => Grant::Exchange,
            GrantKind::ClientCredentials => Grant::ClientCredentials,
        };
        let step = GrantStep {
            grant,
            endpoint,
            place: settings.token_endpoint.to_string(),
            client: settings.client.clone(),
            client_auth: settings.client_auth,
            audience: settings.audience.clone(),
            resource: settings.resource.clone(),
            scopes: settings.scopes.join(" "),
        };
        Ok(GrantChain { steps: vec![step], revocation, reader: reader.clone() })
    }

    pub(super) fn can_revoke(&self) -> bool {
        self.revocation.is_some()
    }

    /// Revokes a token from the last grant (RFC 7009). A token that is already unknown there is not
    /// an error.
    pub(super) async fn revoke(&self, token: &str) -> Result<(), Unavailable> {
        let (Some(address), Some(step)) = (&self.revocation, self.steps.last()) else {
            return Ok(());
        };
        let client = self.reader.read(&step.client).await?;
        let form = vec![("token", token), ("token_type_hint", "access_token")];
        let request = step.authenticated(&client, form)?;
        let place = || format!("{} (revocation)", step.place);
        let sent = address.send(request, LIMITS).await;
        let (status, body) = sent
            .map_err(|error| Unavailable::NotReached { place: place(), source: Arc::new(error) })?;
        match status {
            StatusCode::OK => Ok(()),
            status => Err(Unavailable::Status {
                place: place(),
                status: status.as_u16(),
                code: error_code(&Zeroizing::new(body)),
            }),
        }
    }

    /// The token from the last grant. `subject` is the subject of the first one.
    pub(super) async fn run(&self, subject: Option<&str>) -> Result<Issued, Unavailable> {
        let mut issued: Option<Issued> = None;
        for step in &self.steps {
            let client = self.reader.read(&step.client).await?;
            let about = issued.as_ref().map(|issued| issued.token.expose()).or(subject);
            issued = Some(step.ask(&client, about).await?);
        }
        issued.ok_or(Unavailable::NoSubject)
    }
}

impl GrantStep {
    async fn ask(&self, client: &Secret, subject: Option<&str>) -> Result<Issued, Unavailable> {
        let asked = Instant::now();
        let request = self.request(client, subject)?;
        let sent = self.endpoint.send(request, LIMITS).await;
        let (status, body) = sent.map_err(|error| Unavailable::NotReached {
            place: self.place.clone(),
            source: Arc::new(error),
        })?;
        let body = Zeroizing::new(body);
        if status != StatusCode::OK {
            return Err(Unavailable::Status {
                place: self.place.clone(),
                status: status.as_u16(),
                code: error_code(&body),
            });
        }
        let issued = self.read(&body)?;
        // Count from before the request, because the response may have taken a while.
        Ok(Issued { lifetime: issued.lifetime.saturating_sub(asked.elapsed()), ..issued })
    }

    fn request(
        &self,
        client: &Secret,
        subject: Option<&str>,
    ) -> Result<ServiceRequest, Unavailable> {
        let mut form: Vec<(&str, &str)> = Vec::new();
        match self.grant {
            Grant::ClientCredentials => form.push(("grant_type", "client_credentials")),
            Grant::Exchange => form.extend([
                ("grant_type", EXCHANGE),
                ("subject_token", subject.ok_or(Unavailable::NoSubject)?),
                ("subject_token_type", ACCESS_TOKEN),
                ("requested_token_type", ACCESS_TOKEN),
            ]),
        }
        form.push(("audience", &self.audience));
        if let Some(resource) = &self.resource {
            form.push(("resource", resource));
        }
        if !self.scopes.is_empty() {
            form.push(("scope", &self.scopes));
        }
        self.authenticated(client, form)
    }

    /// A request with this form, authenticated as the gateway's client.
    fn authenticated<'f>(
        &'f self,
        client: &'f Secret,
        mut form: Vec<(&'f str, &'f str)>,
    ) -> Result<ServiceRequest, Unavailable> {
        let Some((id, secret)) = client.expose().split_once(':') else {
            return Err(self.unusable("the client has to be `ID:SECRET`"));
        };
        let mut headers = Vec::new();
        match self.client_auth {
            ClientAuth::Basic => {
                // RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
                let joined = Zeroizing::new(format!("{}:{}", *encoded(id), *encoded(secret)));
                let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(joined.as_bytes())));
                let mut value =
                    HeaderValue::from_str(&value).map_err(|_| Unavailable::NotAHeader)?;
                value.set_sensitive(true);
                headers.push((AUTHORIZATION, value));
            }
            ClientAuth::Post => form.extend([("client_id", id), ("client_secret", secret)]),
        }
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", *encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        Ok(ServiceRequest {
            method: Method::POST,
            path: String::new(),
            headers,
            body: Some(ServiceBody::Form(body)),
        })
    }

    fn read(&self, body: &[u8]) -> Result<Issued, Unavailable> {
        let wrong = |problem: &'static str| self.unusable(problem);
        let answer: TokenAnswer =
            serde_json::from_slice(body).map_err(|_| wrong("it is not a token response"))?;
        let token = answer.access_token.ok_or_else(|| wrong("it has no `access_token`"))?;
        let is_token = |text: &str| {
            !text.is_empty()
                && text.len() <= MAX_TOKEN_BYTES
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !is_token(token.expose()) {
            return Err(wrong("the token is empty, too long, or has characters of no token"));
        }
        if !answer.token_type.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(wrong("the token is not of the type `Bearer`"));
        }
        if let Some(kind) = &answer.issued_token_type
            && ![ACCESS_TOKEN, JWT].contains(&kind.as_str())
        {
            return Err(wrong("what was issued is not an access token"));
        }
        let claims = Claims::of(token.expose());
        // An unreadable token reveals nothing about its audience; the server that receives it
        // decides.
        if claims.as_ref().is_some_and(|claims| !claims.is_for(&self.audience)) {
            return Err(wrong("the token was issued for another audience"));
        }
        let told = answer.expires_in.map(Duration::from_secs).or_else(|| {
            let at = claims?.expires?.saturating_mul(1_000);
            let left = at.saturating_sub(crate::recorder::now().0);
            Some(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
        });
        let lifetime = told.unwrap_or(UNTOLD_LIFETIME).min(MAX_LIFETIME);
        if lifetime.is_zero() {
            return Err(wrong("the token has expired already"));
        }
        Ok(Issued { token, lifetime })
    }

    fn unusable(&self, problem: &'static str) -> Unavailable {
        Unavailable::Unusable { place: self.place.clone(), problem }
    }
}

/// The error code of RFC 6749 §5.2. The server chose the text, so it is shown only if it looks like
/// a code.
fn error_code(body: &[u8]) -> Option<String> {
    let code = serde_json::from_slice::<ErrorAnswer>(body).ok()?.error?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    ((1..=64).contains(&code.len()) && code.bytes().all(is_plain)).then_some(code)
}

/// Encodes text as in `application/x-www-form-urlencoded`.
fn encoded(text: &str) -> Zeroizing<String> {
    Zeroizing::new(utf8_percent_encode(text, NON_ALPHANUMERIC).to_string())
}

#[cfg(test)]
mod tests;

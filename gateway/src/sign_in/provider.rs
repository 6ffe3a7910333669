//! The identity provider at which people sign in to the gateway (OpenID Connect): its metadata, the
//! browser's request to it, and the exchange of the returned code.

use super::Asked;
use super::cookies::ProviderLeg;
use super::records::{random, random_id};
use super::refused::SignInRefusal;
use crate::identity::SignedInPerson;
use crate::sealed::SealError;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use contract::json::{Document, Node};
use contract::time::Timestamp;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, StatusCode};
use settings::SecretError;
use settings::gateway::{ClientAuth, IssuerSettings, SignInSettings, WebUrl};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use url::form_urlencoded;
use wire::attestation::{FetchError, FetchLimits};
use wire::service::{ServiceAddress, ServiceBody, ServiceRequest};
use zeroize::Zeroizing;

const LIMITS: FetchLimits = FetchLimits { bytes: 256 * 1024, patience: Duration::from_secs(10) };
/// How long a provider's metadata is cached.
const FRESH: Duration = Duration::from_secs(3_600);

/// Why an identity provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderError {
    #[error("`client`: {0}")]
    Secret(#[from] SecretError),
    #[error("`client` has to be `ID:SECRET`")]
    Client,
    #[error("it cannot be reached: {0}")]
    NotReached(#[from] FetchError),
    #[error("its address cannot be used: {0}")]
    Address(String),
    #[error("it answered status {0}")]
    Status(u16),
    #[error("its metadata cannot be used: {0}")]
    Metadata(&'static str),
    #[error("its answer cannot be used: {0}")]
    Answer(&'static str),
}

/// The provider's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderMetadata {
    authorization_endpoint: WebUrl,
    token_endpoint: WebUrl,
    /// Whether its responses in the browser name the issuer.
    names_issuer: bool,
}

impl ProviderMetadata {
    fn read(bytes: &[u8], issuer: &str) -> Result<ProviderMetadata, &'static str> {
        let document = Document::parse_bytes(bytes).map_err(|_| "it is not valid JSON")?;
        let root = document.root();
        let text = |name: &str| root.get(name).and_then(Node::as_str);
        if text("issuer").as_deref() != Some(issuer) {
            return Err("it is the document of another issuer");
        }
        let endpoint = |name: &str, missing: &'static str| {
            text(name).and_then(|url| url.parse::<WebUrl>().ok()).ok_or(missing)
        };
        let told = root.get("authorization_response_iss_parameter_supported");
        Ok(ProviderMetadata {
            authorization_endpoint: endpoint(
                "authorization_endpoint",
                "it has no `authorization_endpoint` that can be used",
            )?,
            token_endpoint: endpoint(
                "token_endpoint",
                "it has no `token_endpoint` that can be used",
            )?,
            names_issuer: told.and_then(Node::as_bool).unwrap_or(false),
        })
    }
}

/// A cache of providers' metadata, by issuer.
#[derive(Debug, Default)]
pub(super) struct Providers(Mutex<HashMap<String, (Instant, Arc<ProviderMetadata>)>>);

impl Providers {
    async fn of(&self, issuer: &IssuerSettings) -> Result<Arc<ProviderMetadata>, ProviderError> {
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, metadata)) = known.get(&issuer.issuer)
                && at.elapsed() < FRESH
            {
                return Ok(metadata.clone());
            }
        }
        let base = issuer.issuer.trim_end_matches('/');
        let address = address(&format!("{base}/.well-known/openid-configuration"), issuer)?;
        let request = ServiceRequest { method: Method::GET, ..ServiceRequest::default() };
        let (status, body) = address.send(request, LIMITS).await?;
        if status != StatusCode::OK {
            return Err(ProviderError::Status(status.as_u16()));
        }
        let metadata = ProviderMetadata::read(&body, &issuer.issuer);
        let metadata = Arc::new(metadata.map_err(ProviderError::Metadata)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(issuer.issuer.clone(), (Instant::now(), metadata.clone()));
        Ok(metadata)
    }
}

/// An address from the provider's metadata. Unless the provider itself runs on this machine, the
/// gateway's secret must not be sent to an address here.
fn address(url: &str, issuer: &IssuerSettings) -> Result<ServiceAddress, ProviderError> {
    let parsed =
        url.parse().map_err(|error: wire::BadUrl| ProviderError::Address(error.to_string()))?;
    let authorities = issuer.ca.as_ref().map(|ca| ca.read(|name| std::env::var(name).ok()));
    let authorities = authorities.transpose()?;
    let authorities = authorities.as_deref().map(str::as_bytes);
    let address = ServiceAddress::new(parsed, issuer.allow_private, authorities)
        .map_err(|error| ProviderError::Address(error.to_string()))?;
    let is_local = issuer.issuer.parse::<WebUrl>().is_ok_and(|url| url.is_loopback());
    Ok(if is_local || issuer.allow_private { address } else { address.off_this_machine() })
}

/// The gateway's client at a provider.
struct OwnClient {
    id: String,
    secret: Zeroizing<String>,
}

impl OwnClient {
    fn read(settings: &SignInSettings) -> Result<OwnClient, ProviderError> {
        let text = Zeroizing::new(settings.client.read(|name| std::env::var(name).ok())?);
        let (id, secret) = text.split_once(':').ok_or(ProviderError::Client)?;
        Ok(OwnClient { id: id.to_owned(), secret: Zeroizing::new(secret.to_owned()) })
    }
}

/// The sign-in settings of an issuer, which a request to a provider needs.
fn sign_in_of(issuer: &IssuerSettings) -> Result<&SignInSettings, ProviderError> {
    issuer.sign_in.as_ref().ok_or(ProviderError::Client)
}

impl ProviderLeg {
    fn new(issuer: &str, transaction: &str) -> Result<ProviderLeg, SealError> {
        Ok(ProviderLeg {
            issuer: issuer.to_owned(),
            state: format!("{transaction}.{}", random_id()?),
            nonce: random_id()?,
            verifier: URL_SAFE_NO_PAD.encode(random::<32>()?),
        })
    }
}

impl Asked<'_> {
    /// Begins a sign-in at an identity provider: returns the values that must come back, and the
    /// address for the browser.
    pub(super) async fn to_provider(
        &self,
        issuer: &IssuerSettings,
        transaction: &str,
    ) -> Result<(ProviderLeg, String), SignInRefusal> {
        let settings = sign_in_of(issuer)?;
        let client = OwnClient::read(settings)?;
        let metadata = self.node.shared.sign_ins.providers.of(issuer).await?;
        let leg = ProviderLeg::new(&issuer.issuer, transaction)?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(leg.verifier.as_bytes()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &self.url("/oauth/callback")),
            ("scope", &settings.scopes.join(" ")),
            ("state", &leg.state),
            ("nonce", &leg.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        let endpoint = metadata.authorization_endpoint.as_str();
        let between = if endpoint.contains('?') { '&' } else { '?' };
        Ok((leg, format!("{endpoint}{between}{}", query.finish())))
    }

    /// Exchanges the identity provider's code for the person.
    pub(super) async fn person_of_provider(
        &self,
        issuer: &IssuerSettings,
        leg: &ProviderLeg,
        (code, named): (&str, Option<&str>),
        now: Timestamp,
    ) -> Result<SignedInPerson, SignInRefusal> {
        let settings = sign_in_of(issuer)?;
        let client = OwnClient::read(settings)?;
        let metadata = self.node.shared.sign_ins.providers.of(issuer).await?;
        // RFC 9207: a response that names another issuer is a mix-up, whatever else it contains.
        match named {
            Some(named) if named != issuer.issuer => return Err(SignInRefusal::Issuer),
            None if metadata.names_issuer => return Err(SignInRefusal::Issuer),
            Some(_) | None => {}
        }
        let redirect_uri = self.url("/oauth/callback");
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", &leg.verifier),
        ];
        let request = authenticated(&client, settings.client_auth, &form)?;
        let address = address(metadata.token_endpoint.as_str(), issuer)?;
        let (status, body) =
            address.send(request, LIMITS).await.map_err(ProviderError::NotReached)?;
        let body = Zeroizing::new(body);
        if status != StatusCode::OK {
            return Err(ProviderError::Status(status.as_u16()).into());
        }
        let token = id_token(&body)?;
        let who = self.node.authenticator();
        Ok(who.person(&issuer.issuer, &token, &client.id, &leg.nonce, now).await?)
    }
}

fn id_token(body: &[u8]) -> Result<Zeroizing<String>, ProviderError> {
    let answer = Document::parse_bytes(body);
    let answer = answer.map_err(|_| ProviderError::Answer("it is not valid JSON"))?;
    let token = answer.root().get("id_token").and_then(Node::as_str);
    let token = token.ok_or(ProviderError::Answer("it has no `id_token`"))?;
    Ok(Zeroizing::new(token.into_owned()))
}

/// A form with the gateway's client authentication.
fn authenticated(
    client: &OwnClient,
    method: ClientAuth,
    form: &[(&str, &str)],
) -> Result<ServiceRequest, ProviderError> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let mut headers = Vec::new();
    match method {
        ClientAuth::Basic => {
            // RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
            let encoded = |text: &str| {
                let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                Zeroizing::new(encoded)
            };
            let joined = format!("{}:{}", *encoded(&client.id), *encoded(&client.secret));
            let joined = Zeroizing::new(joined);
            let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(joined.as_bytes())));
            let mut value = HeaderValue::from_str(&value).map_err(|_| ProviderError::Client)?;
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
        ClientAuth::Post => {
            body.append_pair("client_id", &client.id);
            body.append_pair("client_secret", &client.secret);
        }
    }
    let body = Some(ServiceBody::Form(body.finish()));
    Ok(ServiceRequest { method: Method::POST, path: String::new(), headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_the_issuers_own_and_its_endpoints_are_secure() {
        let good = r#"{"issuer":"https://idp.example","authorization_endpoint":"https://idp.example/auth","token_endpoint":"https://idp.example/token","authorization_response_iss_parameter_supported":true}"#;
        let read = |text: &str| ProviderMetadata::read(text.as_bytes(), "https://idp.example");
        assert!(read(good).unwrap().names_issuer);
        for (old, new) in [
            ("\"https://idp.example\"", "\"https://idp.example/\""),
            ("https://idp.example/auth", "http://idp.example/auth"),
            ("https://idp.example/token", "javascript:alert(1)"),
            ("\"issuer\"", "\"issuer\":\"https://idp.example\",\"issuer\""),
        ] {
            assert!(read(&good.replacen(old, new, 1)).is_err(), "{new}");
        }
    }
}

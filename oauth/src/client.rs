//! Carries out the requests of a sign-in: discovery, registration, tokens, revocation.
//!
//! Every address is checked before it is used, and again once its name is resolved; no redirect is
//! followed, and every response is bounded. A server on another machine cannot make this client
//! connect to this machine.

use crate::authorization::Code;
use crate::challenge::Challenge;
use crate::dpop::{self, DpopKey, Proven};
use crate::error::SignInError;
use crate::locations::{self, ResourceUrl};
use crate::metadata::{MAX_METADATA_BYTES, ResourceMetadata, ServerMetadata, scopes_to_ask};
use crate::reading::{Problem, error_code};
use crate::registration::{ClientAuth, RegisteredClient, Registration, Way};
use crate::secret::Secret;
use crate::token::Grant;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::time::Timestamp;
use http::header::{AUTHORIZATION, DATE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use url::form_urlencoded;
use wire::EndpointUrl;
use wire::attestation::{FetchError, FetchLimits};
use wire::service::{ServiceAddress, ServiceAnswer, ServiceBody, ServiceRequest};
use zeroize::Zeroizing;

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The timeout and the longest response for each kind of endpoint.
const METADATA: FetchLimits =
    FetchLimits { bytes: MAX_METADATA_BYTES, patience: Duration::from_secs(10) };
const TOKENS: FetchLimits = FetchLimits { bytes: 64 * 1024, patience: Duration::from_secs(15) };
/// The most authorization servers of a resource that are tried.
const MAX_SERVERS: usize = 4;
/// If the clock is off by more than this, servers refuse its proofs.
const TOLERATED_SKEW_SECONDS: i64 = 20;

/// A request that a server answers with its challenge.
const GREETING: &str = r#"{"jsonrpc":"2.0","id":"sign-in","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"holdpoint","version":"1"}}}"#;

/// Which addresses may be reached.
#[derive(Debug, Clone, Default)]
pub struct Reaching {
    pub allow_private: bool,
    /// Certificate authorities to use instead of the system's, as PEM.
    pub authorities: Option<Vec<u8>>,
}

/// Signs in to MCP servers.
#[derive(Debug, Clone, Default)]
pub struct Client {
    reaching: Reaching,
}

/// Everything that a sign-in needs to know about a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// The MCP server's address.
    pub endpoint: String,
    /// The resource that tokens are requested for.
    pub resource: String,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// Whether the server accepts tokens that are bound to a key.
    pub takes_dpop: bool,
    pub server: ServerMetadata,
}

impl Discovery {
    /// Whether tokens are bound to a key, which is done if both the authorization server and the
    /// MCP server support it.
    pub fn uses_dpop(&self) -> bool {
        self.takes_dpop && self.server.offers_dpop()
    }
}

impl Client {
    pub fn new(reaching: Reaching) -> Client {
        Client { reaching }
    }

    /// Sends a request without a token and returns the server's challenge, or `NotAsked` if the
    /// server accepts the request.
    pub async fn challenge(
        &self,
        endpoint: &EndpointUrl,
    ) -> Result<Option<Challenge>, SignInError> {
        let request = ServiceRequest {
            method: Method::POST,
            headers: vec![(
                http::header::ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            )],
            body: Some(ServiceBody::Json(GREETING.as_bytes().to_vec())),
            ..ServiceRequest::default()
        };
        let Reaching { allow_private, authorities } = &self.reaching;
        let address = ServiceAddress::new(endpoint.clone(), *allow_private, authorities.as_deref());
        let reached = |source: FetchError| not_reached(endpoint.as_str(), source);
        let address = address.map_err(|error| reached(error.into()))?;
        let answer = address.exchange(request, METADATA).await.map_err(reached)?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Ok(challenge_of(&answer)),
            status if status.is_success() => Err(SignInError::NotAsked),
            status => Err(status_error(endpoint.as_str(), status, &answer.body)),
        }
    }

    /// Finds the authorization server of an MCP server, and the scopes to request.
    pub async fn discover(
        &self,
        endpoint: &EndpointUrl,
        challenge: Option<&Challenge>,
    ) -> Result<Discovery, SignInError> {
        let own = ResourceUrl::new(endpoint)?;
        let described = self.resource_metadata(&own, challenge).await?;
        let issuers = match &described {
            Some(metadata) => metadata.authorization_servers.clone(),
            None => vec![own.legacy_issuer()],
        };
        let mut failure = SignInError::NoAuthorizationServer;
        for issuer in issuers.iter().take(MAX_SERVERS) {
            match self.server_metadata(issuer, &own).await {
                Ok(server) => {
                    let asked = challenge.map(|challenge| challenge.scopes.as_slice());
                    return Ok(Discovery {
                        endpoint: endpoint.as_str().to_owned(),
                        resource: match &described {
                            Some(metadata) => metadata.resource.clone(),
                            None => own.identifier(),
                        },
                        scopes: scopes_to_ask(
                            asked.unwrap_or_default(),
                            described.as_ref(),
                            &server,
                        ),
                        takes_dpop: described.as_ref().is_some_and(|found| found.takes_dpop)
                            || challenge.is_some_and(|challenge| challenge.is_dpop),
                        server,
                    });
                }
                // The next server is tried only if this one is missing: incorrect metadata ends the
                // sign-in.
                Err(
                    error @ (SignInError::NotReached { .. } | SignInError::NoAuthorizationServer),
                ) => {
                    failure = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// The metadata of the resource; `None` if there is none at any location.
    async fn resource_metadata(
        &self,
        own: &ResourceUrl,
        challenge: Option<&Challenge>,
    ) -> Result<Option<ResourceMetadata>, SignInError> {
        let named = challenge.and_then(|challenge| challenge.resource_metadata.clone());
        let places = named.map_or_else(|| own.metadata(), |place| vec![place]);
        for place in places {
            let Some(body) = self.document(own, "resource_metadata", &place).await? else {
                continue;
            };
            let metadata = ResourceMetadata::read(&body).map_err(|why| unusable(&place, why))?;
            if !own.is_named_by(&metadata.resource, &place) {
                let resource = wire::ServerText::line(&metadata.resource);
                return Err(SignInError::ResourceMismatch { resource });
            }
            return Ok(Some(metadata));
        }
        Ok(None)
    }

    /// The validated metadata of an authorization server.
    async fn server_metadata(
        &self,
        issuer: &str,
        own: &ResourceUrl,
    ) -> Result<ServerMetadata, SignInError> {
        for place in locations::of_issuer(issuer)? {
            let Some(body) = self.document(own, "issuer", &place).await? else { continue };
            let metadata = ServerMetadata::read(&body).map_err(|why| unusable(&place, why))?;
            metadata.check(issuer, own)?;
            return Ok(metadata);
        }
        Err(SignInError::NoAuthorizationServer)
    }

    /// A document; `None` if there is none at this location.
    async fn document(
        &self,
        own: &ResourceUrl,
        name: &'static str,
        place: &str,
    ) -> Result<Option<Vec<u8>>, SignInError> {
        let address = self.address(own, name, place)?;
        let answer = address.exchange(ServiceRequest::default(), METADATA).await;
        let answer = answer.map_err(|source| not_reached(place, source))?;
        match answer.status {
            StatusCode::OK => Ok(Some(answer.body)),
            status if status.is_redirection() => {
                Err(SignInError::Redirect { place: place.to_owned(), status: status.as_u16() })
            }
            status if status.is_client_error() => Ok(None),
            status => Err(status_error(place, status, &answer.body)),
        }
    }

    /// The client to sign in with, registering it if necessary.
    pub async fn register(
        &self,
        found: &Discovery,
        registration: &Registration,
    ) -> Result<RegisteredClient, SignInError> {
        let document = match registration.choose(&found.server)? {
            Way::Known(client) => return Ok(client),
            Way::Register(document) => document,
        };
        let own = self.own(&found.endpoint)?;
        let place = found.server.registration_endpoint.as_deref().unwrap_or_default();
        let address = self.address(&own, "registration_endpoint", place)?;
        let body = Some(ServiceBody::Json(document));
        let request = ServiceRequest { method: Method::POST, body, ..ServiceRequest::default() };
        let sent = address.exchange(request, TOKENS).await;
        let answer = sent.map_err(|source| not_reached(place, source))?;
        let body = Zeroizing::new(answer.body);
        match answer.status {
            StatusCode::OK | StatusCode::CREATED => registration
                .registered(&body, &found.server)
                .map_err(|problem| unusable(place, problem)),
            status => Err(status_error(place, status, &body)),
        }
    }

    /// Redeems a code for tokens.
    pub async fn redeem(&self, code: Code, now: Timestamp) -> Result<Grant, SignInError> {
        let Code { code, pending } = code;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &pending.redirect_uri),
            ("code_verifier", pending.verifier.expose()),
            ("resource", &pending.found.resource),
        ];
        let place = &pending.found.server.token_endpoint;
        let asked = TokenRequest {
            endpoint: &pending.found.endpoint,
            name: "token_endpoint",
            place,
            client: &pending.client,
            key: pending.dpop.as_ref(),
            now,
        };
        let body = self.ask(&asked, &form).await?;
        let place = place.clone();
        Grant::of(pending, &body, now).map_err(|problem| unusable(&place, problem))
    }

    /// Replaces the access token, and the refresh token if the server rotates it. Fails with
    /// `GrantEnded` if a new sign-in is required.
    pub async fn refresh(&self, grant: &Grant, now: Timestamp) -> Result<Grant, SignInError> {
        let refresh = grant.refresh_token.as_ref().ok_or(SignInError::NoRefreshToken)?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("resource", &grant.resource),
        ];
        let asked = TokenRequest {
            endpoint: &grant.endpoint,
            name: "token_endpoint",
            place: &grant.token_endpoint,
            client: &grant.client,
            key: grant.dpop.as_ref(),
            now,
        };
        let body = self.ask(&asked, &form).await.map_err(ended)?;
        grant.refreshed(&body, now).map_err(|problem| unusable(&grant.token_endpoint, problem))
    }

    /// Revokes the tokens with their issuer (RFC 7009). Returns `false` if the issuer does not
    /// support that.
    pub async fn revoke(&self, grant: &Grant, now: Timestamp) -> Result<bool, SignInError> {
        let Some(place) = &grant.revocation_endpoint else { return Ok(false) };
        let asked = TokenRequest {
            endpoint: &grant.endpoint,
            name: "revocation_endpoint",
            place,
            client: &grant.client,
            key: None,
            now,
        };
        let tokens = [
            (&grant.refresh_token, "refresh_token"),
            // A server need not end the access tokens of a refresh token that it revokes.
            (&grant.access_token, "access_token"),
        ];
        for (token, hint) in tokens {
            if let Some(token) = token {
                let form = [("token", token.expose()), ("token_type_hint", hint)];
                self.ask(&asked, &form).await?;
            }
        }
        Ok(true)
    }

    /// Posts a form to an endpoint as the client. Repeats the request once if the server wants a
    /// nonce or another time in the proof.
    async fn ask(
        &self,
        asked: &TokenRequest<'_>,
        form: &[(&str, &str)],
    ) -> Result<Zeroizing<Vec<u8>>, SignInError> {
        let own = self.own(asked.endpoint)?;
        let address = self.address(&own, asked.name, asked.place)?;
        let (mut nonce, mut now_seconds) = (None, asked.now.0.div_euclid(1_000));
        for is_last in [false, true] {
            let request = asked.request(form, nonce.as_deref(), now_seconds)?;
            let sent = address.exchange(request, TOKENS).await;
            let answer = sent.map_err(|source| not_reached(asked.place, source))?;
            let body = Zeroizing::new(answer.body);
            if answer.status == StatusCode::OK {
                return Ok(body);
            }
            let error = status_error(asked.place, answer.status, &body);
            let SignInError::Status { code: Some(code), .. } = &error else { return Err(error) };
            let is_proof = matches!(code.as_str(), "use_dpop_nonce" | "invalid_dpop_proof");
            if is_last || asked.key.is_none() || !is_proof {
                return Err(error);
            }
            nonce = answer.headers.get(DPOP_NONCE).and_then(|value| dpop::nonce(value.as_bytes()));
            let told = answer.headers.get(DATE).and_then(|value| value.to_str().ok());
            let told = told.and_then(|text| httpdate::parse_http_date(text).ok());
            let told = told.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            if let Some(told) = told.and_then(|since| i64::try_from(since.as_secs()).ok())
                && told.abs_diff(now_seconds) > TOLERATED_SKEW_SECONDS.unsigned_abs()
            {
                now_seconds = told;
            } else if nonce.is_none() {
                return Err(error);
            }
        }
        Err(unusable(asked.place, "it asked for a proof too often"))
    }

    fn own(&self, endpoint: &str) -> Result<ResourceUrl, SignInError> {
        let url = endpoint.parse().map_err(|_| unusable(endpoint, "it is not a URL"))?;
        ResourceUrl::new(&url)
    }

    fn address(
        &self,
        own: &ResourceUrl,
        name: &'static str,
        place: &str,
    ) -> Result<ServiceAddress, SignInError> {
        let url = own.named(name, place)?;
        let Reaching { allow_private, authorities } = &self.reaching;
        let address = ServiceAddress::new(url, *allow_private, authorities.as_deref());
        let address = address.map_err(|error| not_reached(place, error.into()))?;
        Ok(if own.is_loopback() { address } else { address.off_this_machine() })
    }
}

/// A request to the token or the revocation endpoint.
struct TokenRequest<'a> {
    endpoint: &'a str,
    name: &'static str,
    place: &'a str,
    client: &'a RegisteredClient,
    key: Option<&'a DpopKey>,
    now: Timestamp,
}

impl TokenRequest<'_> {
    fn request(
        &self,
        form: &[(&str, &str)],
        nonce: Option<&str>,
        now_seconds: i64,
    ) -> Result<ServiceRequest, SignInError> {
        let mut headers = Vec::new();
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        match (&self.client.secret, self.client.auth) {
            (Some(secret), ClientAuth::Basic) => {
                headers.push((AUTHORIZATION, basic(&self.client.id, secret)?));
            }
            (Some(secret), ClientAuth::Post) => {
                body.append_pair("client_id", &self.client.id);
                body.append_pair("client_secret", secret.expose());
            }
            (_, ClientAuth::None) | (None, _) => {
                body.append_pair("client_id", &self.client.id);
            }
        }
        if let Some(key) = self.key {
            let proven = Proven {
                method: "POST",
                url: self.place,
                now_seconds,
                id: random()?,
                nonce,
                token: None,
            };
            let proof = HeaderValue::from_str(&key.prove(proven)?);
            headers.push((DPOP, proof.map_err(|_| unusable(self.place, "its proof"))?));
        }
        let body = Some(ServiceBody::Form(body.finish()));
        Ok(ServiceRequest { method: Method::POST, path: String::new(), headers, body })
    }
}

/// RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, SignInError> {
    let encoded =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let joined = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret.expose())));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(joined.as_bytes())));
    let value = HeaderValue::from_str(&value);
    let mut value = value.map_err(|_| unusable("client", "it does not fit into a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn random<const COUNT: usize>() -> Result<[u8; COUNT], SignInError> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(|error| SignInError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}

fn challenge_of(answer: &ServiceAnswer) -> Option<Challenge> {
    let values = answer.headers.get_all(http::header::WWW_AUTHENTICATE);
    Challenge::read(values.iter().map(HeaderValue::as_bytes))
}

fn not_reached(place: &str, source: FetchError) -> SignInError {
    SignInError::NotReached { place: shown(place), source: Arc::new(source) }
}

fn unusable(place: &str, problem: Problem) -> SignInError {
    SignInError::Unusable { place: shown(place), problem }
}

fn status_error(place: &str, status: StatusCode, body: &[u8]) -> SignInError {
    let place = shown(place);
    match status.is_redirection() {
        true => SignInError::Redirect { place, status: status.as_u16() },
        false => SignInError::Status { place, status: status.as_u16(), code: error_code(body) },
    }
}

/// An address for display: without its query, which may contain a key, and safe for a terminal.
fn shown(place: &str) -> String {
    let place = place.split('?').next().unwrap_or_default();
    wire::ServerText::line(place).as_str().to_owned()
}

/// Maps errors of a refresh that require a new sign-in.
fn ended(error: SignInError) -> SignInError {
    match error {
        SignInError::Status { code: Some(code), .. }
            if matches!(
                code.as_str(),
                "invalid_grant" | "invalid_client" | "unauthorized_client"
            ) =>
        {
            SignInError::GrantEnded { code }
        }
        error => error,
    }
}

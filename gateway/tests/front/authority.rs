//! An authorization server and a Vault on loopback, simulated by the test. The Vault responses are
//! those documented for the KV engine, version 2, and for the AppRole method; it is not HashiCorp's
//! server.

use crate::stage::answer_with;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const GATEWAY_AUDIENCE: &str = "https://gateway.example";
pub(crate) const SERVER_AUDIENCE: &str = "https://reports.example/mcp";

/// How the authorization server responds to a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Issuing {
    /// Issues a token for the requested audience, valid for this many seconds.
    Right(u64),
    /// Issues a token for this audience instead.
    For(&'static str),
    /// Returns the subject token.
    SubjectToken,
    /// Returns this token.
    This(String),
    Status(u16),
}

#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) issuing: Issuing,
    /// The forms received by the token endpoint, with the `authorization` header under its name.
    pub(crate) forms: Vec<BTreeMap<String, String>>,
    pub(crate) issued: Vec<String>,
    /// The forms received by the revocation endpoint.
    pub(crate) revoked: Vec<BTreeMap<String, String>>,
    /// Secrets in Vault by path, each with its fields.
    pub(crate) secrets: BTreeMap<String, Value>,
    /// The valid Vault tokens.
    pub(crate) vault_tokens: Vec<String>,
    pub(crate) vault_requests: Vec<String>,
    /// A false token endpoint to put into the metadata.
    pub(crate) token_endpoint: Option<String>,
}

/// An authorization server and a Vault.
pub(crate) struct Authority {
    pub(crate) address: SocketAddr,
    pub(crate) played: Arc<Mutex<Played>>,
    key: Arc<Ed25519KeyPair>,
}

impl Authority {
    pub(crate) async fn open() -> Authority {
        let random = ring::rand::SystemRandom::new();
        let document = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let key = Arc::new(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"));
        let played = Arc::new(Mutex::new(Played {
            issuing: Issuing::Right(300),
            forms: Vec::new(),
            issued: Vec::new(),
            revoked: Vec::new(),
            secrets: BTreeMap::new(),
            vault_tokens: Vec::new(),
            vault_requests: Vec::new(),
            token_endpoint: None,
        }));
        let (own, signer) = (played.clone(), key.clone());
        let address = answer_with(move |request| {
            let (played, key) = (own.clone(), signer.clone());
            async move { respond(&played, &key, request).await }
        })
        .await;
        Authority { address, played, key }
    }

    /// The configuration lines that accept tokens of this issuer.
    pub(crate) fn issuer(&self) -> String {
        let url = self.url();
        format!(
            "[[auth.issuer]]\nissuer = \"{url}\"\naudience = \"{GATEWAY_AUDIENCE}\"\njwks_uri = \"{url}/jwks\"\n"
        )
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// An access token for the gateway.
    pub(crate) fn token(&self, subject: &str, scope: &str) -> String {
        sign(
            &self.key,
            &json!({
                "iss": self.url(), "sub": subject, "aud": GATEWAY_AUDIENCE, "exp": seconds() + 600,
                "scope": scope,
            }),
        )
    }

    /// An access token whose audience includes both the gateway and the server.
    pub(crate) fn token_for_both(&self, subject: &str) -> String {
        sign(
            &self.key,
            &json!({
                "iss": self.url(), "sub": subject, "aud": [GATEWAY_AUDIENCE, SERVER_AUDIENCE],
                "exp": seconds() + 600,
            }),
        )
    }

    /// A token for any audience that expires in this many seconds.
    pub(crate) fn token_for(&self, audience: &str, lifetime: i64) -> String {
        let expires = i64::try_from(seconds()).expect("small") + lifetime;
        sign(&self.key, &json!({"sub": "ada", "aud": audience, "exp": expires}))
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

fn sign(key: &Ed25519KeyPair, claims: &Value) -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("randomness");
    let mut claims = claims.clone();
    claims["jti"] = json!(hex::encode(random));
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({"alg": "EdDSA", "kid": "one"})), part(&claims));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
}

async fn respond(
    played: &Mutex<Played>,
    key: &Ed25519KeyPair,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let header = |name: &str| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let mut played = played.lock().expect("a lock");
    let (status, answer) = match parts.uri.path() {
        "/jwks" => {
            let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
            let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": x});
            (200, json!({"keys": [key]}))
        }
        "/.well-known/openid-configuration" => {
            let url = format!("http://{}", header("host"));
            let mut metadata = json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "jwks_uri": format!("{url}/jwks"),
                "authorization_response_iss_parameter_supported": true,
            });
            if let Some(endpoint) = &played.token_endpoint {
                metadata["token_endpoint"] = json!(endpoint);
            }
            (200, metadata)
        }
        "/token" if read_form(&body).contains_key("code_verifier") => {
            let claims = identity_of(&read_form(&body), &header("host"));
            (
                200,
                json!({"id_token": sign(key, &claims), "access_token": "x", "token_type": "Bearer"}),
            )
        }
        "/token" => {
            let mut form = read_form(&body);
            form.insert("authorization".to_owned(), header("authorization"));
            let answer = issue(&mut played, key, &form);
            played.forms.push(form);
            answer
        }
        "/revoke" => {
            let mut form = read_form(&body);
            form.insert("authorization".to_owned(), header("authorization"));
            played.revoked.push(form);
            (200, json!({}))
        }
        path => {
            played.vault_requests.push(format!("{} {path}", parts.method));
            let token = header("x-vault-token");
            vault(&mut played, path, &token, &body, header("x-vault-request") == "true")
        }
    };
    let response =
        http::Response::builder().status(status).header("content-type", "application/json");
    response.body(Full::new(Bytes::from(answer.to_string()))).expect("a response")
}

/// The identity behind a code: the code contains the claims of the ID token, so that a test can
/// choose any.
fn identity_of(form: &BTreeMap<String, String>, host: &str) -> Value {
    let claims = URL_SAFE_NO_PAD.decode(&form["code"]).unwrap_or_default();
    let mut claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    for (name, value) in [
        ("iss", json!(format!("http://{host}"))),
        ("aud", json!("gateway")),
        ("iat", json!(seconds())),
        ("exp", json!(seconds() + 300)),
    ] {
        if claims.get(name).is_none() {
            claims[name] = value;
        }
    }
    claims
}

fn read_form(body: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

fn issue(
    played: &mut Played,
    key: &Ed25519KeyPair,
    form: &BTreeMap<String, String>,
) -> (u16, Value) {
    let audience = form.get("audience").cloned().unwrap_or_default();
    let issued = |audience: &str, lifetime: u64| {
        let subject = form.get("subject_token").map_or("gateway", |_| "the same person");
        sign(key, &json!({"aud": audience, "exp": seconds() + lifetime, "sub": subject}))
    };
    let (token, lifetime) = match &played.issuing {
        Issuing::Right(lifetime) => (issued(&audience, *lifetime), *lifetime),
        Issuing::For(other) => (issued(other, 300), 300),
        Issuing::SubjectToken => (form["subject_token"].clone(), 300),
        Issuing::This(token) => (token.clone(), 300),
        Issuing::Status(status) => return (*status, json!({"error": "invalid_grant"})),
    };
    played.issued.push(token.clone());
    let answer = json!({
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": lifetime,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    });
    (200, answer)
}

fn vault(
    played: &mut Played,
    path: &str,
    token: &str,
    body: &[u8],
    is_request: bool,
) -> (u16, Value) {
    if !is_request {
        return (400, json!({"errors": ["missing X-Vault-Request header"]}));
    }
    if path == "/v1/auth/approle/login" {
        let given: Value = serde_json::from_slice(body).unwrap_or_default();
        if given["role_id"] != "gateway" || given["secret_id"] != "canary-secret-id" {
            return (400, json!({"errors": ["invalid role or secret ID"]}));
        }
        let token = format!("hvs.token-{}", played.vault_requests.len());
        played.vault_tokens.push(token.clone());
        let auth = json!({"client_token": token, "lease_duration": 3600, "renewable": true});
        return (200, json!({"request_id": "1", "auth": auth, "data": null}));
    }
    if !played.vault_tokens.iter().any(|known| known == token) {
        return (403, json!({"errors": ["permission denied"]}));
    }
    let found = path.strip_prefix("/v1/kv/data/").and_then(|path| played.secrets.get(path));
    match found {
        Some(fields) => {
            let metadata = json!({"created_time": "2026-11-17T00:00:00Z", "deletion_time": "", "destroyed": false, "version": 1});
            (200, json!({"request_id": "1", "data": {"data": fields, "metadata": metadata}}))
        }
        None => (404, json!({"errors": []})),
    }
}

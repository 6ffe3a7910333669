//! An identity provider in memory: keys of every kind, tokens with any content, a key set that can
//! change.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair, RsaKeyPair,
};
use serde_json::{Value, json};
use settings::gateway::ClaimNames;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) enum Signer {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn curve(algorithm: &'static signature::EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap()
}

impl Signer {
    pub(super) fn rsa() -> Signer {
        let text: String = include_str!("rsa_test_key.base64").split_whitespace().collect();
        let key = STANDARD.decode(text).unwrap();
        Signer::Rsa(Box::new(RsaKeyPair::from_der(&key).unwrap()))
    }

    pub(super) fn p256() -> Signer {
        Signer::P256(curve(&ECDSA_P256_SHA256_FIXED_SIGNING))
    }

    pub(super) fn p384() -> Signer {
        Signer::P384(curve(&ECDSA_P384_SHA384_FIXED_SIGNING))
    }

    pub(super) fn ed25519() -> Signer {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Signer::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    /// The public key in the format of a key set.
    pub(super) fn jwk(&self, id: &str) -> Value {
        let point = |key: &EcdsaKeyPair, curve: &str| {
            let (x, y) =
                key.public_key().as_ref()[1..].split_at(if curve == "P-256" { 32 } else { 48 });
            json!({"kty": "EC", "crv": curve, "kid": id, "x": encode(x), "y": encode(y)})
        };
        match self {
            Signer::Rsa(key) => {
                let parts = signature::RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": encode(parts.n), "e": encode(parts.e)})
            }
            Signer::P256(key) => point(key, "P-256"),
            Signer::P384(key) => point(key, "P-384"),
            Signer::Ed(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(key.public_key())})
            }
        }
    }

    pub(super) fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Signer::Rsa(key) => {
                let padding: &'static dyn signature::RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
            Signer::P256(key) | Signer::P384(key) => {
                key.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Signer::Ed(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// A token with this header and these claims, given as text so that they can be malformed.
    pub(super) fn token(&self, algorithm: &str, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.sign(algorithm, message.as_bytes());
        format!("{message}.{}", encode(signature))
    }
}

/// A key set that tests can change, with a count of its fetches.
#[derive(Debug, Default)]
pub(super) struct Published {
    document: Mutex<Option<Vec<u8>>>,
    fetches: AtomicUsize,
}

impl Published {
    pub(super) fn publish(&self, keys: &[Value]) {
        let document = json!({"keys": keys}).to_string().into_bytes();
        *self.document.lock().unwrap() = Some(document);
    }

    pub(super) fn go_down(&self) {
        *self.document.lock().unwrap() = None;
    }

    pub(super) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl KeySetSource for Arc<Published> {
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let document = self.document.lock().unwrap().clone();
        Box::pin(async move {
            // Let other tasks run while this one waits.
            tokio::task::yield_now().await;
            document.ok_or_else(|| "down".to_owned())
        })
    }
}

pub(super) fn settings(name: &str) -> IssuerSettings {
    let text = |word: &str| Some(word.to_owned());
    IssuerSettings {
        issuer: format!("https://{name}.example.com"),
        audience: "https://mcp.example.com".to_owned(),
        jwks_uri: format!("https://{name}.example.com/jwks").parse().unwrap(),
        claims: ClaimNames {
            actor_type: text("actor"),
            groups: text("groups"),
            org: text("org"),
            clearance: text("clearance"),
        },
        allow_private: false,
        ca: None,
        sign_in: None,
    }
}

/// A gateway that trusts two issuers, `a` and `b`, each with one P-256 key.
pub(super) struct Two {
    pub(super) gateway: Authenticator,
    pub(super) a: Signer,
    pub(super) b: Signer,
    pub(super) published: Arc<Published>,
}

pub(super) fn two() -> Two {
    let (a, b) = (Signer::p256(), Signer::p256());
    let (published, other) = (Arc::new(Published::default()), Arc::new(Published::default()));
    published.publish(&[a.jwk("key-a")]);
    other.publish(&[b.jwk("key-b")]);
    let sources: Vec<(IssuerSettings, Box<dyn KeySetSource>)> =
        vec![(settings("a"), Box::new(Arc::clone(&published))), (settings("b"), Box::new(other))];
    let gateway = Authenticator::with_sources(sources, false, &public_url());
    Two { gateway, a, b, published }
}

pub(super) fn header(id: &str) -> String {
    json!({"alg": "ES256", "typ": "at+jwt", "kid": id}).to_string()
}

pub(super) fn claims() -> Value {
    json!({
        "iss": "https://a.example.com", "sub": "ada", "aud": "https://mcp.example.com",
        "exp": NOW.0 / 1_000 + 3_600, "nbf": NOW.0 / 1_000, "iat": NOW.0 / 1_000,
    })
}

pub(super) fn with(name: &str, value: Value) -> String {
    let mut claims = claims();
    claims[name] = value;
    claims.to_string()
}

pub(super) fn without(name: &str) -> String {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims.to_string()
}

impl Two {
    pub(super) async fn asks(
        &self,
        token: &str,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        let asked = self.gateway.authenticate(&bearer_of(token), None, resource, now).await;
        asked.map_err(|refused| {
            assert_eq!(refused.status, 401);
            assert!(refused.challenge.to_str().unwrap().ends_with("error=\"invalid_token\""));
            refused.fault
        })
    }

    /// Authenticates with a token of issuer `a` that has these claims.
    pub(super) async fn says(&self, claims: &str) -> Result<Authenticated, TokenFault> {
        let token = self.a.token("ES256", &header("key-a"), claims);
        self.asks(&token, MCP, NOW).await.map_err(|fault| match fault {
            AuthenticationFault::Token(fault) => fault,
            other => panic!("{other}"),
        })
    }
}

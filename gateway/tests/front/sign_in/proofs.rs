//! Servers whose tokens are bound to a key (DPoP, RFC 9449): each request carries a proof with the
//! key of the person's sign-in.

use super::accounts::Accounts;
use super::browser::{goes_on, parameter};
use crate::stage::{Refuses, until};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The proof in a request, with a verified signature.
pub(super) struct Proof {
    /// The thumbprint of its key.
    pub(super) key: String,
    pub(super) claims: Value,
}

impl Proof {
    pub(super) fn read(headers: &http::HeaderMap) -> Proof {
        let text = headers.get("dpop").expect("a proof").to_str().unwrap();
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let read = |part: &str| -> Value { serde_json::from_slice(&decoded(part)).unwrap() };
        let parts: Vec<&str> = text.split('.').collect();
        let [header, claims, signature] = parts[..] else { panic!("{text}") };
        let jwk = &read(header)["jwk"];
        let (x, y) = (jwk["x"].as_str().unwrap(), jwk["y"].as_str().unwrap());
        let point = [vec![4], decoded(x), decoded(y)].concat();
        let signed = format!("{header}.{claims}");
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed.as_bytes(), &decoded(signature)).expect("its key's signature");
        let named = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let key = URL_SAFE_NO_PAD.encode(Sha256::digest(named.as_bytes()));
        Proof { key, claims: read(claims) }
    }

    pub(super) fn claim(&self, name: &str) -> String {
        self.claims[name].as_str().unwrap_or_default().to_owned()
    }
}

/// The requests seen by a server that only accepts bound tokens, and the nonce it requires next.
#[derive(Debug, Default)]
struct Checked {
    nonce: String,
    /// The ids of the accepted proofs.
    ids: BTreeSet<String>,
    /// The keys of those proofs, with the accounts of their tokens.
    keys: BTreeSet<(String, String)>,
    refused: usize,
}

impl Accounts {
    /// Makes the server and its authorization server bind tokens to keys and require nonces.
    fn bind(&self) -> Arc<Mutex<Checked>> {
        let server = self.scene.stage.upstream();
        let mut metadata = json!({
            "resource": format!("http://{server}/mcp"),
            "authorization_servers": [self.issuer.url()],
        });
        metadata["dpop_bound_access_tokens_required"] = json!(true);
        self.describe(&metadata);
        self.issuer.lie("dpop_signing_alg_values_supported", json!(["RS256", "ES256"]));
        self.issuer.played.lock().unwrap().nonce = Some("of-the-issuer");
        let checked = Arc::new(Mutex::new(Checked { nonce: "first".into(), ..Checked::default() }));
        let (own, played) = (checked.clone(), self.issuer.played.clone());
        let url = format!("http://{server}/mcp");
        let refuses = move |headers: &http::HeaderMap| {
            let mut checked = own.lock().unwrap();
            let shown = headers.get("authorization").map(|value| value.to_str().unwrap());
            let Some(token) = shown.and_then(|shown| shown.strip_prefix("DPoP ")) else {
                checked.refused += 1;
                return Some((401, "www-authenticate", "DPoP algs=\"ES256\"".to_owned()));
            };
            let proof = Proof::read(headers);
            assert_eq!((&*proof.claim("htm"), &*proof.claim("htu")), ("POST", &*url));
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(token.as_bytes()));
            assert_eq!(proof.claim("ath"), hash);
            assert_eq!(played.lock().unwrap().bound.get(token), Some(&proof.key));
            if proof.claim("nonce") != checked.nonce {
                checked.refused += 1;
                return Some((401, "dpop-nonce", checked.nonce.clone()));
            }
            assert!(checked.ids.insert(proof.claim("jti")), "a proof was used twice");
            let account = token.split('.').nth(1).unwrap().to_owned();
            checked.keys.insert((account, proof.key));
            None
        };
        let mut script = self.scene.stage.script.lock().unwrap();
        script.refuses = Some(Refuses(Box::new(refuses)));
        drop(script);
        checked
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_is_proven_with_the_key_of_its_persons_sign_in() {
    let accounts = Accounts::open().await;
    let checked = accounts.bind();
    // The authorization server learns the key before it issues a code.
    let link = accounts.link("ada").await;
    let mut ada = accounts.browser("ada").await;
    let asked = goes_on(&accounts.follow(&mut ada, &link).await.body);
    let named = parameter(&asked, "dpop_jkt").expect("the key's thumbprint");
    let done = ada.get(&accounts.scene.stage, &accounts.back(&asked, "ada-there", &[])).await;
    assert_eq!(done.status, 200, "{}", done.body);
    accounts.sign_in("eve", "eve-there").await;
    for person in ["ada", "eve"] {
        until("the call is made", async || accounts.call(person).await.get("result").is_some())
            .await;
    }
    let keys = checked.lock().unwrap().keys.clone();
    let names: Vec<&str> = keys.iter().map(|(account, _)| account.as_str()).collect();
    assert_eq!(names, ["ada-there", "eve-there"], "one key for each person");
    assert!(keys.contains(&("ada-there".to_owned(), named)), "{keys:?}");

    // Many requests have proofs with an old nonce: each gets a new proof, and no token is
    // refreshed.
    let refreshes = accounts.issuer.refreshes();
    checked.lock().unwrap().nonce = "second".into();
    let calls = (0..8).map(|_| accounts.call("ada"));
    for answer in futures_util::future::join_all(calls).await {
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(accounts.issuer.refreshes(), refreshes);
    assert_eq!(checked.lock().unwrap().keys, keys, "the keys stay");
    // Another process with the same store and cluster key uses the same keys for proofs.
    let again = accounts.scene.stage.restarted().await;
    until("the call is made", async || {
        let answer = accounts.call_at(&again, "ada", json!({}), json!({})).await;
        answer.get("result").is_some()
    })
    .await;
    assert_eq!(checked.lock().unwrap().keys, keys, "the keys are those of the sign-ins");
    let text = accounts.scene.stage.all_text();
    assert!(!text.contains("canary-access") && !text.contains("pkcs8") && !text.contains("dpop"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_refreshed_with_the_key_that_it_is_bound_to() {
    let accounts = Accounts::open().await;
    let checked = accounts.bind();
    // Every token has expired by the time it arrives, so each call refreshes.
    accounts.issuer.played.lock().unwrap().lifetime = Some(0);
    accounts.sign_in("ada", "ada-there").await;
    until("the call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    let before = accounts.issuer.refreshes();
    assert!(before > 0);
    assert!(accounts.call("ada").await.get("result").is_some());
    assert!(accounts.issuer.refreshes() > before);
    assert_eq!(checked.lock().unwrap().keys.len(), 1, "one key through all refreshes");
}

/// A server that requires a new nonce each time costs two requests per attempt, and no more
/// refreshes than one that rejects every token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_nonces_ends_in_a_refusal() {
    let accounts = Accounts::open().await;
    let checked = accounts.bind();
    accounts.sign_in("ada", "ada-there").await;
    until("the call is made", async || accounts.call("ada").await.get("result").is_some()).await;
    let count = Arc::new(Mutex::new(0_usize));
    let own = count.clone();
    let flood = move |_: &http::HeaderMap| {
        *own.lock().unwrap() += 1;
        Some((401, "dpop-nonce", format!("nonce-{}", own.lock().unwrap())))
    };
    accounts.scene.stage.script.lock().unwrap().refuses = Some(Refuses(Box::new(flood)));
    let before = accounts.issuer.refreshes();
    for _ in 0..3 {
        let refused = accounts.call("ada").await;
        assert_eq!(refused["error"]["data"]["reason"], "credential_unavailable", "{refused}");
    }
    // The first call makes two attempts with two proofs each; the others make no second attempt
    // within 5 seconds.
    assert!(*count.lock().unwrap() <= 12, "{count:?}");
    assert!(accounts.issuer.refreshes() <= before + 1);
    // A nonce that does not fit into a proof is ignored: the request is not repeated for it.
    let long = move |_: &http::HeaderMap| Some((401, "dpop-nonce", "n".repeat(2_000)));
    accounts.scene.stage.script.lock().unwrap().refuses = Some(Refuses(Box::new(long)));
    let before = accounts.shown().len();
    accounts.call("ada").await;
    assert!(accounts.shown().len() <= before + 2);
    drop(checked);
}

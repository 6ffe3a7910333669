//! Tokens with one defect each: refused before the body is read, and recorded with the defect.

use crate::stage::{Answer, Setting, Stage};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://gateway.example";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// An issuer with one key, which counts the fetches of its key set.
struct Issuer {
    key: EcdsaKeyPair,
    fetches: Arc<AtomicUsize>,
    address: SocketAddr,
}

impl Issuer {
    async fn open() -> Issuer {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let (x, y) = key.public_key().as_ref()[1..].split_at(32);
        let set = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "kid": "one", "use": "sig",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]});
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fetches = Arc::new(AtomicUsize::new(0));
        let (count, set) = (fetches.clone(), Bytes::from(set.to_string()));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (count, set) = (count.clone(), set.clone());
                let service = service_fn(move |_: http::Request<hyper::body::Incoming>| {
                    count.fetch_add(1, Ordering::Relaxed);
                    let response =
                        http::Response::builder().header("content-type", "application/json");
                    let response = response.body(Full::new(set.clone())).unwrap();
                    async move { Ok::<_, Infallible>(response) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Issuer { key, fetches, address }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn claims() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, "iat": now})
}

fn changed(mut value: Value, name: &str, to: Value) -> Value {
    value[name] = to;
    value
}

async fn present(stage: &Stage, token: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    stage.send("POST", "/mcp", &headers, INITIALIZE).await
}

async fn open() -> (Stage, Issuer) {
    let issuer = Issuer::open().await;
    let table = format!(
        "[[auth.issuer]]\nissuer = \"{ISSUER}\"\naudience = \"{AUDIENCE}\"\njwks_uri = \"http://{}/jwks\"\n",
        issuer.address
    );
    let stage = Stage::open(Setting { server: &table, ..Setting::default() }).await;
    (stage, issuer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_wrong_in_one_thing_is_refused_and_recorded() {
    let (stage, issuer) = open().await;
    let header = json!({"alg": "ES256", "kid": "one"});
    let good = issuer.token(&header, &claims());
    let answer = present(&stage, &good).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let with = |name: &str, to: Value| issuer.token(&header, &changed(claims(), name, to));
    let unsigned = {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.", part(&json!({"alg": "none", "kid": "one"})), part(&claims()))
    };
    let hmac = issuer.token(&json!({"alg": "HS256", "kid": "one"}), &claims());
    let (beginning, _) = good.rsplit_once('.').unwrap();
    for (name, token, fault) in [
        ("another audience", with("aud", json!("https://elsewhere.example")), "audience"),
        ("another issuer", with("iss", json!("https://evil.example")), "issuer is not configured"),
        ("expired", with("exp", json!(1_000_000)), "expired"),
        ("an expiry that is a text", with("exp", json!("9999999999")), "wrong type"),
        ("no expiry", with("exp", Value::Null), "`exp`"),
        ("unsigned", unsigned, "not a signed JWT"),
        ("HMAC", hmac, "algorithm"),
        ("another signature", format!("{beginning}.{}", "A".repeat(86)), "signature"),
        (
            "an unknown key",
            issuer.token(&json!({"alg": "ES256", "kid": "two"}), &claims()),
            "no such key",
        ),
    ] {
        let recorded = |stage: &Stage| {
            stage.receipts().iter().any(|line| {
                let text = line["data"]["fault"].as_str().unwrap_or_default();
                line["name"] == "auth.refused" && text.contains(fault)
            })
        };
        // Each source is recorded once per second, so an attempt may have to be repeated.
        let attempts = async {
            loop {
                let answer = present(&stage, &token).await;
                assert_eq!(answer.status, 401, "{name}: {answer:?}");
                assert!(answer.headers.contains_key("www-authenticate"), "{name}");
                if recorded(&stage) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(testing::PATIENCE, attempts)
            .await
            .unwrap_or_else(|_| panic!("{name}"));
    }
    assert!(stage.script.lock().unwrap().asked.is_empty(), "nothing reached the server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_unknown_keys_neither_floods_the_issuer_nor_the_ledger() {
    let (stage, issuer) = open().await;
    let good = issuer.token(&json!({"alg": "ES256", "kid": "one"}), &claims());
    assert_eq!(present(&stage, &good).await.status, 200);
    for number in 0..200 {
        let header = json!({"alg": "ES256", "kid": format!("unknown-{number}")});
        let answer = present(&stage, &issuer.token(&header, &claims())).await;
        assert_eq!(answer.status, 401, "{answer:?}");
    }
    let fetches = issuer.fetches.load(Ordering::Relaxed);
    assert!(fetches <= 2, "the keys were fetched {fetches} times");
    let refused: Vec<Value> =
        stage.receipts().into_iter().filter(|line| line["name"] == "auth.refused").collect();
    assert!(!refused.is_empty() && refused.len() < 100, "{} records", refused.len());
    assert_eq!(present(&stage, &good).await.status, 200, "a good token counts on");
}

use super::*;
use attest::{Draft, MAX_DOCUMENT_BYTES, Reason, SigningKey};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use wire::HttpEndpoint;

fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

fn signed(change: impl FnOnce(&mut Value)) -> Value {
    let mut document = json!({
        "v": 2, "id": "mcp.example.mail", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "netAllowedHosts": ["127.0.0.1"], "verification": "tested",
        "signerKeyId": "acme",
    });
    change(&mut document);
    let draft = Draft::parse(document.to_string().as_bytes()).unwrap();
    serde_json::from_str(&draft.sign(&key()).unwrap()).unwrap()
}

/// A server on loopback that publishes this body, with this status, at both well-known paths.
fn publish(status: &'static str, body: String) -> HttpEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body.as_bytes());
        }
    });
    HttpEndpoint { url, headers: Vec::new(), allow_private: false, authorizer: None }
}

fn check(endpoint: HttpEndpoint, handshake: Option<&str>) -> Arc<Admitted> {
    let root = json!({ "v": 1, "signers": [{
        "keyId": "acme", "publicKeyPem": key().public_key().to_pem().unwrap(), "approvedClearance": ["internal"],
    }] });
    let root = Arc::new(TrustRoot::parse(root.to_string().as_bytes()).unwrap());
    let scheme = Cow::Borrowed(Scheme::built_in("default").unwrap());
    let terms = Terms::new(root, scheme, "internal".to_owned(), Flavor::Enclaved).unwrap();
    let host = Host::parse(&endpoint.url.host_and_port()).unwrap();
    let mut checker = Checker::new(terms, Subject::Remote(host), Source::Published(endpoint));
    checker.check(handshake, Greeting::Initialize).admitted
}

fn reason(body: &Value) -> Option<Reason> {
    check(publish("200 OK", body.to_string()), None).failure().map(Denial::reason)
}

#[test]
fn nothing_is_used_before_it_was_checked() {
    assert!(Admittance::Unknown.is_closed());
    assert!(!Admittance::NotAsked.is_closed());
}

#[test]
fn a_remote_server_is_admitted_by_what_it_publishes() {
    let admitted = check(publish("200 OK", signed(|_| {}).to_string()), None);
    assert_eq!(admitted.verified().unwrap().id(), "mcp.example.mail");
    assert_eq!(admitted.event(), "mcp.connect.allow");
}

#[test]
fn each_failure_of_a_remote_server_has_its_reason() {
    let elsewhere = signed(|document| document["netAllowedHosts"] = json!(["a.example"]));
    assert_eq!(reason(&elsewhere), Some(Reason::HostNotBound));
    let expired = signed(|document| document["expires"] = json!("2020-01-01T00:00:00Z"));
    assert_eq!(reason(&expired), Some(Reason::AttestationExpired));
    let mut replayed = signed(|_| {});
    replayed["id"] = json!("mcp.example.other");
    assert_eq!(reason(&replayed), Some(Reason::BadSignature));
    let long = json!({ "long": "x".repeat(MAX_DOCUMENT_BYTES) });
    assert_eq!(reason(&long), Some(Reason::FetchFailed));
    let failed = check(publish("500 Oops", String::new()), None);
    assert_eq!(failed.failure().map(Denial::reason), Some(Reason::FetchFailed));
}

#[test]
fn what_a_server_says_of_itself_is_asked_last() {
    let document = signed(|_| {});
    let handshake =
        json!({ "capabilities": { "experimental": { "mcp-attestation": document } } }).to_string();
    let none = || publish("404 Not Found", String::new());
    assert!(check(none(), Some(&handshake)).verified().is_some());
    let unattested = check(none(), Some("{}"));
    assert_eq!(unattested.failure().map(Denial::reason), Some(Reason::Unattested));
    let failed = check(publish("500 Oops", String::new()), Some(&handshake));
    assert!(failed.verified().is_none());
}

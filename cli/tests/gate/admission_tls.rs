//! Attestation of a remote server, end to end: the binary, and an HTTPS server that publishes its
//! document.

use crate::bench::{Bench, ID};
use crate::client::{Client, DENIED, receipts, refused, text};
use crate::secure_server::{FIRST_PLACE, Published, SecureServer};
use attest::{Draft, MAX_DOCUMENT_BYTES, SigningKey};
use serde_json::{Value, json};
use std::time::Instant;
use wire::attestation::FETCH_PATIENCE;

fn key() -> SigningKey {
    SigningKey::from_seed([6; 32])
}

/// A home with a trust root of one signer.
fn prepared() -> Bench {
    let bench = Bench::new();
    let pem = key().public_key().to_pem().unwrap();
    let signer = json!({ "keyId": "acme", "publicKeyPem": pem, "approvedClearance": ["internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
    bench
}

/// A document for a server at `localhost`, changed before signing. `attest sign` would not sign an
/// expired one.
fn signed(change: impl FnOnce(&mut Value)) -> String {
    let mut document = json!({
        "v": 2, "id": "mcp.example.echo", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "netAllowedHosts": ["localhost"], "verification": "tested",
        "signerKeyId": "acme",
    });
    change(&mut document);
    Draft::parse(document.to_string().as_bytes()).unwrap().sign(&key()).unwrap()
}

/// A session with the server under this host name, trusting only the server's certificate
/// authority.
fn session(bench: &Bench, server: &SecureServer, host: &str) -> Client {
    let authority = bench.file("authority.pem", &server.authority);
    let mut command = bench.command(["run", "--server", ID, "--trust-root", "root.json"]);
    command.args(["--required", "internal", "--allow-tool", "echo", "--url", &server.url(host)]);
    command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
    let mut client = Client::start(command);
    client.begin();
    client
}

fn echo(client: &mut Client) -> Value {
    client.call("echo", &json!({ "say": "hello" }))
}

/// The receipts of the calls, and the names of admission events.
fn recorded(bench: &Bench) -> (Vec<Value>, Vec<String>) {
    let calls = receipts(bench).into_iter();
    let calls = calls.filter(|line| line["mcp"]["method"] == "tools/call").collect();
    let listed = bench.run(["receipts", "list", "-n", "1000", "--json"]).exits(0);
    let lines = listed.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = lines.filter_map(|line| line["name"].as_str().map(str::to_owned));
    (calls, names.filter(|name| name.starts_with("mcp.connect.")).collect())
}

#[track_caller]
fn is_admitted(bench: &Bench, server: &SecureServer) {
    let mut client = session(bench, server, "localhost");
    assert_eq!(text(&echo(&mut client)), "hello");
    client.end().exits(0);
    let (calls, events) = recorded(bench);
    assert_eq!(calls.len(), 1);
    let admission = &calls[0]["admission"];
    assert_eq!(admission["verdict"], "ok", "{admission}");
    assert_eq!(admission["signer"], "acme", "{admission}");
    assert_eq!(admission["clearance"], "INTERNAL", "{admission}");
    assert_eq!(events, ["mcp.connect.allow"]);
}

/// Asserts that no tool is shown, that a call is refused and recorded with this reason, and that
/// the server never receives it.
#[track_caller]
fn is_refused(bench: &Bench, server: &SecureServer, host: &str, reason: &str) {
    let mut client = session(bench, server, host);
    assert_eq!(refused(&client.ask("tools/list", &json!({})), DENIED)["reason"], reason);
    assert_eq!(refused(&echo(&mut client), DENIED)["reason"], reason);
    client.end().exits(0);
    assert!(server.times_asked(&format!("GET {FIRST_PLACE}")) > 0);
    assert_eq!(server.times_asked("tools/call"), 0);
    let (calls, events) = recorded(bench);
    let verdicts: Vec<&Value> = calls.iter().map(|call| &call["admission"]["verdict"]).collect();
    assert_eq!(verdicts, ["deny"]);
    assert_eq!(events, ["mcp.connect.deny"]);
}

#[test]
fn a_server_that_publishes_its_document_over_tls_is_admitted() {
    let bench = prepared();
    let server = SecureServer::start(Published::Document(signed(|_| {})));
    is_admitted(&bench, &server);
    assert_eq!(server.times_asked("tools/call"), 1);
    let mut client = session(&bench, &server, "localhost");
    assert_eq!(client.tool_names(), ["echo"]);
    let data = refused(&client.call("drop", &json!({})), DENIED).clone();
    assert_eq!(data["reason"], "tool_not_admitted", "{data}");
    client.end().exits(0);
    assert_eq!(server.times_asked("tools/call"), 1);
}

#[test]
fn the_same_document_under_another_host_name_is_not_bound() {
    let bench = prepared();
    let document = signed(|_| {});
    let elsewhere = SecureServer::start(Published::Document(document));
    is_refused(&bench, &elsewhere, "127.0.0.1", "host_not_bound");
    // With that name in the document, the same connection is accepted.
    let bench = prepared();
    let document = signed(|document| document["netAllowedHosts"] = json!(["127.0.0.1"]));
    let named = SecureServer::start(Published::Document(document));
    let mut client = session(&bench, &named, "127.0.0.1");
    assert_eq!(text(&echo(&mut client)), "hello");
    client.end().exits(0);
}

#[test]
fn an_expired_document_is_refused() {
    let bench = prepared();
    let expires = |at: &'static str| move |document: &mut Value| document["expires"] = json!(at);
    let document = signed(expires("2020-01-01T00:00:00Z"));
    let server = SecureServer::start(Published::Document(document));
    is_refused(&bench, &server, "localhost", "attestation_expired");
    let bench = prepared();
    let document = signed(expires("9999-01-01T00:00:00Z"));
    is_admitted(&bench, &SecureServer::start(Published::Document(document)));
}

#[test]
fn a_document_that_is_replayed_with_another_body_is_refused() {
    let bench = prepared();
    let mut document: Value = serde_json::from_str(&signed(|_| {})).unwrap();
    document["id"] = json!("mcp.example.other");
    let server = SecureServer::start(Published::Document(document.to_string()));
    is_refused(&bench, &server, "localhost", "bad_signature");
}

/// A valid document of this many bytes: trailing white space is not part of it.
fn padded(bytes: usize) -> String {
    let document = signed(|_| {});
    let rest = bytes - document.len();
    document + &" ".repeat(rest)
}

#[test]
fn a_document_is_read_up_to_the_limit_and_not_past_it() {
    let at = SecureServer::start(Published::Document(padded(MAX_DOCUMENT_BYTES)));
    is_admitted(&prepared(), &at);
    let past = SecureServer::start(Published::Document(padded(MAX_DOCUMENT_BYTES + 1)));
    is_refused(&prepared(), &past, "localhost", "fetch_failed");
}

#[test]
fn a_redirect_is_not_followed_even_to_a_good_document() {
    let bench = prepared();
    let server = SecureServer::start(Published::Moved(signed(|_| {})));
    is_refused(&bench, &server, "localhost", "fetch_failed");
}

/// Takes as long as the binary waits for a document, which tests cannot shorten.
#[track_caller]
fn is_given_up(bench: &Bench, published: Published) {
    let server = SecureServer::start(published);
    let began = Instant::now();
    is_refused(bench, &server, "localhost", "fetch_failed");
    assert!(began.elapsed() >= FETCH_PATIENCE, "it failed before its time was over");
    assert_eq!(server.times_asked(&format!("GET {FIRST_PLACE}")), 1);
}

#[test]
fn a_document_that_comes_a_byte_at_a_time_is_given_up() {
    // The document is valid, but would take minutes to arrive.
    is_given_up(&prepared(), Published::Dripped(padded(4096)));
}

#[test]
fn a_document_that_never_comes_is_given_up() {
    is_given_up(&prepared(), Published::Silence);
}

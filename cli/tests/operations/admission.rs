//! Servers that need an attestation: an attested one is served, any other is not.

use crate::bench::Bench;
use crate::running::{Gateway, WaitingServer, said, write_settings};
use serde_json::{Value, json};

const ADMISSION: &str = "[admission]\ntrust_root = \"root.json\"\n";

/// A trust root with one signer, and a document for `/bin/sh`.
fn vouch(bench: &Bench) {
    bench.run(["attest", "keygen", "one.pem"]).exits(0);
    let pem = std::fs::read_to_string(bench.path("one.pem.pub")).unwrap();
    let signer = json!({ "keyId": "one", "publicKeyPem": pem, "approvedClearance": ["internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
    let program = engine::program::find_program("/bin/sh", None).unwrap();
    let digests = engine::program::digests_of(&program).unwrap();
    let document = json!({
        "v": 2, "id": "mcp.example.wait", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "verification": "tested", "packageDigest": digests[0].to_string(),
    });
    bench.file("draft.json", document.to_string());
    let words = [
        "attest",
        "sign",
        "draft.json",
        "--key",
        "one.pem",
        "--key-id",
        "one",
        "-o",
        "signed.json",
    ];
    bench.run(words).exits(0);
}

fn receipts(bench: &Bench) -> Vec<Value> {
    let out = bench.run(["receipts", "list", "--json"]).exits(0).out;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn table(one: &WaitingServer, clearance: &str) -> String {
    let keys = format!(
        "attestation = \"signed.json\"\nrequired_clearance = \"{clearance}\"\nallowed_tools = [\"wait\"]"
    );
    ADMISSION.to_owned() + &one.table("one", &keys)
}

#[test]
fn a_server_that_is_vouched_for_is_served_until_it_is_not_admitted() {
    let bench = Bench::new();
    vouch(&bench);
    let one = WaitingServer::new(&bench, "one");
    one.let_go();
    let gateway = Gateway::start(bench, &table(&one, "internal"));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), ["one__wait"]);
    assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");

    // Above the level that the signer may attest. The tools are known, so the caller learns the
    // reason.
    write_settings(gateway.bench(), &table(&one, "restricted"));
    gateway.reload().exits(0).says("changed: `one`");
    let started = one.pids().len();
    let refused = caller.call("one__wait", &json!({}));
    assert_eq!(refused["error"]["data"]["reason"], "below_required", "{refused}");
    assert_eq!(one.pids().len(), started, "a program that is not admitted was started");

    write_settings(gateway.bench(), &table(&one, "internal"));
    gateway.reload().exits(0);
    assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");
    let (bench, ended) = gateway.end();
    ended.exits(0);
    let calls = receipts(&bench).into_iter().filter(|line| line["mcp"]["method"] == "tools/call");
    let verdicts: Vec<Value> = calls.map(|line| line["admission"]["verdict"].clone()).collect();
    assert_eq!(verdicts, ["ok", "deny", "ok"]);
}

#[test]
fn a_server_that_was_never_admitted_is_not_started_and_serves_nothing() {
    let bench = Bench::new();
    vouch(&bench);
    let one = WaitingServer::new(&bench, "one");
    one.let_go();
    let gateway = Gateway::start(bench, &table(&one, "restricted"));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), Vec::<String>::new());
    // The server was never observed, so its tools are unknown.
    let refused = caller.call("one__wait", &json!({}));
    assert_eq!(refused["error"]["data"]["reason"], "unknown_tool", "{refused}");
    assert_eq!(one.pids(), Vec::<String>::new(), "the program was started");
    let (bench, ended) = gateway.end();
    ended.exits(0);
    let id = &refused["error"]["data"]["receipt_id"];
    assert!(receipts(&bench).iter().any(|line| line["receipt_id"] == *id));
}

#[test]
fn a_trust_root_that_cannot_be_read_stops_the_start() {
    let bench = Bench::new();
    bench.file("all.cedar", crate::running::PERMIT_ALL);
    let one = WaitingServer::new(&bench, "one");
    let keys = "required_clearance = \"internal\"";
    write_settings(&bench, &(ADMISSION.to_owned() + &one.table("one", keys)));
    bench
        .run(["gateway", "--check", "--config", "gateway.toml"])
        .exits(2)
        .says("`server.one`: the trust root `");
}

//! `holdpoint attest` as people and programs use it: test vectors, keys, signatures, and
//! interoperability with other tools.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "../cli/bench.rs"]
mod bench;
#[path = "../../../attest/tests/conformance/case.rs"]
mod case;
mod commands;
#[cfg(unix)]
mod other_tools;
mod vectors;

use bench::Bench;
use serde_json::{Value, json};
use std::path::Path;

/// An unsigned document.
fn draft() -> Value {
    json!({
        "v": 1,
        "id": "mcp.example.mail",
        "publisher": "acme",
        "version": "2.3.1",
        "clearance": "internal",
        "capabilities": ["mcp-server"],
        "netAllowedHosts": ["mail.example.com"],
        "verification": "tested",
    })
}

/// Writes a trust root with one signer, given the file of its public key.
fn write_root(bench: &Bench, key_id: &str, public: &Path) {
    let pem = std::fs::read_to_string(public).unwrap();
    let signer = json!({ "keyId": key_id, "publicKeyPem": pem, "approvedClearance": ["public", "internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
}

const VERIFY: [&str; 8] = [
    "attest",
    "verify",
    "--trust-root",
    "root.json",
    "--required",
    "internal",
    "--host",
    "mail.example.com",
];

fn verify<'a>(document: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    VERIFY.iter().copied().chain([document, "--json"]).chain(more.iter().copied()).collect()
}

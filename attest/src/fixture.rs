//! Fixtures for the tests: two keys, a trust root, and a valid document for tests to modify.

use crate::{Draft, KeyId, Requirement, Scheme, SigningKey, Target, TrustRoot};
use contract::time::Timestamp;
use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-11-16T08:00:00Z";
pub(crate) const SIGNER: &str = "acme-2026";
pub(crate) const REVOKER: &str = "acme-security";

pub(crate) fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

pub(crate) fn revoker_key() -> SigningKey {
    SigningKey::from_seed([2; 32])
}

pub(crate) fn root_document() -> Value {
    json!({ "v": 1, "signers": [
        {
            "keyId": SIGNER,
            "publicKeyPem": key().public_key().to_pem().unwrap(),
            "approvedClearance": ["public", "internal", "confidential", "restricted", "restricted-plus"],
            "description": "ours",
        },
        {
            "keyId": REVOKER,
            "publicKeyPem": revoker_key().public_key().to_pem().unwrap(),
            "approvedClearance": [],
            "mayRevoke": true,
        },
    ] })
}

pub(crate) fn root() -> TrustRoot {
    root_of(&root_document())
}

pub(crate) fn root_of(document: &Value) -> TrustRoot {
    TrustRoot::parse(document.to_string().as_bytes()).unwrap()
}

/// A document that is admitted.
pub(crate) fn baseline() -> Value {
    json!({
        "v": 1,
        "id": "mcp.example.mail",
        "publisher": "acme",
        "version": "2.3.1",
        "clearance": "restricted-plus",
        "capabilities": ["mcp-server", "tool.invoke"],
        "netAllowedHosts": [],
        "verification": "tested",
        "signerKeyId": SIGNER,
    })
}

/// The same in version 2, with every added member except the digest of a package.
pub(crate) fn baseline_2() -> Value {
    let mut document = baseline();
    document["v"] = json!(2);
    document["notBefore"] = json!("2026-01-01T00:00:00Z");
    document["expires"] = json!("2027-01-01T00:00:00Z");
    document["toolClearance"] = json!({ "search": "internal" });
    document["toolDigests"] = json!({ "search": "ab".repeat(32) });
    document
}

pub(crate) fn signed(document: &Value) -> Value {
    signed_by(document, &key())
}

pub(crate) fn signed_by(document: &Value, key: &SigningKey) -> Value {
    let draft = Draft::parse(document.to_string().as_bytes()).unwrap();
    serde_json::from_str(&draft.sign(key).unwrap()).unwrap()
}

pub(crate) fn revocations(changes: &Value) -> Value {
    let mut list = json!({
        "v": 1,
        "type": "mcp-attestation-revocations",
        "issued": "2026-11-16T00:00:00Z",
        "expires": "2026-11-17T00:00:00Z",
        "signers": [],
        "documents": [],
        "signerKeyId": REVOKER,
    });
    for (member, value) in changes.as_object().unwrap() {
        list[member] = value.clone();
    }
    list
}

/// Requires the highest level that the signer is approved for, without a host.
pub(crate) fn requirement() -> Requirement<'static> {
    requirement_of("restricted-plus", Target::Unknown)
}

pub(crate) fn requirement_of<'a>(required: &str, target: Target<'a>) -> Requirement<'a> {
    let scheme = Scheme::built_in("default").unwrap();
    Requirement::new(scheme, required, target, now()).unwrap()
}

pub(crate) fn signer() -> KeyId {
    KeyId::parse(SIGNER).unwrap()
}

/// A text padded with spaces to this many bytes.
pub(crate) fn padded(text: &impl ToString, bytes: usize) -> String {
    let mut text = text.to_string();
    text.push_str(&" ".repeat(bytes - text.len()));
    text
}

use super::*;
use crate::fixture::{SIGNER, root, root_document, signer};
use serde_json::{Value, json};

fn parse(document: &Value) -> Result<TrustRoot, TrustRootError> {
    TrustRoot::parse(document.to_string().as_bytes())
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Value), expected: &str) {
    let mut document = root_document();
    assert!(parse(&document).is_ok());
    change(&mut document);
    assert_eq!(parse(&document).unwrap_err().to_string(), expected);
}

#[test]
fn a_signer_is_found_by_its_exact_id() {
    let root = root();
    assert_eq!(root.find(&signer()).unwrap().key_id().as_str(), SIGNER);
    for id in ["acme-2025", "ACME-2026", "acme-2026x", "__proto__"] {
        assert!(root.find(&KeyId::parse(id).unwrap()).is_none(), "{id}");
    }
}

#[test]
fn what_the_operator_got_wrong_is_told() {
    refused(|root| root["v"] = json!(2), "`v` is not 1");
    refused(|root| root["signers"] = Value::Null, "`signers` is empty: fill it in, or remove it");
    refused(|root| root["signer"] = json!([]), "`signer` is not a known member");
    refused(
        |root| root["signers"][0]["notAfer"] = json!("2027-01-01"),
        "signer 0: `notAfer` is not a known member",
    );
    refused(
        |root| root["signers"][1]["notAfter"] = json!("next year"),
        "signer 1: `notAfter` is not a moment in UTC like `2027-01-31T00:00:00Z`, or a date for its first moment",
    );
    for nothing in [json!(""), json!(" \t"), Value::Null] {
        refused(
            |root| root["signers"][0]["notAfter"] = nothing,
            "signer 0: `notAfter` is empty: fill it in, or remove it",
        );
    }
    refused(
        |root| root["signers"][1]["publicKeyPem"] = root["signers"][0]["publicKeyPem"].clone(),
        "`acme-2026` and `acme-security` are one key: revoking one would leave the other",
    );
    refused(
        |root| root["signers"][1]["keyId"] = json!(SIGNER),
        "two signers are called `acme-2026`",
    );
    refused(
        |root| root["signers"][0]["approvedClearance"] = json!([]),
        "signer 0: it is approved for no level, and may not revoke: it could never count",
    );
    refused(
        |root| root["signers"][0]["publicKeyPem"] = json!("MCowBQYDK2VwAyEA"),
        "signer 0: `publicKeyPem`: expected a public key of Ed25519 as PEM, `-----BEGIN PUBLIC KEY-----`",
    );
    refused(
        |root| root["signers"][0]["mayRevoke"] = json!("yes"),
        "signer 0: `mayRevoke` is not true or false",
    );
}

#[test]
fn levels_are_those_of_the_scheme_that_a_trust_root_names() {
    let named = |scheme: &str, level: &str| {
        let mut document = root_document();
        document["scheme"] = json!(scheme);
        document["signers"][0]["approvedClearance"] = json!([level]);
        parse(&document)
    };
    assert_eq!(named("default", " Internal").unwrap().scheme(), Some("default"));
    let error = named("default", "internall").unwrap_err().to_string();
    let expected = "the signer `acme-2026` is approved for `internall`, which is no level of the scheme `default`";
    assert_eq!(error, expected);
    // The operator's own scheme is unknown until it is read.
    let root = named("ours", "internall").unwrap();
    let ours = |level: &str| {
        let levels = json!([{ "rank": 0, "canonicalName": level }]);
        Scheme::parse(json!({ "id": "ours", "levels": levels }).to_string().as_bytes()).unwrap()
    };
    assert_eq!(root.check_scheme(&ours("INTERNALL")), Ok(()));
    assert!(root.check_scheme(&ours("INTERNAL")).is_err());
    refused(|root| root["scheme"] = json!(""), "`scheme` is empty: fill it in, or remove it");
}

#[test]
fn a_private_key_is_no_part_of_a_trust_root() {
    let mut document = root_document();
    let pem = crate::fixture::key().to_pem().unwrap();
    document["signers"][0]["publicKeyPem"] = json!(*pem);
    let error = parse(&document).unwrap_err().to_string();
    assert!(error.ends_with("this is a private key, where a public one belongs"), "{error}");
}

#[test]
fn a_trust_root_ends_at_its_limits() {
    let signers = |count: usize| {
        let record = root_document()["signers"][0].clone();
        let records = (0..count).map(|number| {
            let mut record = record.clone();
            record["keyId"] = json!(format!("key-{number}"));
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&number.to_le_bytes());
            let key = crate::SigningKey::from_seed(seed).public_key();
            record["publicKeyPem"] = json!(key.to_pem().unwrap());
            record
        });
        json!({ "v": 1, "signers": records.collect::<Vec<_>>() })
    };
    assert_eq!(parse(&signers(MAX_SIGNERS)).unwrap().signers().len(), MAX_SIGNERS);
    let too_many = ShapeError::TooMany { member: "signers", limit: MAX_SIGNERS };
    assert_eq!(parse(&signers(MAX_SIGNERS + 1)).unwrap_err(), too_many.into());
    let padded = |bytes: usize| crate::fixture::padded(&root_document(), bytes);
    assert!(TrustRoot::parse(padded(MAX_TRUST_ROOT_BYTES).as_bytes()).is_ok());
    assert!(TrustRoot::parse(padded(MAX_TRUST_ROOT_BYTES + 1).as_bytes()).is_err());
    let mut levels = root_document();
    levels["signers"][0]["approvedClearance"] = json!(vec!["public"; MAX_LEVELS]);
    assert!(parse(&levels).is_ok());
    levels["signers"][0]["approvedClearance"] = json!(vec!["public"; MAX_LEVELS + 1]);
    assert!(parse(&levels).is_err());
}

#[test]
fn no_signer_at_all_is_a_trust_root_that_trusts_nobody() {
    let root = parse(&json!({ "v": 1, "signers": [] })).unwrap();
    assert!(root.find(&signer()).is_none());
}

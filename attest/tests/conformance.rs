//! Checks the library against the vectors of `conformance/attestation`, and against documents of
//! the reference implementation.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "conformance/case.rs"]
mod case;

use attest::{
    Host, PublicKey, Requirement, RevocationList, Scheme, SignatureState, Target, TrustRoot,
    UnverifiedAttestation,
};
use case::Case;
use contract::time::Timestamp;
use serde_json::{Value, json};

/// The library's verdict in the format that the program prints.
fn verdict(case: &Case) -> Value {
    let root = TrustRoot::parse(case.trust_root.as_bytes()).expect("a trust root");
    let scheme = Scheme::built_in(&case.scheme).expect("a scheme");
    let now = Timestamp::parse(&case.now).expect("a moment");
    let host = case.host.as_deref().map(|host| Host::parse(host).expect("a host"));
    let target = host.as_ref().map_or(Target::Unknown, Target::Remote);
    let mut requirement =
        Requirement::new(scheme, &case.required, target, now).expect("a level of the scheme");
    let list =
        case.revocations.as_ref().map(|list| RevocationList::verify(list.as_bytes(), &root, now));
    if let Some(list) = &list {
        requirement = requirement.with_revocation_outcome(list);
    }
    match attest::verify(case.document.as_bytes(), &root, &requirement) {
        Ok(verified) => json!({
            "verdict": "ADMIT", "clause": null, "reason": null,
            "clearance": verified.clearance().name(), "signer": verified.signer().as_str(),
        }),
        Err(denial) => json!({
            "verdict": "DENY",
            "clause": denial.clause().map(attest::Clause::as_str),
            "reason": denial.reason().as_str(),
            "clearance": denial.clearance().map(attest::Clearance::name),
            "signer": denial.signer().map(attest::KeyId::as_str),
        }),
    }
}

#[test]
fn the_eleven_vectors_of_the_specification() {
    let expected = [
        "ADMIT", "DENY a", "DENY b", "DENY c", "DENY d", "DENY e", "DENY f", "DENY f", "DENY g",
        "DENY h", "ADMIT",
    ];
    let cases = case::appendix_d();
    assert_eq!(cases.len(), expected.len());
    for (case, expected) in cases.iter().zip(expected) {
        let found = verdict(case);
        assert_eq!(found, case.expect, "{}", case.name);
        // The table from the specification itself, independent of the data's expectations.
        let clause = found["clause"].as_str().map_or(String::new(), |clause| format!(" {clause}"));
        assert_eq!(format!("{}{clause}", found["verdict"].as_str().expect("text")), expected);
    }
}

#[test]
fn every_other_vector() {
    let cases = case::more();
    assert!(cases.len() >= 25, "only {} vectors", cases.len());
    for case in &cases {
        assert_eq!(verdict(case), case.expect, "{}", case.name);
    }
    // Both verdicts must occur.
    for verdict in ["ADMIT", "DENY"] {
        assert!(cases.iter().any(|case| case.expect["verdict"] == verdict));
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let case = case::appendix_d().remove(0);
    let expired = Case { now: "9999-12-31".to_owned(), ..case.clone() };
    assert_eq!(verdict(&expired), case.expect, "no window was set");
    let tampered = Case { document: case.document.replace("2.3.1", "2.3.2"), ..case.clone() };
    assert_ne!(verdict(&tampered), case.expect);
}

/// `HOLDPOINT_ATTESTATION_INTEROP` names a file of documents that the reference implementation signed:
/// `{"keyId", "publicKeyPem", "approvedClearance", "manifests": […]}`.
#[test]
fn documents_of_the_reference_implementation_verify() {
    // The documents belong to another project and are not kept here. `scripts/test` reports if they
    // are missing.
    let Ok(path) = std::env::var("HOLDPOINT_ATTESTATION_INTEROP") else { return };
    let text = std::fs::read_to_string(&path).expect("the file that is named can be read");
    let data: Value = serde_json::from_str(&text).expect("it is JSON");
    let key = PublicKey::from_pem(data["publicKeyPem"].as_str().expect("a key")).expect("a key");
    let root = json!({ "v": 1, "signers": [{
        "keyId": data["keyId"], "publicKeyPem": data["publicKeyPem"],
        "approvedClearance": data["approvedClearance"],
    }] });
    let root = TrustRoot::parse(root.to_string().as_bytes()).expect("a trust root");
    let scheme = Scheme::built_in("default").expect("a scheme");
    let requirement =
        Requirement::new(scheme, "public", Target::Unknown, Timestamp(0)).expect("a level");
    let documents = data["manifests"].as_array().expect("documents");
    assert!(!documents.is_empty());
    for document in documents {
        let parse = |document: &Value| {
            UnverifiedAttestation::parse(document.to_string().as_bytes()).expect("a document")
        };
        assert_eq!(parse(document).signature_by(&key), SignatureState::Verifies, "{document}");
        let mut tampered = document.clone();
        tampered["version"] = json!("0.0.0-tampered");
        assert_eq!(parse(&tampered).signature_by(&key), SignatureState::DoesNotVerify);
        // They are manifests of modules rather than of servers.
        let denial = parse(document).verify(&root, &requirement).expect_err("not a server");
        assert_eq!(denial.reason(), attest::Reason::NotMcpServer);
    }
}

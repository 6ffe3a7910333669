use super::*;
use crate::denial::{Clause, Reason};
use crate::fixture::{baseline, baseline_2, key, revoker_key, signed};
use contract::json::MAX_DEPTH;
use serde_json::json;

#[track_caller]
fn invalid(bytes: &[u8]) {
    let denial = UnverifiedAttestation::parse(bytes).unwrap_err();
    assert_eq!((denial.clause(), denial.reason()), (Some(Clause::A), Reason::ManifestInvalid));
}

#[test]
fn what_is_not_one_json_object_is_invalid() {
    let text = baseline().to_string();
    assert!(UnverifiedAttestation::parse(text.as_bytes()).is_ok());
    invalid(b"");
    invalid(b"[]");
    invalid(b"null");
    invalid(b"\xff{}");
    invalid(format!("[{text}]").as_bytes());
    invalid(format!("{text}{text}").as_bytes());
    invalid(format!("{text} x").as_bytes());
    invalid(format!("\u{feff}{text}").as_bytes());
    invalid(text.replacen('{', r#"{"id":"other","#, 1).as_bytes());
    invalid(text.replacen('{', r#"{"\u0069d":"other","#, 1).as_bytes());
}

#[test]
fn a_document_ends_at_its_limits() {
    let padded = |bytes: usize| crate::fixture::padded(&baseline(), bytes);
    assert!(UnverifiedAttestation::parse(padded(MAX_DOCUMENT_BYTES).as_bytes()).is_ok());
    invalid(padded(MAX_DOCUMENT_BYTES + 1).as_bytes());
    let deep = |depth: usize| {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        baseline().to_string().replacen('{', &format!("{{\"x\":{nested},"), 1)
    };
    assert!(UnverifiedAttestation::parse(deep(MAX_DEPTH - 1).as_bytes()).is_ok());
    invalid(deep(MAX_DEPTH).as_bytes());
}

#[test]
fn members_that_no_signature_covers_are_told() {
    let mut document = baseline_2();
    document["note"] = json!("believe me");
    let read = UnverifiedAttestation::parse(document.to_string().as_bytes()).unwrap();
    assert_eq!(read.unsigned_members(), ["note"]);
    document["v"] = json!(1);
    let read = UnverifiedAttestation::parse(document.to_string().as_bytes()).unwrap();
    let unsigned = ["notBefore", "expires", "toolClearance", "toolDigests", "note"];
    assert_eq!(read.unsigned_members(), unsigned);
}

#[test]
fn a_signature_is_that_of_one_key() {
    let document = signed(&baseline());
    let read = UnverifiedAttestation::parse(document.to_string().as_bytes()).unwrap();
    assert_eq!(read.signature_by(&key().public_key()), SignatureState::Verifies);
    assert_eq!(read.signature_by(&revoker_key().public_key()), SignatureState::DoesNotVerify);
    let read = UnverifiedAttestation::parse(baseline().to_string().as_bytes()).unwrap();
    assert_eq!(read.signature_by(&key().public_key()), SignatureState::Missing);
}

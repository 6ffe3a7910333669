use super::*;
use crate::fixture::{
    SIGNER, key, now, revocations, revoker_key, root, root_document, root_of, signed_by, signer,
};
use serde_json::{Value, json};

fn verify(list: &Value) -> Result<RevocationList, RevocationError> {
    RevocationList::verify(list.to_string().as_bytes(), &root(), now())
}

fn signed(changes: &Value) -> Value {
    signed_by(&revocations(changes), &revoker_key())
}

#[test]
fn a_fresh_list_of_one_who_may_revoke_counts() {
    let list = verify(&signed(&json!({ "signers": [SIGNER] }))).unwrap();
    assert_eq!(list.check_signer(&signer(), now()).unwrap_err().reason(), Reason::SignerRevoked);
    let other = KeyId::parse("somebody-else").unwrap();
    assert_eq!(list.check_signer(&other, now()), Ok(()));
    assert_eq!(list.issued().to_string(), "2026-11-16T00:00:00Z");
}

#[test]
fn a_list_of_anybody_else_does_not_count() {
    let by_signer = revocations(&json!({ "signerKeyId": SIGNER }));
    let error = verify(&signed_by(&by_signer, &key())).unwrap_err();
    assert_eq!(error, RevocationError::SignerNotTrusted(signer()));
    let unknown = revocations(&json!({ "signerKeyId": "nobody" }));
    let error = verify(&signed_by(&unknown, &revoker_key())).unwrap_err();
    assert!(matches!(error, RevocationError::SignerNotTrusted(_)));
    let error = verify(&signed_by(&revocations(&json!({})), &key())).unwrap_err();
    assert_eq!(error, RevocationError::BadSignature);
    assert_eq!(verify(&revocations(&json!({}))).unwrap_err(), RevocationError::Unsigned);
    let mut document = root_document();
    document["signers"][1]["notAfter"] = json!("2026-01-01");
    let bytes = signed(&json!({})).to_string();
    let error = RevocationList::verify(bytes.as_bytes(), &root_of(&document), now()).unwrap_err();
    assert!(matches!(error, RevocationError::SignerExpired(_)));
}

#[test]
fn what_was_changed_after_signing_does_not_count() {
    let list = signed(&json!({ "signers": [SIGNER] }));
    for (member, value) in [
        ("signers", json!([])),
        ("documents", json!(["ab".repeat(32)])),
        ("expires", json!("2026-12-01T00:00:00Z")),
        ("issued", json!("2026-11-15T00:00:00Z")),
    ] {
        let mut changed = list.clone();
        changed[member] = value;
        assert_eq!(verify(&changed).unwrap_err(), RevocationError::BadSignature, "{member}");
    }
}

#[test]
fn a_list_counts_from_its_issue_to_its_expiry_both_included() {
    let window = |issued: &str, expires: &str| {
        verify(&signed(&json!({ "issued": issued, "expires": expires })))
    };
    let (at, before, after) = (crate::fixture::NOW, "2026-11-16T07:59:59Z", "2026-11-16T08:00:01Z");
    assert!(window(at, after).is_ok());
    assert!(window(before, at).is_ok());
    assert!(matches!(window(after, "2026-12-01").unwrap_err(), RevocationError::NotYetIssued(_)));
    assert!(matches!(window("2026-11-01", before).unwrap_err(), RevocationError::Stale(_)));
}

#[test]
fn a_list_that_has_gone_stale_clears_nobody() {
    let list = verify(&signed(&json!({}))).unwrap();
    let later = Timestamp(list.expires().0 + 1);
    assert_eq!(list.check_signer(&signer(), list.expires()), Ok(()));
    let denial = list.check_signer(&signer(), later).unwrap_err();
    assert_eq!((denial.clause(), denial.reason()), (Some(Clause::D), Reason::FetchFailed));
}

#[test]
fn a_list_is_read_strictly_and_ends_at_its_limits() {
    let refused = |changes: Value| {
        let list = revocations(&changes).to_string();
        read(list.as_bytes()).expect_err(&list)
    };
    refused(json!({ "v": 2 }));
    refused(json!({ "type": "attestation" }));
    refused(json!({ "tools": [] }));
    refused(json!({ "expires": "2026-11-16T00:00:00Z" }));
    refused(json!({ "issued": null }));
    refused(json!({ "signers": [""] }));
    for member in ["signers", "documents"] {
        let empty = ShapeError::Empty { name: member.to_owned() };
        assert_eq!(refused(json!({ member: null })), empty);
        let mut list = revocations(&json!({}));
        list.as_object_mut().unwrap().remove(member);
        assert!(read(list.to_string().as_bytes()).is_err(), "{member}");
    }
    refused(json!({ "documents": ["AB".repeat(32)] }));
    let ids = |count: usize| -> Value { (0..count).map(|at| format!("key-{at}")).collect() };
    let at_limit = revocations(&json!({ "signers": ids(MAX_REVOKED) })).to_string();
    assert!(read(at_limit.as_bytes()).is_ok());
    let too_many = ShapeError::TooMany { member: "signers", limit: MAX_REVOKED };
    assert_eq!(refused(json!({ "signers": ids(MAX_REVOKED + 1) })), too_many);
    let digests = |count: usize| -> Value { (0..count).map(|at| format!("{at:064x}")).collect() };
    let at_limit = revocations(&json!({ "documents": digests(MAX_REVOKED) })).to_string();
    assert!(read(at_limit.as_bytes()).is_ok());
    let too_many = ShapeError::TooMany { member: "documents", limit: MAX_REVOKED };
    assert_eq!(refused(json!({ "documents": digests(MAX_REVOKED + 1) })), too_many);
    let padded = |bytes: usize| crate::fixture::padded(&revocations(&json!({})), bytes);
    assert!(read(padded(MAX_REVOCATION_LIST_BYTES).as_bytes()).is_ok());
    assert!(read(padded(MAX_REVOCATION_LIST_BYTES + 1).as_bytes()).is_err());
}

#[test]
fn a_list_is_good_for_a_month_at_most() {
    let lasting = |expires: &str| verify(&revocations(&json!({ "expires": expires })));
    let unsigned = RevocationError::Unsigned;
    assert_eq!(lasting("2026-12-17T00:00:00Z").unwrap_err(), unsigned);
    let error = lasting("2026-12-17T00:00:00.001Z").unwrap_err().to_string();
    assert!(error.ends_with("`expires` is not at most 31 days after `issued`"), "{error}");
    assert_eq!(MAX_REVOCATION_LIST_DAYS, 31);
}

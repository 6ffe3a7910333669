use super::*;
use crate::fixture::{SIGNER, baseline, baseline_2, key, requirement, root};
use serde_json::json;

fn parse(document: &Value) -> Result<Draft, DraftError> {
    Draft::parse(document.to_string().as_bytes())
}

#[test]
fn what_was_signed_is_admitted() {
    for document in [baseline(), baseline_2()] {
        let text = parse(&document).unwrap().sign(&key()).unwrap();
        let verified = crate::verify(text.as_bytes(), &root(), &requirement()).unwrap();
        assert_eq!(verified.signer().as_str(), SIGNER);
        // Signing an already signed document again gives the same result.
        assert_eq!(Draft::parse(text.as_bytes()).unwrap().sign(&key()).unwrap(), text);
    }
}

#[test]
fn a_document_without_verification_gets_one() {
    let mut document = baseline();
    document.as_object_mut().unwrap().remove("verification");
    let text = parse(&document).unwrap().sign(&key()).unwrap();
    let signed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(signed["verification"], "unverified");
}

#[test]
fn the_signer_is_written_or_given_and_not_two_of_them() {
    let mut document = baseline();
    let given = KeyId::parse("other").unwrap();
    let error = parse(&document).unwrap().signed_as(given.clone()).unwrap_err();
    assert_eq!(error, DraftError::OtherSigner { written: KeyId::parse(SIGNER).unwrap(), given });
    document.as_object_mut().unwrap().remove("signerKeyId");
    assert_eq!(parse(&document).unwrap().sign(&key()), Err(DraftError::NoSigner));
    let draft = parse(&document).unwrap().signed_as(KeyId::parse(SIGNER).unwrap()).unwrap();
    assert!(draft.sign(&key()).unwrap().contains(r#""signerKeyId": "acme-2026""#));
}

#[test]
fn what_no_signature_would_cover_is_refused() {
    let mut document = baseline();
    document["expires"] = json!("2027-01-01");
    let unknown =
        |name: &str| DraftError::Shape(ShapeError::UnknownMember { name: name.to_owned() });
    assert_eq!(parse(&document).unwrap_err(), unknown("expires"));
    let mut document = baseline_2();
    document["note"] = json!("");
    assert_eq!(parse(&document).unwrap_err(), unknown("note"));
}

#[test]
fn what_nobody_would_admit_is_not_signed() {
    let mut document = baseline();
    document["capabilities"] = json!(["tool.invoke"]);
    assert_eq!(parse(&document).unwrap_err(), DraftError::NotMcpServer);
    for entry in ["https://a.example/", "", "*", "a.example:99999"] {
        let mut document = baseline();
        document["netAllowedHosts"] = json!([entry]);
        assert_eq!(parse(&document).unwrap_err(), DraftError::Host(entry.to_owned()));
    }
    let mut document = baseline_2();
    document["packageDigest"] = json!(crate::Digest::sha256(b"x").to_string());
    assert!(parse(&document).is_ok());
    document["netAllowedHosts"] = json!(["a.example"]);
    assert_eq!(parse(&document).unwrap_err(), DraftError::TwoTargets);
    let draft = parse(&baseline_2()).unwrap();
    let moment = |text: &str| Timestamp::parse(text).unwrap();
    let end = moment("2027-01-01T00:00:00Z");
    assert_eq!(draft.check_expiry(end), Ok(()));
    let after = moment("2027-01-01T00:00:01Z");
    assert_eq!(draft.check_expiry(after), Err(DraftError::Over(end)));
}

#[test]
fn what_is_there_and_empty_is_not_signed_as_if_it_were_absent() {
    for (member, value) in
        [("expires", json!("")), ("packageDigest", json!("  ")), ("netAllowedHosts", Value::Null)]
    {
        let mut document = baseline_2();
        document[member] = value;
        let empty = ShapeError::Empty { name: member.to_owned() };
        assert_eq!(parse(&document).unwrap_err(), DraftError::Shape(empty));
    }
    let mut document = baseline();
    document["signature"] = Value::Null;
    assert!(parse(&document).is_ok());
}

#[test]
fn what_nobody_would_read_is_not_signed() {
    let mut document = baseline_2();
    let tools = (0..crate::MAX_TOOLS).map(|at| (format!("{at:>0200}"), json!("internal")));
    document["toolClearance"] = Value::Object(tools.collect());
    let error = parse(&document).unwrap().sign(&key()).unwrap_err();
    assert_eq!(error, ShapeError::TooLong { limit: MAX_DOCUMENT_BYTES }.into());
}

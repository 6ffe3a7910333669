//! Documents, trust roots, schemes, revocation lists and keys parse or are refused, whatever the
//! bytes. Documents signed here are admitted, and no others, since only this test has the key.

use attest::{
    Draft, Host, KeyId, PublicKey, Requirement, RevocationList, Scheme, SigningKey, Target,
    TrustRoot, UnverifiedAttestation,
};
use contract::time::Timestamp;
use std::sync::LazyLock;

const SIGNER: &str = "S";
const NOW: Timestamp = Timestamp(1_794_816_000_000);

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed([9; 32]));
static ROOT: LazyLock<TrustRoot> = LazyLock::new(|| {
    let pem = KEY.public_key().to_pem().expect("a key");
    let root = serde_json::json!({ "v": 1, "signers": [{
        "keyId": SIGNER, "publicKeyPem": pem, "mayRevoke": true,
        "approvedClearance": ["public", "internal", "confidential", "restricted", "restricted-plus", "sci"],
    }] });
    TrustRoot::parse(root.to_string().as_bytes()).expect("a trust root")
});

pub fn run(bytes: &[u8]) {
    let scheme = Scheme::built_in("default").expect("a scheme");
    let host = Host::parse("a.example").expect("a host");
    let targets = [Target::Remote(&host), Target::Unknown];
    let requirements =
        targets.map(|target| Requirement::new(scheme, "public", target, NOW).expect("a level"));
    for requirement in &requirements {
        // The fuzzer does not have this key, so no input can be signed with it.
        assert!(attest::verify(bytes, &ROOT, requirement).is_err());
    }
    if let Ok(document) = UnverifiedAttestation::parse(bytes) {
        let canonical = document.canonical_body();
        let text = String::from_utf8(canonical.clone()).expect("a body is text");
        // The body is a document too, and is its own body.
        let again = UnverifiedAttestation::parse(text.as_bytes()).expect("a body is a document");
        assert_eq!(again.canonical_body(), canonical);
        assert_eq!(again.digest(), document.digest());
    }
    sign_and_verify(bytes, &requirements);
    let _ = TrustRoot::parse(bytes);
    let _ = RevocationList::verify(bytes, &ROOT, NOW);
    let _ = Scheme::parse(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(key) = PublicKey::from_pem(text) {
        assert_eq!(PublicKey::from_pem(&key.to_pem().expect("a key")), Ok(key));
    }
    let _ = SigningKey::from_pem(text, None);
    let _ = SigningKey::from_pem(text, Some("x"));
    if let Ok(host) = Host::parse(text) {
        assert_eq!(Host::parse(&host.to_string()), Ok(host));
    }
}

/// Documents signed here verify, and fail with one byte changed.
fn sign_and_verify(bytes: &[u8], requirements: &[Requirement<'_>]) {
    let Ok(draft) = Draft::parse(bytes) else { return };
    let Ok(draft) = draft.signed_as(KeyId::parse(SIGNER).expect("an id")) else { return };
    let Ok(signed) = draft.sign(&KEY) else { return };
    let Ok(document) = UnverifiedAttestation::parse(signed.as_bytes()) else {
        let list = RevocationList::verify(signed.as_bytes(), &ROOT, NOW);
        assert!(!matches!(list, Err(attest::RevocationError::BadSignature)));
        return;
    };
    for requirement in requirements {
        let reason =
            document.clone().verify(&ROOT, requirement).err().map(|denial| denial.reason());
        assert_ne!(reason, Some(attest::Reason::BadSignature));
        assert_ne!(reason, Some(attest::Reason::Unsigned));
    }
    let tampered = signed.replacen("\"id\": \"", "\"id\": \"x", 1);
    if let Ok(document) = UnverifiedAttestation::parse(tampered.as_bytes()) {
        for requirement in requirements {
            assert!(document.clone().verify(&ROOT, requirement).is_err());
        }
    }
}

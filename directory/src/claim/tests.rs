use super::*;
use ed25519_dalek::{Signer, SigningKey};

const NOW: Timestamp = Timestamp(1_790_000_000_500);

fn signing_key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

fn key(byte: u8) -> ClaimKey {
    ClaimKey::from_bytes(signing_key(byte).verifying_key().to_bytes()).unwrap()
}

fn server(id: &str) -> SubjectId {
    id.parse().unwrap()
}

#[test]
fn a_key_has_one_spelling_and_weak_keys_are_refused() {
    let text = key(1).to_string();
    assert_eq!(text.parse::<ClaimKey>().unwrap(), key(1));
    let weak = format!("ed25519:{}", STANDARD.encode([0_u8; 32]));
    for bad in
        ["", "ed25519:", &text[8..], &format!("{text}="), &text.replace("ed25519", "rsa"), &weak]
    {
        assert_eq!(bad.parse::<ClaimKey>(), Err(BadClaimKey), "{bad}");
    }
}

#[test]
fn a_nonce_is_bound_to_server_and_key_and_lives_a_day() {
    let secret = NonceSecret([7; 32]);
    let (nonce, expires) = secret.nonce(&server("npm:files"), &key(1), NOW);
    let check = |id: &str, key: &ClaimKey, nonce: &str, now| {
        secret.check(&server(id), key, nonce, Timestamp(now))
    };
    assert_eq!(check("npm:files", &key(1), &nonce, NOW.0), Ok(()));
    assert_eq!(check("npm:files", &key(1), &nonce, expires.0), Ok(()));
    assert_eq!(check("npm:files", &key(1), &nonce, expires.0 + 1), Err(BadNonce::Expired));
    assert_eq!(expires.0 - NOW.0.div_euclid(1_000) * 1_000, 24 * HOUR_MS);
    assert_eq!(check("npm:file", &key(1), &nonce, NOW.0), Err(BadNonce::Unknown));
    assert_eq!(check("npm:files", &key(2), &nonce, NOW.0), Err(BadNonce::Unknown));
    let later = nonce.replacen('0', "1", 1);
    for other in ["", "zz", &nonce[..41], &format!("{nonce}0"), &later, &nonce.to_uppercase()] {
        assert_eq!(check("npm:files", &key(1), other, NOW.0), Err(BadNonce::Unknown), "{other}");
    }
    let other = NonceSecret([8; 32]);
    assert_eq!(other.check(&server("npm:files"), &key(1), &nonce, NOW), Err(BadNonce::Unknown));
}

#[test]
fn a_line_is_signed_with_its_prefix_by_the_key_itself() {
    let said = line(&server("npm:files"), &key(1), "n");
    let sign =
        |byte: u8, text: &str| STANDARD.encode(signing_key(byte).sign(text.as_bytes()).to_bytes());
    assert!(key(1).signed(&said, &sign(1, &signed_text(&said))));
    assert!(!key(1).signed(&said, &sign(1, &said)));
    assert!(!key(1).signed(&said, &sign(2, &signed_text(&said))));
    assert!(!key(1).signed(&format!("{said}x"), &sign(1, &signed_text(&said))));
    assert!(!key(1).signed(&said, "not base64"));
}

#[test]
fn places_follow_from_what_the_directory_knows_and_not_from_the_claimant() {
    let domains = |id: &str, remote: Option<&str>| -> Vec<(String, bool, String)> {
        let places = places(&server(id), remote).into_iter();
        let domain = |place| match place {
            Place::Domain { name, has_records, well_known } => (name, has_records, well_known),
            Place::Package { .. } => panic!("a package"),
        };
        places.map(domain).collect()
    };
    let file = |origin: &str| format!("{origin}/.well-known/holdpoint.json");
    assert_eq!(
        domains("com.example/weather", Some("https://mcp.example.net/a/b?c")),
        [
            ("mcp.example.net".to_owned(), true, file("https://mcp.example.net")),
            ("example.com".to_owned(), true, file("https://example.com")),
        ]
    );
    assert_eq!(domains("com.example/weather", Some("https://example.com/mcp")).len(), 1);
    assert_eq!(
        domains("io.github.acme/x", None),
        [("acme.github.io".to_owned(), true, file("https://acme.github.io"))]
    );
    assert_eq!(
        domains("plain", Some("http://127.0.0.1:81/mcp")),
        [("127.0.0.1".to_owned(), false, file("http://127.0.0.1:81"))]
    );
    for nothing in ["com/x", "plain", "1.2.3.4/x", "a..b/x", "-a.b/x", "a_b.c/x"] {
        assert!(domains(nothing, None).is_empty(), "{nothing}");
    }
    assert_eq!(
        places(&server("npm:@a/b"), None),
        [Place::Package { registry: PackageRegistry::Npm, name: "@a/b".to_owned() }]
    );
}

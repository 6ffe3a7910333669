use super::*;

const SALT: Salt = Salt { salt: [3; 16], initialization: [4; 16] };

/// A key made by openssl, with its public half.
const OPENSSL_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
";
const OPENSSL_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
";

fn key() -> SigningKey {
    SigningKey::from_pem(OPENSSL_PRIVATE, None).unwrap()
}

fn public_pem(bytes: [u8; 32]) -> String {
    let mut der = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".to_vec();
    der.extend_from_slice(&bytes);
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

#[test]
fn keys_of_openssl_read_and_write_the_same() {
    assert_eq!(*key().to_pem().unwrap(), OPENSSL_PRIVATE);
    assert_eq!(key().public_key().to_pem().unwrap(), OPENSSL_PUBLIC);
    assert_eq!(PublicKey::from_pem(OPENSSL_PUBLIC), Ok(key().public_key()));
    let windows = OPENSSL_PUBLIC.replace('\n', "\r\n");
    assert_eq!(PublicKey::from_pem(&windows), Ok(key().public_key()));
}

#[test]
fn an_encrypted_key_opens_with_its_passphrase_alone() {
    let pem = key().to_encrypted_pem("correct horse", SALT).unwrap();
    assert!(pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    let opened = SigningKey::from_pem(&pem, Some("correct horse")).unwrap();
    assert_eq!(opened.public_key(), key().public_key());
    let refused = |passphrase| SigningKey::from_pem(&pem, passphrase).unwrap_err();
    assert_eq!(refused(Some("correct horse ")), BadKey::WrongPassphrase);
    assert_eq!(refused(None), BadKey::NeedsPassphrase);
    assert_eq!(key().to_encrypted_pem("", SALT).unwrap_err(), BadKey::EmptyPassphrase);
}

#[test]
fn what_is_no_key_is_refused() {
    for text in ["", "x", OPENSSL_PUBLIC, &OPENSSL_PRIVATE.replace("PRIVATE", "EC PRIVATE")] {
        assert_eq!(SigningKey::from_pem(text, None).unwrap_err(), BadKey::Private, "{text}");
    }
    let rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n";
    for text in ["", "x", rsa] {
        assert_eq!(PublicKey::from_pem(text).unwrap_err(), BadKey::Public, "{text}");
    }
    assert_eq!(PublicKey::from_pem(OPENSSL_PRIVATE).unwrap_err(), BadKey::NotPublic);
}

#[test]
fn a_key_ends_at_its_limit() {
    let padded = |text: &str, bytes: usize| format!("{text:<bytes$}");
    assert!(SigningKey::from_pem(&padded(OPENSSL_PRIVATE, MAX_PEM_BYTES), None).is_ok());
    let longer = padded(OPENSSL_PRIVATE, MAX_PEM_BYTES + 1);
    assert_eq!(SigningKey::from_pem(&longer, None).unwrap_err(), BadKey::TooLong);
    assert!(PublicKey::from_pem(&padded(OPENSSL_PUBLIC, MAX_PEM_BYTES)).is_ok());
    let longer = padded(OPENSSL_PUBLIC, MAX_PEM_BYTES + 1);
    assert_eq!(PublicKey::from_pem(&longer), Err(BadKey::TooLong));
}

#[test]
fn a_file_that_asks_for_too_much_work_is_not_opened() {
    let rounds = |rounds| Parameters::generate_pbkdf2_sha256_aes256cbc(rounds, &[3; 16], [4; 16]);
    assert_eq!(check_cost(&rounds(MAX_PBKDF2_ROUNDS).unwrap().kdf), Ok(()));
    assert_eq!(check_cost(&rounds(MAX_PBKDF2_ROUNDS + 1).unwrap().kdf), Err(BadKey::TooCostly));
    let scrypt = |log_n, r, p| {
        let parameters = pkcs8::pkcs5::scrypt::Params::new(log_n, r, p).unwrap();
        Parameters::generate_scrypt_aes256cbc(parameters, &[3; 16], [4; 16]).unwrap().kdf
    };
    // 128 bytes times 8 times 2^18.
    assert_eq!(check_cost(&scrypt(18, 8, 1)), Ok(()));
    assert_eq!(check_cost(&scrypt(19, 8, 1)), Err(BadKey::TooCostly));
    assert_eq!(check_cost(&scrypt(14, 8, u32::from(MAX_SCRYPT_PARALLELIZATION))), Ok(()));
    let parallel = u32::from(MAX_SCRYPT_PARALLELIZATION) + 1;
    assert_eq!(check_cost(&scrypt(14, 8, parallel)), Err(BadKey::TooCostly));
}

#[test]
fn scrypt_is_not_tried_with_numbers_that_it_is_not_defined_for() {
    let Kdf::Scrypt(usual) = scrypt_of(14) else { panic!("not scrypt") };
    assert_eq!(check_cost(&Kdf::Scrypt(usual)), Ok(()));
    for cost_parameter in [0, 1, 3, 16_383] {
        let odd = pkcs8::pkcs5::pbes2::ScryptParams { cost_parameter, ..usual };
        assert_eq!(check_cost(&Kdf::Scrypt(odd)), Err(BadKey::TooCostly), "{cost_parameter}");
    }
    let odd = pkcs8::pkcs5::pbes2::ScryptParams { block_size: 0, ..usual };
    assert_eq!(check_cost(&Kdf::Scrypt(odd)), Err(BadKey::TooCostly));
    let odd = pkcs8::pkcs5::pbes2::ScryptParams { parallelization: 0, ..usual };
    assert_eq!(check_cost(&Kdf::Scrypt(odd)), Err(BadKey::TooCostly));
}

fn scrypt_of(log_n: u8) -> Kdf {
    let parameters = pkcs8::pkcs5::scrypt::Params::new(log_n, 8, 1).unwrap();
    Parameters::generate_scrypt_aes256cbc(parameters, &[3; 16], [4; 16]).unwrap().kdf
}

#[test]
fn keys_that_anybody_can_sign_for_are_refused() {
    // The neutral element, the point of order two, and those of order four.
    let mut two = [0xff; 32];
    (two[0], two[31]) = (0xec, 0x7f);
    let mut one = [0; 32];
    one[0] = 1;
    let mut four = [0; 32];
    four[31] = 0x80;
    for bytes in [one, two, [0; 32], four] {
        assert!(VerifyingKey::from_bytes(&bytes).is_ok(), "it is a point");
        assert_eq!(PublicKey::from_bytes(&bytes), Err(BadKey::Point));
        assert_eq!(PublicKey::from_pem(&public_pem(bytes)), Err(BadKey::Point));
    }
}

#[test]
fn a_second_spelling_of_a_point_is_refused() {
    let mut strong = 0;
    for first in 0xed..=0xff {
        for last in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (first, last);
            let is_strong = VerifyingKey::from_bytes(&bytes).is_ok_and(|key| !key.is_weak());
            strong += usize::from(is_strong);
            assert_eq!(PublicKey::from_bytes(&bytes), Err(BadKey::Point), "{first:x} {last:x}");
        }
    }
    assert!(strong > 0, "there was nothing to refuse");
}

/// The order of the group. Adding it to the second half of a signature does not change its meaning.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

#[test]
fn a_second_spelling_of_a_signature_is_refused() {
    let text = key().sign_text(b"bytes");
    let public = key().public_key();
    assert_eq!(public.check_text(b"bytes", &text), Signed::Yes);
    assert_eq!(public.check_text(b"byteS", &text), Signed::No);
    let mut raw = STANDARD.decode(&text).unwrap();
    let mut carry = 0;
    for (byte, order) in raw[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(public.check_text(b"bytes", &STANDARD.encode(&raw)), Signed::No);
}

#[test]
fn a_second_spelling_of_base64_is_refused() {
    let text = key().sign_text(b"bytes");
    let public = key().public_key();
    let body = text.trim_end_matches('=');
    // The last character before the padding contains four unused bits.
    let (front, last) = body.split_at(body.len() - 1);
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let others = alphabet.chars().filter(|other| *other != last.chars().next().unwrap());
    let others: Vec<String> = others.map(|other| format!("{front}{other}==")).collect();
    let url_safe = text.replace('+', "-").replace('/', "_");
    let more = [
        body.to_owned(),
        format!("{text}="),
        format!("{text}\n"),
        text.replacen(front, &format!(" {front}"), 1),
    ];
    for spelling in
        others.iter().chain(&more).chain(Some(&url_safe).filter(|other| **other != text))
    {
        assert_eq!(public.check_text(b"bytes", spelling), Signed::No, "{spelling}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?}", key());
    assert_eq!(shown, format!("SigningKey({})", key().public_key().fingerprint()));
}

#[test]
fn a_signature_that_says_nothing_of_the_key_is_refused() {
    use ed25519_dalek::Verifier;
    let text = include_str!("../../../conformance/attestation/more/signature-of-anybody.json");
    let case: serde_json::Value = serde_json::from_str(text).unwrap();
    let document = case["document"].to_string();
    let body = crate::UnverifiedAttestation::parse(document.as_bytes()).unwrap().canonical_body();
    let public = SigningKey::from_seed([1; 32]).public_key();
    let signature = case["document"]["signature"].as_str().unwrap();
    let raw: [u8; 64] = STANDARD.decode(signature).unwrap().try_into().unwrap();
    assert!(public.0.verify(&body, &Signature::from_bytes(&raw)).is_ok(), "nothing to refuse");
    assert_eq!(public.check_text(&body, signature), Signed::No);
}

/// A key encrypted with few rounds, so that it can be opened often.
fn encrypted_with(derivation: Kdf) -> Zeroizing<String> {
    let mut parameters =
        Parameters::generate_pbkdf2_sha256_aes256cbc(1, &[3; 16], [4; 16]).unwrap();
    parameters.kdf = derivation;
    let der = key().bytes().to_pkcs8_der().unwrap();
    // If the derivation does not exist, nothing can be encrypted with it, but a file may still name
    // it.
    let is_defined = check_cost(&parameters.kdf).is_ok();
    let data =
        if is_defined { parameters.encrypt("x", der.as_bytes()).unwrap() } else { vec![0; 64] };
    let info = EncryptedPrivateKeyInfo {
        encryption_algorithm: parameters.into(),
        encrypted_data: OctetString::new(data).unwrap(),
    };
    let document = SecretDocument::try_from(info).unwrap();
    document.to_pem(EncryptedPrivateKeyInfoOwned::PEM_LABEL, LineEnding::LF).unwrap()
}

#[test]
fn a_file_with_a_cost_that_there_is_none_of_is_refused_and_not_tried() {
    let Kdf::Scrypt(usual) = scrypt_of(4) else { panic!("not scrypt") };
    let open = |cost_parameter| {
        let odd = pkcs8::pkcs5::pbes2::ScryptParams { cost_parameter, ..usual };
        SigningKey::from_pem(&encrypted_with(Kdf::Scrypt(odd)), Some("x"))
    };
    assert_eq!(open(16).unwrap().public_key(), key().public_key());
    for cost in [0, 1, 3] {
        assert_eq!(open(cost).unwrap_err(), BadKey::TooCostly, "{cost}");
    }
}

#[test]
fn a_damaged_encrypted_key_is_answered_whatever_the_damage() {
    let rounds = Parameters::generate_pbkdf2_sha256_aes256cbc(1, &[3; 16], [4; 16]).unwrap().kdf;
    let mut refused = 0;
    for pem in [encrypted_with(scrypt_of(4)), encrypted_with(rounds)] {
        assert!(SigningKey::from_pem(&pem, Some("x")).is_ok());
        let (_, whole) = SecretDocument::from_pem(&pem).unwrap();
        for at in 0..whole.as_bytes().len() {
            for damage in [0x01, 0x02, 0x10, 0x80, 0xff] {
                let mut der = whole.as_bytes().to_vec();
                der[at] ^= damage;
                let Ok(document) = SecretDocument::try_from(der.as_slice()) else { continue };
                let label = EncryptedPrivateKeyInfoOwned::PEM_LABEL;
                let pem = document.to_pem(label, LineEnding::LF).unwrap();
                refused += usize::from(SigningKey::from_pem(&pem, Some("x")).is_err());
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
}

use super::*;

const PUBLIC: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PRIVATE: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";

fn key(seed: u8) -> SigningKey {
    SigningKey::generate("holdpoint/0123456789abcdef", [seed; 32]).unwrap()
}

/// The text of a key with these bytes and the matching hash.
fn text_of(name: &str, typed: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest([name.as_bytes(), b"\n", typed].concat()).into();
    format!("{name}+{}+{}", hex::encode(&hash[..4]), STANDARD.encode(typed))
}

#[test]
fn texts_of_keys_read_back() {
    let key = key(1);
    let again = SigningKey::parse(&key.to_text()).unwrap();
    assert_eq!(again.verifying_key(), key.verifying_key());
    assert_eq!(again.to_text(), key.to_text());
    assert_eq!(again.name(), "holdpoint/0123456789abcdef");
    let public = key.verifying_key();
    assert_eq!(VerifyingKey::parse(&public.to_string()).as_ref(), Ok(public));
    assert_eq!(VerifyingKey::parse(&format!("{public}\n")).as_ref(), Ok(public));
    assert!(SigningKey::parse(&format!("{}\n", *key.to_text())).is_ok());
}

#[test]
fn another_seed_or_name_is_another_key() {
    let other = SigningKey::generate("holdpoint/0123456789abcdee", [1; 32]).unwrap();
    assert_ne!(key(1).verifying_key(), key(2).verifying_key());
    assert_ne!(key(1).verifying_key(), other.verifying_key());
    assert_ne!(key(1).verifying_key().key_id(), other.verifying_key().key_id());
}

#[test]
fn no_secret_is_shown() {
    let key = SigningKey::parse(PRIVATE).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey(PeterNeumann+c74f20a3)");
    let secret = "AYEKFALVFGyNhPJEMzD1QIDr";
    assert!(key.to_text().contains(secret));
    for text in
        [PRIVATE.replace("+c7", "+d7"), PRIVATE.replace("Neumann", " "), format!("{PRIVATE}x")]
    {
        let error = SigningKey::parse(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(secret));
        let error = Keyring::from_text(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(secret));
    }
}

#[test]
fn what_is_no_public_key_is_refused() {
    let check = |text: &str, expected: BadKey| {
        assert_eq!(VerifyingKey::parse(text), Err(expected), "{text}");
    };
    assert!(VerifyingKey::parse(PUBLIC).is_ok());
    check(PRIVATE, BadKey::NotPublic);
    check("", BadKey::Public);
    check("PeterNeumann", BadKey::Public);
    check("PeterNeumann+c74f20a3", BadKey::Public);
    check("PeterNeumann+c74f20a3+", BadKey::Public);
    check(&format!("{PUBLIC}="), BadKey::Public);
    check(&format!("{PUBLIC}AAAA"), BadKey::Public);
    check(&format!("{PUBLIC}\n\n"), BadKey::Public);
    check(&PUBLIC[..PUBLIC.len() - 4], BadKey::Public);
    check(&PUBLIC.replace("c74f", "C74F"), BadKey::Hash);
    check(&PUBLIC.replace("c74f", "c74e"), BadKey::Hash);
    check(&PUBLIC.replace("+c74f", "+0c74f"), BadKey::Hash);
    check(&PUBLIC.replace("Peter", "Petra"), BadKey::Hash);
    check(&PUBLIC.replace("PeterNeumann", ""), BadKey::Name);
    check(&PUBLIC.replace("PeterNeumann", "Peter Neumann"), BadKey::Name);
    check(&PUBLIC.replace("PeterNeumann", "Peter\u{7f}Neumann"), BadKey::Name);
}

#[test]
fn keys_of_other_kinds_are_refused_by_kind() {
    let bytes = key(1).verifying_key().key.to_bytes();
    let typed = |kind: u8| text_of("name", &[&[kind], &bytes[..]].concat());
    assert!(VerifyingKey::parse(&typed(ED25519)).is_ok());
    for kind in [0, 2, 4, 0xff] {
        assert_eq!(VerifyingKey::parse(&typed(kind)), Err(BadKey::Kind), "{kind}");
    }
}

#[test]
fn keys_with_forgeable_signatures_are_refused() {
    // The points of small order, and a number that is not the coordinate of any point.
    let points = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "0200000000000000000000000000000000000000000000000000000000000000",
    ];
    for point in points {
        let text = text_of("name", &[&[ED25519][..], &hex::decode(point).unwrap()].concat());
        assert_eq!(VerifyingKey::parse(&text), Err(BadKey::Point), "{point}");
    }
}

#[test]
fn what_is_no_private_key_is_refused() {
    let check = |text: &str, expected: BadKey| {
        assert_eq!(SigningKey::parse(text).unwrap_err(), expected, "{text}");
    };
    check(PUBLIC, BadKey::Private);
    check("", BadKey::Private);
    check("PRIVATE+KEY+", BadKey::Private);
    check(&PRIVATE.to_lowercase(), BadKey::Private);
    check(&format!("{PRIVATE}=="), BadKey::Private);
    check(&PRIVATE.replace("+c74f", "+c74e"), BadKey::Hash);
    check(&PRIVATE.replace("Peter", "Petra"), BadKey::Hash);
    check(&PRIVATE.replace("+AYEK", "+AoEK"), BadKey::Kind);
    check(&PRIVATE.replace("PeterNeumann", "Peter\tNeumann"), BadKey::Name);
}

#[test]
fn the_longest_name_is_taken_and_no_longer_one() {
    let named = |name: &str| SigningKey::generate(name, [1; 32]).map(|_| ());
    assert_eq!(named("n"), Ok(()));
    assert_eq!(named(&"n".repeat(MAX_NAME_BYTES)), Ok(()));
    assert_eq!(named(&"n".repeat(MAX_NAME_BYTES + 1)), Err(BadKey::Name));
    for name in ["", "a b", "a+b", "a\nb", "a\u{2028}b", "a\u{1b}[31mb"] {
        assert_eq!(named(name), Err(BadKey::Name), "{name:?}");
    }
}

#[test]
fn a_keyring_lists_keys_by_line() {
    let text = format!("# the home's key\n\n{}\r\n  {PUBLIC}  \n", key(1).verifying_key());
    let keys = Keyring::from_text(&text).unwrap();
    assert_eq!(keys.keys().len(), 2);
    assert_eq!(keys.to_string(), "holdpoint/0123456789abcdef, PeterNeumann");
    let twice = Keyring::from_text(&format!("{PUBLIC}\n{PUBLIC}")).unwrap();
    assert_eq!(twice.keys().len(), 1);
}

#[test]
fn what_is_no_keyring_is_refused() {
    assert_eq!(Keyring::from_text(""), Err(BadKeyring::Empty));
    assert_eq!(Keyring::from_text("\n# only a remark\n"), Err(BadKeyring::Empty));
    let bad_line = |source| Err(BadKeyring::Key { line: 2, source });
    assert_eq!(Keyring::from_text(&format!("{PUBLIC}\nx")), bad_line(BadKey::Public));
    assert_eq!(Keyring::from_text(&format!("{PUBLIC}\n{PRIVATE}")), bad_line(BadKey::NotPublic));
}

#[test]
fn two_keys_with_one_name_and_number_are_refused() {
    let first = "twins+90ff8a14+ATqip6aM+K2TRDs2IZhejNx4oC1qCZzq6Ex6P+BUksNc";
    let second = "twins+90ff8a14+AfmC+/MmHlK/9oWkdAEdVfIVsdpCElosqPhJYWtem811";
    assert!(Keyring::from_text(first).is_ok() && Keyring::from_text(second).is_ok());
    let both = Keyring::from_text(&format!("{first}\n{PUBLIC}\n{second}\n"));
    assert_eq!(both, Err(BadKeyring::Ambiguous { line: 3 }));
}

#[test]
fn as_many_keys_as_allowed_are_read_and_one_more_is_not() {
    let lines = |count: usize| -> String {
        (0..count).map(|seed| format!("{}\n", key(seed as u8).verifying_key())).collect()
    };
    assert_eq!(Keyring::from_text(&lines(MAX_KEYS)).unwrap().keys().len(), MAX_KEYS);
    assert_eq!(Keyring::from_text(&lines(MAX_KEYS + 1)), Err(BadKeyring::TooMany));
    // Repeated keys do not count twice.
    let again = lines(MAX_KEYS).repeat(2);
    assert_eq!(Keyring::from_text(&again).unwrap().keys().len(), MAX_KEYS);
}

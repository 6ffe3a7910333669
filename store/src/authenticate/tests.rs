//! Authentication covers every field, its position and its purpose.

use super::{Authenticator, PinFields, Seal, SealedFields};
use crate::key::{Key, create_key};
use std::collections::BTreeSet;

fn key() -> Key {
    let directory = tempfile::tempdir().unwrap();
    create_key(&directory.path().join("pins.key")).unwrap()
}

const PIN: PinFields<'static> = PinFields {
    server: "reports",
    seq: 1,
    entry_type: "tool",
    key: "make",
    entry_hash: "aa",
    definition_hash: Some("bb"),
    raw: "{}",
    basis: "person",
    at: 2,
    by: "ada",
    withdrawn_at: None,
    withdrawn_by: None,
};

#[test]
fn every_field_of_a_pin_counts() {
    let key = key();
    let others = [
        PinFields { server: "mail", ..PIN },
        PinFields { seq: 2, ..PIN },
        PinFields { entry_type: "prompt", ..PIN },
        PinFields { key: "send", ..PIN },
        PinFields { entry_hash: "ab", ..PIN },
        PinFields { definition_hash: Some(""), ..PIN },
        PinFields { definition_hash: None, ..PIN },
        PinFields { raw: "[]", ..PIN },
        PinFields { basis: "auto", ..PIN },
        PinFields { at: 3, ..PIN },
        PinFields { by: "bob", ..PIN },
        PinFields { withdrawn_at: Some(0), ..PIN },
        PinFields { withdrawn_by: Some(""), ..PIN },
    ];
    let authentication = PIN.authentication(&key);
    assert!(PIN.matches(&key, &authentication));
    for other in &others {
        assert!(!other.matches(&key, &authentication), "{other:?}");
    }
    let all: BTreeSet<_> = others.iter().map(|other| other.authentication(&key)).collect();
    assert_eq!(all.len(), others.len());
}

#[test]
fn what_moves_from_one_field_to_the_next_counts() {
    let key = key();
    let one = PinFields { entry_type: "tool", key: "make", ..PIN }.authentication(&key);
    assert!(!PinFields { entry_type: "toolm", key: "ake", ..PIN }.matches(&key, &one));
    let one = PinFields { withdrawn_at: Some(1), withdrawn_by: None, ..PIN }.authentication(&key);
    assert!(
        !PinFields { withdrawn_at: None, withdrawn_by: Some("\x01"), ..PIN }.matches(&key, &one)
    );
}

#[test]
fn another_key_or_a_part_of_the_authentication_does_not_match() {
    let key = key();
    let authentication = PIN.authentication(&key);
    assert!(!PIN.matches(&self::key(), &authentication));
    assert!(!PIN.matches(&key, &authentication[..31]));
    assert!(!PIN.matches(&key, &[]));
}

const SERVER: SealedFields<'static> =
    SealedFields { status: "verified", launch: None, first_seen: 1, seal_count: 1 };

fn seal(key: &Key, server: &str, pins: &[(i64, &str, bool, &[u8])]) -> Seal {
    let mut seal = Seal::new(key, server);
    for (seq, name, is_withdrawn, authentication) in pins {
        seal.pin(*seq, b"tool", name.as_bytes(), *is_withdrawn, authentication);
    }
    seal
}

#[test]
fn every_part_of_a_seal_counts() {
    let key = key();
    let pins: [(i64, &str, bool, &[u8]); 2] =
        [(1, "a", false, &[1; 32]), (2, "b", false, &[2; 32])];
    let whole = seal(&key, "reports", &pins).finish(SERVER);
    assert!(seal(&key, "reports", &pins).matches(SERVER, &whole));
    let [first, second] = pins;
    for other in [
        vec![],
        vec![first],
        vec![second],
        vec![second, first],
        vec![first, second, second],
        vec![first, (3, "b", false, &[2; 32])],
        vec![first, (2, "c", false, &[2; 32])],
        vec![first, (2, "b", true, &[2; 32])],
        vec![first, (2, "b", false, &[3; 32])],
    ] {
        assert!(!seal(&key, "reports", &other).matches(SERVER, &whole), "{other:?}");
    }
    assert!(!seal(&key, "mail", &pins).matches(SERVER, &whole));
    for other in [
        SealedFields { status: "changed", ..SERVER },
        SealedFields { launch: Some(""), ..SERVER },
        SealedFields { first_seen: 2, ..SERVER },
        SealedFields { seal_count: 2, ..SERVER },
    ] {
        assert!(!seal(&key, "reports", &pins).matches(other, &whole), "{other:?}");
    }
}

#[test]
fn it_is_hmac_sha_256_over_lengths_and_fields() {
    use hmac::{Hmac, KeyInit, Mac};
    let key = key();
    let mut expected = Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).unwrap();
    expected.update(b"\x01\0\0\0\0\0\0\0p\x03\0\0\0\0\0\0\0abc");
    let mut state = Authenticator::new(&key, "p");
    state.text("abc");
    assert_eq!(state.finish(), <[u8; 32]>::from(expected.finalize().into_bytes()));
}
